"""Where results go, and how they get there: file and certificate whole, or neither.

A pair is written under temporary names, flushed to the disk, and then renamed, certificate
first: a document never stands there without the certificate that belongs to it. Between
`prepare` and `commit` the journal notes the pair, so that a run killed between the two
renames is finished by the next one (`finish`) instead of being drawn again.
"""

from __future__ import annotations

import errno
import glob
import hashlib
import json
import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from dpredact.errors import DpredactError, UsageError
from dpredact.jobs.walking import CERTIFICATE_SUFFIX, Source

TEMPORARY = ".dpredact-tmp"
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class WriteFailed(DpredactError):
    """A result could not be stored. `full`: the disk is, so the next one would fail too."""

    exit_code = 5
    full = False


@dataclass(frozen=True)
class Target:
    """The two files of one result. `name`: what the input is called while it is read; its
    ending tells the format, and messages and certificate derive from it."""

    document: Path
    certificate: Path
    name: str = ""


@dataclass(frozen=True)
class Prepared:
    """A pair that lies on the disk under temporary names."""

    target: Target
    document_part: Path
    certificate_part: Path
    digest: str  # SHA-256 of the document's bytes


def certificate_path(document: Path) -> Path:
    """`letter.txt` -> `letter.txt.cert.json`, beside it."""
    return document.with_name(document.name + CERTIFICATE_SUFFIX)


def written_name(name: str) -> str:
    """What the result of a file is called: PDFs are only read, and come out as text."""
    return f"{name}.txt" if name.lower().endswith(".pdf") else name


def certificate_bytes(certificate: object) -> bytes:
    return (json.dumps(certificate, indent=2, ensure_ascii=False) + "\n").encode("utf-8")


# -- names ------------------------------------------------------------------------------


def in_folder(sources: Sequence[Source], folder: Path, names: dict[str, str]) -> dict[Source, Target]:
    """A target below `folder` for each source. `names`: place -> the place to use instead.

    Raises UsageError before anything is drawn if two results would have one name, or a
    result would replace a file of the input, or leave the folder.
    """
    out: dict[Source, Target] = {}
    for source in sources:
        place = PurePosixPath(names.get(str(source.place), str(source.place)))
        document = folder / place.with_name(written_name(place.name))
        out[source] = Target(document, certificate_path(document), place.name)
    _refuse_collisions(out)
    _refuse_inputs(out)
    _refuse_escapes(out, folder)
    return out


def in_place(sources: Iterable[Source]) -> dict[Source, Target]:
    """Each source is its own target. Raises UsageError if a certificate would replace an input."""
    out = {s: Target(s.path, certificate_path(s.path), s.path.name) for s in sources}
    _refuse_collisions(out)
    return out


def _refuse_collisions(targets: dict[Source, Target]) -> None:
    owner: dict[str, Source] = {}
    for source, target in targets.items():
        for path in (target.document, target.certificate):
            other = owner.setdefault(os.path.normcase(os.path.abspath(path)), source)
            if other is not source:
                raise UsageError(
                    f"{other.path} and {source.path} would both be written to {path}",
                    next_step="name the folder that holds both, so that its tree is kept, or run "
                    "them into different output folders",
                )


def _refuse_inputs(targets: dict[Source, Target]) -> None:
    inputs = {os.path.realpath(s.path): s for s in targets if s.data is None}
    for target in targets.values():
        for path in (target.document, target.certificate):
            hit = inputs.get(os.path.realpath(path))
            if hit is not None or _same_file(path, inputs):
                raise UsageError(
                    "the result would replace an input file",
                    next_step="choose another output folder, or say --in-place",
                    place=str(path),
                )


def _same_file(path: Path, inputs: dict[str, Source]) -> bool:
    """Does an existing output share its inode with an input (a hard link)?"""
    try:
        there = os.stat(path)
    except OSError:
        return False
    if there.st_nlink < 2:
        return False
    return any(os.path.samestat(there, os.stat(name)) for name in inputs if os.path.exists(name))


def _refuse_escapes(targets: dict[Source, Target], folder: Path) -> None:
    root = Path(os.path.realpath(folder))
    for target in targets.values():
        if not Path(os.path.realpath(target.document)).is_relative_to(root):
            raise UsageError(
                "the result would land outside the output folder (a symbolic link, or `..`)",
                next_step="remove the link, or choose another output folder",
                place=str(target.document),
            )


# -- writing ----------------------------------------------------------------------------


def room_for(target: Target, size: int) -> None:
    """Before anything is drawn: can a result of about `size` bytes be written there?

    Raises WriteFailed. No promise, only the cheap test that saves a budget.
    """
    try:
        target.document.parent.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(target.document.parent).free
    except OSError as error:
        raise _failed(error, target) from None
    if free < 2 * size + (1 << 16):
        raise _failed(OSError(errno.ENOSPC, "no space left"), target)
    if not os.access(target.document.parent, os.W_OK | os.X_OK):
        raise _failed(OSError(errno.EACCES, "permission denied"), target)


def prepare(target: Target, document: bytes, certificate: bytes, *, owner: str) -> Prepared:
    """Both files on the disk under temporary names. Raises WriteFailed and leaves nothing.

    owner: stands in the temporary names, so that `sweep` takes only this job's own.
    """
    stem = f".{owner}-{secrets.token_hex(8)}"
    parts = [target.document.parent / f"{stem}{end}{TEMPORARY}" for end in (".doc", ".cert")]
    try:
        target.document.parent.mkdir(parents=True, exist_ok=True)
        for part, data in zip(parts, (document, certificate), strict=True):
            _write(part, data, _mode_of(target.document))
    except BaseException as error:
        for part in parts:
            with suppress(OSError):
                part.unlink()
        if isinstance(error, OSError):
            raise _failed(error, target) from None
        raise
    return Prepared(target, *parts, hashlib.sha256(document).hexdigest())


def commit(prepared: Prepared) -> None:
    """Rename both, certificate first. Raises WriteFailed; `finish` can be called afterwards."""
    try:
        finish(prepared)
    except OSError as error:
        raise _failed(error, prepared.target) from None


def finish(prepared: Prepared) -> bool:
    """Rename what is still under a temporary name. True if the pair stands complete after it."""
    moves = (
        (prepared.certificate_part, prepared.target.certificate),
        (prepared.document_part, prepared.target.document),
    )
    if not prepared.document_part.exists():  # the last rename is done, or the parts are gone
        return holds(prepared.target, prepared.digest)
    for part, final in moves:
        if part.exists():
            os.replace(part, final)
    _sync_folder(prepared.target.document.parent)
    return holds(prepared.target, prepared.digest)


def discard(prepared: Prepared) -> None:
    for part in (prepared.document_part, prepared.certificate_part):
        with suppress(OSError):
            part.unlink()


def holds(target: Target, digest: str) -> bool:
    """Do both files stand there, the document with these bytes?"""
    try:
        with target.document.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
        return found == digest and target.certificate.is_file()
    except OSError:
        return False


def sweep(folders: Iterable[Path], owner: str) -> int:
    """Remove what a killed run of `owner` left half written in `folders`; number of files.

    Call it only while holding the job's lock.
    """
    count = 0
    for folder in folders:
        for part in folder.glob(f".{glob.escape(owner)}-*{TEMPORARY}"):
            with suppress(OSError):
                part.unlink()
                count += 1
    return count


def write_whole(path: Path, data: bytes, mode: int = 0o666) -> None:
    """One file, whole or not at all. Raises OSError."""
    part = path.with_name(f".{secrets.token_hex(8)}{TEMPORARY}")
    try:
        _write(part, data, mode)
        os.replace(part, path)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise
    _sync_folder(path.parent)


def write_once(path: Path, data: bytes, mode: int = 0o666) -> None:
    """One file, whole, unless it is there already (then it stays). Raises OSError."""
    if path.exists():
        return
    part = path.with_name(f".{secrets.token_hex(8)}{TEMPORARY}")
    try:
        _write(part, data, mode)
        try:
            os.link(part, path)  # unlike a rename, this never replaces what another run made
        except FileExistsError:
            pass
        except OSError:  # no hard links on this file system
            if not path.exists():
                os.replace(part, path)
    finally:
        with suppress(OSError):
            part.unlink()


def _write(path: Path, data: bytes, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def _mode_of(path: Path) -> int:
    """The permissions of the file that is replaced, so that in-place work keeps them."""
    try:
        return stat.S_IMODE(os.stat(path).st_mode) & 0o777
    except OSError:
        return 0o666


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):  # not every file system lets a folder be flushed
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _failed(error: OSError, target: Target) -> WriteFailed:
    full = error.errno in FULL
    failure = WriteFailed(
        "the disk is full" if full else f"cannot be written: {error.strerror or 'unknown reason'}",
        next_step="make room, then run the same command with --resume"
        if full
        else "check the folder's permissions, then run the same command with --resume",
        place=str(target.document),
    )
    failure.full = full
    return failure
