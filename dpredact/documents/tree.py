"""JSON and JSON lines, token by token: only string values and long numbers are readable pieces.

Keys, short numbers, white space and the spelling of untouched escapes keep their bytes. A key
that looks like data (it has white space, an @ or a long number) is a VALUE; all other keys
are never edited. A long number may be a telephone or an account number; if it has to go, a
string takes its place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import PurePath

from dpredact.documents import encoding as enc
from dpredact.documents.interface import Document, Kind, Reading
from dpredact.documents.labels import frame, is_prose, label
from dpredact.documents.source import Builder, Escape, SourceDocument, Style
from dpredact.errors import DocumentError

TOKEN = re.compile(
    r'"(?P<string>[^"\\]*(?:\\.[^"\\]*)*)"(?P<key>[ \t\r\n]*:)?|(?P<mark>[{}\[\]])'
    r"|(?P<number>-?\d[\d.eE+-]*)",
    re.DOTALL,
)
ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\."
)
NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?\Z")
LONG_NUMBER = re.compile(r"-?\d{6,}\Z")
DATA_KEY = re.compile(r"\s|@|\d{6}")


def read(data: bytes, name: str, how: Reading) -> Document:
    """A JSON or JSON lines file. Raises DocumentError with line and column for bad JSON."""
    decoded = enc.decode(data, declared=how.encoding)
    lines = PurePath(name).suffix.lower() in (".jsonl", ".ndjson", ".jsonlines")
    if lines:
        _check_lines(decoded.text)
    else:
        _check(decoded.text, 1)
    builder = Builder()
    keys = Keys()
    _fill(builder, decoded, keys)
    media = "application/jsonl" if lines else "application/json"
    return SourceDocument(name, media, decoded, builder, escape=_escaped, plainly=_plainly, settle=keys.settle)


def _check(text: str, line: int) -> None:
    """Is this JSON? The message never quotes it. Numbers stay text: they may be long."""
    try:
        json.loads(text, parse_int=str, parse_float=str)
    except json.JSONDecodeError as error:
        raise DocumentError(
            "this is not valid JSON",
            next_step="repair the file, or give it the suffix .txt to have it read as text",
            place=f"line {line + error.lineno - 1}, column {error.colno}",
        ) from None


def _check_lines(text: str) -> None:
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), start=1):
        if line.strip():
            _check(line, number)


class Keys:
    """The keys of each object, so that two keys that become one label stay two."""

    def __init__(self) -> None:
        self.open: list[list[tuple[int, str]]] = []
        self.objects: list[list[tuple[int, str]]] = []  # (number of the piece or -1, source)

    def mark(self, mark: str) -> None:
        if mark in "{[":
            self.open.append([])
            return
        keys = self.open.pop()
        if any(number >= 0 for number, _ in keys):
            self.objects.append(keys)

    def settle(self, changed: dict[int, str]) -> None:
        """Number the changed keys that stand in their object already: '[EMAIL]', '[EMAIL] 2'."""
        for keys in self.objects:
            taken = {raw for number, raw in keys if number not in changed}
            for number, _ in keys:
                if number not in changed:
                    continue
                key, count = changed[number], 1
                while changed[number] in taken:
                    count += 1
                    changed[number] = f"{key} {count}"
                taken.add(changed[number])


def _fill(builder: Builder, decoded: enc.Decoded, keys: Keys) -> None:
    source = decoded.text
    strings = Style(encode=_encoder(source))
    numbers = Style(close=lambda text: text if NUMBER.match(text) else json.dumps(text))
    context: list[str] = []  # the label that each open array or object passes on
    name, line, counted = "", 1, 0
    for match in TOKEN.finditer(source):
        line += source.count("\n", counted, match.start())
        counted = match.start()
        where = f"line {line}"
        if match["mark"]:
            keys.mark(match["mark"])
            if match["mark"] in "{[":
                context.append(name)
                name = name if match["mark"] == "[" else ""
            else:
                context.pop()
                name = context[-1] if context else ""
                builder.gap("" if builder.length == 0 else "\n")
            continue
        at, to = match.span("string") if match["string"] is not None else match.span("number")
        raw = source[at:to]
        if match["key"]:
            text, escapes = readable(raw)
            name = label(text)
            data = bool(DATA_KEY.search(text))
            keys.open[-1].append((len(builder.pieces) if data else -1, raw))
            if data:
                _add(builder, "", text, (at, to), strings, escapes, Kind.VALUE, f"{where}, key")
        elif match["string"] is not None:
            text, escapes = readable(raw)
            kind = Kind.PROSE if is_prose(text) else Kind.VALUE
            _add(builder, name, text, (at, to), strings, escapes, kind, where)
        elif LONG_NUMBER.match(raw):
            _add(builder, name, raw, (at, to), numbers, [], Kind.VALUE, where)


def _add(
    builder: Builder, name: str, text: str, place: tuple[int, int], style: Style,
    escapes: list[Escape], kind: Kind, where: str,
) -> None:  # fmt: skip
    if not text.strip():
        return
    before, after = frame(name, text)
    builder.gap(before)
    start = builder.length
    builder.piece(text, *place, style, escapes)
    builder.block(start, kind, where)
    builder.gap(f"{after}\n")


def readable(raw: str) -> tuple[str, list[Escape]]:
    """What a JSON string says, and where its escapes are."""
    if "\\" not in raw:
        return raw, []
    escapes: list[Escape] = []
    parts: list[str] = []
    length = at = 0
    for match in ESCAPE.finditer(raw):
        parts.append(raw[at : match.start()])
        length += match.start() - at
        character = json.loads(f'"{match.group()}"')
        if "\ud800" <= character <= "\udfff":
            character = "\ufffd"  # half a pair: no tagger could read it
        parts.append(character)
        escapes.append(Escape(length, length + 1, match.start(), match.end()))
        length += 1
        at = match.end()
    return "".join([*parts, raw[at:]]), escapes


def _encoder(source: str) -> Callable[[str], str]:
    """New strings are spelled like the file's: \\u escapes only if it holds nothing else."""
    only_ascii = source.isascii() and "\\u" in source
    return lambda text: json.dumps(text, ensure_ascii=only_ascii)[1:-1]


def _plainly(source: str) -> str:
    """A stretch of source with its escapes read, for a search."""
    return readable(source)[0]


def _escaped(character: str) -> str:
    return json.dumps(character)[1:-1]
