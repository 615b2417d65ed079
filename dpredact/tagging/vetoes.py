"""What a tagger may not call by that name: findings that their own words contradict.

Only guesses of models are looked at; what a rule or the owner's list found stays.
"""

from __future__ import annotations

import re

from dpredact.tagging import identity, lexicon
from dpredact.tagging.interface import Span
from dpredact.tagging.patterns.tokens import VERBS

_NUMBER_WORD = re.compile(
    r"(?i)\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thir\w+|four\w+|fif\w+|six\w+|"
    r"seven\w+|eigh\w+|nine\w+|twent\w+|hundred|thousand|several|half|first|second|third|fourth|century|decade\w*)\b"
)
# An amount has a number or a currency; "for life" is a measure of a sentence. Of 255 amounts in
# the training documents all have one of these.
_AMOUNT = re.compile(
    _NUMBER_WORD.pattern + r"|\d|[$€£¥₤₺]|\b(?:life|death|capital|dozens?|half|halves|quarters?|double|triple|twice|once|both|all)\b|(?-i:\b[A-Z]{3}\b)"
)
_MONTH = re.compile(
    r"(?i)\b(?:january|february|july|september|october|november|december|jan|feb|aug|sept?|oct|nov|dec)\b"
)
_CLOCK = re.compile(
    r"(?i)\d[:.h]\d\d|\d ?[ap]\.?m\b|\bhours?\b|\bminutes?\b|\bseconds?\b|o['’]clock|\buhr\b|\d ?h(?:rs?)?\b|\bkl\."
)
_NO_DATE = re.compile(r"[°#@$€£%]|\bp{1,2}\.\s*\d")
_NUMBERS = frozenset(
    {"PHONE", "CREDIT_CARD", "IBAN", "US_SSN", "NATIONAL_ID", "TAX_ID", "PASSPORT", "LICENSE", "ACCOUNT", "ID", "PLATE", "CASE_NUMBER"}
)  # fmt: skip
_REFERENCE = re.compile(r"\d[^\d,]*[^\W\d_]|[^\W\d_].*\d|\d/\d")  # with a letter or a stroke
_REFERRING = re.compile(
    r"(?i)\b(?:nos?|nr|numbers?|files?|cases?|applications?|reference|ref|docket|registers?|registered|decisions?|judgments?|"
    r"decree|protocol|record|folio|invoice|contract|policy|account|certificate|licen[cs]e|permit|claim|petition|complaint|"
    r"proceedings|warrant|report(?:s|ed)?)\b\.?[^.;\n]{0,40}$"
)
_SUBSECTION = re.compile(r"\d\([a-z]\)|§")
_DETERMINED = re.compile(
    r"(?i)(?:\b(?:the|a|an|this|that|these|those|each|every|some|any|no|my|your|his|her|its|our|their|"
    r"one|two|three|four|five|six|seven|eight|nine|ten|\d+|new|old|another|both)) $"
)
_STREET_WORD = re.compile(r"[^\W\d_]{3,}")
_BOXED = re.compile(r"(?:box|unit|room|floor|lot|block|no|number|page|file|batch|bin|seat|row|table|p{1,2})\.? ?\d+[a-z]?")
_NO_NAME = VERBS - {"will", "can"}
_STARTS = re.compile(r"(?:^|[\n.!?:;\t\"“(])\s*$")
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
        if span.entity == "ID" and span.sources == ("trained",):
            if _SUBSECTION.search(words) or text[span.end : span.end + 1] == "(":
                return "a section of a law"
            if not (_REFERENCE.search(words) and _REFERRING.search(text[max(0, span.start - 60) : span.start])):
                return "a number that nothing calls somebody's"
    if span.entity == "ADDRESS" and (words.isdigit() or _BOXED.fullmatch(words)):
        return "a number alone is no address"
    if span.entity == "LOCATION" and words.islower() and (len(words) <= 3 or lexicon.ordinary(words)):
        return "ordinary words in lower case"
    if span.entity == "PERSON":
        return _person(text, span, words)
    if span.entity in ("ORG", "LOCATION") and not any(c.isalpha() for c in words):
        return "no letters"
    if span.entity == "ORG":
        return _organisation(text, span, words)
    if span.entity in ("QUANTITY", "MONEY") and not _AMOUNT.search(words):
        return "no number in it"
    return None


def lonely(text: str, spans: list[Span]) -> list[Span]:
    """`spans` without house numbers and postcodes of models that stand by no address.

    "B43" is an address beside a street or a town, and a number of anything elsewhere.
    """
    places = [(s.start, s.end) for s in spans if s.entity in ("ADDRESS", "LOCATION")]

    def stays(span: Span) -> bool:
        if span.entity != "ADDRESS" or _STREET_WORD.search(text, span.start, span.end):
            return True
        if span.sources and span.sources[0].startswith(("patterns:", "lists:")):
            return True
        return any(0 <= a - span.end <= 3 or 0 <= span.start - b <= 3 for a, b in places)

    return [s for s in spans if stays(s)]


_WEAK = frozenset({"ORG", "TIME"})
_VAGUE = re.compile(r"(?i)\d(?:st|nd|rd|th) (?:year|month|week|day)$|\b(?:decades?|century|centuries)$")


def unconfirmed(text: str, spans: list[Span]) -> list[Span]:
    """`spans` without what the small spaCy pipeline alone takes for an organisation, a time of day,
    or a date that names none (the 10th year).

    For use where the trained tagger read the same text. On its dev documents 60 of 394
    characters of such organisations were right, and 0 of 64 of such times; people and places
    are never dropped.
    """
    others = [s for s in spans if s.sources != ("spacy",)]

    def stays(span: Span) -> bool:
        vague = span.entity == "DATE" and _VAGUE.search(text[span.start : span.end])
        if span.sources != ("spacy",) or not (vague or span.entity in _WEAK):
            return True
        return any(o.start < span.end and span.start < o.end for o in others)

    return [s for s in spans if stays(s)]


def _time(text: str, span: Span, words: str, shielded: bool) -> str | None:
    if shielded or _NO_DATE.search(words):
        return "a number that is no date"
    if words.isdigit() and not (len(words) == 4 and 1500 <= int(words) <= 2199):
        return "a number that is no date"
    if span.entity == "TIME":
        return None if _CLOCK.search(words) else "no time of day or length of time"
    if any(c.isdigit() for c in words) or _NUMBER_WORD.search(words):
        return None
    if span.entity == "DATE" and _MONTH.search(words):
        return None
    return "no number in it"


# Not "river", "storm" or "mount": people are called so.
_THING = re.compile(r"(?:Space (?:Shuttle|Station)|Tropical (?:Storm|Cyclone)|Cyclone|Typhoon|HMS|USS) ")
_FIELD = re.compile(r"(?i)(?:^|\n)\W*(?:sex|gender|blood (?:group|type)|type|class|grade|category) ?: ?$")
_PLACE_IN_A_HOUSE = re.compile(r"(?i)(?:ward|bed|bay|room|unit|floor|desk|page|line|item)$")
_FIELD_NUMBER = re.compile(r": ?\d+[ \t]*(?:\n|$)")


def _person(text: str, span: Span, words: str) -> str | None:
    if any(c.isdigit() for c in words):
        return "digits in a name"
    if identity.affiliation(words):
        return "what somebody is for or against"
    if len(words) == 1 and _FIELD.search(text[max(0, span.start - 24) : span.start]):
        return "one letter in a form's field"
    if _PLACE_IN_A_HOUSE.match(words) and _FIELD_NUMBER.match(text, span.end):
        return "the label of a number"
    if _THING.match(words):
        return "a ship, storm or place with a name"
    pieces = [lexicon.plain(w) for w in re.findall(r"[^\W\d_]+", words)]
    if all(w.islower() for w in re.findall(r"[^\W\d_]+", words)) and all(lexicon.is_common(p) for p in pieces):
        return "ordinary words"
    if len(pieces) == 1 and pieces[0] in _NO_NAME and _STARTS.search(text[max(0, span.start - 12) : span.start]):
        return "a verb at the start of a sentence"
    if _DETERMINED.search(text[max(0, span.start - 12) : span.start]) and len(pieces) == 1 and lexicon.is_common(pieces[0]):
        return "a thing with an article"
    return None


# Capitals that stand for a thing, a place in a house or a form's field, not for an organisation.
_GENERIC = frozenset(
    "ssn dob id gp a&e icu er itu mri ct ecg ekg bp hr cv pdf ceo cfo cto vat pin sms mms url api faq ref tel fax "
    "mob no nr am pm ok tbc tba asap eta fyi nb ps cc bcc re attn usb gps dna hiv copd iban bic swift isbn csv json "
    "html xml sql ip mac os pc tv dvd cd kg km mg ml usd eur gbp unit ward note name address email phone date time age sex".split()
)


def _organisation(text: str, span: Span, words: str) -> str | None:
    if not any(c.isupper() for c in words):
        return "no capital"
    if re.search(r",\S", words):
        return "a row of cells"
    if sum(c.isdigit() for c in words) > 4 and lexicon.ordinary(words):
        return "a number with a word"
    if words.lower().strip(".:") in _GENERIC:
        return "a common abbreviation"
    if re.search(r"\d", words) and all(w.lower() in _GENERIC for w in re.findall(r"[^\W\d_]+", words)):
        return "a form's label and a number"
    if _product(text, span, words):
        return "a brand that describes a thing"
    return None


def _product(text: str, span: Span, words: str) -> bool:
    """`two Apple chargers`: one word between a number or article and a common noun."""
    if " " in words or not _DETERMINED.search(text[max(0, span.start - 12) : span.start]):
        return False
    return _LOWER_NOUN.match(text, span.end) is not None and not words.isupper()
