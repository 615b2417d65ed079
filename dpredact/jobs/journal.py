"""What has been started and finished, so that no budget is spent twice unseen.

The journal stays with its owner, in the state folder (DPREDACT_STATE overrides the place),
never in the output folder. It is one JSON object a line, flushed to the disk before the
next step that depends on it. Documents stand in it under an HMAC of input, policy, model and
version; the key lies beside it, so that nobody else can test guesses about an input.

One document goes through: started (its budget counts as spent from here), ready (drawn,
lies under temporary names), done. Or ended: refused or failed, nothing was released.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any

import filelock

import dpredact
from dpredact.errors import DpredactError, UsageError
from dpredact.jobs import outputs
from dpredact.policy import Policy

JOB_MARK = ".dpredact-job"
VARIABLE = "DPREDACT_STATE"
_KEY_BYTES = 32


class JournalError(DpredactError):
    """The journal cannot be read or written; without it nothing may be drawn."""

    fatal = True

    exit_code = 5


def state_folder() -> Path:
    """Where the owner's key and journals lie; made with mode 0700. Raises JournalError."""
    import platformdirs

    folder = Path(os.environ.get(VARIABLE) or platformdirs.user_state_dir("dpredact"))
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(error, folder) from None
    return folder


def owner_key(folder: Path) -> bytes:
    """The key of all HMACs, made on first use with mode 0600. Raises JournalError."""
    path = folder / "owner.key"
    try:
        outputs.write_once(path, secrets.token_bytes(_KEY_BYTES), 0o600)
        key = path.read_bytes()
    except OSError as error:
        raise _unusable(error, path) from None
    if len(key) != _KEY_BYTES:
        raise JournalError(
            "the owner's key is damaged",
            next_step="restore it from a backup; a new key forgets what was finished",
            place=str(path),
        )
    return key


@dataclass(frozen=True)
class Identity:
    """Everything besides the input that makes a release the same release."""

    key: bytes = field(repr=False)
    policy: Policy
    model: str = ""  # digest of the weights; "" without a model

    def of(self, data: bytes, corrections: bytes | None = None) -> str:
        """HMAC of input, corrections, policy (word lists included), model and version."""
        parts = (
            data,
            b"" if corrections is None else b"corrected" + corrections,
            self.policy.model_dump_json().encode(),
            _lists(self.policy),
            self.model.encode(),
            dpredact.__version__.encode(),
        )
        mac = hmac.new(self.key, digestmod=hashlib.sha256)
        for part in parts:
            mac.update(len(part).to_bytes(8, "big"))
            mac.update(part)
        return mac.hexdigest()


def _lists(policy: Policy) -> bytes:
    """The owner's word lists decide what is tagged, so a changed list is another release."""
    if policy.tagger.lists is None:
        return b""
    try:
        return Path(policy.tagger.lists).read_bytes()
    except OSError as error:
        raise JournalError(f"the word lists of the policy cannot be read: {error.strerror}") from None


def job_id(folder: Path) -> str:
    """The number of the job that fills an output folder; made on first use and kept in it."""
    mark = folder / JOB_MARK
    try:
        folder.mkdir(parents=True, exist_ok=True)
        outputs.write_once(mark, f"{secrets.token_hex(16)}\n".encode())
        text = mark.read_text(encoding="ascii").strip()
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "not readable"
        raise UsageError(
            f"the output folder cannot be used: {reason}",
            next_step="choose another folder with -o",
            place=str(folder),
        ) from None
    if len(text) != 32 or set(text) - set("0123456789abcdef"):
        raise UsageError(
            "this file should hold the number of a job and does not",
            next_step="remove it, or choose another folder with -o",
            place=str(mark),
        )
    return text


@dataclass(frozen=True)
class Entry:
    """What the journal knows of one document at one place."""

    stage: str = ""  # started, ready, done, ended
    attempts: int = 0
    digest: str = ""  # SHA-256 of the released bytes
    summary: dict[str, Any] | None = None

    def released(self, target: outputs.Target) -> bool:
        """Was it finished? Also where only the note of it is missing: the pair stands there."""
        return self.stage == "done" or (self.stage == "ready" and outputs.holds(target, self.digest))


class Journal:
    """The journal of one job (or one shard of it), locked while it is open."""

    def __init__(self, folder: Path, job: str, part: str = "", root: Path | None = None) -> None:
        """folder: the owner's. part: name of the shard. root: the output folder, which may
        move between two runs; paths below it are kept relative."""
        self._root = Path(os.path.abspath(root)) if root is not None else None
        self.name = f"{job}{'.' + part if part else ''}"
        room = folder / "jobs"
        room.mkdir(mode=0o700, exist_ok=True)
        self.path = room / f"{self.name}.jsonl"
        self._others = lambda: sorted(room.glob(f"{job}*.jsonl"))
        self._lock = filelock.FileLock(str(self.path.with_suffix(".lock")), timeout=0)
        self._entries: dict[tuple[str, str], Entry] = {}
        self._places: dict[str, set[str]] = {}
        self._written: set[str] = set()
        self._open: dict[tuple[str, str], outputs.Prepared] = {}
        self._descriptor = -1

    def __enter__(self) -> Journal:
        try:
            self._lock.acquire()
        except filelock.Timeout:
            raise UsageError(
                "another dpredact is at work on this job",
                next_step="wait for it, or split the job with --shard i/n",
            ) from None
        try:
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            self._cut_torn_line()
            for path in self._others():
                self._read(path, own=path == self.path)
        except OSError as error:
            self._lock.release()
            raise _unusable(error, self.path) from None
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)
        self._lock.release()

    # -- asking -------------------------------------------------------------------------

    def entry(self, key: str, place: str) -> Entry:
        return self._entries.get((key, place), Entry())

    def wrote(self, place: str) -> bool:
        """Has this job ever finished something at `place`, whatever the input was then?"""
        return place in self._written

    def elsewhere(self, key: str, place: str) -> bool:
        """Has the same document been drawn for another place of this job?"""
        return bool(self._places.get(key, set()) - {place})

    # -- telling ------------------------------------------------------------------------

    def started(self, key: str, place: str) -> None:
        self._append({"stage": "started", "key": key, "place": place})

    def ready(self, key: str, place: str, pair: outputs.Prepared, summary: dict[str, Any]) -> None:
        self._append({
            "stage": "ready", "key": key, "place": place, "digest": pair.digest, "summary": summary,
            "document": self._kept(pair.target.document),
            "certificate": self._kept(pair.target.certificate),
            "document_part": self._kept(pair.document_part),
            "certificate_part": self._kept(pair.certificate_part),
        })  # fmt: skip

    def done(self, key: str, place: str) -> None:
        self._append({"stage": "done", "key": key, "place": place}, flush=False)

    def ended(self, key: str, place: str, status: str, *, spent: bool = True) -> None:
        """Nothing was released. `spent` False: and nothing was drawn, so the start is taken back."""
        record = {"stage": "ended", "key": key, "place": place, "status": status, "spent": spent}
        self._append(record, flush=False)

    def finish_open_pairs(self) -> int:
        """Complete the renames of a run that was killed between them; how many pairs.

        A pair whose temporary files are gone stays unfinished, and its draw counts as spent.
        """
        count = 0
        for (key, place), pair in list(self._open.items()):
            if outputs.finish(pair):
                self.done(key, place)
                count += 1
            else:
                outputs.discard(pair)
                self.ended(key, place, "failed")
        return count

    # -- inside -------------------------------------------------------------------------

    def _kept(self, path: Path) -> str:
        absolute = os.path.abspath(path)
        return os.path.relpath(absolute, self._root) if self._root else absolute

    def _append(self, record: dict[str, Any], *, flush: bool = True) -> None:
        """flush False: nothing depends on it. Were the line lost, the pair on the disk (done)
        or the draw noted before (ended) would tell the same, or the more careful, story."""
        line = json.dumps({"schema": 1, **record}).encode("ascii") + b"\n"
        try:
            before = os.lseek(self._descriptor, 0, os.SEEK_END)
            try:
                if os.write(self._descriptor, line) != len(line):
                    raise OSError(28, "no space left on device")
            except OSError:
                os.ftruncate(self._descriptor, before)
                raise
            if flush:
                os.fsync(self._descriptor)
        except OSError as error:
            raise _unusable(error, self.path) from None
        self._take(record, own=True)

    def _cut_torn_line(self) -> None:
        """A line without its end was never acted upon: the step comes after the flush."""
        size = os.lseek(self._descriptor, 0, os.SEEK_END)
        tail = b""
        while size and b"\n" not in tail:
            step = min(size, 1 << 12)
            size -= step
            tail = os.pread(self._descriptor, step, size) + tail
        if tail and not tail.endswith(b"\n"):
            os.ftruncate(self._descriptor, size + tail.rfind(b"\n") + 1)

    def _read(self, path: Path, own: bool) -> None:
        with path.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                if not line.endswith(b"\n"):
                    return  # another shard is writing it at this moment
                try:
                    record = json.loads(line)
                    self._take(record, own)
                except (ValueError, KeyError, TypeError):
                    raise JournalError(
                        "the journal is damaged here",
                        next_step="look at the line; without it a document may be drawn again",
                        place=f"{path}:{number}",
                    ) from None

    def _take(self, record: dict[str, Any], own: bool) -> None:
        where = (record["key"], record["place"])
        entry = self._entries.get(where, Entry())
        stage = record["stage"]
        self._places.setdefault(record["key"], set()).add(record["place"])
        self._open.pop(where, None)
        if stage == "started":
            entry = replace(entry, attempts=entry.attempts + 1)
        if stage == "ended" and not record.get("spent", True):
            entry = replace(entry, attempts=entry.attempts - 1)
        if stage == "done":
            self._written.add(record["place"])
        if stage == "ready":
            entry = replace(entry, digest=record["digest"], summary=record["summary"])
            if own:
                root = self._root or Path()  # an absolute path replaces it
                self._open[where] = outputs.Prepared(
                    outputs.Target(root / record["document"], root / record["certificate"]),
                    root / record["document_part"],
                    root / record["certificate_part"],
                    record["digest"],
                )
        self._entries[where] = replace(entry, stage=stage)


def in_place_id(key: bytes, paths: Iterable[Path]) -> str:
    """A job number for work without an output folder: the same files, the same number."""
    common = os.path.commonpath([os.path.realpath(p.parent) for p in paths] or [os.getcwd()])
    return hmac.new(key, b"in-place\0" + os.fsencode(common), hashlib.sha256).hexdigest()[:32]


def _unusable(error: OSError, place: Path) -> JournalError:
    return JournalError(
        f"the journal cannot be used: {error.strerror or type(error).__name__}",
        next_step=f"make the folder writable, or name another one in {VARIABLE}",
        place=str(place),
    )
