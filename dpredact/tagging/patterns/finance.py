"""Payment cards, IBANs, bank accounts and amounts of money."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dpredact.tagging.patterns.anchors import DIGITS, LONG, anchored
from dpredact.tagging.patterns.interface import Hit, Reading, hits

# Issuer prefix -> lengths (ISO/IEC 7812 ranges that the networks publish).
_ISSUERS: tuple[tuple[range, int, tuple[int, ...]], ...] = (
    (range(4, 5), 1, (13, 16, 19)),  # Visa
    (range(51, 56), 2, (16,)),  # Mastercard
    (range(2221, 2721), 4, (16,)),  # Mastercard, 2-series
    (range(34, 35), 2, (15,)), (range(37, 38), 2, (15,)),  # American Express
    (range(300, 306), 3, (14, 16)), (range(36, 37), 2, (14,)), (range(38, 40), 2, (14,)),  # Diners
    (range(6011, 6012), 4, (16, 19)), (range(644, 660), 3, (16, 19)),  # Discover
    (range(3528, 3590), 4, (16, 17, 18, 19)),  # JCB
    (range(62, 63), 2, (16, 17, 18, 19)),  # UnionPay
    (range(50, 51), 2, tuple(range(12, 20))), (range(56, 59), 2, tuple(range(12, 20))),
    (range(6304, 6305), 4, tuple(range(12, 20))), (range(67, 68), 2, tuple(range(12, 20))),  # Maestro
)  # fmt: skip
_CARD = re.compile(r"(?<![\w.,/+-])\d(?:[ -]?\d){11,18}(?![\w]|[.,]\d|-\d)")
_CARD_LABEL = re.compile(
    r"(?i)\b(?:(?:credit|debit|bank)? ?card|visa|mastercard|amex|american express|cc|kreditkarte|"
    r"tarjeta|carte(?: bancaire)?|kort)(?: ?(?:no|nr|num|number|nummer|#))?\.?(?: is| was)? ?[:#]? ?$"
)
_IBAN = re.compile(r"(?<![\w])[A-Za-z]{2}\d{2}(?:[ -]?[A-Za-z0-9]){11,40}")
_ACCOUNT = anchored(
    r"(?i)\b(?:bank account|account|acct|a/c|acc|sort code|routing|aba|bic|swift|iban|konto(?:nummer)?|"
    r"kontonr|blz|bankleitzahl|cuenta|compte|reg\.? ?nr)\b\.?(?: ?(?:no|nr|num|number|nummer|code|#)\b\.?)?"
    r"(?: (?:is|was|ending(?: in)?|ends(?: in)?))? ?[:#=]? ?(?P<x>(?=[A-Z0-9 -]*\d)(?:[A-Z]{0,4}\d[\dA-Z]*)(?:[ -]?[\dA-Z]*\d[\dA-Z]*){0,7})(?![\w])",
    "bank_account account acct a/c acc sort_code routing aba bic swift iban konto blz bankleitzahl cuenta compte reg",
)
_SWIFT = anchored(r"(?i:\b(?:bic|swift)(?: ?code)? ?[:#]? ?)(?P<x>[A-Z]{6}[A-Z0-9]{2}(?:[A-Z0-9]{3})?)\b", "bic swift")
_CURRENCY = r"(?:US\$|A\$|C\$|[$€£¥₹]|EUR|USD|GBP|CHF|DKK|SEK|NOK|PLN|TRL|TRY|ATS|DEM|FRF|kr\.?)"
_MONEY = re.compile(
    rf"(?<![\w])(?:{_CURRENCY} ?\d[\d.,' ]*\d?(?: ?(?:thousand|million|billion|k|m|bn))?"
    rf"|\d[\d.,']*(?: (?:thousand|million|billion))? ?(?:{_CURRENCY}|euros?|dollars?|pounds?(?: sterling)?|"
    r"kroner|kronor|francs?|marks?|liras?|zloty|Euro))(?![\w])"
)


def luhn(digits: str) -> bool:
    """ISO/IEC 7812-1, annex B."""
    total = 0
    for place, char in enumerate(reversed(digits)):
        value = int(char) * (1 + place % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def issued(digits: str) -> bool:
    """Does a card network issue numbers with this prefix and length?"""
    return any(int(digits[:size]) in ids and len(digits) in sizes for ids, size, sizes in _ISSUERS)


def find(reading: Reading) -> Iterator[Hit]:
    yield from _cards(reading)
    yield from _ibans(reading)
    for hit in hits(reading.anchored(_ACCOUNT), "ACCOUNT", 0.8, "account after a label"):
        if sum(c.isdigit() for c in reading.text[hit.start : hit.end]) >= 4:
            yield hit
    yield from hits(reading.anchored(_SWIFT), "ACCOUNT", 0.8, "BIC after a label")
    for hit in hits(reading.near(DIGITS, _MONEY), "MONEY", 0.8, "amount"):
        end = hit.end
        while reading.text[end - 1] in " .,'":
            end -= 1
        yield Hit(hit.start, end, hit.entity, hit.score, hit.rule)


def _cards(reading: Reading) -> Iterator[Hit]:
    for match in reading.near(LONG, _CARD):
        start, end = match.span()
        if reading.shielded(start, end):
            continue
        digits = re.sub(r"\D", "", match[0])
        if luhn(digits) and issued(digits):
            yield Hit(start, end, "CREDIT_CARD", 0.97, "card: issuer, length and check digit")
            continue
        # The run may hold a card and the expiry or code written behind it.
        cuts = (_prefix(match[0], size) for size in (16, 15, 19, 14, 13))
        if cut := next(filter(None, cuts), 0):
            yield Hit(start, start + cut, "CREDIT_CARD", 0.9, "card: issuer, length and check digit")
        elif _CARD_LABEL.search(reading.before(start)):
            yield Hit(start, end, "CREDIT_CARD", 0.8, "card after a label")


def _prefix(words: str, size: int) -> int:
    """Length of the part of `words` with `size` digits, if a blank ends it and it is a card."""
    seen = 0
    for place, char in enumerate(words):
        seen += char.isdigit()
        if seen == size:
            digits = re.sub(r"\D", "", words[: place + 1])
            ends = words[place + 1 : place + 2] == " "
            return place + 1 if ends and luhn(digits) and issued(digits) else 0
    return 0


def _ibans(reading: Reading) -> Iterator[Hit]:
    for match in reading.near(LONG, _IBAN):
        if end := _iban_end(match[0]):
            yield Hit(match.start(), match.start() + end, "IBAN", 0.98, "IBAN: country, length and checksum")


def _iban_end(words: str) -> int:
    """How much of `words` is an IBAN of its country's length with a right checksum; else 0."""
    from stdnum import iban

    size = 0
    for place, char in enumerate(words):
        size += char.isalnum()
        if 15 <= size <= 34 and char.isalnum() and not words[place + 1 : place + 2].isalnum():
            if iban.is_valid(words[: place + 1], check_country=False):
                return place + 1
    return 0
