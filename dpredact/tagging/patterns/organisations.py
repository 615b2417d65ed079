"""Organisations by their form: firms by their legal form, schools, hospitals and courts by their head."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dpredact.tagging import offices
from dpredact.tagging.patterns.anchors import anchored
from dpredact.tagging.patterns.interface import Hit, Reading
from dpredact.tagging.patterns.tokens import kinds_of

_CAP = r"(?:[A-ZÀ-ÖØ-Þ][\w'’&-]*|&|\d{1,4})"
_SMALL = r"(?:(?:of|for|and) the|of|for|de la|de los|de|del|la|le|des|du|der|und|y|og|van|St\.)"
# Read from the head backwards: the capitalised words in front of it, small words between.
_FRONT = re.compile(rf"(?:{_CAP}(?: {_SMALL})? )+$")
_FIRM = anchored(
    r"(?:Ltd|Limited|Inc|Incorporated|LLC|LLP|PLC|plc|Corp|Corporation|GmbH|AG|KG|OHG|SARL|SAS|A/S|ApS|IVS|S\.L\.|S\.A\.|Pty|"
    r"Solutions|Holdings|Industries|Enterprises|Technologies|Consulting|Associates|Bank|Insurance|Assurance|Airlines|Motors|Pharmaceuticals)\b\.?",
    "ltd limited inc incorporated llc llp plc corp gmbh ag kg ohg sarl sas a/s aps ivs s.l. s.a. pty solutions holdings industries "
    "enterprises technologies consulting associates bank insurance assurance airlines motors pharmaceuticals",
)
_HOUSE = anchored(
    rf"(?:University|College|(?:High |Primary |Elementary |Middle |Secondary |Grammar )?School|Academy|Institute|Hospital|Clinic|Infirmary|Hospice|"
    rf"Medical Cent(?:er|re)|Health Cent(?:er|re)|Nursing Home|Court|Tribunal|Police Department|Universidad|Hospital|Clínica|Colegio|Instituto|Université|Hôpital|"
    rf"Lycée|Clinique|Universität|Krankenhaus|Klinik|Gymnasium|Universitet|Sygehus|Gymnasiet)\b(?: (?:of|de|del|de la|für|i|in|at) (?:the )?{_CAP}(?: {_CAP}){{0,2}}(?![\w]))?",
    "university college high_school primary elementary middle secondary grammar school academy institute hospital clinic infirmary hospice "
    "medical_cent health_cent nursing_home court tribunal police_department universidad clinica colegio instituto universite hopital lycee clinique "
    "universitat krankenhaus klinik gymnasi universitet sygehus",
)

_CAPITAL = r"[A-ZÀ-ÖØ-Þ][^\W\d_]+(?:['’-][^\W\d_]+)*"
_CAPITAL_NEXT = re.compile(r" [A-ZÀ-ÖØ-Þ]")
_PARTNER_MARK = anchored(r"and\b|&", "and &")

# Firms are often called by their partners: Jones, Oconnor and Graham.
_PARTNERS = re.compile(
    rf"(?<![\w-]){_CAPITAL}(?:, {_CAPITAL}){{0,3}},? (?:and|&) {_CAPITAL}(?![\w-])"
)


def _partners(reading: Reading) -> Iterator[Hit]:
    """Two surnames or more, without a given name, joined like a firm's."""
    for match in reading.anchored(_PARTNER_MARK, reading.cased):
        low = max(0, match.start() - 60)
        for firm in _PARTNERS.finditer(reading.cased, low, match.end() + 30):
            names = [kinds_of(w) for w in re.findall(r"[^\W\d_]+(?:['’-][^\W\d_]+)*", firm[0]) if w != "and"]
            together = "&" in firm[0]  # otherwise they may be friends: Jack, Howard and Stewart
            surnames = sum("surname" in k and (together or "given" not in k) for k in names)
            if (
                firm.start() <= match.start() < firm.end()
                and surnames * 2 > len(names)
                and (len(names) > 2 or (together and not _CAPITAL_NEXT.match(reading.cased, firm.end())))
                and not any(k & {"stop", "head", "day", "month"} for k in names)
                and not all("place" in k for k in names)
            ):
                yield Hit(firm.start(), firm.end(), "ORG", 0.6, "surnames joined like a firm's")


def find(reading: Reading) -> Iterator[Hit]:
    yield from _partners(reading)
    for head, rule, score in ((_FIRM, "name with a legal form", 0.75), (_HOUSE, "school, hospital or court with a name", 0.7)):
        for match in reading.anchored(head, reading.cased):
            start = _front(reading.cased, match.start())
            named = start < match.start() or (head is _HOUSE and " " in match[0].replace("High School", "HighSchool"))
            if named and not offices.public(reading.cased[start : match.end()]):
                end = match.end() - match[0].endswith(".")
                yield Hit(start, end, "ORG", score, rule)


def _front(text: str, at: int) -> int:
    """Where the name in front of the head at `at` starts; `at` if there is none."""
    low = max(0, at - 80)
    line = text[low:at]
    line = line[max(line.rfind(mark) for mark in ("\n", ". ", "; ", ": ", "(", '"', "“")) + 1 :].lstrip()
    match = _FRONT.search(line)
    if not match:
        return at
    words = match[0]
    start = at - len(words)
    # A capital at the start of a sentence, or an article, is not part of the name.
    while (first := re.match(r"[^\W\d_]+[ ,]+", words)) and len(words) > 0:
        if not kinds_of(first[0].strip(" ,")) & {"stop", "day", "month"}:
            break
        start += first.end()
        words = words[first.end() :]
    return start if words else at
