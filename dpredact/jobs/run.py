"""A job: many documents, each complete or absent, none drawn twice unseen.

`run` is the path of a job on one screen. It prints nothing; a Listener is told.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from dpredact.errors import BudgetExceeded, DocumentError, DpredactError, NotCovered
from dpredact.jobs import outputs, pool
from dpredact.jobs.engine import Factory, Input, Result
from dpredact.jobs.journal import Identity, Journal
from dpredact.jobs.jobfile import JobFile, Record
from dpredact.jobs.outputs import Target, WriteFailed
from dpredact.jobs.report import Report
from dpredact.jobs.walking import CORRECTIONS_SUFFIX, Source

GRAVITY = (5, 4, 2, 3, 1, 0)  # exit codes, the most serious first


class Listener(Protocol):
    """Told of everything, in order; shows what it likes."""

    def began(self, total: int) -> None: ...
    def started(self, path: str) -> None: ...
    def tokens(self, path: str, count: int) -> None: ...
    def ended(self, record: Record) -> None: ...
    def remark(self, text: str) -> None: ...


@dataclass(frozen=True)
class Options:
    """How a job goes about its files; nothing here changes what a release promises.

    resume: skip what is finished. again: draw it again, and pay again. allow_cut: a text
    that ran into T is accepted. spends: does this policy spend a budget at all?
    """

    spends: bool
    resume: bool = False
    again: bool = False
    fail_fast: bool = False
    allow_cut: bool = False
    in_place: bool = False
    corrections: bool = True  # read FILE.tags.jsonl beside FILE
    jobs: int = 1
    together: int = 8  # documents that one process draws side by side


@dataclass(frozen=True)
class Job:
    """folder: the output folder; None for work in place."""

    targets: dict[Source, Target]
    identity: Identity
    journal: Journal
    options: Options
    folder: Path | None = None
    job_file: JobFile | None = None
    sign: Any = None  # certificate -> signed envelope
    report: Report | None = None

    def place(self, target: Target) -> str:
        """How the journal names a result: it must not change when the folder is moved."""
        if self.folder is None:
            return os.path.abspath(target.document)
        return os.path.relpath(target.document, self.folder)


def run(job: Job, factory: Factory, listener: Listener) -> list[Record]:
    """All documents of the job, as records in the order of the files.

    Raises DpredactError when nothing can go on (no model, no journal); KeyboardInterrupt
    passes through, and what is finished by then is finished.
    """
    work = _Work(job, listener)
    with job.journal, job.job_file or nullcontext():
        work.recover()
        listener.began(len(job.targets))
        jobs = max(1, min(job.options.jobs, len(job.targets)))
        with closing(pool.run(factory, work.tasks(), work.told, jobs, job.options.together)) as results:
            for task, result in results:
                work.take(task.label, result)
        return work.all_records()


def exit_code(records: list[Record], problems: int = 0) -> int:
    """The most serious code of a batch; a path that could not be read counts as 3."""
    codes = {r.code for r in records} | ({3} if problems else set())
    return next((c for c in GRAVITY if c in codes), 5 if codes - set(GRAVITY) else 0)


@dataclass
class _Label:
    """A document on its way: where it comes from, where it goes, its key in the journal."""

    source: Source
    target: Target
    key: str
    note: str = ""
    begun: bool = False


class _Work:
    """One run over a job's files."""

    def __init__(self, job: Job, listener: Listener) -> None:
        self.job, self.listener, self.journal = job, listener, job.journal
        self.records: dict[Source, Record] = {}
        self.stopped = ""

    # -- before the draw ----------------------------------------------------------------

    def recover(self) -> None:
        """Complete or clear away what a killed run left behind."""
        finished = self.journal.finish_open_pairs()
        folders = {t.document.parent for t in self.job.targets.values()}
        outputs.sweep(folders, self.journal.name)
        if finished:
            self.listener.remark(f"{finished} documents of an interrupted run were put in place")

    def tasks(self) -> Iterator[pool.Task]:
        for source, target in self.job.targets.items():
            if self.stopped:
                return
            try:
                label, given = self.prepare(source, target)
            except _Settled as settled:
                self.settle(source, settled.record)
            except DpredactError as error:
                self.settle(source, self.from_error(source, error))
            else:
                yield pool.Task(label, given, lambda x=label: self.begin(x))

    def prepare(self, source: Source, target: Target) -> tuple[_Label, Input]:
        """Everything that can be known before a budget is spent. Raises what speaks against it."""
        data = _bytes(source.path) if source.data is None else source.data
        corrections = self.corrections(source)
        label = _Label(source, target, self.job.identity.of(data, corrections))
        place = self.job.place(target)
        entry = self.journal.entry(label.key, place)
        options = self.job.options
        if options.in_place and outputs.written_name(target.name) != target.name:
            raise NotCovered(
                "this format can be read and not written, so not in place", next_step="use -o DIR"
            )
        if options.in_place and not options.again and _released(data, target):
            raise _Settled(self.record(source, reason="it carries a valid certificate already"))
        if entry.released(target) and not options.again:
            self.finished_before(source, target, entry)
        elif not options.again and not options.in_place and not self.journal.wrote(place):
            _refuse_strangers(target)
        if options.spends and entry.attempts:
            label.note = f"draw number {entry.attempts + 1} of this document; each counts as spent"
        elif options.spends and self.journal.elsewhere(label.key, place):
            label.note = "the same text is released under another name too; their losses add up"
        outputs.room_for(target, len(data))
        return label, Input(data, target.name, corrections)

    def corrections(self, source: Source) -> bytes | None:
        """What a person wrote beside the file with `tags --save`; None without it."""
        beside = source.path.with_name(source.path.name + CORRECTIONS_SUFFIX)
        if not self.job.options.corrections or source.data is not None or not beside.exists():
            return None
        return _bytes(beside)

    def finished_before(self, source: Source, target: Target, entry: Any) -> None:
        """Is a finished document skipped, refused, or (when it costs nothing) done again?"""
        there = outputs.holds(target, entry.digest)
        if there and self.job.options.resume:
            summary = entry.summary or {}
            record = self.record(source, reason="finished earlier")
            raise _Settled(replace(record, **_shown(target), **summary))
        if self.job.options.spends:
            raise BudgetExceeded(
                "finished earlier; drawing it again would spend its budget again"
                if there
                else "finished earlier, but the result is gone or changed; "
                "drawing it again would spend its budget again",
                next_step="--resume keeps what is finished, --again spends again",
            )

    def begin(self, label: _Label) -> bool:
        if self.stopped:
            return False
        self.journal.started(label.key, self.job.place(label.target))
        label.begun = True
        self.listener.started(str(label.source.path))
        return True

    def told(self, task: pool.Task, count: int) -> None:
        self.listener.tokens(str(task.label.source.path), count)

    # -- after the draw -----------------------------------------------------------------

    def take(self, label: _Label, result: Result) -> None:
        """One result: written as a pair, or noted as refused or failed."""
        place = self.job.place(label.target)
        self.report(label, result)
        if result.status in ("written", "copied"):
            try:
                record = self.write(label, result)
            except DpredactError as error:
                self.journal.ended(label.key, place, "failed", spent=result.spent)
                record = self.from_error(label.source, error)
        else:
            if label.begun:  # else the journal knows nothing of this try, and need not
                self.journal.ended(label.key, place, result.status, spent=result.spent)
            record = replace(
                self.record(label.source, result.status, result.reason, result.code),
                next_step=result.next_step,
            )
        self.settle(label.source, record)

    def report(self, label: _Label, result: Result) -> None:
        if self.job.report is None or result.report is None:
            return
        try:
            self.job.report.add(str(label.source.path), result.report)
        except OSError:
            self.stopped = "stopped because the private report could not be written"
            self.listener.remark(self.stopped)

    def write(self, label: _Label, result: Result) -> Record:
        place, target = self.job.place(label.target), label.target
        certificate = result.certificate
        if self.job.sign is not None and certificate is not None:
            certificate = self.job.sign(certificate)
        summary = {
            "finished": result.finished,
            "epsilon": result.epsilon,
            "epsilon_all": result.epsilon_all,
        }
        pair = outputs.prepare(
            target, result.data, outputs.certificate_bytes(certificate), owner=self.journal.name
        )
        try:
            self.journal.ready(label.key, place, pair, summary)
            outputs.commit(pair)
        except DpredactError:
            outputs.discard(pair)
            raise
        self.journal.done(label.key, place)
        cut = result.finished == "length" and not self.job.options.allow_cut
        reasons = [label.note, "the text was cut at max_new_tokens" if cut else "", *result.remarks]
        record = self.record(
            label.source, result.status, "; ".join(r for r in reasons if r), 3 if cut else 0
        )
        hint = "raise max_new_tokens, or accept a cut text with --allow-cut" if cut else ""
        return replace(record, next_step=hint, **_shown(target), **summary)

    # -- telling ------------------------------------------------------------------------

    def settle(self, source: Source, record: Record) -> None:
        self.records[source] = record
        if self.job.job_file is not None:
            self.job.job_file.add(source, self.job.targets[source], record)
        self.listener.ended(record)
        if record.code and self.job.options.fail_fast:
            self.stopped = "stopped after the first failure (--fail-fast)"

    def from_error(self, source: Source, error: DpredactError) -> Record:
        status = "refused" if error.exit_code in (3, 4) else "failed"
        if isinstance(error, WriteFailed) and error.full:
            self.stopped = "stopped because the disk is full"
        record = self.record(source, status, error.message, error.exit_code)
        return replace(record, next_step=error.next_step)

    def record(self, source: Source, status: str = "skipped", reason: str = "", code: int = 0) -> Record:
        return Record(str(source.path), status=status, reason=reason, code=code)

    def all_records(self) -> list[Record]:
        out = []
        for source in self.job.targets:
            if source not in self.records:
                self.settle(source, self.record(source, reason=self.stopped, code=3))
            out.append(self.records[source])
        return out


class _Settled(Exception):
    """A document about which nothing is left to do."""

    def __init__(self, record: Record) -> None:
        self.record = record


def _bytes(path: Path) -> bytes:
    from dpredact.documents import LARGEST

    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "rb") as stream:
            return stream.read(LARGEST + 1)  # the reader refuses what is longer
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise DocumentError(
            f"cannot be read: {reason.lower()}", next_step="check the file and its permissions"
        ) from None


def _released(data: bytes, target: Target) -> bool:
    """Is this file itself a release: does the certificate beside it hold for its bytes?"""
    from dpredact import certificate

    try:
        claim = json.loads(target.certificate.read_bytes())
        return certificate.verify(data, claim).ok
    except (OSError, ValueError, DpredactError):
        return False


def _refuse_strangers(target: Target) -> None:
    """Files at the place of a result that this job did not write stay untouched."""
    for path in (target.document, target.certificate):
        with suppress(OSError):
            os.lstat(path)
            raise NotCovered(
                f"a file stands at {path} that this job did not write",
                next_step="choose another output folder, or replace it with --again",
            )


def _shown(target: Target) -> dict[str, str]:
    return {"output": str(target.document), "certificate": str(target.certificate)}
