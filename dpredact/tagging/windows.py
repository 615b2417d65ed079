"""Cutting a long text into overlapping windows, and joining what was found in them.

A window border may fall inside a name. So windows overlap by more than a name is long,
and what two windows found in the overlap becomes one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from dpredact.tagging.interface import Span


class Window(NamedTuple):
    """text[start:end], in code points."""

    start: int
    end: int


def cut(text: str, size: int, overlap: int) -> Iterator[Window]:
    """Windows of at most `size` code points that share at least `overlap` of them.

    A border is moved back to white space where there is some in the last tenth of the
    window, best of all to the end of a paragraph. Every code point is in some window.
    Edges: empty text -> nothing · overlap >= size / 2 -> ValueError
    """
    if overlap * 2 >= size:
        raise ValueError("the overlap must be less than half of a window")
    start = 0
    while start < len(text):
        end = min(start + size, len(text))
        if end < len(text):
            end = _border(text, end - max(1, size // 10), end)
        yield Window(start, end)
        if end == len(text):
            return
        start = _border(text, end - 2 * overlap, end - overlap)


def _border(text: str, low: int, high: int) -> int:
    """The best place to cut in (low, high]: after a paragraph, a line, a blank; else high."""
    for mark in ("\n\n", "\n", " "):
        at = text.rfind(mark, low, high)
        if at > low:
            return at + len(mark)
    return high


def join(found: Iterable[Span]) -> list[Span]:
    """One sorted list of the spans of all windows, which are in document offsets already.

    Spans of one entity that overlap become their union: half a name at a border inside
    the text and the whole name in the next window are one finding.
    """
    spans = sorted(set(found), key=lambda s: (s.start, -s.end))
    joined: list[Span] = []
    last: dict[str, int] = {}
    for span in spans:
        at = last.get(span.entity)
        if at is not None and span.start < joined[at].end:
            before = joined[at]
            joined[at] = Span(
                before.start,
                max(before.end, span.end),
                span.entity,
                max(before.score, span.score),
                tuple(sorted({*before.sources, *span.sources})),
            )
            continue
        last[span.entity] = len(joined)
        joined.append(span)
    return sorted(joined)


def by_line(text: str, span: Span) -> Iterator[Span]:
    """The pieces of `span` on each line, without white space at their ends.

    A later line that goes on with a colon is the label of the next field ("HANDLER:"),
    which a finder without layout takes for more of the name: it is left out.
    """
    for number, line in enumerate(re.finditer(r"[^\r\n]+", text[span.start : span.end])):
        start, end = span.start + line.start(), span.start + line.end()
        while start < end and text[start].isspace():
            start += 1
        while start < end and text[end - 1].isspace():
            end -= 1
        if start < end and not (number and text[end : end + 1] == ":"):
            yield replace(span, start=start, end=end)
