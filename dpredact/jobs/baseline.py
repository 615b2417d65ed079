"""Findings that were there before the gate: accepted once, told apart from new ones.

An entry is a path, a kind of word and four hexadecimal digits; no line numbers and no
dates, so that moving text or waiting changes nothing. The digits come from a slow salted
hash of the word, cut to 16 bits: another word in its place is noticed (but for one in
65,536), and yet the digits fit so many words that they name none.
The gate reads the file and never writes it; `check --write-baseline` does.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import secrets
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from dpredact.errors import UsageError
from dpredact.jobs import outputs
from dpredact.jobs.checking import WORDS, FileCheck

Entry = tuple[str, str, str]  # path, entity, digest


@dataclass(frozen=True)
class Baseline:
    """`folder`: paths of entries are relative to it (where the baseline file lies)."""

    folder: Path
    salt: bytes
    entries: frozenset[Entry] = field(default=frozenset(), repr=False)

    def digest(self, entity: str, words: str) -> str:
        """Four hexadecimal digits for a word; equal for other case and spacing of it."""
        plain = " ".join(unicodedata.normalize("NFKC", words).casefold().split())
        return _slow(self.salt, f"{entity}\0{plain}")

    def without_known(self, check: FileCheck) -> FileCheck:
        """The same check, less the private words that the baseline lists for this path."""
        path = self.key(check.path)
        left = tuple(
            f for f in check.findings
            if f.rule != WORDS or (path, f.entity, f.digest) not in self.entries
        )  # fmt: skip
        if check.status == "found" and not left:
            return replace(check, status="clean", findings=())
        return replace(check, findings=left)

    def gone(self, checks: Iterable[FileCheck]) -> int:
        """How many entries of the checked files fit nothing any more."""
        seen = {c.path for c in checks}
        now = set(_entries(self, checks))
        return sum(e not in now for e in self.entries if e[0] in {self.key(p) for p in seen})

    def key(self, path: str) -> str:
        inside = os.path.relpath(os.path.abspath(path), self.folder)
        return Path(inside).as_posix().encode("utf-8", "backslashreplace").decode("utf-8")

    def filled(self, checks: Iterable[FileCheck]) -> Baseline:
        return replace(self, entries=frozenset(_entries(self, checks)))

    def write(self, file: Path) -> None:
        """Raises UsageError."""
        body = {
            "schema": 1,
            "salt": self.salt.hex(),
            "findings": [
                {"path": p, "entity": e, "digest": d} for p, e, d in sorted(self.entries)
            ],
        }
        text = json.dumps(body, indent=1, ensure_ascii=False) + "\n"
        try:
            outputs.write_whole(file, text.encode("utf-8"))
        except OSError as error:
            raise UsageError(
                f"the baseline cannot be written: {(error.strerror or '').lower()}",
                next_step="choose a place you can write to",
                place=str(file),
            ) from None


def empty(file: Path) -> Baseline:
    return Baseline(Path(os.path.abspath(file)).parent, secrets.token_bytes(16))


def read(file: Path) -> Baseline:
    """Raises UsageError if it is missing or no baseline."""
    try:
        body = json.loads(file.read_text(encoding="utf-8"))
        if body["schema"] != 1:
            raise ValueError
        found = frozenset((str(f["path"]), str(f["entity"]), str(f["digest"])) for f in body["findings"])
        return Baseline(Path(os.path.abspath(file)).parent, bytes.fromhex(body["salt"]), found)
    except OSError as error:
        raise UsageError(
            f"the baseline cannot be read: {(error.strerror or '').lower()}",
            next_step="write one with --write-baseline",
            place=str(file),
        ) from None
    except (ValueError, KeyError, TypeError):
        raise UsageError(
            "this file is not a baseline",
            next_step="write one with --write-baseline",
            place=str(file),
        ) from None


def _entries(baseline: Baseline, checks: Iterable[FileCheck]) -> Iterable[Entry]:
    for check in checks:
        for finding in check.findings:
            if finding.rule == WORDS:
                yield baseline.key(check.path), finding.entity, finding.digest


@functools.lru_cache(maxsize=100_000)
def _slow(salt: bytes, text: str) -> str:
    """About 10 ms, so that going through a list of guesses takes its time."""
    return hashlib.scrypt(text.encode("utf-8", "surrogatepass"), salt=salt, n=4096, r=8, p=1, dklen=2).hex()
