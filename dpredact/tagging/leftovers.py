"""After writing: does a tagged word still stand where nothing was drawn?

The written file is read again. What the model drew is left out, since comparing it with
private words and acting on the result would break the promise (THEORY §5); for the owner's
report `reappeared` does compare it, and nothing follows from that. In all the rest (kept
text, labels, keys, attributes, metadata) a tagged word means that the writer or a tagger
failed, and the file must not go out.

What counts as the same word is the tagger's own rule for further mentions (any case, any
accents, parts of a name). Dates, times, ages and amounts mean different things in different
places ("12" is an age here and a page there), so of these no more may stand in the file
than untagged text held before.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from dpredact import documents
from dpredact.documents import Document, Edit
from dpredact.errors import DocumentError, NotCovered
from dpredact.policy import Method, Policy
from dpredact.policy.entities import FAMILY_OF
from dpredact.tagging import identity
from dpredact.tagging.folding import fold
from dpredact.tagging.interface import Span

Words = tuple[str, str]  # entity, words


def search(
    document: Document,
    data: bytes,
    text: str,
    drawn: Sequence[tuple[int, int]],
    spans: Iterable[Span],
    policy: Policy,
    edits: Sequence[Edit] = (),
) -> None:
    """Raises NotCovered if `data`, the file made of `document`, must not go out.

    text, drawn: the new text as it was meant, and the stretches of it that were drawn.
    edits: what turned the document into it. Where the file reads otherwise than meant, drawn
    words cannot be told from kept ones by place. Then a copy is searched that has a word
    nobody wrote in place of each drawn passage, so nothing drawn decides about the release.
    """
    private, kept = _by_method(document, spans, policy)
    try:
        again = documents.read(data, document.output_name)
        rest = documents.undrawn_at(again, text, drawn)
        if rest is None:
            rest = documents.undrawn(again, [text[a:b] for a, b in drawn])  # they must stand there
            if drawn:
                copy, passages = _copy(document, edits, text, drawn)
                rest = documents.undrawn(documents.read(copy, document.output_name), passages)
    except DocumentError as error:
        raise NotCovered(
            f"the written file cannot be read again: {error.message}",
            next_step="report this as a fault of the program",
            place=document.name,
        ) from None
    expected = "\n".join([*_outside(text, drawn), document.unblocked()])
    left = standing(rest, private, kept, expected)
    if left:
        raise NotCovered(
            f"after writing, tagged words still stood in text that was kept ({', '.join(left)})",
            next_step="see where with `dpredact tags`; correct the spans, or leave the file out",
            place=document.name,
        )


def _copy(
    document: Document, edits: Sequence[Edit], text: str, drawn: Sequence[tuple[int, int]]
) -> tuple[bytes, list[str]]:
    """The file with a neutral word in place of each drawn passage, and those words."""
    word = "Qzyxo"
    while word in document.everything():
        word += "qzyxo"
    starts = {start for start, end in drawn if start < end}
    shift, neutral, passages = 0, [], []
    for edit in edits:
        if edit.start + shift in starts:
            neutral.append(replace(edit, text=word))
            passages.append(word)
        else:
            neutral.append(edit)
        shift += len(edit.text) - (edit.end - edit.start)
    return document.render(neutral), passages


def standing(rest: str, private: Sequence[Words], kept: Sequence[str], expected: str) -> list[str]:
    """Entities of which a private word stands in `rest`, sorted.

    kept: words of `keep` groups, in which a private word may be a part. expected: the text
    outside drawn stretches as it was meant to be written.
    """
    found = _mentions(private, rest)
    if found:
        found -= _mentions(private, "\n".join(kept))
    if loose := [(e, w) for e, w in private if FAMILY_OF[e] not in identity._REPEATED]:
        found |= _counts(loose, rest) - _counts(loose, expected)
    return sorted({entity for entity, _ in found})


def reappeared(passages: Iterable[str], private: Sequence[Words]) -> list[Words]:
    """Which private words the model wrote, for the owner's report only. PRIVATE."""
    drawn = "\n".join(passages)
    return sorted(set(_mentions(private, drawn)) | set(_counts(private, drawn)))


def _by_method(
    document: Document, spans: Iterable[Span], policy: Policy
) -> tuple[list[Words], list[str]]:
    """The words that are protected, each once, and those that the policy keeps."""
    private: dict[Words, None] = {}
    kept = []
    for span in spans:
        group = policy.group_of(span.entity)
        words = document.text[span.start : span.end]
        if group is None or policy.groups[group].method is Method.KEEP:
            kept.append(words)
        else:
            private[span.entity, words] = None
    return list(private), kept


def _mentions(private: Sequence[Words], text: str) -> Counter[Words]:
    """(entity, form) of every further mention of a private word in `text`, by the tagger's rule."""
    head, spans, at = [], [], 0
    for entity, words in private:
        plain = fold(words).text.strip()
        if plain:
            head.append(plain)
            spans.append(Span(at, at + len(plain), entity))
            at += len(plain) + 1
    if not spans:
        return Counter()
    whole = "\n".join([*head, "", fold(text).text])
    return Counter(
        (span.entity, identity.flat(whole[span.start : span.end]))
        for span in identity.mentions(whole, spans)
        if span.start > at
    )


def _counts(private: Sequence[Words], text: str) -> Counter[Words]:
    """How often each value stands in `text` as it is, whole words only."""
    folded = fold(text).text
    found: Counter[Words] = Counter()
    for entity, words in private:
        plain = fold(words).text.strip()
        pieces = plain.split()
        if not pieces or pieces[0] not in folded:
            continue
        pattern = r"\s+".join(map(re.escape, pieces))
        if hits := re.findall(rf"(?<!\w){pattern}(?!\w)", folded):
            found[entity, plain] = len(hits)
    return found


def _outside(text: str, drawn: Sequence[tuple[int, int]]) -> Iterable[str]:
    at = 0
    for start, end in drawn:
        yield text[at:start]
        at = end
    yield text[at:]
