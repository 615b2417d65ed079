"""Many taggers' findings on one text, made into disjoint spans.

Order of the steps, each a function of its own: snap to words, drop what is no such thing
(`vetoes`), split names at "and", lay overlaps flat (longest wins), join the parts of one
name, number the identities, find every further mention.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from dpredact.tagging import identity, lexicon
from dpredact.tagging.interface import Span

# Entities whose first or last character may be a mark that belongs to them.
_OPEN = {"PHONE": "+(", "SECRET": "-", "USERNAME": "_", "MONEY": "$€£¥₹"}
_CLOSE = {"SECRET": "-=+/", "URL": "/", "USERNAME": "_", "MONEY": "$€£¥₹", "QUANTITY": "%"}
_LETTER = re.compile(r"[^\W\d_]")
_AND = re.compile(r"(?:,? (?:and|&|or|y|e|et|und|og|och) |, ?| / | vs?\.? |['’]s (?=[^\W\d_a-zß-öø-ÿ]))")
_TITLE = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Mx|Miss|Dr|Prof|Professor|Sir|Lady|Lord|Dame|Judge|Justice|Rev|Fr|Sgt|Lt|Capt|Col|Gen|"
    r"Herr|Herrn|Frau|Hr|Fru|Frk|hr|fru|M|MM|Mme|Mlle|Me|Sr|Sra|Srta|Don|Doña|D|Dña|Dra|Señora?|Monsieur|Madame|Maître)\b\.?ª? )+$"
)
_NAME_GAP = re.compile(r" |-| (?:de|del|de la|de los|da|dos|di|du|van|van der|van den|von|von der|zu|bin|ibn|al|el|la|le|ter|ten|y) ")
_INITIAL = re.compile(r"\b[^\W\d_]$")
_TEXTUAL = frozenset({"PERSON", "LOCATION", "ORG", "ADDRESS"})
# Phrases, not names or numbers.
_PHRASES = frozenset({"DEMOGRAPHIC", "PROFESSION", "HEALTH", "QUANTITY", "MONEY", "MISC", "LOCATION", "ORG"})
# In these a bracket or quotation that opens inside also closes inside ("liras (TRL)",
# "Court of Appeal (Oberlandesgericht)"): the one mark of punctuation a span may end in.
_ENCLOSING = _TEXTUAL | _PHRASES
_PARTNER = {")": "(", "]": "[", "”": "“", "»": "«"}


_TIES = {"PERSON": "-‑'’", "ORG": "-‑", "LOCATION": "-‑", "DEMOGRAPHIC": "-‑"}


def snap(text: str, span: Span) -> Span | None:
    """`span` moved to word borders and freed of white space and punctuation at its ends.

    A name also takes in what a hyphen ties to it. None if nothing is left.
    """
    start, end, entity = span.start, span.end, span.entity
    start, end = _trim(text, start, end, entity)
    if start >= end:
        return None
    if entity not in ("SECRET", "URL"):
        start, end = _grow(text, start, end, _TIES.get(entity, ""))
        start, end = _trim(text, start, end, entity)
    if entity == "PERSON" and text[start:end].endswith(("'s", "’s")) and end - start > 2:
        end -= 2
    return replace(span, start=start, end=end) if start < end else None


def _trim(text: str, start: int, end: int, entity: str) -> tuple[int, int]:
    opening, closing = _OPEN.get(entity, ""), _CLOSE.get(entity, "")
    while start < end and not (text[start].isalnum() or text[start] in opening):
        start += 1
    while start < end and not (text[end - 1].isalnum() or text[end - 1] in closing):
        if entity in _ENCLOSING and opened(text, start, end - 1).endswith(_PARTNER.get(text[end - 1], "-")):
            break
        end -= 1
    if start < end and text[start] == "(" and ")" not in text[start:end]:
        start += 1
    return start, end


def opened(text: str, start: int, end: int) -> str:
    """The brackets and quotation marks that text[start:end] opens and does not close, in order."""
    left = ""
    for c in text[start:end]:
        if c in _PARTNER.values():
            left += c
        elif c in _PARTNER and left.endswith(_PARTNER[c]):
            left = left[:-1]
    return left


def closing(text: str, span: Span) -> Span:
    """`span` with the marks right behind it that close what was opened inside."""
    end = span.end
    if span.entity in _ENCLOSING:
        left = opened(text, span.start, end)
        while left and _PARTNER.get(text[end : end + 1]) == left[-1]:
            end, left = end + 1, left[:-1]
    return replace(span, end=end) if end > span.end else span


def _grow(text: str, start: int, end: int, ties: str) -> tuple[int, int]:
    while start:
        if _inside(text, start):
            start -= 1
        elif _tied(text, start - 1, ties):
            start -= 2
        else:
            break
    while end < len(text):
        if _inside(text, end):
            end += 1
        elif _tied(text, end, ties):
            end += 2
        else:
            break
    return start, end


def _inside(text: str, border: int) -> bool:
    return text[border - 1].isalnum() and text[border].isalnum()


def _tied(text: str, at: int, ties: str) -> bool:
    """Is text[at] a mark between two letters, the second of which starts or goes on a name?"""
    if not ties or not 0 < at < len(text) - 1 or text[at] not in ties:
        return False
    left, right = text[at - 1], text[at + 1]
    if text[at] in "'’":  # O'Brien is one name; the possessive of Brien is not
        return left.isalpha() and right.isalpha() and not re.match(r"s\b", text[at + 1 : at + 3])
    return left.isalpha() and right.isalpha() and right.isupper() == left_capital(text, at)


def left_capital(text: str, at: int) -> bool:
    """Does the word that ends at `at` start with a capital?"""
    while at and text[at - 1].isalpha():
        at -= 1
    return text[at].isupper()


def split_names(text: str, span: Span) -> Iterator[Span]:
    """Two names joined by "and" or a comma are two spans; so are names on separate lines."""
    if span.entity != "PERSON" or any(s.startswith("lists:") for s in span.sources):
        yield span
        return
    for line in re.finditer(r"[^\n]+", text[span.start : span.end]):
        low, high = span.start + line.start(), span.start + line.end()
        start = low
        for mark in _AND.finditer(text, low, high):
            yield from _piece(text, span, start, mark.start())
            start = mark.end()
        yield from _piece(text, span, start, high)


def _piece(text: str, span: Span, start: int, end: int) -> Iterator[Span]:
    piece = snap(text, replace(span, start=start, end=end)) if start < end else None
    if piece and _LETTER.search(text, piece.start, piece.end):
        yield piece


def with_title(text: str, span: Span) -> Span:
    """A name takes in the titles in front of it."""
    if span.entity == "PERSON" and (m := _TITLE.search(text, max(0, span.start - 30), span.start)):
        return replace(span, start=m.start())
    return span


_PARTICLES = frozenset("de del la las los da das dos di du des van der den von zu zum zur bin ibn al el le ter ten y af".split())


_IN_FRONT = re.compile(r"((?:[^\W\d_]+-)?[a-zß-öø-ÿ]{3,}) (?=\S)")
_ARTICLE = re.compile(r"(?:[Tt]he|[Aa]n?) (?=\S)")


def bare(text: str, span: Span) -> Span:
    """A name without the article in front of it, or the common words in lower case at its ends.

    "the Kennedy Space Center", "magician David Gish": what goes tells nothing, and the
    sentence reads on.
    """
    words = text[span.start : span.end]
    if span.entity in ("ORG", "LOCATION", "DATE") and (m := _ARTICLE.match(words)):
        return replace(span, start=span.start + m.end())
    if span.entity != "PERSON" or not any(w[0].isupper() for w in words.split()):
        return span
    start, end = span.start, span.end
    while (m := _IN_FRONT.match(text, start, end)) and _beside(m[1]):
        start = m.end()
    while (m := re.search(r"(?<=\S) ([a-zß-öø-ÿ]{2,})$", text[start:end])) and _beside(m[1]):
        end -= len(m[0])
    return replace(span, start=start, end=end)


def _beside(word: str) -> bool:
    """Is this a word that stands beside names and in none? "Sarah brown" has a surname."""
    plain = lexicon.plain(word)
    named = plain in _PARTICLES or plain in lexicon.first_names() or plain in lexicon.surnames()
    return identity.affiliation(word) or (word.islower() and lexicon.is_common(plain) and not named)


_CALL = re.compile(
    r"(?:Ring|Call|Phone|Ask|Tell|Email|Contact|Meet|Thank|Thanks|Dear|Hello|Hi|Hey|Hallo|Hola|Bonjour|Please|"
    r"See|Visit|Book|Text|Message|Remind|Cc|CC|Attn|To|From|By|Signed|Regards|Sincerely|Cheers)\b[,:]?\s+",
    re.IGNORECASE,
)


def without_call(text: str, span: Span) -> Span:
    """A name without the word of address in front of it that a finder took in ("Ring Perrin")."""
    if span.entity == "PERSON" and (m := _CALL.match(text, span.start, span.end)) and m.end() < span.end:
        return replace(span, start=m.end())
    return span


def rule_based(span: Span) -> bool:
    return any(s.startswith(("patterns:", "lists:")) for s in span.sources)


def _rank(span: Span) -> tuple[bool, int, float]:
    """Owner's lists and checked patterns first, then the longest, then the surest."""
    sure = any(s.startswith("lists:") for s in span.sources) or (
        rule_based(span) and span.score >= 0.9 and span.entity not in _TEXTUAL
    )
    return sure, span.end - span.start, span.score


def flatten(text: str, spans: Iterable[Span]) -> list[Span]:
    """Disjoint spans that together cover every character that any span covers.

    The longest wins (numbers with a check win over longer guesses). Overlaps of one kind
    become one region; what is left over of a loser beside a winner of another kind stays a
    span if words are left in it. Sources of what agrees are joined.
    """
    out: list[Span] = []
    for heap in _heaps(spans):
        kept: list[Span] = []
        for span in sorted(heap, key=_rank, reverse=True):
            kept = _add(text, kept, span)
        out += sorted(kept)
    return out


def _heaps(spans: Iterable[Span]) -> Iterator[list[Span]]:
    """`spans` in groups that have no overlap with each other, in order."""
    heap: list[Span] = []
    end = -1
    for span in sorted(set(spans)):
        if heap and span.start >= end:
            yield heap
            heap = []
        heap.append(span)
        end = max(end, span.end) if len(heap) > 1 else span.end
    if heap:
        yield heap


def _add(text: str, kept: list[Span], span: Span) -> list[Span]:
    over = [k for k in kept if k.start < span.end and span.start < k.end]
    if not over:
        return [*kept, span]
    same = [k for k in over if k.entity == span.entity]
    if same:
        whole = span
        for k in same:
            whole = union(whole, k)
        others = [k for k in over if k.entity != span.entity]
        rest = [k for k in kept if k not in same]
        if not any(k.start < whole.end and whole.start < k.end for k in rest):
            return [*rest, whole]
        if not others:
            return _add(text, [k for k in kept if k not in same], whole)
    out = list(kept)
    for low, high in _gaps(span.start, span.end, over):
        piece = snap_inside(text, replace(span, start=low, end=high))
        if piece and piece.entity in _TEXTUAL | _PHRASES and _left_over(text[piece.start : piece.end]):
            out.append(piece)
    for k in over:
        if span.start <= k.start and k.end <= span.end or k.start <= span.start and span.end <= k.end:
            out[out.index(k)] = replace(k, sources=_joined(k, span))
    return out


def _left_over(words: str) -> bool:
    """Can what sticks out beside a longer finding tell anything? "the" and "of" cannot."""
    return _LETTER.search(words) is not None and not (words.islower() and lexicon.ordinary(words))


def _gaps(start: int, end: int, over: list[Span]) -> Iterator[tuple[int, int]]:
    """Parts of [start, end) that no span of `over` covers."""
    for k in sorted(over):
        if start < k.start:
            yield start, min(end, k.start)
        start = max(start, k.end)
    if start < end:
        yield start, end


def snap_inside(text: str, span: Span) -> Span | None:
    start, end = _trim(text, span.start, span.end, span.entity)
    return replace(span, start=start, end=end) if start < end else None


def union(a: Span, b: Span) -> Span:
    """One region for two; the entity of the longer."""
    longer = max(a, b, key=_rank)
    return replace(
        longer,
        start=min(a.start, b.start),
        end=max(a.end, b.end),
        score=max(a.score, b.score),
        sources=_joined(a, b),
    )


def _joined(a: Span, b: Span) -> tuple[str, ...]:
    return tuple(sorted({*a.sources, *b.sources}))


def _surname_of(text: str, before: Span, span: Span) -> bool:
    """Is `span`, taken for a place or a firm, one unknown word right behind a person's name?"""
    words = text[span.start : span.end]
    return (
        before.entity == "PERSON"
        and span.entity in ("LOCATION", "ORG")
        and text[before.end : span.start] == " "
        and words.isalpha()
        and words[0].isupper()
        and not rule_based(span)
        and lexicon.plain(words) not in lexicon.places()
        and not lexicon.ordinary(words)
    )


def _turned(text: str, before: Span, span: Span) -> bool:
    """Is this a surname and, behind a comma, the given name: "ELPHBERG, Rudolf"?

    In a running list ("Jones, Taylor and Graham") surnames stand in ordinary letters and the
    line goes on; those stay two.
    """
    surname, given = text[before.start : before.end], text[span.start : span.end]
    if text[before.end : span.start] != ", " or " " in surname or not surname.replace("-", "").isalpha():
        return False
    if lexicon.plain(given.split()[0].rstrip(".")) not in lexicon.first_names() or len(given.split()) > 3:
        return False
    shouted = len(surname) > 2 and surname.isupper() and not given.isupper()
    ends = text[span.end : span.end + 1] in ("", "\n", "\t", ";", "|", ")")
    known = lexicon.plain(surname)
    return shouted or (ends and known in lexicon.surnames() and known not in lexicon.first_names())


def join_names(text: str, spans: list[Span]) -> list[Span]:
    """Parts of one name that stand next to each other become one span. Sorted, disjoint."""
    out: list[Span] = []
    for span in spans:
        if out and _surname_of(text, out[-1], span):
            out[-1] = replace(union(out[-1], span), entity="PERSON")
            continue
        if out and out[-1].entity == span.entity == "PERSON":
            if _turned(text, out[-1], span):
                out[-1] = union(out[-1], span)
                continue
            if _NAME_GAP.fullmatch(text, out[-1].end, span.start) or (
                text[out[-1].end : span.start] in (".", ". ") and _INITIAL.search(text[out[-1].start : out[-1].end])
            ):
                out[-1] = union(out[-1], span)
                continue
        out.append(span)
    return out
