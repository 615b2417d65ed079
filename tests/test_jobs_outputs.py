"""File and certificate: whole and together, or not at all; never over an input."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest

from dpredact.errors import UsageError
from dpredact.jobs import outputs
from dpredact.jobs.outputs import Target, WriteFailed
from dpredact.jobs.walking import Source


def source(path: Path, place: str) -> Source:
    return Source(path, PurePosixPath(place))


def target(folder: Path, name: str = "a.txt") -> Target:
    return Target(folder / name, folder / f"{name}.cert.json")


def test_the_tree_is_mirrored(tmp_path: Path) -> None:
    made = outputs.in_folder([source(tmp_path / "in/x/a.txt", "x/a.txt")], tmp_path / "out", {})
    (found,) = made.values()
    assert found.document == tmp_path / "out/x/a.txt"
    assert found.certificate == tmp_path / "out/x/a.txt.cert.json"


@pytest.mark.parametrize("other", ["a.txt", "a.txt.cert.json"])
def test_two_inputs_for_one_name_are_refused_before_anything_happens(tmp_path: Path, other: str) -> None:
    """The second case: a document that would be written over a certificate."""
    pair = [source(tmp_path / "one/a.txt", "a.txt"), source(tmp_path / "two/a.txt", other)]
    with pytest.raises(UsageError, match="would both be written"):
        outputs.in_folder(pair, tmp_path / "out", {})


def test_an_output_that_is_an_input_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(UsageError, match="replace an input"):
        outputs.in_folder([source(tmp_path / "a.txt", "a.txt")], tmp_path, {})


def test_an_output_that_is_an_input_by_another_way_is_refused(tmp_path: Path) -> None:
    """Through a linked folder, and through a hard link."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.txt").write_text("x")
    (tmp_path / "linked").symlink_to("in")
    one = source(tmp_path / "in/a.txt", "a.txt")
    with pytest.raises(UsageError, match="replace an input"):
        outputs.in_folder([one], tmp_path / "linked", {})
    (tmp_path / "out").mkdir()
    os.link(tmp_path / "in/a.txt", tmp_path / "out/a.txt")
    with pytest.raises(UsageError, match="replace an input"):
        outputs.in_folder([one], tmp_path / "out", {})


def test_an_output_that_leaves_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/sub").symlink_to(tmp_path)
    for place in ("sub/b.txt", "../b.txt"):
        with pytest.raises(UsageError, match="outside the output folder"):
            outputs.in_folder([source(tmp_path / "in/b.txt", place)], tmp_path / "out", {})


def test_the_result_of_a_pdf_is_a_text_and_takes_its_name_from_it(tmp_path: Path) -> None:
    pdf = source(tmp_path / "in/a.PDF", "x/a.PDF")
    (found,) = outputs.in_folder([pdf], tmp_path / "out", {}).values()
    assert (found.document, found.name) == (tmp_path / "out/x/a.PDF.txt", "a.PDF")
    with pytest.raises(UsageError, match="both be written"):
        outputs.in_folder([pdf, source(tmp_path / "in/b", "x/a.PDF.txt")], tmp_path / "out", {})
    (found,) = outputs.in_folder([pdf], tmp_path / "out", {"x/a.PDF": "document-1.pdf"}).values()
    assert (found.document, found.name) == (tmp_path / "out/document-1.pdf.txt", "document-1.pdf")


def test_a_pair_stands_after_commit_and_not_before(tmp_path: Path) -> None:
    goal = target(tmp_path / "new")
    pair = outputs.prepare(goal, b"text", b"{}", owner="job")
    assert not goal.document.exists() and not goal.certificate.exists()
    outputs.commit(pair)
    assert goal.document.read_bytes() == b"text" and goal.certificate.read_bytes() == b"{}"
    assert outputs.holds(goal, pair.digest)
    assert sorted(p.name for p in goal.document.parent.iterdir()) == ["a.txt", "a.txt.cert.json"]


def test_the_certificate_is_there_before_the_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed between the two renames: no document without certificate, and the next run ends it."""
    goal = target(tmp_path)
    pair = outputs.prepare(goal, b"text", b"{}", owner="job")
    real = os.replace

    def dies_on_the_document(old: object, new: object) -> None:
        if str(new).endswith("a.txt"):
            raise KeyboardInterrupt
        real(old, new)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "replace", dies_on_the_document)
    with pytest.raises(KeyboardInterrupt):
        outputs.commit(pair)
    assert goal.certificate.exists() and not goal.document.exists()
    monkeypatch.undo()
    assert outputs.finish(pair) and goal.document.read_bytes() == b"text"
    assert outputs.finish(pair), "once more does no harm"


def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def full(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(WriteFailed, match="disk is full") as caught:
        outputs.prepare(target(tmp_path), b"text", b"{}", owner="job")
    assert caught.value.full and list(tmp_path.iterdir()) == []


def test_a_real_size_limit_leaves_nothing(tmp_path: Path) -> None:
    """The kernel refuses the bytes, as a full disk does."""
    script = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from dpredact.jobs import outputs\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "goal = outputs.Target(Path('a.txt'), Path('a.txt.cert.json'))\n"
        "try:\n"
        "    outputs.prepare(goal, b'x' * 100_000, b'{}', owner='job')\n"
        "except outputs.WriteFailed as error:\n"
        "    sys.stdout.write(str(error.full))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "True", done.stderr
    assert list(tmp_path.iterdir()) == []
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 4096


def test_a_disk_without_room_is_found_before_the_draw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil

    outputs.room_for(target(tmp_path), 10)
    monkeypatch.setattr(shutil, "disk_usage", lambda p: type("Usage", (), {"free": 1000})())
    with pytest.raises(WriteFailed, match="disk is full"):
        outputs.room_for(target(tmp_path), 10)


def test_in_place_keeps_the_permissions(tmp_path: Path) -> None:
    goal = target(tmp_path)
    goal.document.write_text("old")
    goal.document.chmod(0o640)
    outputs.commit(outputs.prepare(goal, b"new", b"{}", owner="job"))
    assert goal.document.stat().st_mode & 0o777 == 0o640


def test_sweep_takes_only_its_own(tmp_path: Path) -> None:
    for owner in ("mine", "mine.1-of-2", "other"):
        outputs.prepare(target(tmp_path), b"x", b"{}", owner=owner)
    (tmp_path / "a.txt").write_text("x")
    assert outputs.sweep([tmp_path], "mine") == 2
    assert len(list(tmp_path.iterdir())) == 5


def test_write_once_never_replaces(tmp_path: Path) -> None:
    outputs.write_once(tmp_path / "key", b"first", 0o600)
    outputs.write_once(tmp_path / "key", b"second", 0o600)
    assert (tmp_path / "key").read_bytes() == b"first"
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    assert len(list(tmp_path.iterdir())) == 1
