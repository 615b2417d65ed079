"""Findings that are parts of one expression, made one span: what a masked text would show otherwise.

"12,355 liras (TRY - approximately 6,000 euros (EUR))" is one amount, "30 May, 10 July and 17
October 1997" one list with one year, "Turkish national" one description. Left apart, the
words and marks between the parts stay in the text, read badly and count as missed.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import replace

from dpredact.tagging import lexicon
from dpredact.tagging.interface import Span
from dpredact.tagging.merge import opened, union

_ROUGHLY = r"approximately|approx|about|around|roughly|nearly|some|equivalent|equal|worth|or|ca|i\.e|that|is|to|at|the|time"
_SAME_AMOUNT = re.compile(rf"(?:[\s.,;:=~≈()\[\]/–‑-]|\b(?:{_ROUGHLY})\b)+", re.IGNORECASE)
_SAME_YEAR = re.compile(r", (?:on )?(?:the )?|,? and (?:on )?| on |/| to | or ", re.IGNORECASE)
# "between 3 March 1993 and 4 December 1994" is one span of time.
_RANGES = {" and ": "between", " to ": "from", " until ": "from"}
_HAS_YEAR = re.compile(r"\b(?:1[5-9]|20|21)\d\d\b")
_ABBREVIATION = re.compile(r"(?:^|\W)(?:no|nos|nr|approx|v|vs|art|ca|c|p|pp|st|para|vol|ch|sec)$", re.IGNORECASE)
_BELONGS = re.compile(r" (?:nationals?|citizens?|nationality|citizenship|origin|descent|subjects?)(?!\w)")
_INITIALS = re.compile(r"(?:^|\W)[^\W\d_]\.[ -]?[^\W\d_]$")
_STOP_OF_INITIALS = re.compile(r"\.(?=[,;:)]|\s+[a-zß-öø-ÿ(])")
_STOP_OF_CLOCK = re.compile(r"\.(?!\w)")
_CLOCK_END = re.compile(r"(?i)[ap]\. ?m$")
_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_MONTHS_BEFORE = re.compile(rf"(?:\b(?:{_MONTHS})(?:, and |, | and | or | ))+$")
_MONTH_FIRST = re.compile(rf"(?:(?:and|or) )?(?:{_MONTHS})\b")
_ROUGHLY_BEFORE = re.compile(r"(?i)\b(?:approximately|approx\.|about|roughly|nearly|almost) $")
_NO_BEFORE = re.compile(r"(?i)\bnos?\. $")
_OF_TIME = re.compile(r"['’](?=\s+[a-zß-öø-ÿ])")
# Behind a name, in brackets: its short form (SAFER), or its form in another language.
_ALIAS = re.compile(r" \(((?:[^\W\d_]|[ .'’/&‑–-]){2,70})\)")
_TEXTUAL = frozenset({"ORG", "LOCATION", "MISC", "QUANTITY", "MONEY", "DEMOGRAPHIC"})


def whole(text: str, spans: Sequence[Span]) -> list[Span]:
    """Sorted, disjoint spans, the parts of one expression joined. Never uncovers anything."""
    joined: list[Span] = []
    for span in reversed(spans):  # from the end: the last date of a list has the year
        if joined and _one(text, span, joined[-1]):
            joined[-1] = union(span, joined[-1])
        else:
            joined.append(span)
    joined.reverse()
    out: list[Span] = []
    for place, span in enumerate(joined):
        if out and span.start < out[-1].end:  # inside brackets that the last one took in
            continue
        first = out[-1].end if out else 0
        out.append(_begun(text, _grown(text, span, joined[place + 1 :]), first))
    return out


def _one(text: str, before: Span, after: Span) -> bool:
    """Are these two findings parts of one expression?"""
    between = text[before.end : after.start]
    if len(between) > 40 or "\n" in between:
        return False
    if before.entity != after.entity:  # they may belong to groups of different methods
        return False
    if before.entity in ("MONEY", "QUANTITY"):
        bracket = any(c in "([" for c in between) or opened(text, before.start, before.end)
        return bool(bracket) and _SAME_AMOUNT.fullmatch(between) is not None
    if before.entity == "DATE":
        opening = _RANGES.get(between)
        words = text[max(0, before.start - len("between ")) : before.start + len("between ")].lower()
        if opening and re.search(rf"\b{opening} (?:the )?", words):
            return True
        # Without a year of its own, the first takes that of the last.
        return (
            _SAME_YEAR.fullmatch(between) is not None
            and not _HAS_YEAR.search(text, before.start, before.end)
            and _HAS_YEAR.search(text, after.start, after.end) is not None
        )
    if between == ". " and before.entity in _TEXTUAL:
        return _ABBREVIATION.search(text[max(0, before.end - 8) : before.end]) is not None
    return False


def _begun(text: str, span: Span, first: int) -> Span:
    """`span` with what in front of it belongs to the expression, not before `first`.

    "April, May and June 2004", "approximately EUR 300", "no. 128 of Kennedy Avenue".
    """
    words = text[span.start : span.end]
    pattern = None
    if span.entity == "DATE" and _MONTH_FIRST.match(words) and _HAS_YEAR.search(words):
        pattern = _MONTHS_BEFORE
    elif span.entity in ("MONEY", "QUANTITY"):
        pattern = _ROUGHLY_BEFORE
    elif span.entity in ("MISC", "LOCATION", "ADDRESS") and words[0].isdigit():
        pattern = _NO_BEFORE
    found = pattern.search(text, max(first, span.start - 60), span.start) if pattern else None
    return replace(span, start=found.start()) if found else span


def _grown(text: str, span: Span, later: Sequence[Span]) -> Span:
    """`span` with the word, mark or brackets right behind it that belong to it.

    later: the spans behind it. One of another kind is a border: taken in, its words would
    fall to this one's group, and a policy may keep that one.
    """
    pattern = None
    if span.entity == "DEMOGRAPHIC":
        pattern = _BELONGS
    elif span.entity == "PERSON" and _INITIALS.search(text[span.start : span.end]):
        pattern = _STOP_OF_INITIALS
    elif span.entity in ("DATE", "TIME") and _CLOCK_END.search(text[span.start : span.end]):
        pattern = _STOP_OF_CLOCK
    elif span.entity in ("DATE", "TIME") and text[span.end - 1] == "s":
        pattern = _OF_TIME
    elif span.entity == "ORG":
        pattern = _ALIAS
    found = pattern.match(text, span.end) if pattern else None
    if not found or (pattern is _ALIAS and not _alias(found[1])):
        return span
    inside = itertools.takewhile(lambda s: s.start < found.end(), later)
    if any(s.end > found.end() or s.entity != span.entity for s in inside):
        return span
    return replace(span, end=found.end())


def _alias(words: str) -> bool:
    """Is this a name's short form, or words of another language?"""
    pieces = re.findall(r"[^\W\d_]+", words)
    if len(pieces) == 1 and words.isupper():
        return True
    foreign = [w for w in pieces if not lexicon.is_common(lexicon.plain(w)) and not w.isupper()]
    return 2 * len(foreign) >= len(pieces)
