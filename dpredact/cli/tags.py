"""`dpredact tags`: what is private in a text, and why. Loads no language model."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpredact.errors import DpredactError, PolicyError, UsageError

if TYPE_CHECKING:
    from dpredact.documents.interface import Document
    from dpredact.jobs.walking import Source
    from dpredact.policy import Policy, TaggerSettings
    from dpredact.tagging.combined import Combined
    from dpredact.tagging.interface import Span, Tagging

STDIN = "-"
NOT_COVERED = 3


def command(
    paths: Annotated[list[str], typer.Argument(metavar="PATH…", help="Files, folders, glob patterns; `-` reads stdin.", show_default=False)],
    policy: Annotated[Path | None, typer.Option(help="Policy file. Else DPREDACT_POLICY, else the nearest dpredact.yaml, else built-in settings and no groups.", show_default=False)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a document on stdout.")] = False,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page to read in a browser. It holds the text: PRIVATE.", show_default=False)] = None,
    show_values: Annotated[bool, typer.Option("--show-values", help="Print the words that were found, too: they are private.")] = False,
    explain: Annotated[int | None, typer.Option(metavar="OFFSET", min=0, help="Say what every tagger made of the character at OFFSET.", show_default=False)] = None,
    save: Annotated[bool, typer.Option("--save", help="Write FILE.tags.jsonl to correct by hand; `rewrite` reads it.")] = False,
    ignore_corrections: Annotated[bool, typer.Option("--ignore-corrections", help="Tag anew where there is a FILE.tags.jsonl.")] = False,
    use: Annotated[str | None, typer.Option(help="Taggers, e.g. patterns,spacy,onnx.", show_default=False)] = None,
    language: Annotated[str | None, typer.Option(help="Language of the texts: en, es, fr, de, da.", show_default=False)] = None,
    lists: Annotated[Path | None, typer.Option(metavar="FILE", help="Your word lists: deny, allow, subjects (YAML).", show_default=False)] = None,
    include: Annotated[list[str] | None, typer.Option(metavar="PATTERN", help="In folders, take only these (as in .gitignore).", show_default=False)] = None,
    exclude: Annotated[list[str] | None, typer.Option(metavar="PATTERN", help="Never take these.", show_default=False)] = None,
    stdin_filename: Annotated[str, typer.Option(metavar="NAME", help="File name that gives stdin its type.")] = "stdin.txt",
) -> None:  # fmt: skip
    """Show what is private in documents, and why.

    On a terminal the text is shown with its findings marked; elsewhere one line a finding,
    without the words unless --show-values asks for them. Exit 3 if a document was not read
    in full.
    """
    from dpredact import tagging

    rules = _policy(policy)
    settings = _settings(rules, use, language, lists)
    sources = list(_sources(paths, stdin_filename, include or [], exclude or []))
    if explain is not None and len(sources) != 1:
        raise UsageError("--explain looks at one document", next_step="give one file")
    tagger = tagging.build(settings, rules)
    reports, open_ends = [], False
    for source in sources:
        try:
            report = _report(source, tagger, rules, ignore_corrections)
        except DpredactError as error:
            if error.exit_code != NOT_COVERED:
                raise
            typer.echo(f"{_shown(source)}: {error.message}", err=True)
            report = Report(_shown(source), None, None, rules, error=error.message)
        open_ends = open_ends or not report.complete
        reports.append(report)
        if explain is not None:
            _explain(report, tagger, explain, show_values)
            continue
        if save and report.document is not None:
            _save(source, report)
        _show(report, as_json, show_values, html is not None)
    if html is not None:
        _page(html, reports)
    raise typer.Exit(NOT_COVERED if open_ends else 0)


@dataclass(frozen=True)
class Report:
    """What is to be told about one document."""

    path: str
    document: Document | None
    tagging: Tagging | None
    policy: Policy | None
    corrected: bool = False
    error: str = ""

    @property
    def complete(self) -> bool:
        return self.tagging is not None and self.tagging.complete

    def group(self, span: Span) -> str | None:
        return self.policy.group_of(span.entity) if self.policy else None

    def line(self, show_values: bool) -> dict[str, Any]:
        """The object of `tags --json`."""
        text = self.document.text if self.document else ""
        spans = self.tagging.spans if self.tagging else ()
        return {
            "schema": 1,
            "path": self.path,
            "length": len(text),
            "complete": self.complete,
            "reasons": [self.error] if self.error else list(self.tagging.reasons if self.tagging else ()),
            "corrected": self.corrected,
            "spans": [
                {
                    "start": s.start,
                    "end": s.end,
                    "entity": s.entity,
                    "group": self.group(s),
                    "sources": list(s.sources),
                    "score": round(s.score, 3),
                    "identity": s.identity,
                    **({"text": text[s.start : s.end]} if show_values else {}),
                }
                for s in spans
            ],
        }


# -- what is asked for ------------------------------------------------------------------


def _policy(given: Path | None) -> Policy | None:
    """The policy that holds here; None if nobody named one and none lies around."""
    from dpredact import policy as policies

    try:
        path = policies.find(given)
    except PolicyError:
        if given is not None or os.environ.get("DPREDACT_POLICY"):
            raise
        return None
    return policies.load(path)


def _settings(
    rules: Policy | None, use: str | None, language: str | None, lists: Path | None
) -> TaggerSettings:
    from dpredact.policy import TaggerSettings

    changes: dict[str, Any] = {}
    if use is not None:
        changes["use"] = tuple(name.strip() for name in use.split(",") if name.strip())
    if language is not None:
        changes["language"] = language
    if lists is not None:
        changes["lists"] = str(lists)
    return (rules.tagger if rules else TaggerSettings()).model_copy(update=changes)


def _sources(
    paths: list[str], stdin_filename: str, include: list[str], exclude: list[str]
) -> Iterator[Source]:
    from dpredact.jobs import walking

    if STDIN in paths:
        if len(paths) > 1:
            raise UsageError("`-` stands alone", next_step="look at stdin and files in two calls")
        name = PurePosixPath(PurePosixPath(stdin_filename).name or "stdin.txt")
        yield walking.Source(Path(str(name)), name, sys.stdin.buffer.read())
        return
    found = walking.walk(paths, walking.Rules(tuple(include), tuple(exclude)))
    for problem in found.problems:
        raise UsageError(problem.reason, next_step="check the path", place=problem.path)
    if not found.sources:
        raise UsageError("no file was found", next_step="check the paths, --include and --exclude")
    yield from (s for s in found.sources if not s.path.name.endswith(".tags.jsonl"))


def _shown(source: Source) -> str:
    return source.path.as_posix()


def _report(source: Source, tagger: Combined, rules: Policy | None, anew: bool) -> Report:
    from dpredact import documents
    from dpredact.tagging import combined, sidecar

    if source.data is not None:
        document = documents.read(source.data, source.path.name)
        corrected = None
    else:
        document = documents.open_path(source.path)
        corrected = None if anew else sidecar.load(source.path, document)
    tagging = corrected or combined.tag_blocks(tagger, document)
    return Report(_shown(source), document, tagging, rules, corrected is not None)


def _save(source: Source, report: Report) -> None:
    from dpredact.tagging import sidecar

    if source.data is not None:
        raise UsageError("stdin has no place for corrections", next_step="give a file")
    assert report.document is not None and report.tagging is not None
    try:
        target = sidecar.write(source.path, report.document, report.tagging)
    except FileExistsError:
        raise UsageError(
            "there are corrections already",
            next_step="delete the file first if you do not need them",
            place=str(sidecar.beside(source.path)),
        ) from None
    typer.echo(f"wrote {target}: correct it, and `dpredact rewrite` will use it", err=True)


# -- how it is shown --------------------------------------------------------------------


def _show(report: Report, as_json: bool, show_values: bool, page: bool) -> None:
    if as_json:
        typer.echo(json.dumps(report.line(show_values), ensure_ascii=False))
        return
    if report.document is None or report.tagging is None or page:
        return
    if sys.stdout.isatty():
        _marked(report)
    else:
        for line in _lines(report, show_values):
            typer.echo(line)
    for reason in report.tagging.reasons:
        typer.echo(f"{report.path}: not read in full: {reason}", err=True)


def _lines(report: Report, show_values: bool) -> Iterator[str]:
    """One line a finding: path:start-end, entity, group, score, who."""
    assert report.document is not None and report.tagging is not None
    for s in report.tagging.spans:
        words = f"  {report.document.text[s.start : s.end]!r}" if show_values else ""
        group = report.group(s)
        yield (
            f"{report.path}:{s.start}-{s.end}  {s.entity}{f' ({group})' if group else ''}  "
            f"{s.score:.2f}  {', '.join(s.sources)}{words}"
        )


_COLOURS = ("cyan", "magenta", "yellow", "green", "blue", "red", "bright_cyan", "bright_magenta")


def _marked(report: Report) -> None:
    """The text on the terminal, each finding in its group's colour with the entity behind it."""
    from rich.console import Console
    from rich.text import Text

    assert report.document is not None and report.tagging is not None
    text, colour = report.document.text, _palette(report)
    out, at = Text(), 0
    for s in report.tagging.spans:
        out.append(text[at : s.start])
        style = f"bold {colour[report.group(s) or s.entity]}"
        out.append(f"[{text[s.start : s.end]}]", style=f"{style} underline")
        out.append(s.entity + (f"·{s.identity + 1}" if s.identity is not None else ""), style=f"dim {style}")
        at = s.end
    out.append(text[at:])
    console = Console(highlight=False, soft_wrap=True)
    console.print(Text(report.path, style="bold"))
    console.print(out)
    console.print(Text(_sum(report), style="dim"))


def _palette(report: Report) -> dict[str, str]:
    assert report.tagging is not None
    names = list(dict.fromkeys(report.group(s) or s.entity for s in report.tagging.spans))
    return {name: _COLOURS[i % len(_COLOURS)] for i, name in enumerate(names)}


def _sum(report: Report) -> str:
    from collections import Counter

    assert report.tagging is not None
    counts = Counter(s.entity for s in report.tagging.spans)
    found = ", ".join(f"{n} {entity}" for entity, n in sorted(counts.items())) or "nothing found"
    note = " · from your corrections" if report.corrected else ""
    return f"{found}{note}{'' if report.complete else ' · NOT read in full'}"


def _explain(report: Report, tagger: Combined, offset: int, show_values: bool) -> None:
    """Every finding at `offset` and its fate; then the span that came of them."""
    if report.document is None or report.tagging is None:
        return
    text = report.document.text
    if offset >= len(text):
        raise UsageError(
            f"the text has {len(text)} code points", next_step="give a smaller offset"
        )
    findings = tagger.explain(text, offset)
    for found in findings:
        s = found.span
        words = f"  {text[s.start : s.end]!r}" if show_values else ""
        typer.echo(f"{s.start}-{s.end}  {s.entity}  {s.score:.2f}  {', '.join(s.sources)}  {found.fate}{words}")
    if not findings:
        typer.echo("no tagger found anything at this offset")
    for s in report.tagging.spans:
        if s.start <= offset < s.end:
            typer.echo(f"result: {s.start}-{s.end}  {s.entity}  {', '.join(s.sources)}")
            break
    else:
        typer.echo("result: not private")


def _page(target: Path, reports: list[Report]) -> None:
    """A page without scripts or outside parts, readable by its owner only (mode 0600)."""
    from dpredact.cli import tags_page

    try:
        handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(tags_page.page(reports))
    except OSError as error:
        raise UsageError(
            f"the page cannot be written: {(error.strerror or '').lower()}",
            next_step="give another place",
            place=str(target),
        ) from None
    typer.echo(f"wrote {target}: it holds the text, so it is as private as the documents", err=True)
