"""What a rule sees, and what it says.

A rule is a function `find(reading) -> Iterator[Hit]`. It never raises because of the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from dpredact.tagging.patterns.shields import Shields


@dataclass(frozen=True, order=True)
class Hit:
    """[start, end) of the reading's text. `rule` is public; it is what --explain shows."""

    start: int
    end: int
    entity: str
    score: float
    rule: str


@dataclass(frozen=True)
class Reading:
    """A folded text, and the same text with ordinary capitals (`cased`, equally long)."""

    text: str = field(repr=False)
    cased: str = field(repr=False)
    regions: tuple[str, ...] = ("US", "GB")
    language: str = "en"
    shields: Shields | None = field(default=None, repr=False)

    def shielded(self, start: int, end: int) -> bool:
        """Does [start, end) touch a stretch that only looks like a number?"""
        return self.shields is not None and self.shields.touch(start, end)

    def before(self, start: int, count: int = 40) -> str:
        """Up to `count` characters in front of `start`, on the same line."""
        part = self.text[max(0, start - count) : start]
        return part[part.rfind("\n") + 1 :]


Rule = Callable[[Reading], Iterable[Hit]]


def hits(
    pattern: re.Pattern[str], text: str, entity: str, score: float, rule: str
) -> Iterator[Hit]:
    """One hit per match: of group `x` if the pattern names one and it took part, else whole."""
    named = "x" in pattern.groupindex
    for match in pattern.finditer(text):
        start, end = match.span("x") if named else match.span()
        if 0 <= start < end:
            yield Hit(start, end, entity, score, rule)
