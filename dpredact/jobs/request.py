"""What a user asked `rewrite` for, and the job that it stands for.

`Request` is the command line as it was typed. `check` refuses what makes no sense before
anything is read; `assemble` looks for the files, plans where each result goes, and refuses
whatever would lose or replace something, all before the first draw.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from dpredact.errors import ModelError, UsageError
from dpredact.jobs import jobfile, journal, naming, outputs, run, walking
from dpredact.jobs.engine import LedgerFile
from dpredact.jobs.jobfile import JobFile
from dpredact.jobs.report import Report
from dpredact.jobs.walking import Found, Source
from dpredact.policy import Policy

STDIN = "-"
DEFAULT_FOLDER = Path("dpredact-output")


@dataclass(frozen=True)
class Request:
    """What the user asked for, as it was typed."""

    paths: list[str]
    output_dir: Path | None
    in_place: bool
    files_from: str | None
    nul: bool
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    gitignore: bool
    stdin_filename: str
    certificate: Path | None
    name_map: Path | None
    as_json: bool
    resume: bool
    again: bool
    only_failed: Path | None
    shard: str | None
    jobs: int
    together: int
    fail_fast: bool
    sign: Path | None
    report: Path | None
    allow_cut: bool
    corrections: bool

    @property
    def from_stdin(self) -> bool:
        return STDIN in self.paths

    @property
    def stdin_name(self) -> str:
        return PurePosixPath(self.stdin_filename.replace("\\", "/")).name or "stdin.txt"

    @property
    def to_stdout(self) -> bool:
        return self.from_stdin and self.output_dir is None

    @property
    def folder(self) -> Path | None:
        """The output folder; None for work in place."""
        return None if self.in_place else self.output_dir or DEFAULT_FOLDER

    def check(self) -> None:
        """Raises UsageError for what makes no sense together."""
        for wrong, message, step in (
            (not self.paths and self.files_from is None, "nothing to rewrite",
             "name files or folders, or `-` for stdin"),
            (self.from_stdin and len(self.paths) > 1, "`-` stands alone",
             "rewrite stdin and files in two calls"),
            (self.from_stdin and self.files_from is not None, "`-` and --files-from exclude each other",
             "use one of them"),
            (self.from_stdin and self.in_place, "stdin has no place to write back to", "use -o DIR"),
            (self.in_place and self.output_dir is not None, "--in-place and -o exclude each other",
             "use one of them"),
            (self.in_place and self.name_map is not None, "--name-map needs new files", "use -o DIR"),
            (self.nul and self.files_from is None, "-0 belongs to --files-from", "leave it out"),
            (self.to_stdout and self.as_json, "stdout would carry both the document and JSON",
             "add -o DIR, so that stdout carries the JSON only"),
            (self.certificate is not None and not self.to_stdout,
             "--certificate belongs to a document on stdout", "leave it out: certificates lie "
             "beside their documents"),
            (self.resume and self.again, "--resume skips what --again would draw", "use one of them"),
        ):  # fmt: skip
            if wrong:
                raise UsageError(message, next_step=step)


def assemble(
    request: Request, policy: Policy, own: Sequence[Path], sign: Any
) -> tuple[run.Job, Found]:
    """The job, ready to run, and what was found on the way to its files.

    own: files that steer the job; in a folder they are not among its documents. sign:
    certificate -> signed envelope, or None. Raises UsageError, JournalError.
    """
    index, count, part = _shard(request.shard)
    found = _find(request, own)
    sources = walking.shard(found.sources, index, count)
    folder = request.folder
    if folder is None:
        targets = outputs.in_place(sources)
    else:
        targets = outputs.in_folder(sources, folder, _neutral(request, folder, sources))
    targets = _only_failed(request, targets)
    report = None
    if request.report is not None:
        released = [folder] if folder is not None else [s.path.parent for s in targets]
        report = Report(request.report, released)
    state = journal.state_folder()
    key = journal.owner_key(state)
    if folder is None:
        job_id, job_file = journal.in_place_id(key, [s.path for s in sources]), None
    else:
        job_id = journal.job_id(folder)
        job_file = JobFile(
            folder, job_id, part=part, neutral=request.name_map is not None,
            passed=found.passed, problems=found.problems,
        )  # fmt: skip
    options = run.Options(
        spends=policy.needs_model, resume=request.resume, again=request.again,
        fail_fast=request.fail_fast, allow_cut=request.allow_cut, in_place=request.in_place,
        corrections=request.corrections, jobs=request.jobs, together=request.together,
    )  # fmt: skip
    book = journal.Journal(state, job_id, part, folder)
    identity = journal.Identity(key, policy, _weights(policy))
    return run.Job(targets, identity, book, options, folder, job_file, sign, report), found


def ledger_of(request: Request, file: Path | None, limit: float | None) -> LedgerFile | None:
    """The ledger, with the key of the owner's other records. Raises UsageError."""
    if file is None:
        if limit is not None:
            raise UsageError("--ledger-limit belongs to --ledger", next_step="name the ledger, too")
        return None
    if not request.to_stdout:
        _keep_out(file, request.folder, "the ledger")
    return LedgerFile(file, journal.owner_key(journal.state_folder()), limit)


# -- the parts of a job -----------------------------------------------------------------


def _weights(policy: Policy) -> str:
    """What tells these weights from others of the same name, without reading gigabytes."""
    from dpredact.lm import catalog

    if not policy.needs_model or policy.model == catalog.TOY:
        return ""
    if policy.model in catalog.ENTRIES:
        return catalog.ENTRIES[policy.model].sha256
    try:
        folder = catalog.locate(policy.model)
        files = sorted((f.name, f.stat().st_size) for f in folder.iterdir() if f.is_file())
        config = (folder / "config.json").read_bytes()
    except (ModelError, OSError):
        return ""  # it is not here yet; the name stands in the policy
    return hashlib.sha256(repr(files).encode() + config).hexdigest()


def _find(request: Request, own: Sequence[Path]) -> Found:
    if request.from_stdin:
        data = sys.stdin.buffer.read()
        name = PurePosixPath(request.stdin_name)
        return walking.Found((walking.Source(Path(str(name)), name, data),), (), ())
    written = (request.folder, request.report, request.name_map)
    avoid = [*own, *(p for p in written if p is not None)]
    avoid += [p.with_name(f"{p.name}.lock") for p in avoid]
    rules = walking.Rules(request.include, request.exclude, request.gitignore, avoid=tuple(avoid))
    found = walking.walk(request.paths, rules)
    if request.files_from is not None:
        names = walking.listed(request.files_from, nul=request.nul)
        listed = walking.walk(names, rules, listed=True)
        found = found.joined(listed)
    if not found.sources:
        first = found.problems[0] if found.problems else None
        raise UsageError(
            first.reason if first else "no file to rewrite was found",
            next_step="check the path" if first else "check the paths, --include and --exclude",
            place=first.path if first else "",
        )
    return found


def _shard(text: str | None) -> tuple[int, int, str]:
    if text is None:
        return 1, 1, ""
    index, slash, count = text.partition("/")
    if not slash or not (index.isdigit() and count.isdigit()):
        raise UsageError(f"{text!r} is no part of a job", next_step="write --shard 1/4")
    return int(index), int(count), f"{int(index)}-of-{int(count)}"


def _neutral(request: Request, folder: Path, sources: Sequence[Source]) -> dict[str, str]:
    if request.name_map is None:
        return {}
    _keep_out(request.name_map, folder, "the name map")
    return naming.neutral_names(request.name_map, [s.place for s in sources])


def _only_failed(request: Request, targets: dict[Source, Any]) -> dict[Source, Any]:
    if request.only_failed is None:
        return targets
    if request.folder is None:
        raise UsageError("--only-failed needs an output folder", next_step="use -o DIR")
    names = jobfile.failed_outputs(request.only_failed)
    folder = request.folder
    return {s: t for s, t in targets.items() if t.document.relative_to(folder).as_posix() in names}


def _keep_out(file: Path, folder: Path | None, what: str) -> None:
    if folder is not None and file.resolve().is_relative_to(folder.resolve()):
        raise UsageError(
            f"{what} would lie among the released files",
            next_step="choose a place outside the output folder",
            place=str(file),
        )
