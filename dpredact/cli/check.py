"""`dpredact check`: a gate for files that are about to be passed on."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpredact.errors import PolicyError, UsageError

if TYPE_CHECKING:
    from dpredact.jobs.checking import FileCheck
    from dpredact.jobs.walking import Found
    from dpredact.policy import Policy


class Format(StrEnum):
    TEXT = "text"
    JSON = "json"
    GITHUB = "github"
    SARIF = "sarif"


def command(
    paths: Annotated[list[str] | None, typer.Argument(metavar="PATH…", help="Files, folders, glob patterns.", show_default=False)] = None,
    policy: Annotated[Path | None, typer.Option(help="What to look for. Else DPREDACT_POLICY, the nearest dpredact.yaml, or every core kind.", show_default=False)] = None,
    form: Annotated[Format, typer.Option("--format", help="How findings are written to stdout.")] = Format.TEXT,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    baseline: Annotated[Path | None, typer.Option(metavar="FILE", help="Findings that are accepted; read, never written.", show_default=False)] = None,
    write_baseline: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the findings of now as a baseline.", show_default=False)] = None,
    max_epsilon: Annotated[float | None, typer.Option(min=0, help="The most that a certificate may promise, for any group and for all.", show_default=False)] = None,
    key: Annotated[Path | None, typer.Option(metavar="PUB", help="Certificates must be signed with this key.", show_default=False)] = None,
    certificates_only: Annotated[bool, typer.Option("--certificates-only", help="Check certificates, and no words.")] = False,
    files_from: Annotated[str | None, typer.Option(metavar="FILE", help="Read paths from FILE, or from stdin with `-`.", show_default=False)] = None,
    nul: Annotated[bool, typer.Option("-0", "--null", help="The paths of --files-from end with NUL bytes.")] = False,
    include: Annotated[list[str] | None, typer.Option(metavar="PATTERN", help="In folders, take only these (as in .gitignore).", show_default=False)] = None,
    exclude: Annotated[list[str] | None, typer.Option(metavar="PATTERN", help="Never take these.", show_default=False)] = None,
    no_gitignore: Annotated[bool, typer.Option("--no-gitignore", help="Take what .gitignore lists, too.")] = False,
    allow_download: Annotated[bool, typer.Option("--allow-download", help="Fetch missing tagger models.")] = False,
) -> None:  # fmt: skip
    """Fail if files hold private words without a valid certificate (FILE.cert.json beside FILE).

    Exit 1 if something was found, 3 if a file could not be read. No language model is loaded.
    """
    from dpredact import policy as policies
    from dpredact.jobs import baseline as baselines
    from dpredact.jobs import checking, run, walking
    from dpredact.jobs.engine import fetch_models

    if not paths and files_from is None:
        raise UsageError("nothing to check", next_step="name files or folders")
    if baseline is not None and write_baseline is not None:
        raise UsageError("--baseline reads, --write-baseline writes", next_step="use one of them")
    policy_file = _policy_file(policy)
    rules = policies.load(policy_file) if policy_file is not None else None
    known = baselines.read(baseline) if baseline is not None else None
    if write_baseline is not None:
        known = baselines.empty(write_baseline)
    if allow_download and not certificates_only:
        fetch_models(rules or _defaults())
    gate = checking.Gate(
        rules, max_epsilon, key, certificates_only, known.digest if known is not None else None
    )
    lists = Path(rules.tagger.lists) if rules is not None and rules.tagger.lists else None
    walk_rules = walking.Rules(
        tuple(include or ()), tuple(exclude or ()), not no_gitignore, hidden=True, beside=True,
        avoid=tuple(p for p in (policy_file, baseline, write_baseline, lists) if p is not None),
    )  # fmt: skip
    found = _find(paths or [], files_from, nul, walk_rules)
    if not found.sources and not found.problems:
        raise UsageError(
            "no file to check was found", next_step="check the paths, --include and --exclude"
        )
    form = Format.JSON if as_json else form
    checks: list[FileCheck] = []
    for path in checking.subjects([s.path for s in found.sources]):
        check = gate.check(path)
        if known is not None and write_baseline is None:
            if known.entries and (gone := known.gone([check])):
                typer.echo(f"{path}: {gone} baseline entries fit nothing any more", err=True)
            check = known.without_known(check)
        checks.append(check)
        _show(check, form)
    checks += [
        checking.FileCheck(p.path, "unreadable", problems=(p.reason,)) for p in found.problems
    ]
    for check in checks[len(checks) - len(found.problems) :]:
        _show(check, form)
    if form is Format.SARIF:
        from dpredact.jobs import sarif

        typer.echo(json.dumps(sarif.log(checks), indent=1))
    _sum_up(checks, found)
    if write_baseline is not None and known is not None:
        known.filled(checks).write(write_baseline)
        typer.echo(f"baseline written to {write_baseline}", err=True)
        checks = [c for c in checks if c.status == "unreadable"]
    codes = {c.code for c in checks}
    raise typer.Exit(next((c for c in run.GRAVITY if c in codes), 0))


def _policy_file(given: Path | None) -> Path | None:
    """The policy that holds; None (every core kind) where nobody named one."""
    from dpredact import policy as policies

    try:
        return policies.find(given)
    except PolicyError:
        if given is not None or os.environ.get("DPREDACT_POLICY"):
            raise
        return None


def _defaults() -> Policy:
    from dpredact import policy as policies

    return policies.loads(
        "version: 1\ngroups: {other: {entities: [PERSON], method: redact}}\n", name="defaults"
    )


def _find(paths: list[str], files_from: str | None, nul: bool, rules: object) -> Found:
    from dpredact.jobs import walking

    found = walking.walk(paths, rules)  # type: ignore[arg-type]
    if files_from is not None:
        listed = walking.walk(walking.listed(files_from, nul=nul), rules, listed=True)  # type: ignore[arg-type]
        found = found.joined(listed)
    return found


def _show(check: FileCheck, form: Format) -> None:
    """One file's lines on stdout (SARIF comes as a whole at the end)."""
    if form is Format.TEXT:
        for line in _text(check):
            typer.echo(line)
    elif form is Format.JSON:
        typer.echo(json.dumps(_json(check)))
        sys.stdout.flush()
    elif form is Format.GITHUB:
        from dpredact.jobs import sarif

        for line in sarif.workflow_commands(check):
            typer.echo(line)


def _text(check: FileCheck) -> Iterable[str]:
    for finding in check.findings:
        at = f":{finding.line}:{finding.column}" if finding.line is not None else ""
        where = f" ({finding.where})" if finding.where else ""
        by = f" [{', '.join(finding.sources)}]" if finding.sources else ""
        yield f"{check.path}{at}: {finding.message}{where}{by}"
    for problem in check.problems:
        yield f"{check.path}: not readable: {problem}"
    if check.problems and check.next_step:
        yield f"  next: {check.next_step}"


def _json(check: FileCheck) -> dict[str, object]:
    return {
        "schema": 1,
        "path": check.path,
        "status": check.status,
        "epsilon_all": check.epsilon_all or None,
        "findings": [f.line_of_json() for f in check.findings],
        "problems": list(check.problems),
        "next_step": check.next_step or None,
    }


def _sum_up(checks: list[FileCheck], found: Found) -> None:
    from collections import Counter

    counts = Counter(c.status for c in checks)
    words = {"clean": "clean", "certified": "certified", "found": "with findings", "unreadable": "not readable"}
    parts = [f"{counts[status]} {text}" for status, text in words.items() if counts[status]]
    if found.passed:
        parts.append(f"{len(found.passed)} passed over")
    typer.echo(f"checked: {', '.join(parts) or 'no files'}", err=True)
    for remark in [r for r in found.passed if "symbolic link" in r.reason][:10]:
        typer.echo(f"{remark.path}: {remark.reason}", err=True)
