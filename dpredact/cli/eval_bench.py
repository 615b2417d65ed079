"""`dpredact eval attack | utility | curve | paper | nll`: documents × methods."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

if TYPE_CHECKING:
    from dpredact.evaluation.bench import Bench, Plan
    from dpredact.evaluation.methods import MethodSpec

Data = Annotated[Path, typer.Argument(help="JSON lines: text, spans (start, end, label; code points), optional id, split, summary.")]  # fmt: skip
Methods = Annotated[Optional[list[str]], typer.Option("--method", "-m", help="A method, e.g. dp-fusion:epsilon=8,mode=single, or a policy file. Several times.")]  # fmt: skip
Out = Annotated[Path, typer.Option("--out", "-o", help="Folder for records and rows; private. A run that was stopped goes on there.")]  # fmt: skip
Limit = Annotated[Optional[int], typer.Option("--limit", min=1, help="Only the first N documents.")]
Cut = Annotated[Optional[int], typer.Option("--cut", min=50, help="Only the first N characters of each.")]
Split = Annotated[Optional[str], typer.Option("--split", help="Only documents whose `split` is this.")]
Own = Annotated[bool, typer.Option("--own-tags", help="Use the taggers' findings, not the gold spans.")]
Model = Annotated[str, typer.Option("--model", help="Catalog name, folder or hub id.")]
Tokens = Annotated[Optional[int], typer.Option("--tokens", min=1, help="T; default 1.2 × the public view.")]
Delta = Annotated[float, typer.Option("--delta", help="δ of methods that name none.")]
Temperature = Annotated[float, typer.Option("--temperature", help="Of methods that name none.")]
TopK = Annotated[int, typer.Option("--top-k", help="Of methods that name none; 0: every token.")]
Placeholder = Annotated[str, typer.Option("--placeholder", help="label, token or surrogate.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]
Seed = Annotated[int, typer.Option("--seed", help="Of the game's candidates; releases have no seed.")]
Groups = Annotated[Optional[str], typer.Option("--groups", help="Attack these groups only, e.g. CODE,PERSON.")]
Candidates = Annotated[int, typer.Option("--candidates", min=2, help="|C|, the truth among them.")]
Others = Annotated[str, typer.Option("--others", help="shown: the attacker knows all other groups; hidden.")]

DEFAULT = ["masked", "paraphrase", "dp-fusion:epsilon=16,spending=adaptive"]


def attack(
    data: Data,
    method: Methods = None,
    out: Out = Path("eval-out"),
    limit: Limit = None,
    cut: Cut = None,
    split: Split = None,
    own_tags: Own = False,
    model: Model = "smollm2-135m",
    tokens: Tokens = None,
    delta: Delta = 1e-5,
    temperature: Temperature = 1.0,
    top_k: TopK = 50,
    placeholder: Placeholder = "label",
    candidates: Candidates = 5,
    others: Others = "shown",
    groups: Groups = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """The token-recovery game: who finds the true words among candidates of their kind?

    Attackers: LOSS, MIN-K%, and the informed one, who knows the method. A tie is a miss.
    """
    from dpredact.evaluation import summary

    plan = _plan(attack=True, groups=groups, candidates=candidates, others=others, seed=seed)
    bench, specs = _bench(data, method or DEFAULT, out, limit, cut, split, own_tags, model, tokens,
                          delta, temperature, top_k, placeholder, plan)  # fmt: skip
    records = _run(bench, specs)
    table = summary.attack_table(records)
    pairs = summary.paired(records, "informed") + summary.paired(records, "loss")
    if as_json:
        _json({"schema": 1, "documents": len(bench.items), "others": others, "methods": table,
               "paired": {"informed": summary.paired(records, "informed"),
                          "loss": summary.paired(records, "loss")}})  # fmt: skip
        return
    _attack_page(table, pairs, len(bench.items), others)


def utility(
    data: Data,
    method: Methods = None,
    out: Out = Path("eval-out"),
    limit: Limit = None,
    cut: Cut = None,
    split: Split = None,
    own_tags: Own = False,
    model: Model = "smollm2-135m",
    tokens: Tokens = None,
    delta: Delta = 1e-5,
    temperature: Temperature = 1.0,
    top_k: TopK = 50,
    placeholder: Placeholder = "label",
    embedder: Annotated[Optional[Path], typer.Option("--embedder", help="Folder of a sentence model: adds embedding similarity.")] = None,  # fmt: skip
    as_json: Json = False,
) -> None:
    """What a release is worth: perplexity of the original, ROUGE, facts kept, readability."""
    from dpredact.evaluation import summary

    bench, specs = _bench(data, method or DEFAULT, out, limit, cut, split, own_tags, model, tokens,
                          delta, temperature, top_k, placeholder, _plan(utility=True, teacher=True))  # fmt: skip
    records = _run(bench, specs)
    table: dict[str, dict[str, Any]] = summary.utility_table(records)
    if embedder is not None:
        from dpredact.evaluation.utility import similarity

        for name, rows in summary.by_method(records).items():
            pairs = [(bench.items[r["document"]].text, r["text"]) for r in rows]
            found = similarity(embedder, pairs)
            table[name]["similarity"] = sum(found) / len(found)
    if as_json:
        _json({"schema": 1, "documents": len(bench.items), "methods": table})
        return
    columns = list(dict.fromkeys(k for row in table.values() for k in row))
    _table("utility, means over documents", ["method", *columns],
           [[name, *(_cell(row.get(c)) for c in columns)] for name, row in table.items()])  # fmt: skip


def curve(
    data: Data,
    method: Annotated[Optional[list[str]], typer.Option("--method", "-m", help="A method without its budget. Several times.")] = None,  # fmt: skip
    epsilon: Annotated[str, typer.Option("--epsilon", help="Budgets, e.g. 4,8,16,32.")] = "4,8,16,32",
    out: Out = Path("eval-out"),
    plot: Annotated[Optional[Path], typer.Option("--plot", help="PNG or SVG; default OUT/curve.png.")] = None,  # fmt: skip
    y: Annotated[str, typer.Option("--y", help="ppl_all, ppl_tagged, ppl_untagged, rougeL, …")] = "ppl_all",
    limit: Limit = None,
    cut: Cut = None,
    split: Split = None,
    own_tags: Own = False,
    model: Model = "smollm2-135m",
    tokens: Tokens = None,
    delta: Delta = 1e-5,
    temperature: Temperature = 1.0,
    top_k: TopK = 50,
    placeholder: Placeholder = "label",
    attacks: Annotated[bool, typer.Option("--attack/--no-attack", help="Play the game too.")] = True,
    groups: Groups = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Privacy against utility, for methods × budgets: table, JSON and a plot for grey paper."""
    from dpredact.evaluation import plots

    plots.require()
    names = ["public", "paraphrase"]
    for one in method or ["dp-fusion", "dp-fusion:spending=adaptive"]:
        for budget in filter(None, epsilon.split(",")):
            names.append(f"{one}{',' if ':' in one else ':'}epsilon={budget.strip()}")
    plan = _plan(attack=attacks, utility=True, teacher=True, groups=groups, seed=seed)
    bench, specs = _bench(data, names, out, limit, cut, split, own_tags, model, tokens, delta,
                          temperature, top_k, placeholder, plan)  # fmt: skip
    points = _points(bench, specs)
    _write_points(points, out / "curve.json")
    target = plot or out / "curve.png"
    plots.curve(points, target, y=y)
    if as_json:
        _json({"schema": 1, "points": points, "plot": str(target)})
        return
    _curve_page(points, f"{len(bench.items)} documents")
    typer.echo(f"plot: {target}", err=True)


def paper(
    data: Data,
    out: Out = Path("paper-out"),
    limit: Limit = 20,
    cut: Cut = 700,
    split: Split = None,
    model: Model = "smollm2-135m",
    tokens: Tokens = 220,
    delta: Annotated[float, typer.Option("--delta", help="δ; the paper's is 1e-3.")] = 1e-3,
    placeholder: Placeholder = "token",
    groups: Groups = "CODE,PERSON,DATETIME",
    others: Others = "shown",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """The seeds of this work in one table, the published figures beside it. Goes on if stopped."""
    from dpredact.evaluation import plots, published

    plan = _plan(attack=True, utility=True, teacher=True, groups=groups, others=others, seed=seed)
    plots.require()
    lines = [line for _, line in published.PAPER]
    bench, specs = _bench(data, lines, out, limit, cut, split, False, model, tokens, delta, 1.0, 50,
                          placeholder, plan)  # fmt: skip
    points = _points(bench, specs)
    shown = {line: name for name, line in published.PAPER}
    for point in points:
        point["shown"] = shown[point["method"]]
        point["published"] = published.FIGURES.get(point["shown"])
    _write_points(points, out / "paper.json")
    plots.curve(points, out / "paper.png")
    plots.curve(points, out / "paper.svg")
    if as_json:
        _json({"schema": 1, "documents": len(bench.items), "points": points})
        return
    _paper_page(points, len(bench.items), model)


def nll(
    data: Data,
    method: Methods = None,
    out: Out = Path("eval-out"),
    limit: Limit = 20,
    cut: Cut = 1400,
    split: Split = None,
    own_tags: Own = False,
    model: Model = "smollm2-135m",
    tokens: Tokens = 400,
    delta: Delta = 1e-5,
    temperature: Temperature = 1.0,
    top_k: TopK = 50,
    placeholder: Placeholder = "label",
    as_json: Json = False,
) -> None:
    """Teacher-forced likelihood of the original under every method; nothing is drawn.

    The model's rows are computed once a document and kept in OUT; further methods cost
    seconds. Shares are of the gap between the public view and the text in clear.
    """
    from dpredact.evaluation import summary

    names = ["public", "paraphrase", *(m for m in method or DEFAULT[2:] if m not in ("public", "paraphrase"))]
    bench, specs = _bench(data, names, out, limit, cut, split, own_tags, model, tokens, delta,
                          temperature, top_k, placeholder, _plan(teacher=True))  # fmt: skip
    table = summary.utility_table(_run(bench, specs))
    if as_json:
        _json({"schema": 1, "documents": len(bench.items), "methods": table})
        return
    rows = [
        [name, *(f"{_cell(row.get(f'ppl_{p}'))} / {_share(row.get(f'gap_{p}'))}" for p in ("all", "tagged", "untagged")),
         _cell(row["epsilon"])]
        for name, row in table.items()
    ]  # fmt: skip
    _table(f"{len(bench.items)} documents: perplexity / share of the gap closed",
           ["method", "all", "tagged", "untagged", "ε"], rows)  # fmt: skip


def _plan(
    *, attack: bool = False, utility: bool = False, teacher: bool = False, groups: str | None = None,
    candidates: int = 5, others: str = "shown", seed: int = 0,
) -> Plan:  # fmt: skip
    from dpredact.errors import UsageError
    from dpredact.evaluation.bench import Plan

    if others not in ("shown", "hidden"):
        raise UsageError("--others is shown or hidden", next_step="choose one of them")
    wanted = tuple(g.strip() for g in groups.split(",") if g.strip()) if groups else None
    return Plan(attack, utility, teacher, wanted, candidates, others, seed)


def _bench(
    data: Path, lines: list[str], out: Path, limit: int | None, cut: int | None, split: str | None,
    own: bool, model: str, tokens: int | None, delta: float, temperature: float, top_k: int,
    placeholder: str, plan: Plan,
) -> tuple[Bench, list[MethodSpec]]:  # fmt: skip
    from dpredact import lm
    from dpredact.evaluation import corpus, methods
    from dpredact.evaluation.bench import Bench

    setting = methods.Setting(
        model=model, delta=delta, tokens=tokens, temperature=temperature,
        top_k=top_k or None, placeholder=placeholder,
    )  # fmt: skip
    specs = methods.parse_all(lines, setting)
    tagger = None
    if own:
        from dpredact import tagging
        from dpredact.policy import TaggerSettings

        tagger = tagging.build(TaggerSettings(), None, everything=True)
    items = corpus.read(data, limit=limit, cut=cut, split=split, tagger=tagger)
    pool = corpus.read(data) if plan.attack else []
    return Bench(lm.load(model), setting, items, pool, out, plan), specs


def _run(bench: Bench, specs: list[MethodSpec]) -> list[dict[str, Any]]:
    started = time.monotonic()

    def said(line: str) -> None:
        typer.echo(f"{time.monotonic() - started:7.0f} s  {line}", err=True)

    return list(bench.records(specs, said))


def _points(bench: Bench, specs: list[MethodSpec]) -> list[dict[str, Any]]:
    from dpredact.evaluation import summary

    return summary.curve(_run(bench, specs))


def _write_points(points: list[dict[str, Any]], path: Path) -> None:
    from dpredact.evaluation.summary import jsonable

    path.write_text(json.dumps(jsonable(points), indent=1, ensure_ascii=False), encoding="utf-8")


def _json(value: dict[str, Any]) -> None:
    from dpredact.evaluation.summary import jsonable

    typer.echo(json.dumps(jsonable(value), ensure_ascii=False))


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return "∞" if value == float("inf") else ("–" if value != value else f"{value:.3g}")
    return str(value)


def _share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f}%"


def _rate(rate: dict[str, Any] | None) -> str:
    if not rate or not rate["rounds"]:
        return "–"
    return f"{rate['share']:.2f} [{rate['low']:.2f}, {rate['high']:.2f}]"


def _table(title: str, columns: list[str], rows: list[list[str]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    Console(width=None if Console().is_terminal else 160).print(table)


def _attack_page(
    table: dict[str, Any], pairs: list[dict[str, Any]], documents: int, others: str
) -> None:
    from dpredact.evaluation.game import ATTACKERS

    rows = []
    for name, row in table.items():
        rows.append([name, "all", *(_rate(row["attackers"][a]) for a in ATTACKERS)])
        for group, rates in row["groups"].items():
            rows.append(["", group, *(_rate(rates[a]) for a in ATTACKERS)])
    level = next(iter(table.values()))["chance"] if table else float("nan")
    _table(f"{documents} documents, other groups {others}: success with Wilson 95%; chance {level:.2f}",
           ["method", "group", *ATTACKERS], rows)  # fmt: skip
    _table("\npaired (exact McNemar; informed first, then LOSS)", ["first", "second", "only first", "only second", "p"],
           [[p["first"], p["second"], str(p["only_first"]), str(p["only_second"]), f"{p['p']:.3g}"] for p in pairs])  # fmt: skip


def _curve_page(points: list[dict[str, Any]], said: str) -> None:
    _table(f"{said}: ε of the most exposed group, and of all groups together",
           ["method", "ε", "ε all", "PPL", "tagged", "untagged", "ROUGE-L", "LOSS", "informed"],
           [[p["method"], _cell(p["epsilon"]), _cell(p["epsilon_all"]), _cell(p.get("ppl_all")),
             _cell(p.get("ppl_tagged")), _cell(p.get("ppl_untagged")), _cell(p.get("rougeL")),
             _rate(p.get("loss")), _rate(p.get("informed"))] for p in points])  # fmt: skip


def _paper_page(points: list[dict[str, Any]], documents: int, model: str) -> None:
    rows = []
    for p in points:
        other = p.get("published")
        rows.append([p["shown"], _cell(p.get("ppl_all")), _cell(p.get("ppl_tagged")), _cell(p.get("ppl_untagged")),
                     _rate(p.get("loss")), _rate(p.get("informed")), _cell(p["epsilon"]), _cell(p["epsilon_all"]),
                     _cell(p["paper_epsilon"]), f"{other[0]} / {other[1]}" if other else "–"])  # fmt: skip
    _table(f"n = {documents} documents, model {model}. Attack success at |C| = 5 with Wilson 95%; a tie is a miss.",
           ["method", "PPL", "tagged", "untagged", "LOSS", "informed", "certified ε", "ε all", "paper's formula", "published*"], rows)  # fmt: skip
    typer.echo(
        "certified ε: the most exposed group of the most exposed document; DP-Decoding and DP-Prompt: for "
        "replacing the whole document.\npaper's formula: not a guarantee.  * perplexity / LOSS as "
        "published with another model (Qwen 2.5 7B) on other documents."
    )
