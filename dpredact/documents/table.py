"""CSV and TSV, cell by cell: quotes, delimiters, line ends and the number of rows stay.

The scanner follows the rules of the standard library's csv module (quotes doubled inside
quotes, a quote inside an unquoted cell is a character), but remembers offsets.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

from dpredact.documents import encoding as enc
from dpredact.documents.interface import Document, Kind, Reading
from dpredact.documents.labels import frame, is_prose, label
from dpredact.documents.source import Builder, Escape, SourceDocument, Style
from dpredact.errors import DocumentError

DELIMITERS = (",", ";", "\t", "|")
SAMPLE = 65536  # characters that decide on the delimiter
LINE_END = re.compile(r"\r\n|\r|\n")
DECLARED = re.compile(r"sep=(.)(?:\r\n|\r|\n)", re.IGNORECASE)
DATA_LIKE = re.compile(r"\s*(?:[\d+(.-][\d\s./:()+-]*\d|\S+@\S+|)\s*\Z")


@dataclass(frozen=True, slots=True)
class Cell:
    """Cell `column` of `row` (both from 0); source[at:to] without the quotes around it."""

    row: int
    column: int
    at: int
    to: int
    quoted: bool


def read(data: bytes, name: str, how: Reading) -> Document:
    """A delimited table. A quoted cell that never ends is an error."""
    decoded = enc.decode(data, declared=how.encoding)
    source = decoded.text
    suffix = PurePath(name).suffix.lower()
    start, delimiter = 0, delimiter_of(source, prefer="\t" if suffix in (".tsv", ".tab") else ",")
    if declared := DECLARED.match(source):
        start, delimiter = declared.end(), declared[1]
    builder = Builder()
    _fill(builder, source, list(cells(source, delimiter, start)), delimiter)
    media = "text/tab-separated-values" if suffix in (".tsv", ".tab") else "text/csv"
    return SourceDocument(name, media, decoded, builder)


def delimiter_of(text: str, prefer: str = ",") -> str:
    """The delimiter with which most records have the same number (> 1) of cells."""
    sample = text[:SAMPLE]
    if len(text) > SAMPLE:
        sample = sample[: max(sample.rfind("\n"), sample.rfind("\r")) + 1] or sample
    best, choice = (0.0, 0), prefer
    for delimiter in (prefer, *(d for d in DELIMITERS if d != prefer)):
        try:
            rows = csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter)
            widths = Counter(len(row) for row in rows if row)
        except csv.Error:
            continue
        if not widths:
            continue
        width, count = max(widths.items(), key=lambda item: (item[1], item[0]))
        score = (round(count / widths.total(), 2), width)
        if width > 1 and score > best:
            best, choice = score, delimiter
    return choice


def cells(source: str, delimiter: str, start: int = 0) -> Iterator[Cell]:
    """Every cell in file order. Raises DocumentError for a quoted cell that never ends."""
    plain = re.compile(f"[^{re.escape(delimiter)}\r\n]*")
    inside = re.compile('[^"]*(?:""[^"]*)*')
    row = column = 0
    at, end = start, len(source)
    while at < end:
        quoted = source[at] == '"'
        if quoted:
            body = inside.match(source, at + 1).end()
            if body >= end:
                raise DocumentError(
                    "a quoted cell never ends",
                    next_step="close the quote, or double the quotes inside cells",
                    place=f"row {row + 1}, column {column + 1}",
                )
            after = plain.match(source, body + 1).end()
            # characters after the closing quote belong to the cell, quotes and all
            quoted = after == body + 1
            yield Cell(row, column, at + quoted, body if quoted else after, quoted)
        else:
            after = plain.match(source, at).end()
            yield Cell(row, column, at, after, False)
        at = after
        if at < end and source[at] == delimiter:
            at, column = at + 1, column + 1
            if at == end:
                yield Cell(row, column, at, at, False)
        elif line_end := LINE_END.match(source, at):
            at, row, column = line_end.end(), row + 1, 0


def _fill(builder: Builder, source: str, found: list[Cell], delimiter: str) -> None:
    special = re.compile(f'[{re.escape(delimiter)}"\r\n]')

    def quote(cell: str) -> str:
        return '"' + cell.replace('"', '""') + '"' if special.search(cell) else cell

    bare = Style(close=quote)
    # an empty line would be no row to many readers
    alone = Style(close=lambda cell: quote(cell) or '""')
    widths = Counter(cell.row for cell in found)
    in_quotes = Style(encode=lambda text: text.replace('"', '""'))
    labels = _labels(source, found)
    row = 0
    for cell in found:
        if cell.row != row:
            builder.gap("\n" if row == 0 or not any(labels) else "\n\n")
            row = cell.row
        elif cell.column:
            builder.gap("\n" if row and any(labels) else "\t")
        raw = source[cell.at : cell.to]
        text, escapes = _readable(raw) if cell.quoted else (raw, [])
        named = labels[cell.column] if row and cell.column < len(labels) else ""
        before, after = frame(named, text) if text.strip() else ("", "")
        builder.gap(before)
        start = builder.length
        style = in_quotes if cell.quoted else bare if widths[cell.row] > 1 else alone
        builder.piece(text, cell.at, cell.to, style, escapes)
        kind = Kind.PROSE if is_prose(text) and not (labels and row == 0) else Kind.VALUE
        builder.block(start, kind, f"row {row + 1}, column {cell.column + 1}")
        builder.gap(after)


def _readable(raw: str) -> tuple[str, list[Escape]]:
    """A quoted cell's text: doubled quotes become one."""
    if '""' not in raw:
        return raw, []
    escapes, text, at = [], [], 0
    length = 0
    for match in re.finditer('""', raw):
        text += [raw[at : match.start()], '"']
        length += match.start() - at + 1
        escapes.append(Escape(length - 1, length, match.start(), match.end()))
        at = match.end()
    return "".join([*text, raw[at:]]), escapes


def _labels(source: str, found: list[Cell]) -> list[str]:
    """A public label for each column; empty if the first row does not look like a header."""
    first = [source[c.at : c.to] for c in found if c.row == 0]
    if len(first) == len(found) or any(DATA_LIKE.match(cell) for cell in first if cell.strip()):
        return []
    if any(len(cell.split()) > 6 or len(cell) > 60 for cell in first) or len(set(first)) < len(first):
        return []
    labels = [label(cell) for cell in first]
    return labels if any(labels) else []
