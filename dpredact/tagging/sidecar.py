"""A person's corrections: FILE.tags.jsonl beside FILE, which `tags` writes and `rewrite` reads.

First line: {"schema": 1, "kind": "tags", "length": …, "digest": "sha256:…"}. Then one line a
span, all of them: what has no line is not private.
    {"start": 6, "end": 12, "entity": "PERSON"}      code points, end exclusive
    {"text": "Odalys", "entity": "PERSON"}           every whole-word mention of it
Further keys (sources, score, group) may stay; they are not read. Delete a line to keep the
words, change its offsets or entity, or add one.

The file is as private as the document: it is written with mode 0600. The digest is of the
document's text; a sidecar of another text is refused, never guessed at.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dpredact.documents.interface import Document
from dpredact.errors import DocumentError
from dpredact.policy import entities
from dpredact.tagging import identity
from dpredact.tagging.interface import Span, Tagging

SUFFIX = ".tags.jsonl"
SCHEMA = 1
_SOURCE = ("corrections",)


def beside(path: str | os.PathLike[str]) -> Path:
    """Where the corrections of the document at `path` lie, whether there are any or not."""
    path = Path(path)
    return path.with_name(path.name + SUFFIX)


def digest(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def write(path: str | os.PathLike[str], document: Document, tagging: Tagging) -> Path:
    """Save `tagging` for a person to correct. Gives the sidecar's path.

    FileExistsError if there is one already: it may hold somebody's work.
    """
    target = beside(path)
    head = {"schema": SCHEMA, "kind": "tags", "length": len(document.text), "digest": digest(document.text)}
    lines = [head, *(line_of(span) for span in tagging.spans)]
    handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    return target


def line_of(span: Span) -> dict[str, Any]:
    """One span as an object: offsets, entity, sources, score. No words."""
    return {
        "start": span.start,
        "end": span.end,
        "entity": span.entity,
        "sources": list(span.sources),
        "score": round(span.score, 3),
    }


def load(path: str | os.PathLike[str], document: Document) -> Tagging | None:
    """The corrected spans of the document at `path`; None if there is no sidecar.

    DocumentError if the sidecar belongs to another text, is damaged, or has a span that is
    empty, out of the text, over a block border, or of an unknown entity.
    """
    target = beside(path)
    try:
        text = target.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError):
        raise _wrong("the corrections cannot be read", target.name) from None
    return parse(text, document, target.name)


def parse(text: str, document: Document, name: str = "corrections") -> Tagging:
    """The spans that the lines of a sidecar name, sorted, disjoint and numbered."""
    head, *rows = _objects(text, name)
    if head.get("kind") != "tags" or head.get("schema") != SCHEMA:
        raise _wrong("the first line is not that of a sidecar of this version", f"{name}:1")
    if head.get("digest") != digest(document.text):
        raise DocumentError(
            "the corrections are stale: they were made for another text",
            next_step=f"delete {name} and write it anew with `dpredact tags FILE --save`",
            place=name,
        )
    spans: list[Span] = []
    for number, row in enumerate(rows, start=2):
        spans += _spans(row, document, f"{name}:{number}")
    spans.sort()
    for before, after in zip(spans, spans[1:], strict=False):
        if after.start < before.end:
            raise _wrong(f"two spans overlap at offset {after.start}", name)
    return Tagging(tuple(identity.number(document.text, spans)))


def _objects(text: str, name: str) -> list[dict[str, Any]]:
    rows = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError:
            raise _wrong("this line is not JSON", f"{name}:{number}") from None
        if not isinstance(row, dict):
            raise _wrong("this line is not an object", f"{name}:{number}")
        rows.append(row)
    if not rows:
        raise _wrong("the file is empty", name)
    return rows


def _spans(row: dict[str, Any], document: Document, place: str) -> Iterator[Span]:
    entity = row.get("entity")
    try:
        entity = entities.canonical(entity) if isinstance(entity, str) else ""
    except KeyError:
        entity = ""
    if entity not in entities.FAMILY_OF:
        raise _wrong("unknown entity type", place)
    if "text" in row:
        yield from _mentions(row["text"], entity, document, place)
        return
    start, end = row.get("start"), row.get("end")
    if not (type(start) is int and type(end) is int and 0 <= start < end <= len(document.text)):
        raise _wrong("start and end are not offsets of the text", place)
    if not any(b.start <= start and end <= b.end for b in document.blocks):
        raise _wrong("the span crosses a border of the document's blocks", place)
    yield Span(start, end, entity, 1.0, _SOURCE)


def _mentions(words: Any, entity: str, document: Document, place: str) -> Iterator[Span]:
    if not isinstance(words, str) or not words.strip():
        raise _wrong("text is not words", place)
    words = words.strip()
    found = False
    for block in document.blocks:
        at = document.text.find(words, block.start, block.end)
        while at >= 0:
            end = at + len(words)
            if identity.whole_word(document.text, at, end):
                found = True
                yield Span(at, end, entity, 1.0, _SOURCE)
            at = document.text.find(words, end, block.end)
    if not found:
        raise _wrong("the words of this line are not in the text", place)


def _wrong(message: str, place: str) -> DocumentError:
    return DocumentError(
        message,
        next_step="correct the line, or delete the file and write it anew with `dpredact tags FILE --save`",
        place=place,
    )
