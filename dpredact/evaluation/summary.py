"""From records to tables: shares with intervals, paired tests, means; no words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dpredact.evaluation.game import ATTACKERS
from dpredact.evaluation.intervals import mcnemar, wilson
from dpredact.evaluation.likelihood import ZERO, Score

Record = Mapping[str, Any]


def by_method(records: Iterable[Record]) -> dict[str, list[Record]]:
    out: dict[str, list[Record]] = {}
    for record in records:
        out.setdefault(record["method"], []).append(record)
    return out


def attack_rate(records: Sequence[Record], attacker: str, group: str | None = None) -> dict[str, Any]:
    """Success of one attacker: hits, rounds, share with its 95% Wilson interval, ties.

    A tie is a miss; `guessing` is what an attacker gets who guesses among the tied.
    """
    rounds = [g for r in records for g in r.get("games", ())
              if group in (None, g["group"]) and attacker in g["attackers"]]  # fmt: skip
    hits = sum(bool(g["attackers"][attacker][0]) for g in rounds)
    ties = [g["attackers"][attacker][1] for g in rounds]
    low, high = wilson(hits, len(rounds))
    n = max(1, len(rounds))
    return {
        "hits": hits, "rounds": len(rounds), "share": hits / n, "low": low, "high": high,
        "tied": sum(t > 0 for t in ties),
        "guessing": (hits + sum(1 / t for t in ties if t)) / n,
    }  # fmt: skip


def chance(records: Sequence[Record]) -> float:
    """What blind guessing gets: the mean of 1/|C|."""
    sizes = [g["size"] for r in records for g in r.get("games", ())]
    return sum(1 / s for s in sizes) / len(sizes) if sizes else math.nan


def attack_table(records: Iterable[Record]) -> dict[str, Any]:
    """Method -> attacker -> rate, in total and by group."""
    out = {}
    for name, rows in by_method(records).items():
        groups = sorted({g["group"] for r in rows for g in r.get("games", ())})
        out[name] = {
            "chance": chance(rows),
            "attackers": {a: attack_rate(rows, a) for a in ATTACKERS},
            "groups": {g: {a: attack_rate(rows, a, g) for a in ATTACKERS} for g in groups},
        }
    return out


def paired(records: Iterable[Record], attacker: str) -> list[dict[str, Any]]:
    """Exact McNemar test between every two methods, over the rounds that both were in."""
    hits: dict[str, dict[tuple[int, str], bool]] = {}
    for name, rows in by_method(records).items():
        hits[name] = {
            (r["document"], g["group"]): bool(g["attackers"][attacker][0])
            for r in rows for g in r.get("games", ()) if attacker in g["attackers"]
        }  # fmt: skip
    names = list(hits)
    out = []
    for i, a in enumerate(names):
        for b in names[i + 1 :]:
            both = hits[a].keys() & hits[b].keys()
            first = sum(hits[a][k] and not hits[b][k] for k in both)
            second = sum(hits[b][k] and not hits[a][k] for k in both)
            out.append({"first": a, "second": b, "only_first": first, "only_second": second,
                        "rounds": len(both), "p": mcnemar(first, second)})  # fmt: skip
    return out


def score_of(records: Sequence[Record], key: str = "nll") -> Score:
    """The likelihood sums of some records together."""
    total = ZERO
    for record in records:
        if record.get(key):
            total = total + Score(*record[key])
    return total


def epsilon_of(records: Sequence[Record], key: str = "epsilon") -> float:
    """The largest certified ε among some documents: what is promised to each of them."""
    values = [r.get(key) for r in records]
    known = [math.inf if v == "inf" else float(v) for v in values if v is not None]
    return max(known) if known else math.nan


def utility_table(records: Iterable[Record]) -> dict[str, dict[str, float]]:
    """Method -> means of the utility figures, perplexities and gap shares."""
    rows = by_method(records)
    public = score_of(rows.get("public", ()))
    clear = score_of(rows.get("paraphrase", ()))
    out = {}
    for name, own in rows.items():
        figures = [r["utility"] for r in own if r.get("utility")]
        line = {k: sum(f[k] for f in figures if k in f) / sum(k in f for f in figures)
                for k in dict.fromkeys(k for f in figures for k in f)}  # fmt: skip
        score = score_of(own)
        if score.tagged_tokens + score.untagged_tokens:
            low, high = public, clear
            parts = ("all", "tagged", "untagged")
            if any(r.get("nll_public") for r in own):  # spans scope: its own two ends, tagged alone
                low, high = score_of(own, "nll_public"), score_of(own, "nll_clear")
                parts = ("tagged",)
            for part in parts:
                line[f"ppl_{part}"] = score.perplexity(part)
                gap = low.mean(part) - high.mean(part)
                if gap > 0:  # NaN, where an end was not measured, is not
                    line[f"gap_{part}"] = (low.mean(part) - score.mean(part)) / gap
        line["epsilon"] = epsilon_of(own)
        line["epsilon_all"] = epsilon_of(own, "epsilon_all")
        line["finished"] = sum(bool(r.get("finished")) for r in own) / len(own)
        out[name] = line
    return out


def curve(records: Iterable[Record]) -> list[dict[str, Any]]:
    """One point per method: ε, utility and attack success, for a plot and a file."""
    records = list(records)
    worth = utility_table(records)
    out = []
    for name, rows in by_method(records).items():
        point: dict[str, Any] = {"method": name, "documents": len({r["document"] for r in rows})}
        point |= worth[name]
        point["paper_epsilon"] = epsilon_of(rows, "paper_epsilon")
        if any(r.get("games") for r in rows):
            point["chance"] = chance(rows)
            point["loss"] = attack_rate(rows, "loss")
            point["informed"] = attack_rate(rows, "informed")
        out.append(point)
    return out


def jsonable(value: Any) -> Any:
    """JSON has neither infinity nor NaN: 'inf' and null."""
    if isinstance(value, float):
        return None if math.isnan(value) else ("inf" if math.isinf(value) else value)
    if isinstance(value, Mapping):
        return {k: jsonable(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(v) for v in value]
    return value
