"""A marker word planted as a private name: it may stand in no log, error, certificate or name.

The commands are the real ones, with the pattern tagger and the toy model; the marker is a
word that the policy's owner wants protected, given by a word list.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpredact.cli.main import main
from dpredact.jobs import journal

MARKER = "zanzibella-quorn@example.com"
NAMED = "zanzibella"
POLICY = """\
version: 1
model: toy
tagger: {use: [patterns], lists: words.yaml}
max_new_tokens: 40
view_reserve: 64
scrub_output: []
groups:
  MAIL: {entities: [EMAIL], method: dp-fusion, epsilon: 0.5}
  other: {entities: [PERSON], method: redact}
"""
TEXT = f"Please write to {MARKER} today. The form is on page 3 of the leaflet.\n"


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a policy, a word list and a document that hold the marker."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(journal.VARIABLE, str(tmp_path / "state"))
    for hook in ("sys.excepthook", "sys.unraisablehook", "threading.excepthook"):
        monkeypatch.setattr(hook, None)
    (tmp_path / "dpredact.yaml").write_text(POLICY)
    (tmp_path / "words.yaml").write_text(f"deny: [{NAMED}]\n")
    (tmp_path / "letter.txt").write_text(TEXT)
    yield tmp_path


def dpredact(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(list(arguments))
    return int(left.value.code or 0)


def assert_absent(room: Path, said: str, *, but: tuple[str, ...] = ()) -> None:
    """The marker is in nothing that was said, and in no file except those that hold it anyway."""
    assert NAMED not in said.lower()
    for file in room.rglob("*"):
        assert NAMED not in file.name.lower()
        if file.is_file() and file.name not in ("letter.txt", "words.yaml", *but):
            assert NAMED.encode() not in file.read_bytes().lower(), file


def test_nothing_told_about_a_document_holds_its_words(
    room: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """rewrite, tags, check, plan and verify; the text itself may, within ε, so it is set aside."""
    assert dpredact("rewrite", "letter.txt", "-o", "out", "--allow-cut", "--json") == 0
    for arguments in (
        ["tags", "letter.txt"],
        ["tags", "letter.txt", "--json"],
        ["check", "letter.txt"],
        ["check", "letter.txt", "--format", "json"],
        ["plan", "letter.txt"],
        ["plan", "letter.txt", "--json"],
        ["verify", "out/letter.txt"],
        ["policy", "explain"],
        ["doctor", "--json"],
    ):
        assert dpredact(*arguments) in (0, 1), arguments
    out, err = capfd.readouterr()
    released = (room / "out" / "letter.txt").read_text(encoding="utf-8", errors="replace")
    assert "letter.txt" in out  # something was said at all
    assert_absent(room, out.replace(released, "") + err, but=("out/letter.txt",))


def test_a_model_that_raises_in_the_middle_tells_nothing(
    room: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Libraries put what they worked on into their messages; ours show a type and a line."""
    from dpredact.lm import toy

    calls = []

    def torn(self: object, ids: object) -> None:
        calls.append(ids)
        if len(calls) == 3:
            raise RuntimeError(f"shape mismatch in {TEXT!r}") from ValueError(TEXT)

    monkeypatch.setattr(toy.ToySession, "append", torn)
    assert dpredact("rewrite", "letter.txt", "-o", "out", "--json") == 5
    out, err = capfd.readouterr()
    assert len(calls) == 3
    assert json.loads(out)["status"] == "failed"
    assert "RuntimeError" in out + err
    assert "shape mismatch" not in out + err
    assert_absent(room, out + err)
    assert not (room / "out" / "letter.txt").exists()


def test_a_fault_in_tagging_tells_nothing(
    room: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The same, before the model."""
    from dpredact.tagging.combined import Combined

    def torn(*args: object, **kwargs: object) -> None:
        raise KeyError(MARKER)

    monkeypatch.setattr(Combined, "tag", torn)
    for arguments in (["tags", "letter.txt"], ["rewrite", "letter.txt", "-o", "out"]):
        assert dpredact(*arguments) == 5
    out, err = capfd.readouterr()
    assert "KeyError" in err
    assert_absent(room, out + err)


def test_a_file_that_is_no_text_is_not_quoted(
    room: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Undecodable bytes beside the marker: the place is an offset."""
    (room / "letter.txt").write_bytes(TEXT.encode() + b"\xff\x00\xfe\x81")
    assert dpredact("rewrite", "letter.txt", "-o", "out") == 3
    out, err = capfd.readouterr()
    assert "letter.txt" in err
    assert_absent(room, out + err)


def test_a_document_given_as_policy_or_word_list_is_not_quoted(
    room: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Mistakes that shells make easy."""
    assert dpredact("tags", "letter.txt", "--policy", "letter.txt") == 2
    assert dpredact("policy", "check", "letter.txt") == 2
    (room / "words.yaml").write_text(f"deny: [{NAMED}\n")
    assert dpredact("tags", "letter.txt") == 2
    out, err = capfd.readouterr()
    assert "words.yaml:2:1" in err
    assert_absent(room, out + err)
