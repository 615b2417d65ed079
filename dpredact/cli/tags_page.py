"""The page that `dpredact tags --html` writes: the text with its findings marked."""

from __future__ import annotations

from collections import Counter
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpredact.cli.tags import Report

_HUES = (210, 340, 45, 130, 280, 15, 175, 90, 250, 320)
_STYLE = """
body { font: 16px/1.6 system-ui, sans-serif; margin: 2rem auto; max-width: 54rem; padding: 0 1rem; color: #222; background: #fff }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font: inherit; border: 1px solid #ccc; border-radius: .4rem; padding: 1rem }
mark { border-radius: .2rem; padding: 0 .15em; color: inherit }
mark small { font-size: .65em; opacity: .75; margin-left: .3em; letter-spacing: .03em }
.note { color: #666 } .warn { color: #a00; font-weight: 600 }
@media (prefers-color-scheme: dark) { body { background: #181818; color: #ddd } mark { filter: brightness(.65) saturate(1.4); color: #fff } .warn { color: #f77 } }
"""


def page(reports: list[Report]) -> str:
    """One document a section. Everything that comes from a document is escaped."""
    names = list(
        dict.fromkeys(
            r.group(s) or s.entity for r in reports if r.tagging for s in r.tagging.spans
        )
    )
    hue = {name: _HUES[i % len(_HUES)] for i, name in enumerate(names)}
    sections = "".join(_section(r, hue) for r in reports)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>dpredact tags</title><style>{_STYLE}</style></head><body>"
        '<p class="note">Private: this page holds the text. Point at a mark to see who found it.</p>'
        f"{sections}</body></html>\n"
    )


def _section(report: Report, hue: dict[str, int]) -> str:
    head = f"<h2>{escape(report.path)}</h2>"
    if report.document is None or report.tagging is None:
        return f'<section>{head}<p class="warn">not read: {escape(report.error)}</p></section>'
    notes = "".join(f'<p class="warn">not read in full: {escape(r)}</p>' for r in report.tagging.reasons)
    counts = Counter(s.entity for s in report.tagging.spans)
    legend = ", ".join(f"{n} {escape(e)}" for e, n in sorted(counts.items())) or "nothing found"
    corrected = " · from your corrections" if report.corrected else ""
    text, at, out = report.document.text, 0, []
    for s in report.tagging.spans:
        group = report.group(s)
        title = f"{s.start}–{s.end} · {s.entity}" + (f" · group {group}" if group else "")
        title += f" · {s.score:.2f} · {', '.join(s.sources)}"
        person = f" {s.identity + 1}" if s.identity is not None else ""
        out.append(escape(text[at : s.start]))
        out.append(
            f'<mark style="background:hsl({hue[group or s.entity]} 80% 85%)" title="{escape(title)}">'
            f"{escape(text[s.start : s.end])}<small>{escape(s.entity)}{person}</small></mark>"
        )
        at = s.end
    out.append(escape(text[at:]))
    return f'<section>{head}{notes}<p class="note">{legend}{corrected}</p><pre>{"".join(out)}</pre></section>'
