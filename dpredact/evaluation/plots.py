"""Privacy against utility as one picture that can be read in grey."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpredact.errors import Missing

_MARKS = "osD^vPX*<>hd"
_LINES = ("-", "--", "-.", ":")


def require() -> Any:
    """matplotlib.pyplot without a screen; Missing, before hours are spent, if it is not there."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        raise Missing("matplotlib is not installed", next_step="install dpredact[eval]") from None
    return pyplot


def curve(points: Sequence[dict[str, Any]], target: Path, *, y: str = "ppl_all") -> None:
    """Write `points` (of `summary.curve`) to a PNG or SVG, by the file's ending.

    Methods of one family share a line; marks and dashes differ, not only the grey. Methods
    without a promise are dashed levels: they have no place on the ε axis.
    """
    pyplot = require()
    figure, axes = pyplot.subplots(figsize=(7.5, 4.8), dpi=140)
    families: dict[str, list[dict[str, Any]]] = {}
    levels: dict[float, list[str]] = {}
    for point in points:
        value, epsilon = point.get(y), point.get("epsilon", math.nan)
        if value is None or not math.isfinite(value):
            continue
        if not math.isfinite(epsilon) or epsilon <= 0:
            levels.setdefault(round(value, 2), []).append(_short(point["method"]))
        else:
            families.setdefault(family(point["method"]), []).append(point)
    for value, names in levels.items():
        axes.axhline(value, color="0.75", linestyle=":", linewidth=0.9, zorder=1)
        axes.annotate(", ".join(names), (1.0, value), xycoords=("axes fraction", "data"),
                      fontsize=6, va="bottom", ha="right", color="0.35")  # fmt: skip
    for number, (name, members) in enumerate(families.items()):
        members.sort(key=lambda p: p["epsilon"])
        grey = str(round(0.55 * (number % 4) / 3, 2))
        axes.plot([p["epsilon"] for p in members], [p[y] for p in members], label=name,
                  color=grey, marker=_MARKS[number % len(_MARKS)], markersize=5,
                  linestyle=_LINES[number % len(_LINES)], linewidth=1.1)  # fmt: skip
    axes.set_xscale("log")
    axes.set_xlabel("certified ε of the most exposed group, one document")
    axes.set_ylabel(_NAMES.get(y, y))
    axes.grid(True, which="both", color="0.92", linewidth=0.6)
    if families:
        axes.legend(fontsize=6.5, frameon=False)
    figure.tight_layout()
    figure.savefig(target)
    pyplot.close(figure)


_NAMES = {
    "ppl_all": "teacher-forced perplexity of the original",
    "ppl_tagged": "perplexity of tagged tokens",
    "ppl_untagged": "perplexity of untagged tokens",
    "rougeL": "ROUGE-L against the original",
}


def family(name: str) -> str:
    """A method without its budget: 'dp-fusion:mode=single'."""
    head, _, rest = name.partition(":")
    kept = [p for p in rest.split(",") if p.split("=")[0] not in ("epsilon", "beta", "clip", "range", "weight", "window", "")]
    return head + (":" + ",".join(kept) if kept else "")


def _short(name: str) -> str:
    return name if len(name) < 28 else name[:27] + "…"
