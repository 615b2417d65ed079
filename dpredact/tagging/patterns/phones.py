"""Telephone numbers: what phonenumbers finds valid in the policy's regions, and labelled ones."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dpredact.errors import PolicyError
from dpredact.tagging.patterns.anchors import LONG
from dpredact.tagging.patterns.interface import Hit, Reading

# A run of digits with what people write between them. Letters end it.
_CLUSTER = re.compile(
    r"(?<![\w.,/=-])(?:\+|\(|00)?\d(?:[ \u00a0]?[-./()–][ \u00a0]?\(?|[ \n]|\) ?)?(?:\d(?:[ \u00a0]?[-./()–][ \u00a0]?\(?|[ \n]|\) ?)?){4,18}\d"
    r"(?: ?(?:[xX]|[Ee]xt\.?|EXT\.?|[Ee]xtension|#|poste|Durchwahl|DW|lokal) ?\d{1,6})?(?![\w%]|[.,]\d)"
)
_LABEL = re.compile(
    r"(?i)\b(?:tel|telephone|phone|mobile|mob|cell|cellular|fax|whatsapp|call|ring|text|sms|dial|"
    r"t[ée]l[ée]phone|portable|tel[ée]fono|m[óo]vil|llame|llamar|telefon(?:nummer)?|handy|mobil|"
    r"rufnummer|tlf|mobilnummer|contact|desk|office|work|home|landline|hotline|pager|(?:messages|texts?|calls?) to|answering|reach(?:ed|able)?)"
    r"(?: ?(?:no|nr|num|number|#))?\.?(?: (?:me|us|him|her|them|back|is|was|at|on|al|au|unter|på)){0,3} ?[:.]? ?\(?$"
)
# The same words behind the number: 202-555-0143 (cell), 555 0143-Office.
_LABEL_BEHIND = re.compile(r"(?i) ?[-(,]? ?(?:cell|mobile|office|desk|home|work|fax|phone|tel|landline)\b")
_PLUS = re.compile(r"\+\d{1,3}(?:[ .-]?\(0\))?(?:[ .-]?\d){8,13}")
_OTHER = re.compile(
    r"(?i)\b(?:order|invoice|ref|reference|case|file|batch|ticket|serial|account|acct|id|no|nr|tracking|"
    r"isbn|issn|policy|claim|part|model|sku|version|bestellung|rechnung|commande|pedido|ordre)\.?"
    r"(?: ?(?:no|nr|num|number|#))?\.? ?[:#]? ?$"
)
_DATE = re.compile(
    r"(?:\d{1,2}[./-]\d{1,2}[./-]\d{2,4}|\d{4}[./-]\d{1,2}[./-]\d{1,2}|\d{4}\s?[-–/]\s?\d{4})(?!\d)"
)
_SSN = re.compile(r"\d{3}-\d{2}-\d{4}")
# The North American shape, also with area codes that are not in use.
_NANP = re.compile(r"(?:\+?1[-. ]?)?(?:\(\d{3}\) ?|\d{3}[-. ])\d{3}[-. ]\d{4}(?: ?(?:[xX]|ext\.?) ?\d{1,6})?")
_SHORT, _LONG = 7, 15  # digits (E.164 allows 15)


def known_regions(regions: tuple[str, ...]) -> tuple[str, ...]:
    """`regions` in capitals. PolicyError for a code that phonenumbers does not serve."""
    import phonenumbers

    upper = tuple(r.upper() for r in regions)
    for region in upper:
        if region not in phonenumbers.SUPPORTED_REGIONS:
            raise PolicyError(
                f"unknown region {region!r}",
                next_step="use two-letter country codes (ISO 3166), for example [US, GB, DE]",
                place="tagger.regions",
            )
    return upper


def find(reading: Reading) -> Iterator[Hit]:
    for match in reading.near(LONG, _CLUSTER):
        start, end = match.span()
        digits = sum(c.isdigit() for c in match[0])
        if digits < 6 or reading.shielded(start, end) or _SSN.fullmatch(match[0]):
            continue
        yield from _cluster(reading, start, end, digits)


def _cluster(reading: Reading, start: int, end: int, digits: int) -> Iterator[Hit]:
    words = reading.text[start:end]
    before = reading.before(start)
    labelled = _LABEL.search(before) is not None or (
        digits >= _SHORT and _LABEL_BEHIND.match(reading.text, end) is not None and not _DATE.match(words)
    )
    if labelled and digits <= _LONG + 6:
        yield _hit(reading, start, end, 0.85, "phone after a label")
        return
    if digits < _SHORT or _DATE.match(words):
        return
    plain = words.isdigit()
    if plain and (_OTHER.search(before) or words.startswith("00")):
        return
    if match := _NANP.fullmatch(words):
        yield _hit(reading, start, start + match.end(), 0.75, "phone, North American form")
        return
    found = False
    for low, high in _valid(words, reading.regions):
        found = True
        score = 0.6 if words[low:high].isdigit() else 0.8
        yield _hit(reading, start + low, start + high, score, "phone, valid in a region")
    if not found and (match := _PLUS.match(words)) and not words.endswith(" 000"):
        found = True
        yield _hit(reading, start, start + match.end(), 0.65, "phone, international form")
    if not found and (match := _NANP.search(words)):
        yield _hit(reading, start + match.start(), start + match.end(), 0.6, "phone, North American form")


def _hit(reading: Reading, start: int, end: int, score: float, rule: str) -> Hit:
    while reading.text[end - 1] in " .-/(":
        end -= 1
    return Hit(start, end, "PHONE", score, rule)


def _valid(words: str, regions: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    """Where phonenumbers sees a valid number: first region that sees one wins its place."""
    from phonenumbers import Leniency, PhoneNumberMatcher

    taken: list[tuple[int, int]] = []
    for region in (None,) if words.startswith("+") else regions:
        for match in PhoneNumberMatcher(words, region, leniency=Leniency.VALID):
            if all(match.end <= a or match.start >= b for a, b in taken):
                taken.append((match.start, match.end))
    yield from taken
