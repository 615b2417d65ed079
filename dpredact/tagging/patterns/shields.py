"""Stretches that look like a private number and are none: UUIDs, digests, decimals."""

from __future__ import annotations

import re
from bisect import bisect_left

_SHIELD = re.compile(
    r"""(?<![0-9A-Za-z])(?:
      [0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}  # UUID
    | (?=[0-9]*[A-Fa-f])(?=[A-Fa-f]*[0-9])(?:[0-9A-Fa-f]{32}|[0-9A-Fa-f]{40}|[0-9A-Fa-f]{64})  # digest
    | [-+]?\d{1,3}\.\d{5,}(?:[eE][-+]?\d+)?                     # decimal
    )(?![0-9A-Za-z]|\.\d)""",
    re.VERBOSE,
)


class Shields:
    """The shielded stretches of one text."""

    def __init__(self, text: str) -> None:
        found = [m.span() for m in _SHIELD.finditer(text)]
        self._starts = [a for a, _ in found]
        self._ends = [b for _, b in found]

    def touch(self, start: int, end: int) -> bool:
        """Does [start, end) share a character with one?"""
        index = bisect_left(self._starts, end) - 1
        return index >= 0 and self._ends[index] > start
