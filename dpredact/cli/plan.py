"""`dpredact plan`: what a policy would promise and cost. Spends nothing, loads no model."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpredact.errors import DpredactError, UsageError
from dpredact.privacy.accounting import decimal_up

if TYPE_CHECKING:
    from dpredact.policy import Policy
    from dpredact.promise import GroupPromise, Promise


def command(
    paths: Annotated[
        list[Path] | None, typer.Argument(metavar="[PATH]…", help="Documents; none: the policy alone.")
    ] = None,
    policy: Annotated[
        Path | None, typer.Option(help="Policy file. Else DPREDACT_POLICY, else the nearest dpredact.yaml.")
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option(help="Show what each document has cost so far by this ledger.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line on stdout.")] = False,
) -> None:  # fmt: skip
    """Show T, rows, order, cap and ε per group and for all groups, before anything is spent.

    Exit 2 if the policy cannot work, with the number to change.
    """
    from dpredact import policy as policies

    rules = policies.load(policies.find(policy))
    worst = 0
    results = [_policy_alone(rules)] if not paths else []
    for path in paths or []:
        try:
            results.append(_document(path, rules, ledger))
        except DpredactError as problem:
            if len(paths or []) == 1:
                raise
            typer.echo(f"{problem}", err=True)
            worst = max(worst, problem.exit_code)
    for facts in results:
        typer.echo(json.dumps(facts)) if as_json else _show(facts)
    if worst:
        raise typer.Exit(worst)


def _policy_alone(policy: Policy) -> dict[str, Any]:
    """Upper bounds: T as large as the policy allows, every group present."""
    from dpredact.policy import Length
    from dpredact.promise import promise, view_names

    rule = policy.max_new_tokens
    most = rule.at_most if isinstance(rule, Length) else rule
    if policy.scope == "spans":
        most = policy.max_span_tokens
    vocabulary = _vocabulary(policy)
    promised = promise(policy, dict.fromkeys(view_names(policy), most), vocabulary, most)
    return _facts(None, policy, promised, most, None)


def _vocabulary(policy: Policy) -> int:
    from dpredact.lm import catalog

    return catalog.facts(policy.model).vocab_size if policy.needs_model else 1


def _document(path: Path, policy: Policy, ledger: Path | None) -> dict[str, Any]:
    from dpredact import contexts, documents, planning, tagging
    from dpredact.lm import catalog
    from dpredact.lm.tokens import Tokens
    from dpredact.promise import promise, view_names

    if not path.is_file():
        raise UsageError("no such file", place=str(path), next_step="name documents, not folders")
    document = documents.open_path(path)
    found = tagging.tag_document(document, policy.tagger, policy)
    regions = contexts.regions(found.spans, policy)
    if not policy.needs_model:
        none = dict.fromkeys(view_names(policy), 0)
        return _facts(str(path), policy, promise(policy, none, 1), 0, 0.0)
    facts = catalog.facts(policy.model)
    encode = catalog.toy_encode if policy.model == catalog.TOY else Tokens.from_folder(facts.folder).encode
    what = planning.plan(document, policy, regions, encode, facts.vocab_size, facts.window)
    steps = max((u.limit for u in what.units), default=0)
    seconds = steps * _seconds_per_step(facts.folder)
    out = _facts(str(path), policy, what.promise, what.tokens, seconds)
    out["chunks"] = len(what.units)
    if ledger is not None:
        out["ledger"] = _ledger(path, policy, what.promise, ledger)
    return out


def _ledger(path: Path, policy: Policy, promised: Promise, file: Path) -> dict[str, Any]:
    """What the document has cost over all runs, and would have cost after this one."""
    from dpredact.jobs.journal import owner_key, state_folder
    from dpredact.jobs.ledger import Ledger

    book, data = Ledger(file, owner_key(state_folder())), path.read_bytes()
    spent, after = book.spent(data, policy.delta), book.after(data, policy, promised)
    return {
        "releases": spent.releases,
        "epsilon": {n: decimal_up(e) for n, e in spent.epsilon.items()},
        "epsilon_all": decimal_up(spent.epsilon_all),
        "epsilon_after": {n: decimal_up(e) for n, e in after.epsilon.items()},
        "epsilon_all_after": decimal_up(after.epsilon_all),
    }


def _seconds_per_step(folder: Path) -> float:
    """A rough rate: every step reads all weights once, at the speed this machine copies memory."""
    size = sum(f.stat().st_size for f in folder.glob("*.safetensors"))
    block = bytearray(32 << 20)
    started = time.perf_counter()
    bytes(block)
    return size / (len(block) / (time.perf_counter() - started))


def _facts(
    path: str | None, policy: Policy, promised: Promise, tokens: int, seconds: float | None
) -> dict[str, Any]:
    groups = [_group(g) for g in promised.groups]
    return {
        "schema": 1,
        "path": path,
        "model": policy.model if policy.needs_model else None,
        "scope": policy.scope,
        "mode": policy.mode,
        "neighbours": policy.neighbours,
        "delta": policy.delta,
        "max_new_tokens": tokens,
        "rows": 1 + len(promised.private()),
        "groups": groups,
        "epsilon": {g["name"]: g["epsilon"] for g in groups},
        "epsilon_all": promised.epsilon_all_text,
        "seconds": None if seconds is None else round(seconds, 1),
    }


def _group(group: GroupPromise) -> dict[str, Any]:
    numbers = {} if group.event is None else asdict(group.event)
    tokens = numbers.pop("count", 0)
    return {
        "name": group.name,
        "method": str(group.method),
        "weight": group.weight,
        "tokens": tokens,
        **{k: v for k, v in numbers.items() if k != "weight"},
        "epsilon": "none" if group.method == "keep" else group.epsilon_text,
        "why": group.why,
    }


def _show(facts: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    what = facts["path"] or "the policy alone (at most)"
    console.print(
        f"{what}: T = {facts['max_new_tokens']} tokens, {facts['rows']} rows, "
        f"delta = {facts['delta']:g}, neighbours: {facts['neighbours']}",
        highlight=False,
        soft_wrap=True,
    )
    table = Table(box=None, pad_edge=False)
    for head in ("group", "method", "T", "weight", "order", "per token", "epsilon"):
        table.add_column(head, justify="right" if head in ("T", "weight", "order", "epsilon") else "left")
    for g in facts["groups"]:
        table.add_row(
            g["name"], g["method"], str(g["tokens"] or "-"),
            f"{g['weight']:.3g}" if g["weight"] else "-",
            f"{g['order']:g}" if "order" in g else "-", _allowance(g), g["epsilon"],
        )  # fmt: skip
    console.print(table)
    for why in dict.fromkeys(g["why"] for g in facts["groups"] if g["tokens"]):
        names = ", ".join(g["name"] for g in facts["groups"] if g["why"] == why)
        console.print(f"{names}: {why}", highlight=False, soft_wrap=True)
    console.print(f"all groups together: epsilon {facts['epsilon_all']}", highlight=False)
    if book := facts.get("ledger"):
        console.print(
            f"ledger: {book['releases']} releases so far, epsilon for all groups "
            f"{book['epsilon_all']}; after this one {book['epsilon_all_after']}",
            highlight=False,
        )
    if facts["seconds"]:
        console.print(f"about {facts['seconds']:.0f} s on this CPU (rough)", highlight=False)


def _allowance(group: dict[str, Any]) -> str:
    """What one token, or the whole text, may lose, in words."""
    if "cap" in group:
        return f"cap {group['cap']:.4g}"
    if "forward_cap" in group:
        return f"caps {group['forward_cap']:.4g} / {group['backward_cap']:.4g}"
    if "range" in group:
        return f"range {group['range']:.4g}"
    if "budget" in group:
        return f"paced, budget {group['budget']:.4g}"
    if "forward_budget" in group:
        return f"paced, budgets {group['forward_budget']:.4g} / {group['backward_budget']:.4g}"
    if "rho" in group:
        return f"paced, rho {group['rho']:.4g}"
    return "-"
