"""What every file format gives: one text to tag, blocks, and a way to put new text back.

Coordinates are Unicode code points in `Document.text`, end exclusive, everywhere.
For plain text `Document.text` is the decoded file itself, so offsets are file offsets.
Structured formats join their readable pieces with separators of their own choosing;
nothing between blocks is ever edited.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum


class Kind(StrEnum):
    """PROSE may be rewritten by a language model. VALUE (a table cell, a key, a header,
    an attribute) is only ever changed span by span."""

    PROSE = "prose"
    VALUE = "value"


@dataclass(frozen=True)
class Block:
    """A stretch of `Document.text`. `where` is public: 'row 3, column 2', 'word/header1.xml'."""

    start: int
    end: int
    kind: Kind
    where: str = ""


@dataclass(frozen=True)
class Edit:
    """Put `text` in place of `Document.text[start:end]`. Never crosses a block border."""

    start: int
    end: int
    text: str = field(repr=False)


class Document(ABC):
    """One file, read completely or not at all (then `DocumentError`)."""

    name: str  # file name without folder; public by convention
    media_type: str  # 'text/plain', 'text/html', …
    text: str
    blocks: tuple[Block, ...]  # sorted, disjoint

    @abstractmethod
    def render(self, edits: Sequence[Edit]) -> bytes:
        """The file with `edits` (sorted, disjoint) applied; byte for byte the same elsewhere.

        render([]) may still drop metadata that the format must not carry (docx properties).
        """

    def __repr__(self) -> str:  # the text must not print
        return f"<{type(self).__name__} {self.media_type} {len(self.text)} code points>"
