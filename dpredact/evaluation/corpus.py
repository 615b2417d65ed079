"""Annotated documents for measuring: JSON lines with `text` and `spans`, cut to a length.

A corpus keeps its own labels; they become this package's entities here. Spans of
identifier_type NO_MASK are known names that need no mask: public text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from dpredact.errors import UsageError
from dpredact.evaluation.spans import class_of, spelled
from dpredact.policy import entities
from dpredact.tagging.interface import Span, Tagger

# Coarse class of a corpus label -> an entity of that class, where the label is not one itself.
_ENTITY_OF_CLASS = {
    "PLACE": "LOCATION", "PERSON": "PERSON", "TIME": "DATE", "ORG": "ORG",
    "QUANTITY": "QUANTITY", "PEOPLE": "DEMOGRAPHIC", "CODE": "ID",
}  # fmt: skip


@dataclass(frozen=True)
class Item:
    """One document: its text, what is private in it, and a human summary if there is one."""

    name: str
    text: str = field(repr=False)
    spans: tuple[Span, ...]
    summary: str = field(default="", repr=False)

    def words(self, span: Span) -> str:
        return self.text[span.start : span.end]


def entity_of(label: str) -> str:
    """The entity that a corpus label stands for; MISC for a kind that this package lacks."""
    try:
        return entities.canonical(spelled(label))
    except KeyError:
        return _ENTITY_OF_CLASS.get(class_of(label), "MISC")


def read(
    path: Path,
    *,
    limit: int | None = None,
    cut: int | None = None,
    split: str | None = None,
    tagger: Tagger | None = None,
) -> list[Item]:
    """Documents of a JSON-lines file.

    limit: most documents. cut: characters kept of each, to the last white space before, and
    never inside a span. tagger: its findings in place of the gold spans.

    Raises UsageError with the line's number for a line that is no document, and for a file
    without one.
    """
    if not path.is_file():
        raise UsageError("no such file", next_step="name a JSON-lines file", place=str(path))
    tag = None if tagger is None else lambda text: tagger.tag(text).spans
    items = list(islice(_documents(path, cut, split, tag), limit))
    if not items:
        raise UsageError(
            "there is no document in this file",
            next_step="each line needs `text` and `spans` (start, end, label)",
            place=path.name,
        )
    return items


def _documents(
    path: Path,
    cut: int | None,
    split: str | None,
    tag: Callable[[str], tuple[Span, ...]] | None,
) -> Iterator[Item]:
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                if split is not None and row.get("split") != split:
                    continue
                item = _item(row, str(row.get("id", number)))
            except (ValueError, KeyError, TypeError, AttributeError):
                raise UsageError(
                    "this line is no document with `text` and `spans` (start, end, label)",
                    next_step="offsets count code points, end exclusive",
                    place=f"{path.name}:{number}",
                ) from None
            item = shorten(item, cut) if cut else item
            yield item if tag is None else Item(item.name, item.text, tag(item.text), item.summary)


def _item(row: dict[str, Any], name: str) -> Item:
    text = row["text"]
    identities: dict[tuple[str, str], int] = {}
    spans = []
    for one in row["spans"]:
        start, end = int(one["start"]), int(one["end"])
        if not 0 <= start < end <= len(text):
            raise ValueError("span outside the text")
        if one.get("identifier_type") == "NO_MASK":
            continue
        entity = entity_of(str(one["label"]))
        who = (entity, str(one.get("entity_id") or text[start:end].casefold()))
        identity = identities.setdefault(who, len(identities))
        spans.append(Span(start, end, entity, 1.0, ("gold",), identity))
    summary = row.get("summary") or ""
    return Item(name, text, tuple(sorted(spans)), summary if isinstance(summary, str) else "")


def shorten(item: Item, cut: int) -> Item:
    """The first `cut` characters at most: to a white space, and to before a span that crosses."""
    if len(item.text) <= cut:
        return item
    end = cut
    while end > 0 and not item.text[end].isspace():
        end -= 1
    end = end or cut
    for span in sorted(item.spans, reverse=True):
        if span.start < end < span.end:
            end = span.start
    end = len(item.text[:end].rstrip())
    kept = tuple(s for s in item.spans if s.end <= end)
    return Item(item.name, item.text[:end], kept, item.summary)
