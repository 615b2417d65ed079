"""A written file, read again: which of its text is not the model's.

What was drawn may hold anything by chance, and must not be compared with private values
(THEORY §5). Everything else (kept words, labels, keys, attributes, file names) must hold
none of them.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence

from dpredact.documents.interface import Document
from dpredact.errors import DocumentError

# White space and control characters may be written differently (line breaks as elements).
FREE = re.compile("[\\s\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]+")


def undrawn_at(again: Document, text: str, drawn: Sequence[tuple[int, int]]) -> str | None:
    """As `undrawn`, by place: `text` is what was meant, `drawn` its drawn stretches.

    None if the file reads otherwise than it was meant to. A search in its stead could take the
    "Mark" in a kept "Market" for a drawn "Mark"; the rest of the drawn passage would then be
    compared with private values, and the comparison would decide about the release.
    """
    meant = [at for at, character in enumerate(text) if not FREE.match(character)]
    where = [at for at, character in enumerate(again.text) if not FREE.match(character)]
    if [text[at] for at in meant] != [again.text[at] for at in where]:
        return None
    parts, kept_to = [], 0
    for start, end in drawn:
        first, last = bisect_left(meant, start), bisect_left(meant, end)
        if first < last:
            parts.append(again.text[kept_to : where[first]])
            kept_to = where[last - 1] + 1
    # In a flowing text what lies between blocks is part of the text, so it is here already.
    return "\n".join([*parts, again.text[kept_to:], "" if again.flowing else again.unblocked()])


def undrawn(again: Document, drawn: Sequence[str]) -> str:
    """All readable text of `again` but the drawn passages.

    again: the output, read by `read`. drawn: the drawn texts in the order of the document.
    Raises DocumentError if one of them does not stand in the output: then the file is not
    what was meant to be written.
    """
    text = again.text
    where = [at for at, character in enumerate(text) if not FREE.match(character)]
    dense = "".join(text[at] for at in where)
    parts, kept_to, seen = [], 0, 0
    for passage in drawn:
        wanted = FREE.sub("", passage)
        if not wanted:
            continue
        found = dense.find(wanted, seen)
        if found < 0:
            raise DocumentError(
                "the written file, read again, lacks a passage that was written",
                next_step="report this as a fault of the program",
                place=again.name,
            )
        seen = found + len(wanted)
        parts.append(text[kept_to : where[found]])
        kept_to = where[seen - 1] + 1
    return "\n".join([*parts, text[kept_to:], again.unblocked()])
