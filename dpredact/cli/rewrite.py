"""`dpredact rewrite`: documents in, documents and certificates out."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpredact.cli.progress import Mode, Progress
from dpredact.errors import UsageError

if TYPE_CHECKING:
    from dpredact.jobs.engine import Factory, Result
    from dpredact.jobs.jobfile import Record
    from dpredact.jobs.request import Request
    from dpredact.jobs.run import Job
    from dpredact.jobs.walking import Found

Paths = Annotated[
    list[str] | None,
    typer.Argument(metavar="PATH…", help="Files, folders, glob patterns; `-` reads stdin and "
                   "writes stdout.", show_default=False),
]  # fmt: skip


def command(
    paths: Paths = None,
    output_dir: Annotated[Path | None, typer.Option("--output-dir", "-o", help="Folder for the results; the tree below each PATH is kept.  [default: dpredact-output]", show_default=False)] = None,
    policy: Annotated[Path | None, typer.Option(help="Policy file. Else DPREDACT_POLICY, else the nearest dpredact.yaml.", show_default=False)] = None,
    in_place: Annotated[bool, typer.Option("--in-place", help="Replace each file by its result.")] = False,
    files_from: Annotated[str | None, typer.Option(metavar="FILE", help="Read paths from FILE, or from stdin with `-`; one a line.", show_default=False)] = None,
    nul: Annotated[bool, typer.Option("-0", "--null", help="The paths of --files-from end with NUL bytes.")] = False,
    include: Annotated[list[str] | None, typer.Option(metavar="PATTERN", help="In folders, take only these (as in .gitignore).", show_default=False)] = None,
    exclude: Annotated[list[str] | None, typer.Option(metavar="PATTERN", help="Never take these.", show_default=False)] = None,
    no_gitignore: Annotated[bool, typer.Option("--no-gitignore", help="Take what .gitignore lists, too.")] = False,
    stdin_filename: Annotated[str, typer.Option(metavar="NAME", help="File name that gives stdin its type.")] = "stdin.txt",
    certificate: Annotated[Path | None, typer.Option(metavar="FILE", help="Where the certificate goes when the document goes to stdout.", show_default=False)] = None,
    name_map: Annotated[Path | None, typer.Option(metavar="FILE", help="Give results neutral names; FILE (private) keeps which is which.", show_default=False)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a document on stdout.")] = False,
    progress: Annotated[Mode, typer.Option(help="Progress on stderr.")] = Mode.AUTO,
    resume: Annotated[bool, typer.Option("--resume", help="Skip what is finished.")] = False,
    again: Annotated[bool, typer.Option("--again", help="Draw finished documents again, and spend their budget again.")] = False,
    only_failed: Annotated[Path | None, typer.Option(metavar="JOB.JSON", help="Only what this job.json lists as not done.", show_default=False)] = None,
    shard: Annotated[str | None, typer.Option(metavar="I/N", help="Only part I of N of the files.", show_default=False)] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes; each holds its own model.")] = 1,
    together: Annotated[int, typer.Option(min=1, help="Documents that one process draws side by side.")] = 8,
    fail_fast: Annotated[bool, typer.Option("--fail-fast", help="Stop after the first document that fails.")] = False,
    sign: Annotated[Path | None, typer.Option(metavar="KEY", help="Sign certificates with this private key (see keygen).", show_default=False)] = None,
    report: Annotated[Path | None, typer.Option(metavar="FILE", help="PRIVATE report for the owner: words found, realised losses.", show_default=False)] = None,
    ignore_corrections: Annotated[bool, typer.Option("--ignore-corrections", help="Tag anew where there is a FILE.tags.jsonl.")] = False,
    ledger: Annotated[Path | None, typer.Option(metavar="FILE", help="Count what each document has cost over all runs in FILE.", show_default=False)] = None,
    ledger_limit: Annotated[float | None, typer.Option(metavar="EPSILON", min=0, help="Refuse (exit 4) what would take a document past it.", show_default=False)] = None,
    allow_cut: Annotated[bool, typer.Option("--allow-cut", help="Accept texts that were cut at max_new_tokens.")] = False,
    allow_download: Annotated[bool, typer.Option("--allow-download", help="Fetch missing models.")] = False,
    device: Annotated[str, typer.Option(metavar="NAME", help="Where the model runs: auto, cpu, cuda, cuda:1.")] = "auto",
    device_map: Annotated[str | None, typer.Option(metavar="NAME", help="Spread a large model over devices, as accelerate does: auto, balanced.", show_default=False)] = None,
    unsafe_seed: Annotated[int | None, typer.Option(metavar="N", help="Repeatable draws, for tests only; certificates say unsafe.", show_default=False)] = None,
) -> None:  # fmt: skip
    """Rewrite documents under the policy; write each with its certificate.

    Every result is written whole with its certificate, or not at all. Exit 3 if some
    document was refused or cut, 4 if a budget would be spent twice, 5 if something failed.
    """
    from dpredact import policy as policies
    from dpredact.jobs.engine import PipelineFactory, fetch_models
    from dpredact.jobs.request import Request, assemble, ledger_of

    wanted = Request(
        list(paths or []), output_dir, in_place, files_from, nul, tuple(include or ()),
        tuple(exclude or ()), not no_gitignore, stdin_filename, certificate, name_map, as_json,
        resume, again, only_failed, shard, jobs, together, fail_fast, sign, report, allow_cut,
        not ignore_corrections,
    )  # fmt: skip
    wanted.check()
    policy_file = policies.find(policy)
    rules = policies.load(policy_file)
    own = [p for p in (policy_file, rules.tagger.lists, ledger) if p is not None]
    signer = _signer(sign)
    if allow_download:
        fetch_models(rules)
    factory = PipelineFactory(
        rules, unsafe_seed, report is not None, allow_download, ledger_of(wanted, ledger, ledger_limit),
        device, device_map,
    )
    with _terminated_means_interrupted():
        if wanted.to_stdout:
            code = _pipe(wanted, factory, signer)
        else:
            job, found = assemble(wanted, rules, [Path(p) for p in own], signer)
            code = _job(job, found, factory, Progress(progress), as_json)
    raise typer.Exit(code)


# -- many files -------------------------------------------------------------------------


def _job(job: Job, found: Found, factory: Factory, progress: Progress, as_json: bool) -> int:
    from dpredact.jobs import run

    for problem in found.problems:
        progress.remark(f"{problem.path}: {problem.reason}")
    try:
        records = run.run(job, factory, _Teller(progress, as_json))
    finally:
        progress.close()
        if job.report is not None:
            job.report.close()
    _sum_up(records, found, job.folder)
    return run.exit_code(records, len(found.problems))


class _Teller:
    """Hands everything on to the progress, and each record to stdout when JSON is wanted."""

    def __init__(self, progress: Progress, as_json: bool) -> None:
        self._as_json = as_json
        self.began, self.started = progress.began, progress.started
        self.tokens, self.remark = progress.tokens, progress.remark
        self._ended = progress.ended

    def ended(self, record: Record) -> None:
        if self._as_json:
            typer.echo(json.dumps(record.line()))
            sys.stdout.flush()
        self._ended(record)


def _sum_up(records: Sequence[Record], found: Found, folder: Path | None) -> None:
    """The end of a job in a line or two, on stderr."""
    from collections import Counter

    counts = Counter(r.status for r in records)
    parts = [f"{n} {status}" for status, n in sorted(counts.items())]
    parts += [f"{len(found.passed)} passed over"] if found.passed else []
    parts += [f"{len(found.problems)} unreadable"] if found.problems else []
    where = f" in {folder}" if folder is not None else ""
    typer.echo(f"{', '.join(parts) or 'nothing to do'}{where}", err=True)
    links = [r for r in found.passed if "symbolic link" in r.reason]
    for remark in links[:10]:
        typer.echo(f"{remark.path}: {remark.reason}", err=True)
    if len(links) > 10:
        typer.echo(f"and {len(links) - 10} more symbolic links, listed in job.json", err=True)


# -- one document through a pipe --------------------------------------------------------


def _pipe(wanted: Request, factory: Factory, signer: Any) -> int:
    """stdin to stdout. The certificate goes first, so that a reader of both finds both."""
    from dpredact.jobs import engine, outputs
    from dpredact.jobs.report import Report

    if wanted.certificate is not None and not os.access(wanted.certificate.parent, os.W_OK):
        raise UsageError(
            "the certificate cannot be written there",
            next_step="choose a place you can write to",
            place=str(wanted.certificate),
        )
    data = sys.stdin.buffer.read()
    report = Report(wanted.report, []) if wanted.report else None
    result: Result = engine.run(factory(), engine.Input(data, wanted.stdin_name), lambda n: None)
    if report is not None and result.report is not None:
        report.add(wanted.stdin_name, result.report)
        report.close()
    if result.status not in ("written", "copied"):
        typer.echo(f"{wanted.stdin_name}: {result.status}: {result.reason}", err=True)
        if result.next_step:
            typer.echo(f"  next: {result.next_step}", err=True)
        return result.code
    claim = signer(result.certificate) if signer and result.certificate else result.certificate
    if wanted.certificate is not None:
        try:
            outputs.write_whole(wanted.certificate, outputs.certificate_bytes(claim))
        except OSError as error:
            raise UsageError(
                f"the certificate cannot be written: {(error.strerror or '').lower()}",
                next_step="choose a place you can write to",
                place=str(wanted.certificate),
            ) from None
    else:
        typer.echo("the certificate was not kept; --certificate FILE keeps it", err=True)
    for remark in result.remarks:
        typer.echo(f"{wanted.stdin_name}: {remark}", err=True)
    sys.stdout.buffer.write(result.data)
    sys.stdout.buffer.flush()
    if result.finished == "length" and not wanted.allow_cut:
        typer.echo("the text was cut at max_new_tokens; --allow-cut accepts that", err=True)
        return 3
    return 0


# -- around it --------------------------------------------------------------------------


def _signer(key: Path | None) -> Any:
    """A function that signs certificates; the key is read before anything is drawn."""
    if key is None:
        return None
    from dpredact.certificate import sign as signing

    return signing.signer(key)


@contextmanager
def _terminated_means_interrupted() -> Any:
    """A scheduler's SIGTERM ends a job as Ctrl-C does: what is finished stays finished."""

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
