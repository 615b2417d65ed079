"""What a rule sees, and what it says.

A rule is a function `find(reading) -> Iterator[Hit]`. It never raises because of the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from dpredact.tagging import identity, language
from dpredact.tagging.patterns.anchors import Anchored, Anchors, Near, around, lines_with
from dpredact.tagging.patterns.shields import Shields

# The language that a region's streets and numbers are written in.
_SPOKEN = {
    "DE": "de", "AT": "de", "CH": "de", "FR": "fr", "BE": "fr", "ES": "es", "MX": "es", "AR": "es",
    "CO": "es", "CL": "es", "PE": "es", "DK": "da",
}  # fmt: skip

# Letters, and the marks that tie them: O'Brien, Aldwick-Stone.
# A word that a digit touches is part of a code.
WORD = re.compile(r"(?<!\w)[^\W\d_]+(?:['’‑-][^\W\d_]+)*(?!\w)")


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

    @cached_property
    def shields(self) -> Shields:
        return Shields(self.text)

    @cached_property
    def flat(self) -> str:
        return identity.flat(self.text)

    @cached_property
    def with_article(self) -> frozenset[str]:
        """Words, as in `flat`, that stand behind an article somewhere in the text."""
        return frozenset(re.findall(r"\b(?:the|an?|this|these) ([^\W\d_]+)", self.flat))

    @cached_property
    def words(self) -> list[tuple[int, int, str]]:
        """(start, end, word) of every word of `cased`: letters, with ' and - between them."""
        return [(m.start(), m.end(), m[0]) for m in WORD.finditer(self.cased)]

    @cached_property
    def _anchors(self) -> Anchors:
        return Anchors(self.flat)

    @cached_property
    def _stretches(self) -> dict[Near, list[tuple[int, int]]]:
        return {}

    @cached_property
    def paragraphs(self) -> list[tuple[int, int, str | None]]:
        """(start, end, language or None if it is not clear)."""
        return [
            (a, b, language.guess(self.text[a:b])) for a, b in language.paragraphs(self.text)
        ]

    @cached_property
    def languages(self) -> frozenset[str]:
        """`spoken`, and those of the settings' regions."""
        return self.spoken | {_SPOKEN[r] for r in self.regions if r in _SPOKEN}

    @cached_property
    def spoken(self) -> frozenset[str]:
        """Languages that the text is in, or that the settings name."""
        found = {code for _, _, code in self.paragraphs if code}
        return frozenset(found | set(re.findall("[a-z]+", self.language)))

    def shielded(self, start: int, end: int) -> bool:
        """Does [start, end) touch a stretch that only looks like a number?"""
        return self.shields.touch(start, end)

    def before(self, start: int, count: int = 40) -> str:
        """Up to `count` characters in front of `start`, on the same line."""
        part = self.text[max(0, start - count) : start]
        return part[part.rfind("\n") + 1 :]

    # -- where to look: each gives what `pattern.finditer` gives, in less time --------------

    def anchored(self, rule: Anchored, text: str | None = None) -> Iterator[re.Match[str]]:
        return self._anchors.matches(rule, self.text if text is None else text)

    def near(
        self, near: Near, pattern: re.Pattern[str], text: str | None = None
    ) -> Iterator[re.Match[str]]:
        """For patterns whose matches hold a core of `near` and reach no further from it."""
        if near not in self._stretches:
            self._stretches[near] = near.stretches(self.text)
        for start, end in self._stretches[near]:
            yield from pattern.finditer(self.text if text is None else text, start, end)

    def near_heads(self, rule: Anchored, before: int, after: int) -> Iterator[re.Match[str]]:
        """For patterns that hold one of the rule's heads somewhere inside."""
        cores = ((at, at + 1) for at in self._anchors.places(rule))
        for start, end in around(self.text, cores, before, after):
            yield from rule.pattern.finditer(self.text, start, end)

    def on_lines(
        self, pattern: re.Pattern[str], marks: str, text: str | None = None
    ) -> Iterator[re.Match[str]]:
        """For patterns whose matches hold one of `marks` and no line break."""
        for start, end in lines_with(self.text, marks):
            yield from pattern.finditer(self.text if text is None else text, start, end)


Rule = Callable[[Reading], Iterable[Hit]]


def hits(
    matches: Iterable[re.Match[str]], entity: str, score: float, rule: str
) -> Iterator[Hit]:
    """One hit per match: of group `x` if the pattern names one, else of all of it."""
    for match in matches:
        start, end = match.span("x" if "x" in match.re.groupindex else 0)
        if 0 <= start < end:
            yield Hit(start, end, entity, score, rule)
