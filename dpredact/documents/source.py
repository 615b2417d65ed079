"""Formats whose readable text is a part of their source: pieces that know where they came from.

A *piece* is one stretch of readable text that stands in one place of the file: a text node,
an attribute, a table cell, a JSON string. A block may have several pieces (a paragraph with
bold words). An edit is cut into the pieces that it touches; everything else keeps its bytes.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from dpredact.documents.encoding import Decoded
from dpredact.documents.interface import Block, Document, Edit, Kind, replaced
from dpredact.documents.plain import foreign, pieces, runs


def _same(text: str) -> str:
    return text


@dataclass(frozen=True, slots=True)
class Style:
    """How new text is written into a piece.

    encode: escapes for the place (entities, backslashes). close: a last look at the piece's
    whole new source, e.g. to put a cell into quotes. read: what a source says; where old and
    new characters together would say something else ("<" before "b"), the whole piece is
    encoded anew.
    """

    encode: Callable[[str], str] = _same
    close: Callable[[str], str] = _same
    read: Callable[[str], str] | None = None


@dataclass(frozen=True, slots=True)
class Escape:
    """Readable text[start:end] that the source spells differently, at source[at:to].
    Offsets are relative to the piece."""

    start: int
    end: int
    at: int
    to: int


@dataclass(frozen=True, slots=True)
class Piece:
    """`Document.text[start:end]` stands at `source[at:to]`, one to one except in escapes."""

    start: int
    end: int
    at: int
    to: int
    style: Style
    escapes: tuple[Escape, ...] = ()


@dataclass
class Builder:
    """Collects pieces, separators and blocks while a format's scanner walks the file."""

    pieces: list[Piece] = field(default_factory=list)
    blocks: list[tuple[int, int, Kind, str]] = field(default_factory=list)
    length: int = 0
    _parts: list[str] = field(default_factory=list, repr=False)

    def gap(self, text: str) -> None:
        """A separator of the reader's own; never private, never edited."""
        self._parts.append(text)
        self.length += len(text)

    def piece(
        self, text: str, at: int, to: int, style: Style, escapes: Iterable[Escape] = ()
    ) -> None:
        start = self.length
        self.gap(text)
        self.pieces.append(Piece(start, self.length, at, to, style, tuple(escapes)))

    def block(self, start: int, kind: Kind, where: str) -> None:
        """All that was added since `start` is one block."""
        self.blocks.append((start, self.length, kind, where))

    def since(self, start: int) -> str:
        """The text that was added since `length` was `start`."""
        number, length = len(self._parts), self.length
        while length > start:
            number -= 1
            length -= len(self._parts[number])
        return "".join(self._parts[number:])

    def text(self) -> str:
        return "".join(self._parts)

    def finished(self, text: str) -> tuple[Block, ...]:
        """The blocks, without white space at their ends; prose is cut at blank lines."""
        return tuple(_trimmed(text, self.blocks))


def _trimmed(text: str, blocks: Iterable[tuple[int, int, Kind, str]]) -> Iterator[Block]:
    for start, end, kind, where in blocks:
        if kind is Kind.PROSE:
            for first, last in runs(text, start, end):
                for left, right in pieces(text, first, last):
                    yield Block(left, right, kind, where)
            continue
        body = text[start:end]
        left, right = start + len(body) - len(body.lstrip()), start + len(body.rstrip())
        if left < right:
            yield Block(left, right, kind, where)


Local = tuple[int, int, str]  # start, end (relative to a piece), new text


def assign(
    edits: Sequence[Edit],
    pieces: Sequence[tuple[int, int]],
    blocks: Sequence[Block],
) -> dict[int, list[Local]]:
    """Which piece gets which part of each edit, by the piece's number.

    pieces: (start, end) of each, sorted. An edit over several pieces writes into the first
    one and empties the others, so tags between them stay. An edit of a whole block writes
    into the longest piece: the look of a rewritten paragraph is that of most of its words.
    Raises ValueError for an edit that touches no piece.
    """
    ends = [end for _, end in pieces]
    whole = {(block.start, block.end) for block in blocks}
    found: dict[int, list[Local]] = {}
    for edit in edits:
        touched = []
        number = bisect_left(ends, edit.start)
        while number < len(pieces) and pieces[number][0] <= edit.end:
            start, end = pieces[number]
            if max(start, edit.start) < min(end, edit.end) or (
                edit.start == edit.end and not touched
            ):
                touched.append(number)
            number += 1
        if not touched:  # a line break between two pieces: the new text joins the one before
            number = max(bisect_right(ends, edit.start) - 1, 0)
            if not any(b.start <= edit.start and edit.end <= b.end for b in blocks):
                raise ValueError("an edit lies outside every block")
            start, end = pieces[number]
            found.setdefault(number, []).append((end - start, end - start, edit.text))
            continue
        home = touched[0]
        if len(touched) > 1 and (edit.start, edit.end) in whole:
            home = max(touched, key=lambda n: pieces[n][1] - pieces[n][0])
        for number in touched:
            start, end = pieces[number]
            local = (max(edit.start, start) - start, min(edit.end, end) - start)
            found.setdefault(number, []).append((*local, edit.text if number == home else ""))
    return found


def rewritten(source: str, readable: str, piece: Piece, edits: Sequence[Local]) -> str:
    """The new source of a piece. source, readable: the piece's own source and text."""
    cuts: list[tuple[int, int, list[Edit]]] = []
    for start, end, text in edits:
        first, last = _whole_escapes(piece.escapes, start, end)
        edit = Edit(start, end, text)
        if cuts and first < cuts[-1][1]:  # both touch the same escape
            begun, until, together = cuts.pop()
            cuts.append((begun, max(until, last), [*together, edit]))
        else:
            cuts.append((first, last, [edit]))
    written = []
    for first, last, inside in cuts:
        moved = [Edit(e.start - first, e.end - first, e.text) for e in inside]
        text = replaced(readable[first:last], moved)
        at, to = (_source_offset(piece.escapes, border) for border in (first, last))
        written.append(Edit(at, to, piece.style.encode(text)))
    new = replaced(source, written)
    if piece.style.read is not None:
        wanted = replaced(readable, [Edit(*edit) for edit in edits])
        if piece.style.read(new) != wanted:
            new = piece.style.encode(wanted)
    return piece.style.close(new)


def _whole_escapes(escapes: Sequence[Escape], start: int, end: int) -> tuple[int, int]:
    """The stretch around [start, end) that cuts through no escape."""
    for border in (start, end):
        number = bisect_left(escapes, border, key=lambda escape: escape.start) - 1
        if number >= 0 and escapes[number].start < border < escapes[number].end:
            start = min(start, escapes[number].start)
            end = max(end, escapes[number].end)
    return start, end


def _source_offset(escapes: Sequence[Escape], offset: int) -> int:
    """Where readable offset lies in the piece's source; never inside an escape."""
    number = bisect_right(escapes, offset, key=lambda escape: escape.end)
    if number == 0:
        return offset
    return escapes[number - 1].to + offset - escapes[number - 1].end


class SourceDocument(Document):
    """A document whose file is one decoded text with pieces in it."""

    def __init__(
        self,
        name: str,
        media_type: str,
        decoded: Decoded,
        builder: Builder,
        *,
        escape: Callable[[str], str] | None = None,
        plainly: Callable[[str], str] = _same,
        settle: Callable[[dict[int, str]], None] | None = None,
        always: Sequence[Edit] = (),
    ) -> None:
        """escape: how a character that the encoding cannot hold is spelled in this format;
        None if the format has no way, then the file becomes UTF-8 (`remarks` says so).
        plainly: reads the escapes in source that lies outside the pieces.
        settle: a last look at all changed pieces (number -> new source) together.
        always: edits of the source, outside the pieces, that every output gets."""
        self.name = name
        self.media_type = media_type
        self.text = builder.text()
        self.blocks = builder.finished(self.text)
        self.encoding = decoded.encoding
        self._decoded = decoded
        self._pieces = builder.pieces
        self._escape = escape
        self._plainly = plainly
        self._settle = settle
        self._always = always

    def render(self, edits: Sequence[Edit]) -> bytes:
        replaced(self.text, edits)  # sorted, disjoint, inside
        borders = [(piece.start, piece.end) for piece in self._pieces]
        source = self._decoded.text
        changed: dict[int, str] = {}
        for number, local in assign(edits, borders, self.blocks).items():
            piece = self._pieces[number]
            new = rewritten(
                source[piece.at : piece.to], self.text[piece.start : piece.end], piece, local
            )
            if self._escape is not None and not self._decoded.holds(new):
                new = "".join(c if self._decoded.holds(c) else self._escape(c) for c in new)
            changed[number] = new
        if self._settle is not None:
            self._settle(changed)
        cuts = [Edit(self._pieces[n].at, self._pieces[n].to, new) for n, new in changed.items()]
        cuts = sorted([*cuts, *self._always], key=lambda cut: cut.start)
        return self._decoded.encode(replaced(source, cuts))

    def remarks(self, edits: Sequence[Edit]) -> tuple[str, ...]:
        return () if self._escape is not None else foreign(self._decoded, edits)

    def unblocked(self) -> str:
        """The source outside all pieces: keys, tags, numbers, punctuation."""
        gaps, at = [], 0
        for piece in sorted(self._pieces, key=lambda piece: piece.at):
            gaps.append(self._decoded.text[at : piece.at])
            at = piece.to
        gaps.append(self._decoded.text[at:])
        return "\n".join(self._plainly(gap) for gap in gaps if gap.strip())


@dataclass(frozen=True)
class Child:
    """A document inside another one; its text begins at `start` in the outer text.

    key: what the outer document needs to put it back (a part's name, a place).
    """

    document: Document
    start: int
    key: object = field(repr=False)

    @property
    def end(self) -> int:
        return self.start + len(self.document.text)


def adopt(builder: Builder, document: Document, key: object, place: str) -> tuple[Child, list[Block]]:
    """Put an inner document's text into the outer one; its blocks in outer offsets."""
    child = Child(document, builder.length, key)
    builder.gap(document.text)
    shift = child.start
    return child, [
        Block(b.start + shift, b.end + shift, b.kind, f"{place}, {b.where}" if b.where else place)
        for b in document.blocks
    ]


def shared_out(
    edits: Sequence[Edit], children: Sequence[Child]
) -> tuple[list[Edit], list[list[Edit]]]:
    """The edits of the outer document itself, and for each child its own, in its offsets."""
    own: list[Edit] = []
    inside: list[list[Edit]] = [[] for _ in children]
    for edit in edits:
        for number, child in enumerate(children):
            if child.start <= edit.start and edit.end <= child.end:
                shift = child.start
                inside[number].append(Edit(edit.start - shift, edit.end - shift, edit.text))
                break
        else:
            own.append(edit)
    return own, inside
