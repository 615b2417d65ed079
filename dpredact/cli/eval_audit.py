"""`dpredact eval audit`: a measured lower bound on ε beside the certified one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Optional

import typer


def audit(
    data: Annotated[Path, typer.Argument(help="JSON lines: text, spans (start, end, label).")],
    method: Annotated[str, typer.Option("--method", "-m", help="A method with a promise, or a policy file.")] = "dp-fusion:epsilon=16,spending=adaptive",  # fmt: skip
    groups: Annotated[Optional[str], typer.Option("--groups", help="Audit these groups only.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Documents.")] = 1,
    cut: Annotated[int, typer.Option("--cut", min=50, help="Characters of each.")] = 400,
    draws: Annotated[int, typer.Option("--draws", min=2, help="Texts drawn in each world.")] = 16,
    tokens: Annotated[int, typer.Option("--tokens", min=1, help="T.")] = 40,
    delta: Annotated[float, typer.Option("--delta", help="δ.")] = 1e-5,
    neighbours: Annotated[str, typer.Option("--neighbours", help="remove: the group's words are gone; replace: other words, from the other documents.")] = "remove",  # fmt: skip
    model: Annotated[str, typer.Option("--model", help="Catalog name, folder or hub id.")] = "smollm2-135m",
    seed: Annotated[int, typer.Option("--seed", help="Of the other words under replace.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Draw texts for a document and its neighbour, and bound ε from what was really lost.

    A bound above the certified ε, or a path that lost more than its Rényi budget, proves the
    certificate wrong: exit 1. Losses depend on the words, so the figures are the owner's.
    """
    from dpredact import lm
    from dpredact.errors import UsageError
    from dpredact.evaluation import auditing, corpus, methods

    setting = methods.Setting(model=model, delta=delta, tokens=tokens)
    spec = methods.parse(method, setting)
    loaded = lm.load(model)
    wanted = [g.strip() for g in groups.split(",")] if groups else None
    rows: list[dict[str, Any]] = []
    pool = corpus.read(data) if neighbours == "replace" else []
    for item in corpus.read(data, limit=limit, cut=cut):
        typer.echo(f"document {item.name}", err=True)
        rows += auditing.document(loaded, item, spec, setting, wanted, draws, neighbours, pool, seed)
    if not rows:
        raise UsageError(
            "nothing was audited: none of these groups has a span in what was read",
            next_step="raise --cut or --limit, or name other --groups",
        )
    faults = [r for r in rows if r["fault"]]
    if as_json:
        from dpredact.evaluation.summary import jsonable

        typer.echo(json.dumps(jsonable({"schema": 1, "method": method, "audits": rows})))
    else:
        from dpredact.cli.eval_bench import _table

        _table(f"{method}: {draws} draws in each world, 95%",
               ["document", "group", "certified ε", "from losses", "from frequencies", "divergence", "budget", "order", ""],
               [[r["document"], r["group"], f"{r['certified']:.4g}", f"≥ {r['from_losses']:.3g}",
                 f"≥ {r['from_frequencies']:.3g}", f"{r['divergence']:.4g}", f"{r['budget']:.4g}",
                 f"{r['order']:g}", "FAULT" if r["fault"] else "holds"] for r in rows])  # fmt: skip
    if faults:
        raise typer.Exit(1)
