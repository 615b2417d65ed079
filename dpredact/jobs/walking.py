"""Paths, folders, globs and lists to the files of a job. The only door for pathspec.

Nothing is left out silently: a path that is passed over stands in `Found.passed` with its
reason, a path that should have been read and cannot be in `Found.problems`. Symbolic links
are never followed. Patterns (`include`, `exclude`, .gitignore) have git's meaning.
"""

from __future__ import annotations

import glob
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import BinaryIO

import pathspec

from dpredact.errors import UsageError

CERTIFICATE_SUFFIX = ".cert.json"
CORRECTIONS_SUFFIX = ".tags.jsonl"
OWN_FILES = (".dpredact-job",)  # what a job itself leaves in its output folder
_MAGIC = frozenset("*?[")


@dataclass(frozen=True)
class Source:
    """A file to work on. `place` is where it stands below what the user named: the place of
    its output in a mirrored tree. `data`: the content, where there is no file (stdin)."""

    path: Path
    place: PurePosixPath
    data: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Remark:
    """A path and why it is not among the sources; both public."""

    path: str
    reason: str


@dataclass(frozen=True)
class Found:
    sources: tuple[Source, ...]
    passed: tuple[Remark, ...]  # left out on purpose
    problems: tuple[Remark, ...]  # wanted, but cannot be read

    def joined(self, other: Found) -> Found:
        """Both; a file that stands in both once."""
        here = {os.path.abspath(s.path) for s in self.sources}
        more = tuple(s for s in other.sources if os.path.abspath(s.path) not in here)
        return Found(
            self.sources + more, self.passed + other.passed, self.problems + other.problems
        )


@dataclass(frozen=True)
class Rules:
    """What is left out of folders.

    include: if any, only files that match one of them. exclude: never these, also not when
    named. gitignore: respect .gitignore files inside folders. hidden: take names that begin
    with a dot (`.git` never). avoid: folders and files that the job itself writes.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    gitignore: bool = True
    hidden: bool = False
    beside: bool = False  # take what lies beside documents, too: *.cert.json, *.tags.jsonl
    avoid: tuple[Path, ...] = ()


def walk(paths: Iterable[str], rules: Rules = Rules(), *, listed: bool = False) -> Found:
    """The files that `paths` (files, folders, glob patterns) stand for, each once, sorted
    inside each folder. `listed`: the paths come from a list, and keep their folders as place.

    Raises UsageError for a pattern that cannot be read.
    """
    walker = _Walker(rules)
    for text in paths:
        walker.take(text, listed)
    return Found(tuple(walker.sources), tuple(walker.passed), tuple(walker.problems))


def read_list(stream: BinaryIO, *, nul: bool) -> list[str]:
    """File names from a list: one a line, or ended by NUL bytes as `find -print0` writes them.

    Names are bytes on this system; what is not UTF-8 is carried through unchanged.
    """
    pieces = stream.read().split(b"\0" if nul else b"\n")
    if not nul:
        pieces = [p.removesuffix(b"\r") for p in pieces]
    return [os.fsdecode(p) for p in pieces if p]


def listed(name: str, *, nul: bool) -> list[str]:
    """The paths in the list file `name`, or on stdin for `-`. Raises UsageError."""
    if name == "-":
        return read_list(sys.stdin.buffer, nul=nul)
    try:
        with open(name, "rb") as stream:
            return read_list(stream, nul=nul)
    except OSError as error:
        raise UsageError(
            f"the list of files cannot be read: {_why(error)}",
            next_step="check --files-from",
            place=name,
        ) from None


def shard(sources: Sequence[Source], index: int, count: int) -> tuple[Source, ...]:
    """Part `index` (from 1) of `count`. Decided by the place alone, so machines agree without
    talking, whatever else lies in the folder."""
    import hashlib

    if not 1 <= index <= count:
        raise UsageError(
            f"shard {index}/{count} does not exist", next_step=f"use 1/{count} to {count}/{count}"
        )
    return tuple(
        s for s in sources
        if int.from_bytes(hashlib.sha256(os.fsencode(str(s.place))).digest()[:8]) % count == index - 1
    )  # fmt: skip


# -- the walk ---------------------------------------------------------------------------


@dataclass
class _Walker:
    rules: Rules
    sources: list[Source] = field(default_factory=list)
    passed: list[Remark] = field(default_factory=list)
    problems: list[Remark] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.include = _spec(self.rules.include, "--include")
        self.exclude = _spec(self.rules.exclude, "--exclude")
        self.avoid = {os.path.realpath(p) for p in self.rules.avoid}

    def take(self, text: str, listed: bool) -> None:
        """One path as the user wrote it. What exists by that very name is never a pattern."""
        path = Path(text)
        if not os.path.lexists(path) and not listed and _MAGIC & set(text):
            self.pattern(text)
            return
        self.named(path, _listed_place(path) if listed else PurePosixPath(path.name))

    def named(self, path: Path, place: PurePosixPath) -> None:
        try:
            mode = os.lstat(path).st_mode
        except OSError as error:
            self.problem(path, _why(error))
            return
        if stat.S_ISLNK(mode):
            self.problem(path, "a symbolic link, which is not followed; name the file it points to")
        elif stat.S_ISDIR(mode):
            self.folder(path, PurePosixPath(), _Ignore.above(path) if self.rules.gitignore else None)
        elif not stat.S_ISREG(mode):
            self.problem(path, "not a regular file; use `-` to read a pipe")
        elif self.exclude.match_file(str(place)):
            self.pass_over(path, "excluded")
        else:
            self.add(path, place)

    def pattern(self, text: str) -> None:
        base = _fixed_part(text)
        hits = sorted(glob.glob(text, recursive=True, include_hidden=self.rules.hidden))
        if not hits:
            self.problem(Path(text), "nothing matches this pattern")
        for hit in hits:
            path = Path(hit)
            if path.is_symlink():
                self.pass_over(path, "a symbolic link, which is not followed")
            elif not path.is_dir():
                self.named(path, PurePosixPath(Path(os.path.relpath(hit, base or ".")).as_posix()))

    def folder(self, folder: Path, inside: PurePosixPath, ignore: _Ignore | None) -> None:
        try:
            entries = sorted(os.scandir(folder), key=lambda e: e.name)
        except OSError as error:
            self.problem(folder, _why(error))
            return
        if ignore is not None:
            ignore = ignore.below(folder, entries)
        for entry in entries:
            self.entry(entry, inside / entry.name, ignore)

    def entry(self, entry: os.DirEntry[str], place: PurePosixPath, ignore: _Ignore | None) -> None:
        path = Path(entry.path)
        is_folder = entry.is_dir(follow_symlinks=False)
        reason = self.reason_against(entry, place, is_folder, ignore)
        if reason:
            if reason != _UNSAID:
                self.pass_over(path, reason)
        elif is_folder:
            self.folder(path, place, ignore)
        else:
            self.add(path, place)

    def reason_against(
        self, entry: os.DirEntry[str], place: PurePosixPath, is_folder: bool, ignore: _Ignore | None
    ) -> str:
        """Why an entry of a folder is not taken; "" if it is."""
        name, path = entry.name, Path(entry.path)
        if entry.is_symlink():
            return "a symbolic link, which is not followed"
        if name == ".git" or os.path.realpath(path) in self.avoid or name in OWN_FILES:
            return _UNSAID
        if not self.rules.beside and name.endswith((CERTIFICATE_SUFFIX, CORRECTIONS_SUFFIX)):
            return "a certificate" if name.endswith(CERTIFICATE_SUFFIX) else "corrections of tags"
        if name.startswith(".") and not self.rules.hidden:
            return "hidden (its name begins with a dot)"
        tail = "/" if is_folder else ""
        if self.exclude.match_file(f"{place}{tail}"):
            return "excluded"
        if ignore is not None and ignore.covers(path, is_folder):
            return "listed in .gitignore"
        if is_folder:
            return ""
        if not entry.is_file(follow_symlinks=False):
            return "not a regular file"
        if self.rules.include and not self.include.match_file(str(place)):
            return _UNSAID
        return ""

    def add(self, path: Path, place: PurePosixPath) -> None:
        key = os.path.normcase(os.path.abspath(path))
        if key not in self.seen:
            self.seen.add(key)
            self.sources.append(Source(path, place))

    def pass_over(self, path: Path, reason: str) -> None:
        self.passed.append(Remark(_shown(path), reason))

    def problem(self, path: Path, reason: str) -> None:
        self.problems.append(Remark(_shown(path), reason))


_UNSAID = "unsaid"  # what nobody would expect to be taken


# -- .gitignore -------------------------------------------------------------------------


@dataclass(frozen=True)
class _Ignore:
    """The .gitignore files that hold in a folder, nearest last."""

    files: tuple[tuple[Path, pathspec.GitIgnoreSpec], ...] = ()

    @classmethod
    def above(cls, folder: Path) -> _Ignore:
        """Those between the repository root and `folder` (exclusive).

        A folder that is itself ignored and yet named by the user is wanted: then the files
        above it, which would hide all of it, do not hold.
        """
        folder = Path(os.path.abspath(folder))
        chain: list[Path] = []
        for parent in folder.parents if not (folder / ".git").exists() else ():
            chain.append(parent)
            if (parent / ".git").exists():
                break
        else:
            chain = []
        rules = cls()
        for parent in reversed(chain):
            rules = rules.with_file(parent / ".gitignore")
        parts = [folder, *(p for p in folder.parents if p in chain and p != chain[-1])]
        return cls() if any(rules.covers(p, True) for p in parts) else rules

    def below(self, folder: Path, entries: Iterable[os.DirEntry[str]]) -> _Ignore:
        if any(e.name == ".gitignore" and e.is_file(follow_symlinks=False) for e in entries):
            return self.with_file(Path(os.path.abspath(folder)) / ".gitignore")
        return self

    def with_file(self, file: Path) -> _Ignore:
        try:
            lines = file.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
        except OSError:
            return self
        return _Ignore((*self.files, (file.parent, pathspec.GitIgnoreSpec.from_lines(lines))))

    def covers(self, path: Path, is_folder: bool) -> bool:
        """The nearest file that says anything about `path` decides."""
        path = Path(os.path.abspath(path))
        for base, spec in reversed(self.files):
            if path != base and path.is_relative_to(base):
                inside = path.relative_to(base).as_posix() + ("/" if is_folder else "")
                verdict = spec.check_file(inside).include
                if verdict is not None:
                    return verdict
        return False


# -- small questions --------------------------------------------------------------------


def _spec(patterns: Sequence[str], option: str) -> pathspec.GitIgnoreSpec:
    try:
        return pathspec.GitIgnoreSpec.from_lines(patterns)
    except ValueError:
        raise UsageError(
            f"a pattern of {option} cannot be read", next_step="write it as in a .gitignore file"
        ) from None


def _listed_place(path: Path) -> PurePosixPath:
    """A listed relative path keeps its folders; one that leaves the folder keeps its name."""
    inside = os.path.normpath(path)
    if path.is_absolute() or inside.startswith(os.pardir):
        return PurePosixPath(path.name)
    return PurePosixPath(Path(inside).as_posix())


def _fixed_part(pattern: str) -> str:
    """The folders of a glob pattern before the first part with a wildcard."""
    return os.path.join(*_until_magic(Path(pattern).parts)) if Path(pattern).parts else ""


def _until_magic(parts: Sequence[str]) -> Iterator[str]:
    yield ""
    for part in parts[:-1]:
        if _MAGIC & set(part):
            return
        yield part


def _why(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()


def _shown(path: Path) -> str:
    return str(path).encode("utf-8", "backslashreplace").decode("utf-8")
