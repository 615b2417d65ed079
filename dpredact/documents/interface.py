"""What every file format gives: one text to tag, blocks, and a way to put new text back.

Coordinates are Unicode code points in `Document.text`, end exclusive, everywhere.
For plain text `Document.text` is the decoded file itself, so offsets are file offsets.
Structured formats join their readable pieces with separators of their own choosing;
nothing between blocks is ever edited.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal


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


@dataclass(frozen=True)
class Reading:
    """How to read a file.

    encoding: what the sender says about a text file, if anything.
    pictures: "refuse" a file with pictures, whose words nobody reads, or "blank" them.
    depth: how many files this one is embedded in.
    """

    encoding: str | None = None
    pictures: Literal["refuse", "blank"] = "refuse"
    depth: int = 0

    def inside(self, encoding: str | None = None) -> Reading:
        """The same for a file embedded in this one."""
        return replace(self, encoding=encoding, depth=self.depth + 1)


class Document(ABC):
    """One file, read completely or not at all (then `DocumentError`)."""

    name: str  # file name without folder; public by convention
    media_type: str  # 'text/plain', 'text/html', …
    text: str
    blocks: tuple[Block, ...]  # sorted, disjoint
    flowing: bool = False  # prose blocks with only white space between them read as one text,
    # and one edit may replace such a run from its first start to its last end

    @abstractmethod
    def render(self, edits: Sequence[Edit]) -> bytes:
        """The file with `edits` (sorted, disjoint) applied; byte for byte the same elsewhere.

        render([]) may still drop metadata that the format must not carry (docx properties).
        """

    def unblocked(self) -> str:
        """Every readable character of the file that lies in no block, or "".

        Keys, tag names, comments between blocks, file names inside a package: parts that no
        edit can reach. A private value found there means that the file must not go out.
        """
        return ""

    def everything(self) -> str:
        """All that a reader of the file could see: `text` and what lies outside the blocks."""
        rest = self.unblocked()
        return f"{self.text}\n{rest}" if rest else self.text

    def remarks(self, edits: Sequence[Edit]) -> tuple[str, ...]:
        """What `render(edits)` changes besides the edits, in public sentences (a new encoding,
        dropped metadata). Empty when every other byte stays."""
        return ()

    @property
    def output_name(self) -> str:
        """File name that fits what `render` gives; differs from `name` for read-only formats."""
        return self.name

    def __repr__(self) -> str:  # the text must not print
        return f"<{type(self).__name__} {self.media_type} {len(self.text)} code points>"


def replaced(text: str, edits: Sequence[Edit]) -> str:
    """`text` with `edits` applied. Raises ValueError unless they are sorted, disjoint, inside."""
    parts, at = [], 0
    for edit in edits:
        if not at <= edit.start <= edit.end <= len(text):
            raise ValueError("edits must be sorted, disjoint and inside the text")
        parts += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*parts, text[at:]])
