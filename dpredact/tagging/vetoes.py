"""What a tagger may not call by that name: findings that their own words contradict.

Only guesses of models are looked at; what a rule or the owner's list found stays.
"""

from __future__ import annotations

import re

from dpredact.tagging import lexicon
from dpredact.tagging.interface import Span

_NUMBER_WORD = re.compile(
    r"(?i)\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thir\w+|four\w+|fif\w+|six\w+|"
    r"seven\w+|eigh\w+|nine\w+|twent\w+|hundred|thousand|several|half|first|second|third|fourth|century|decade\w*)\b"
)
_MONTH = re.compile(
    r"(?i)\b(?:january|february|july|september|october|november|december|jan|feb|aug|sept?|oct|nov|dec)\b"
)
_NO_DATE = re.compile(r"[°#@$€£%]|\bp{1,2}\.\s*\d")
_NUMBERS = frozenset(
    {"PHONE", "CREDIT_CARD", "IBAN", "US_SSN", "NATIONAL_ID", "TAX_ID", "PASSPORT", "LICENSE", "ACCOUNT", "ID", "PLATE", "CASE_NUMBER"}
)  # fmt: skip
_DETERMINED = re.compile(
    r"(?i)(?:\b(?:the|a|an|this|that|these|those|each|every|some|any|no|my|your|his|her|its|our|their|"
    r"one|two|three|four|five|six|seven|eight|nine|ten|\d+|new|old|another|both)) $"
)
_LOWER_NOUN = re.compile(r" [a-zß-öø-ÿ]{3,}")


def vetoed(text: str, span: Span, shielded: bool) -> str | None:
    """Why `span` cannot be what it is said to be; None if it can."""
    words = text[span.start : span.end]
    if not any(c.isalnum() for c in words):
        return "no letters or digits"
    if span.entity in ("DATE", "TIME", "AGE"):
        return _time(text, span, words, shielded)
    if span.entity in _NUMBERS or span.entity == "ADDRESS":
        if shielded:
            return "inside a UUID, digest or decimal"
        if span.entity in _NUMBERS and sum(c.isdigit() for c in words) < 3:
            return "a number of fewer than three digits"
    if span.entity == "ADDRESS" and words.isdigit():
        return "a number alone is no address"
    if span.entity == "PERSON":
        return _person(text, span, words)
    if span.entity in ("ORG", "LOCATION") and not any(c.isalpha() for c in words):
        return "no letters"
    if span.entity == "ORG" and _product(text, span, words):
        return "a brand that describes a thing"
    return None


def _time(text: str, span: Span, words: str, shielded: bool) -> str | None:
    if shielded or _NO_DATE.search(words):
        return "a number that is no date"
    if words.isdigit() and not (len(words) == 4 and 1500 <= int(words) <= 2199):
        return "a number that is no date"
    if any(c.isdigit() for c in words) or _NUMBER_WORD.search(words):
        return None
    if span.entity == "DATE" and _MONTH.search(words):
        return None
    return "no number in it"


def _person(text: str, span: Span, words: str) -> str | None:
    if any(c.isdigit() for c in words):
        return "digits in a name"
    pieces = [lexicon.plain(w) for w in re.findall(r"[^\W\d_]+", words)]
    if all(w.islower() for w in re.findall(r"[^\W\d_]+", words)) and all(lexicon.is_common(p) for p in pieces):
        return "ordinary words"
    if _DETERMINED.search(text[max(0, span.start - 12) : span.start]) and len(pieces) == 1 and lexicon.is_common(pieces[0]):
        return "a thing with an article"
    return None


def _product(text: str, span: Span, words: str) -> bool:
    """`two Apple chargers`: one word between a number or article and a common noun."""
    if " " in words or not _DETERMINED.search(text[max(0, span.start - 12) : span.start]):
        return False
    return _LOWER_NOUN.match(text, span.end) is not None and not words.isupper()
