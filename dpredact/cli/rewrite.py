"""`dpredact rewrite`: documents in, documents and certificates out."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpredact.cli.progress import Mode, Progress
from dpredact.errors import UsageError

if TYPE_CHECKING:
    from dpredact.jobs.engine import Factory, LedgerFile, Result
    from dpredact.jobs.jobfile import Record
    from dpredact.jobs.journal import Journal
    from dpredact.jobs.walking import Found, Source
    from dpredact.policy import Policy

STDIN = "-"
DEFAULT_FOLDER = Path("dpredact-output")

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
    unsafe_seed: Annotated[int | None, typer.Option(metavar="N", help="Repeatable draws, for tests only; certificates say unsafe.", show_default=False)] = None,
) -> None:  # fmt: skip
    """Rewrite documents under the policy; write each with its certificate.

    Every result is written whole with its certificate, or not at all. Exit 3 if some
    document was refused or cut, 4 if a budget would be spent twice, 5 if something failed.
    """
    given = list(paths or [])
    wanted = Wanted(
        given, output_dir, in_place, files_from, nul, tuple(include or ()), tuple(exclude or ()),
        not no_gitignore, stdin_filename, certificate, name_map, as_json, resume, again,
        only_failed, shard, jobs, together, fail_fast, sign, report, allow_cut, not ignore_corrections,
    )  # fmt: skip
    wanted.check()
    from dpredact import policy as policies
    from dpredact.jobs.engine import PipelineFactory, fetch_models

    policy_file = policies.find(policy)
    rules = policies.load(policy_file)
    own = [policy_file, *([Path(rules.tagger.lists)] if rules.tagger.lists else [])]
    signer = _signer(sign)
    if allow_download:
        fetch_models(rules)
    factory = PipelineFactory(
        rules, unsafe_seed, report is not None, allow_download, _ledger(ledger, ledger_limit, wanted)
    )
    with _terminated_means_interrupted():
        if wanted.to_stdout:
            code = _pipe(wanted, factory, signer)
        else:
            code = _job(wanted, rules, own, factory, signer, Progress(progress))
    raise typer.Exit(code)


@dataclass(frozen=True)
class Wanted:
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


# -- many files -------------------------------------------------------------------------


def _job(
    wanted: Wanted, policy: Policy, own: Sequence[Path], factory: Factory, signer: Any,
    progress: Progress,
) -> int:  # fmt: skip
    """own: files that steer the job; in a folder they are not among its documents."""
    from dpredact.jobs import journal, outputs, run
    from dpredact.jobs.jobfile import JobFile
    from dpredact.jobs.report import Report

    index, count, part = _shard(wanted.shard)
    found = _find(wanted, own)
    sources = _narrow(found.sources, index, count)
    folder = wanted.folder
    if folder is None:
        targets = outputs.in_place(sources)
    else:
        names = _neutral(wanted, folder, sources)
        targets = outputs.in_folder(sources, folder, names)
    targets = _only_failed(wanted, targets)
    report = Report(wanted.report, [folder] if folder else [s.path.parent for s in targets]) if wanted.report else None  # fmt: skip
    state = journal.state_folder()
    key = journal.owner_key(state)
    if folder is None:
        job_id, job_file = journal.in_place_id(key, [s.path for s in sources]), None
    else:
        job_id = journal.job_id(folder)
        job_file = JobFile(folder, job_id, part=part, neutral=wanted.name_map is not None,
                           passed=found.passed, problems=found.problems)  # fmt: skip
    job = run.Job(
        targets,
        journal.Identity(key, policy),
        journal.Journal(state, job_id, part, folder),
        run.Options(policy.needs_model, wanted.resume, wanted.again, wanted.fail_fast,
                    wanted.allow_cut, wanted.in_place, wanted.corrections, wanted.jobs,
                    wanted.together),
        folder, job_file, signer, report,
    )  # fmt: skip
    teller = _Teller(progress, wanted.as_json)
    for problem in found.problems:
        progress.remark(f"{problem.path}: {problem.reason}")
    try:
        records = run.run(job, factory, teller)
    finally:
        progress.close()
        if report is not None:
            report.close()
    _sum_up(records, found, folder)
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


def _find(wanted: Wanted, own: Sequence[Path]) -> Found:
    from dpredact.jobs import walking

    if wanted.from_stdin:
        data = sys.stdin.buffer.read()
        name = PurePosixPath(wanted.stdin_name)
        return walking.Found((walking.Source(Path(str(name)), name, data),), (), ())
    written = (wanted.folder, wanted.report, wanted.name_map)
    avoid = [*own, *(p for p in written if p is not None)]
    rules = walking.Rules(wanted.include, wanted.exclude, wanted.gitignore, avoid=tuple(avoid))
    found = walking.walk(wanted.paths, rules)
    if wanted.files_from is not None:
        names = walking.listed(wanted.files_from, nul=wanted.nul)
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


def _narrow(sources: Sequence[Source], index: int, count: int) -> tuple[Source, ...]:
    from dpredact.jobs import walking

    return walking.shard(sources, index, count)


def _neutral(wanted: Wanted, folder: Path, sources: Sequence[Source]) -> dict[str, str]:
    from dpredact.jobs import naming

    if wanted.name_map is None:
        return {}
    _keep_out(wanted.name_map, folder, "the name map")
    return naming.neutral_names(wanted.name_map, [s.place for s in sources])


def _only_failed(wanted: Wanted, targets: dict[Source, Any]) -> dict[Source, Any]:
    from dpredact.jobs import jobfile

    if wanted.only_failed is None:
        return targets
    if wanted.folder is None:
        raise UsageError("--only-failed needs an output folder", next_step="use -o DIR")
    names = jobfile.failed_outputs(wanted.only_failed)
    folder = wanted.folder
    return {s: t for s, t in targets.items() if t.document.relative_to(folder).as_posix() in names}


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


def _pipe(wanted: Wanted, factory: Factory, signer: Any) -> int:
    """stdin to stdout. The certificate goes first, so that a reader of both finds both."""
    from dpredact.jobs import engine, outputs
    from dpredact.jobs.report import Report

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
    sys.stdout.buffer.write(result.data)
    sys.stdout.buffer.flush()
    if result.finished == "length" and not wanted.allow_cut:
        typer.echo("the text was cut at max_new_tokens; --allow-cut accepts that", err=True)
        return 3
    return 0


# -- around it --------------------------------------------------------------------------


def _ledger(file: Path | None, limit: float | None, wanted: Wanted) -> LedgerFile | None:
    """The ledger, with the key of the owner's other records."""
    from dpredact.jobs import journal
    from dpredact.jobs.engine import LedgerFile

    if file is None:
        if limit is not None:
            raise UsageError("--ledger-limit belongs to --ledger", next_step="name the ledger, too")
        return None
    if not wanted.to_stdout:
        _keep_out(file, wanted.folder, "the ledger")
    return LedgerFile(file, journal.owner_key(journal.state_folder()), limit)


def _keep_out(file: Path, folder: Path | None, what: str) -> None:
    if folder is not None and file.resolve().is_relative_to(folder.resolve()):
        raise UsageError(
            f"{what} would lie among the released files",
            next_step="choose a place outside the output folder",
            place=str(file),
        )


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
