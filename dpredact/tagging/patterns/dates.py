"""Dates, times of day and ages, in English, Spanish, French, German and Danish.

A weekday, a month that is also a name (May), "noon" or "yesterday" alone say nothing that
identifies anybody and are left; a date has a number, or a month with a day or a year.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from dpredact.tagging.patterns.anchors import DIGITS, LONG, YEAR, anchored
from dpredact.tagging.patterns.interface import Hit, Reading, hits

_MONTHS = (
    r"(?:jan(?:uary|uar|vier)?|feb(?:ruary|ruar)?|mar(?:ch|s)?|apr(?:il)?|may|mai|june?|juni|july?|juli|"
    r"aug(?:ust)?|sept?(?:ember)?|o[ck]t(?:ober|obre)?|nov(?:ember|embre)?|de[cz](?:ember)?|"
    r"enero|febrero|marzo|abril|mayo|junio|julio|agosto|sep?tiembre|octubre|noviembre|diciembre|"
    r"janvier|f[ée]vrier|avril|juin|juillet|ao[ûu]t|septembre|d[ée]cembre|"
    r"januar|februar|märz|april|oktober|dezember|marts|maj)\b\.?"
)
_WEEKDAY = (
    r"(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?|lunes|martes|mi[ée]rcoles|jueves|"
    r"viernes|s[áa]bado|domingo|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche|"
    r"(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch|(?:man|tirs|ons|tors|fre|lør|søn)dag)"
)
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
_YEAR = r"(?:1[5-9]|20|21)\d\d"
_OF = r"(?:of |de |del |d')?"
_NTH = r"(?:st|nd|rd|th|er|º|\.)?"
_S = r"[ \n-]"
_WORDS = anchored(
    rf"(?i)(?<![\w/.-])(?:{_WEEKDAY},? (?:the |den |el |le )?)?(?:"
    rf"{_DAY}{_NTH}(?:(?: ?[-–] ?| (?:and|to|y|und|et|og|bis|al|au|til) ){_DAY}{_NTH})?(?: day)?{_S}{_OF}{_MONTHS}(?:,?{_S}?{_OF}(?:{_YEAR}\b|'\d\d\b))?"
    rf"|{_MONTHS} {_DAY}(?:st|nd|rd|th)?\b(?! ?(?:%|{_MONTHS}))(?:(?: ?[-–] ?| and | to ){_DAY}(?:st|nd|rd|th)?\b)?(?:,? ?{_YEAR}\b)?"
    rf"|{_MONTHS},?{_S}{_OF}{_YEAR}\b"
    rf")(?![\w/])",
    "jan feb fev mar mai maj may apr abr avr jun juin jul juil aug ago aou sep set okt oct nov dec dez dic ene",
)
_NUMBERS = re.compile(
    rf"(?<![\w/.,+-])(?:(?P<y>{_YEAR})(?P<m1>[-/.])(?P<b>\d{{1,2}})(?P=m1)(?P<c>\d{{1,2}})"
    rf"|(?P<d>\d{{1,2}})(?P<m2>[-/.])(?P<e>\d{{1,2}})(?P=m2)(?P<f>{_YEAR}|\d\d))"
    rf"(?:[T ]\d{{2}}:\d{{2}}(?::\d{{2}}(?:\.\d+)?)?(?:Z|[+-]\d{{2}}:?\d{{2}})?)?(?![\w/-]|[.,]\d)"
)
_COMPACT = re.compile(r"(?i)\b(?:dob|d\.o\.b\.|born|birth ?date|date of birth|fecha de nacimiento)\.? ?[:=]? ?(?P<x>\d{6}|\d{8})\b")
_MONTH_YEAR = re.compile(rf"(?<![\w/.-])(?P<x>(?:0[1-9]|1[0-2])/{_YEAR})(?![\w/-]|\.\d)")
_YEAR_ALONE = re.compile(
    rf"(?i)(?<![\w/.-])(?:in|since|until|till|from|by|during|between|and|to|around|circa|c\.|of|year|years|class of|born|b\.|died|d\.|"
    rf"early|late|mid|summer|autumn|fall|winter|spring|before|after|through|late-|mid-|en|desde|año|hasta|depuis|année|jahr|seit|siden|i|år|im)"
    rf"[ \n](?:the )?(?P<x>{_YEAR}s?(?: ?(?:[-–]|/) ?(?:{_YEAR}|\d\d))?)(?![\w%°]|[.,]?\d| ?(?:people|times|euros?|dollars|pounds|km|kg|m\b|EUR|USD))"
)
_YEAR_MARKED = re.compile(rf"(?<=[(\[])(?P<x>{_YEAR}(?: ?[-–] ?(?:{_YEAR}|present|heute))?)(?=[)\],;])|(?<![\w/.-])(?P<z>{_YEAR} ?[-–] ?(?:{_YEAR}|present|Present|now))(?![\w-])")
_NUMBER_WORD = r"(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|eighteen|twenty|thirty|forty|fifty|sixty)"
_CLOCK = re.compile(
    r"(?i)(?<![\w.:/,-])(?:(?:[01]?\d|2[0-3])(?::[0-5]\d){1,2}(?:\.\d{1,3})? ?(?:[ap]\.?m\b\.?|uhr|hrs?\b|h\b|Z|UTC|GMT|[CE]E?S?T\b)?"
    r"|(?:0?\d|1[0-2])(?:[.:][0-5]\d)? ?[ap]\.?m\b\.?|(?:[01]?\d|2[0-3]) ?(?:h ?[0-5]\d|uhr(?: [0-5]\d)?|o'clock|o’clock)"
    r"|(?:[01]\d|2[0-3])[0-5]\d ?(?:hrs|hours)"
    r"|(?:kl\.?|klokken) ?(?:[01]?\d|2[0-3])(?:[.:][0-5]\d)?)(?![\w:]|[.,]\d)"
)
_UNITS = "one two three four five six seven eight nine ten eleven twelve"
_CLOCK_WORDS = anchored(rf"(?i)\b{_NUMBER_WORD} o['’]clock\b", _UNITS)
_N = r"(?:1[01]\d|[1-9]?\d)(?:[.,]5)?"
_AGE: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(?i)(?<![\w.-])(?:1[01]\d|[1-9]?\d)(?: and a half| ?½)?[- ]?(?:years?|yrs?|months?|weeks?|days?)[- ](?:old|of age)\b"), "years old"),
    (re.compile(r"(?i)(?<![\w.-])(?:1[01]\d|[1-9]?\d) ?(?:y/?o|yo|a[ñn]os(?: de edad)?|ans|jahre(?: alt)?|år(?: gammel)?)\b(?! (?:de (?:prisi|experien|cárcel)|de prison|haft|erfahrung|erfaring|fængsel))"), "years, in the language's own words"),
    (re.compile(r"(?i)(?<![\w.-])(?:1[01]\d|[1-9]?\d)-?(?:jährig|årig)(?:e[rnms]?|e)?\b"), "years, in one word"),
    (re.compile(rf"(?i)\b(?:age|aged|edad|âge|alter|alder|im alter von|i en alder af|à l'âge de|turn(?:ed|s|ing)?|when (?:he|she|i|they|you) (?:was|were|turned|is|are)|at the age)(?: (?:is|was|of|de))? ?[:=]? ?(?P<x>{_N}(?: (?:a[ñn]os|meses|d[ií]as|ans|mois|jahre|monate|år|måneder|years|months)\b)?)(?![\w%/-]|[.,]\d)(?! (?:percent|points|degrees))"), "age after a label"),
)  # fmt: skip

_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_AGE_WORDS = anchored(
    rf"(?i)\b(?:(?:{_TENS.replace(' ', '|')})(?:[- ](?:{_UNITS.replace(' ', '|')}))?|(?:thir|four|fif|six|seven|eigh|nine)teen|(?:{_UNITS.replace(' ', '|')}))"
    r"[- ](?:years?|months?|weeks?|days?)[- ](?:old|of age)\b",
    f"{_TENS} {_UNITS} thirteen fourteen fifteen sixteen seventeen eighteen nineteen",
)
_DECADE = anchored(
    r"(?i)\bin (?:his|her|their|my) (?:(?:early|mid|late)[- ])?(?P<x>(?:twen|thir|for|fif|six|seven|eigh|nine)ties|\d0s)\b",
    "in_his in_her in_their in_my",
)

_PERSON_IS = re.compile(
    r"(?i)\b(?:he|she|i|they)(?: is| was| am| are| were|['’]s|['’]m)(?: now| only| just| about| already)? (?P<x>(?:1[01]\d|[1-9]\d?))(?=[.;!?)]?(?:$|[\n ](?!o'|am\b|pm\b|%|per|of|k[gm]\b|cm\b|feet|foot|inch|miles?|minutes|hours|days|weeks|months|times|points|pages))|,(?! ?\d))"
)


def find(reading: Reading) -> Iterator[Hit]:
    yield from hits(reading.near_heads(_WORDS, 40, 40), "DATE", 0.9, "date with a month's name")
    for match in reading.near(DIGITS, _NUMBERS):
        if _calendar(match):
            yield Hit(match.start(), match.end(), "DATE", 0.85, "date in numbers")
    yield from hits(reading.near(LONG, _COMPACT), "DATE", 0.85, "date of birth after a label")
    yield from hits(reading.near(YEAR, _MONTH_YEAR), "DATE", 0.7, "month and year")
    yield from hits(reading.near(YEAR, _YEAR_ALONE), "DATE", 0.65, "year after a word of time")
    for match in reading.near(YEAR, _YEAR_MARKED):
        group = "x" if match["x"] else "z"
        yield Hit(*match.span(group), "DATE", 0.65, "year in brackets, or a span of years")
    for hit in hits(chain(reading.near(DIGITS, _CLOCK), reading.anchored(_CLOCK_WORDS)), "TIME", 0.8, "time of day"):
        if not reading.shielded(hit.start, hit.end):
            yield hit
    for pattern, rule in _AGE:
        yield from hits(reading.near(DIGITS, pattern), "AGE", 0.85, rule)
    yield from hits(reading.near(DIGITS, _PERSON_IS), "AGE", 0.6, "number that somebody is")
    yield from hits(reading.anchored(_AGE_WORDS), "AGE", 0.85, "years old, in words")
    yield from hits(reading.anchored(_DECADE), "AGE", 0.85, "decade of life")


def _calendar(match: re.Match[str]) -> bool:
    """Do two of the numbers make a day and a month, in either order?"""
    if match["y"]:
        return 1 <= int(match["b"]) <= 12 and 1 <= int(match["c"]) <= 31
    day, month = int(match["d"]), int(match["e"])
    if match["m2"] == "." and len(match["f"]) == 2 and not (match["d"][0] == "0" or day > 12):
        # 4.2.10 may be a version or a section; a year of two digits needs a clear day.
        return len(match["d"]) == 2 and 1 <= month <= 12
    return (1 <= day <= 31 and 1 <= month <= 12) or (1 <= month <= 31 and 1 <= day <= 12)
