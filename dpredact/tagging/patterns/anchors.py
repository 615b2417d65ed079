"""Looking only where a rule can match. Rules are many; most of a text concerns none of them.

An `Anchored` pattern lists the words that every match begins with (`heads`). One automaton
finds the heads of all patterns in one pass, and each pattern is tried at its own heads only.
What it finds is exactly what `pattern.finditer` would: a test holds the two against each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

_all: list[Anchored] = []


@dataclass(frozen=True, eq=False)
class Anchored:
    """A pattern whose matches start at a word border with one of `heads`.

    heads: in lower case, without accents (as `identity.flat` writes).
    """

    pattern: re.Pattern[str]
    heads: tuple[str, ...] = field(repr=False)

    def __post_init__(self) -> None:
        _all.append(self)

    @property
    def groupindex(self) -> dict[str, int]:
        return dict(self.pattern.groupindex)


def anchored(pattern: str, heads: str, flags: int = 0) -> Anchored:
    """`heads`: words between blanks; an underscore stands for a blank inside a head."""
    return Anchored(re.compile(pattern, flags), tuple(h.replace("_", " ") for h in heads.split()))


@lru_cache(maxsize=1)
def _automaton() -> object:
    import ahocorasick

    owners: dict[str, list[int]] = {}
    for index, rule in enumerate(_all):
        for head in rule.heads:
            owners.setdefault(head, []).append(index)
    machine = ahocorasick.Automaton()
    for head, indices in owners.items():
        machine.add_word(head, (len(head), tuple(indices)))
    machine.make_automaton()
    return machine


class Anchors:
    """Where the heads of all anchored patterns stand in one text.

    flat: the text in lower case without accents, code point for code point.
    """

    def __init__(self, flat: str) -> None:
        places: list[list[int]] = [[] for _ in _all]
        for last, (size, owners) in _automaton().iter(flat):  # type: ignore[attr-defined]
            start = last - size + 1
            if start and flat[start - 1].isalnum():
                continue
            for owner in owners:
                places[owner].append(start)
        self._places = {id(rule): sorted(set(at)) for rule, at in zip(_all, places, strict=True)}

    def places(self, rule: Anchored) -> list[int]:
        return self._places[id(rule)]

    def matches(self, rule: Anchored, text: str) -> Iterator[re.Match[str]]:
        """What `rule.pattern.finditer(text)` gives."""
        done = 0
        for at in self._places[id(rule)]:
            if at >= done and (match := rule.pattern.match(text, at)):
                yield match
                done = match.end()


@dataclass(frozen=True)
class Near:
    """Stretches around every match of `core`: `before` and `after` characters, whole words."""

    core: re.Pattern[str]
    before: int
    after: int

    def stretches(self, text: str) -> list[tuple[int, int]]:
        return around(text, (m.span() for m in self.core.finditer(text)), self.before, self.after)


DIGITS = Near(re.compile(r"\d+"), 26, 26)
FAR = Near(re.compile(r"\d+"), 48, 48)
STREET = Near(re.compile(r"\d+"), 70, 150)
# Six digits or more, with the marks and letters that numbers have between them.
LONG = Near(re.compile(r"\d(?:[^\w\n]{0,3}[A-Za-z]{0,4}[^\w\n]{0,2}\d){5,}"), 40, 30)
YEAR = Near(re.compile(r"(?<!\d)(?:1[5-9]|20|21)\d\d(?!\d)"), 40, 20)


def around(
    text: str, cores: Iterable[tuple[int, int]], before: int, after: int
) -> list[tuple[int, int]]:
    """Disjoint, sorted stretches that hold each core (sorted) with what stands around it.

    They begin and end at blanks, so no word is cut. A pattern that reaches less far from a
    core finds the same here as in the whole text.
    """
    out: list[tuple[int, int]] = []
    for start, end in cores:
        if out and end + after <= out[-1][1]:
            continue
        low = max(0, start - before)
        if out and low <= out[-1][1]:
            low = out.pop()[0]
        elif low:
            blank = max(text.rfind(" ", max(0, low - 60), low), text.rfind("\n", max(0, low - 60), low))
            low = blank + 1 if blank >= 0 else low
            if out and low <= out[-1][1]:
                low = out.pop()[0]
        high = min(len(text), end + after)
        if high < len(text):
            blank = text.find(" ", high, high + 60)
            high = blank if blank >= 0 else min(len(text), high + 60)
        out.append((low, high))
    return out


def lines_with(text: str, marks: str) -> Iterator[tuple[int, int]]:
    """(start, end) of the lines that hold one of `marks`, in order."""
    done = 0
    for match in re.finditer(f"[{re.escape(marks)}]", text):
        if match.start() < done:
            continue
        low = text.rfind("\n", 0, match.start()) + 1
        high = text.find("\n", match.start())
        high = len(text) if high < 0 else high
        yield low, high
        done = high
