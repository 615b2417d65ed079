"""`dpredact verify`: does a certificate hold for this text? Needs neither model nor original."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from dpredact.errors import UsageError

SUFFIX = ".cert.json"


def command(
    text: Annotated[Path, typer.Argument(help="The released file.")],
    certificate: Annotated[
        Path | None, typer.Argument(metavar="[CERT]", help=f"Its certificate.  [default: TEXT{SUFFIX}]")
    ] = None,
    max_epsilon: Annotated[
        float | None, typer.Option(help="Fail if a group's ε, or that of all together, is larger.")
    ] = None,
    policy: Annotated[
        Path | None, typer.Option(help="Fail unless it was made under this policy.")
    ] = None,
    key: Annotated[
        Path | None, typer.Option(help="Public key: fail unless the certificate is signed with it.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:  # fmt: skip
    """Check that TEXT is the certified one, that ε follows from the ledger, and your limits.

    Exit 0 if the certificate holds, 1 if not.
    """
    from dpredact import certificate as certificates

    place = certificate or text.with_name(text.name + SUFFIX)
    data = _read(text)
    statement, problems = _statement(place, key)
    rules = None
    if policy is not None:
        from dpredact import policy as policies

        rules = policies.load(policy)
    if statement is None:
        verdict = certificates.Verdict(tuple(problems))
    else:
        found = certificates.verify(data, statement, max_epsilon=max_epsilon, policy=rules)
        verdict = certificates.Verdict(
            (*problems, *found.problems), found.epsilon, found.epsilon_all, found.delta
        )
    if as_json:
        facts = {
            "schema": 1, "path": str(text), "ok": verdict.ok, "problems": list(verdict.problems),
            "epsilon": verdict.epsilon, "epsilon_all": verdict.epsilon_all, "delta": verdict.delta,
            "signed": key is not None and verdict.ok, "comparison_only": _compares(statement),
        }  # fmt: skip
        typer.echo(json.dumps(facts))
    else:
        _show(text, verdict)
        if verdict.ok:
            _remark(statement, signed=key is not None)
    if not verdict.ok:
        raise typer.Exit(1)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as problem:
        raise UsageError(
            f"cannot be read ({problem.strerror})", place=str(path),
            next_step="name the released file, then its certificate",
        ) from None  # fmt: skip


def _statement(place: Path, key: Path | None) -> tuple[dict[str, Any] | None, list[str]]:
    """The statement inside the certificate file, and what is wrong with its envelope."""
    try:
        loaded = json.loads(_read(place))
    except ValueError:
        return None, ["the certificate is not JSON"]
    if not isinstance(loaded, dict):
        return None, ["the certificate is not a JSON object"]
    from dpredact.certificate import sign

    try:
        if key is not None:
            return sign.checked(loaded, key), []
        return (sign.statement(loaded) if sign.is_envelope(loaded) else loaded), []
    except sign.SignatureProblem as problem:
        return None, [problem.message]


def _compares(statement: dict[str, Any] | None) -> bool:
    """Was this a baseline, drawn to be compared with?"""
    policy = (statement or {}).get("predicate", {}).get("policy", {})
    return isinstance(policy, dict) and policy.get("baseline") is not None


def _remark(statement: dict[str, Any] | None, *, signed: bool) -> None:
    """What a reader must know beside the numbers."""
    if _compares(statement):
        typer.echo("  for comparison only: a baseline, whose promise has no groups and treats no text as public")
    if not signed:
        typer.echo("  signature: none checked (--key); without one, anyone could have made both files")


def _show(text: Path, verdict: Any) -> None:
    if verdict.ok:
        groups = ", ".join(f"{name} {value}" for name, value in verdict.epsilon.items())
        typer.echo(f"{text.name}: the certificate holds")
        typer.echo(f"  epsilon per group: {groups or 'no group'} (delta {verdict.delta})")
        typer.echo(f"  all groups together: {verdict.epsilon_all}")
        return
    typer.echo(f"{text.name}: the certificate does NOT hold")
    for problem in verdict.problems:
        typer.echo(f"  - {problem}")
