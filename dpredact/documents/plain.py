"""Plain text and Markdown: `Document.text` is the decoded file, so offsets are file offsets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from dpredact.documents import encoding as enc
from dpredact.documents.interface import Block, Document, Edit, Kind, Reading, replaced

MARKDOWN = frozenset({".md", ".markdown", ".mdown", ".mkd", ".qmd", ".rmd"})
# Text with a grammar: a language model would break it, so it is changed span by span only.
GRAMMAR = frozenset(
    ".yaml .yml .toml .ini .cfg .conf .env .properties .log .sql .sh .bash .ps1 .bat "
    ".py .js .ts .jsx .tsx .java .kt .c .h .cc .cpp .hpp .cs .go .rs .rb .php .pl .r .scala "
    ".swift .lua .tex .bib .css .scss .vcf .ics .ldif .diff .patch".split()
)
LONGEST_BLOCK = 4000  # code points; longer paragraphs are cut at line or sentence ends

LINE = re.compile(r"[^\r\n]+")
SPACE = re.compile(r"\s+")
SPACE_OR_NOTHING = re.compile(r"\s*")
SENTENCE_END = re.compile(r"[.!?…。！？][\"'”’)\]]*\s+|[\r\n]+")


class PlainDocument(Document):
    """A text file. Everything outside the edits keeps its bytes: mark, line ends, final newline."""

    flowing = True

    def __init__(
        self, name: str, media_type: str, decoded: enc.Decoded, blocks: tuple[Block, ...]
    ) -> None:
        self.name = name
        self.media_type = media_type
        self.text = decoded.text
        self.blocks = blocks
        self.encoding = decoded.encoding
        self._decoded = decoded
        crlf, lf = decoded.text.count("\r\n"), decoded.text.count("\n")
        self._line_end = "\r\n" if crlf and crlf == lf else "\n"

    def render(self, edits: Sequence[Edit]) -> bytes:
        return self._decoded.encode(replaced(self.text, [self._in_own_lines(e) for e in edits]))

    def _in_own_lines(self, edit: Edit) -> Edit:
        """New text with the line ends of the file, if it has one kind only."""
        if "\n" not in edit.text or self._line_end == "\n":
            return edit
        return Edit(edit.start, edit.end, re.sub(r"\r\n|\n", self._line_end, edit.text))

    def unblocked(self) -> str:
        gaps, at = [], 0
        for block in self.blocks:
            gaps.append(self.text[at : block.start])
            at = block.end
        gaps.append(self.text[at:])
        return "\n".join(gap for gap in gaps if gap.strip())

    def remarks(self, edits: Sequence[Edit]) -> tuple[str, ...]:
        return foreign(self._decoded, edits)


def foreign(decoded: enc.Decoded, edits: Sequence[Edit]) -> tuple[str, ...]:
    """The remark due when new text does not fit the file's encoding."""
    if all(decoded.holds(edit.text) for edit in edits):
        return ()
    return (
        f"new text does not fit the file's encoding {decoded.encoding}; "
        "the output is UTF-8 with a byte order mark",
    )


def read(data: bytes, name: str, how: Reading) -> Document:
    """A text file; the suffix tells prose, Markdown and text with a grammar apart."""
    decoded = enc.decode(data, declared=how.encoding)
    suffix = PurePath(name).suffix.lower()
    if suffix in MARKDOWN:
        from dpredact.documents import markdown

        return PlainDocument(name, "text/markdown", decoded, markdown.blocks(decoded.text))
    kind = Kind.VALUE if suffix in GRAMMAR else Kind.PROSE
    return PlainDocument(name, "text/plain", decoded, tuple(paragraphs(decoded.text, kind)))


def paragraphs(
    text: str, kind: Kind, start: int = 0, end: int | None = None, line: int = 1
) -> Iterator[Block]:
    """Blocks of `text[start:end]`: runs of lines without a blank one, cut when very long.

    Blank lines and the white space around a paragraph lie in no block. `line` is the number
    of the line that holds `start`; `where` names the line of each block.
    """
    end = len(text) if end is None else end
    counted = start
    for first, last in runs(text, start, end):
        for piece_start, piece_end in pieces(text, first, last):
            line += text.count("\n", counted, piece_start)
            counted = piece_start
            yield Block(piece_start, piece_end, kind, f"line {line}")


def runs(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Stretches between blank lines, without white space at either end."""
    first = last = before = -1
    for match in LINE.finditer(text, start, end):
        body = match.group()
        if not body.strip():
            continue
        follows = first >= 0 and text[before : match.start()] in ("\n", "\r\n", "\r")
        if first >= 0 and not follows:
            yield first, last
        if not follows:
            first = match.start() + len(body) - len(body.lstrip())
        last = match.start() + len(body.rstrip())
        before = match.end()
    if first >= 0:
        yield first, last


def pieces(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """`text[start:end]` cut at line or sentence ends into stretches of about LONGEST_BLOCK.

    A stretch without any such end is cut at white space, or not at all: a word is never cut.
    """
    while end - start > LONGEST_BLOCK:
        cut = _cut(text, start, end)
        if cut is None:
            break
        yield start, start + len(text[start : cut[0]].rstrip())
        start = cut[1]
    if start < end:
        yield start, end


def _cut(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Where a block ends and the next begins: a sentence end, else white space."""
    middle, limit = start + LONGEST_BLOCK // 2, start + LONGEST_BLOCK
    for pattern in (SENTENCE_END, SPACE):
        found = [m for m in pattern.finditer(text, middle, limit) if m.end() < end]
        if found:
            return found[-1].end(), SPACE_OR_NOTHING.match(text, found[-1].end(), end).end()
    later = SPACE.search(text, limit, end)
    return (later.start(), later.end()) if later and later.end() < end else None
