"""Where the private words are: spans on a document's text.

Coordinates are Unicode code points of the original text, end exclusive. Entity names are
those of `dpredact.policy.entities`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, order=True)
class Span:
    """One mention. Holds no words, so it may be logged; `identity` is a running number:
    mentions of the same person (value) in one document share it, per entity family."""

    start: int
    end: int
    entity: str
    score: float = 1.0
    sources: tuple[str, ...] = ()
    identity: int | None = None


@dataclass(frozen=True)
class Tagging:
    """What was found, and whether everything was read.

    complete: False if any tagger did not read all of the text.
    reasons: one public sentence per gap (which tagger, which offsets, why).
    """

    spans: tuple[Span, ...]
    complete: bool = True
    reasons: tuple[str, ...] = ()


class Tagger(Protocol):
    """Finds spans in a text. Never raises because of what the text says."""

    name: str

    def tag(self, text: str) -> Tagging: ...
