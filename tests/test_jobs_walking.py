"""Which files a job takes, and that nothing is left out unsaid."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpredact.errors import UsageError
from dpredact.jobs import walking
from dpredact.jobs.walking import Rules, walk


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("docs/a.txt", "docs/b.md", "docs/sub/a.txt", "docs/sub/deep/c.csv", "other/a.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def places(found: walking.Found) -> list[str]:
    return [str(s.place) for s in found.sources]


def test_a_folder_gives_its_files_with_places_below_it(tree: Path) -> None:
    assert places(walk(["docs"])) == ["a.txt", "b.md", "sub/a.txt", "sub/deep/c.csv"]


def test_a_named_file_has_its_name_as_place(tree: Path) -> None:
    assert places(walk(["docs/sub/a.txt"])) == ["a.txt"]


def test_a_glob_keeps_the_folders_after_its_fixed_part(tree: Path) -> None:
    assert places(walk(["docs/**/*.txt"])) == ["a.txt", "sub/a.txt"]
    assert places(walk(["*/a.txt"])) == ["docs/a.txt", "other/a.txt"]


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(tree: Path) -> None:
    (tree / "a[1].txt").write_text("x")
    assert places(walk(["a[1].txt"])) == ["a[1].txt"]


def test_what_is_named_twice_is_taken_once(tree: Path) -> None:
    assert places(walk(["docs", "docs/a.txt", "docs/../docs/b.md"])) == places(walk(["docs"]))


def test_a_list_keeps_relative_folders_and_drops_those_that_lead_out(tree: Path) -> None:
    names = ["docs/sub/a.txt", str(tree / "docs/b.md"), "docs/../other/a.txt", "../x/docs/a.txt"]
    found = walk(names, listed=True)
    assert places(found) == ["docs/sub/a.txt", "b.md", "other/a.txt"]
    assert [p.reason for p in found.problems] == ["no such file or directory"]


def test_include_and_exclude_have_the_meaning_of_gitignore(tree: Path) -> None:
    assert places(walk(["docs"], Rules(include=("*.txt",)))) == ["a.txt", "sub/a.txt"]
    assert places(walk(["docs"], Rules(exclude=("sub/",)))) == ["a.txt", "b.md"]
    assert places(walk(["docs"], Rules(include=("*.txt",), exclude=("/a.txt",)))) == ["sub/a.txt"]


def test_exclude_holds_for_named_files_and_is_said(tree: Path) -> None:
    found = walk(["docs/a.txt", "docs/b.md"], Rules(exclude=("*.md",)))
    assert places(found) == ["a.txt"]
    assert [(r.path, r.reason) for r in found.passed] == [("docs/b.md", "excluded")]


def test_gitignore_files_are_respected_nearest_first(tree: Path) -> None:
    (tree / "docs/.gitignore").write_text("*.txt\nsub/deep/\n")
    (tree / "docs/sub/.gitignore").write_text("!a.txt\n")
    found = walk(["docs"])
    assert places(found) == ["b.md", "sub/a.txt"]
    assert ("docs/a.txt", "listed in .gitignore") in [(r.path, r.reason) for r in found.passed]
    assert "a.txt" in places(walk(["docs"], Rules(gitignore=False)))


def test_gitignore_above_the_folder_holds_up_to_the_repository_root(tree: Path) -> None:
    (tree / ".gitignore").write_text("*.md\n")
    assert "b.md" in places(walk(["docs"])), "outside a repository nothing above counts"
    (tree / ".git").mkdir()
    assert "b.md" not in places(walk(["docs"]))


def test_an_ignored_folder_that_is_named_is_wanted(tree: Path) -> None:
    (tree / ".git").mkdir()
    (tree / ".gitignore").write_text("docs/\n")
    assert places(walk(["."])) == ["other/a.txt"]
    assert places(walk(["docs"])) == ["a.txt", "b.md", "sub/a.txt", "sub/deep/c.csv"]
    assert "sub/a.txt" not in places(walk(["docs/sub"])) and "a.txt" in places(walk(["docs/sub"]))


def test_symbolic_links_are_not_followed_and_said(tree: Path) -> None:
    (tree / "docs/link.txt").symlink_to(tree / "other/a.txt")
    (tree / "docs/loop").symlink_to(tree / "docs")
    found = walk(["docs", "docs/*.txt"])
    assert places(found) == ["a.txt", "b.md", "sub/a.txt", "sub/deep/c.csv"]
    assert [r.path for r in found.passed if "symbolic link" in r.reason][:2] == ["docs/link.txt", "docs/loop"]


def test_a_symbolic_link_that_is_named_is_a_problem(tree: Path) -> None:
    (tree / "link.txt").symlink_to("docs/a.txt")
    found = walk(["link.txt"])
    assert not found.sources and "symbolic link" in found.problems[0].reason


def test_hidden_files_certificates_and_avoided_folders_are_left_out(tree: Path) -> None:
    for name in ("docs/.secret", "docs/a.txt.cert.json", "docs/a.txt.tags.jsonl", "docs/.git", "docs/out/a.txt"):
        (tree / name).parent.mkdir(exist_ok=True)
        (tree / name).write_text("x")
    found = walk(["docs"], Rules(avoid=(tree / "docs/out",)))
    assert places(found) == ["a.txt", "b.md", "sub/a.txt", "sub/deep/c.csv"]
    assert {r.path for r in found.passed} == {"docs/.secret", "docs/a.txt.cert.json", "docs/a.txt.tags.jsonl"}
    assert ".secret" in places(walk(["docs"], Rules(hidden=True)))


def test_a_pipe_is_not_opened(tree: Path) -> None:
    os.mkfifo(tree / "docs/pipe")
    found = walk(["docs"])
    assert "pipe" not in places(found)
    assert walk(["docs/pipe"]).problems[0].reason.startswith("not a regular file")


def test_an_unreadable_folder_is_a_problem_and_the_rest_is_taken(tree: Path) -> None:
    """As another user, since root may read everything."""
    (tree / "docs/sub").chmod(0)
    os.chmod(tree, 0o755)
    for folder in tree.parents:
        if os.stat(folder).st_uid == os.getuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)
    script = (
        "import os, sys\n"
        "from dpredact.jobs.walking import walk\n"
        "os.getuid() or os.setuid(65534)\n"
        "found = walk(['docs'])\n"
        "sys.stdout.write(f'{[str(s.place) for s in found.sources]} {found.problems}')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tree)
    (tree / "docs/sub").chmod(0o755)
    assert done.stdout == (
        "['a.txt', 'b.md'] (Remark(path='docs/sub', reason='permission denied'),)"
    ), done.stderr


def test_missing_paths_and_empty_patterns_are_problems(tree: Path) -> None:
    found = walk(["nowhere.txt", "*.pdf"])
    assert [p.reason for p in found.problems] == [
        "no such file or directory", "nothing matches this pattern",
    ]  # fmt: skip


def test_names_that_are_not_utf8_are_taken(tree: Path) -> None:
    name = os.path.join(os.fsencode(tree), b"docs/r\xe9sum\xe9.txt")
    with open(name, "wb") as stream:
        stream.write(b"x")
    found = walk(["docs"])
    assert os.fsencode(str(found.sources[2].path)).endswith(b"r\xe9sum\xe9.txt")


def test_lists_are_read_by_line_and_by_nul() -> None:
    assert walking.read_list(io.BytesIO(b"a\r\nb c\n\n"), nul=False) == ["a", "b c"]
    assert walking.read_list(io.BytesIO(b"a\nb\0c\0"), nul=True) == ["a\nb", "c"]


def test_a_bad_pattern_names_its_option() -> None:
    with pytest.raises(UsageError, match="--exclude"):
        walk(["."], Rules(exclude=("!",)))


@given(st.sets(st.text("abc/.", min_size=1, max_size=8), max_size=30), st.integers(1, 7))
def test_shards_are_a_partition_that_does_not_depend_on_the_others(names: set[str], count: int) -> None:
    sources = [walking.Source(Path(n), walking.PurePosixPath(n)) for n in sorted(names)]
    parts = [walking.shard(sources, i, count) for i in range(1, count + 1)]
    together = [s for part in parts for s in part]
    assert len(together) == len(sources) and set(together) == set(sources)
    for i, part in enumerate(parts, 1):
        for source in part:
            assert walking.shard([source], i, count) == (source,)
