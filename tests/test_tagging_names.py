"""Names by labels, phrases, shapes and neighbours: `{…}` marks each person."""

from __future__ import annotations

import re

import pytest

from dpredact.tagging import combined
from dpredact.tagging.patterns import PatternTagger

MARK = re.compile(r"\{([^{}]*)\}")
RULES = combined.Combined([PatternTagger()])

FOUND = [
    # labels, in any case
    "CLAIMANT: {ODALYS BRENNWALD}\nHANDLER: {tovin maraq}\n",
    "Patient name: {Perrin Maraq}\nWard: 6",
    "From: {Ilse Quarrington}\nTo: {Nim Aldwick}\nSubject: the bins",
    "Nombre: {Aurelio Brennwald}\nEdad: 47",
    "Sachbearbeiterin: {Ilse Maraq}",
    "- Attending: {Tovin Maraq}, MD",
    "Witnesses: {Odalys Maraq} and {Nim Aldwick}",
    # phrases
    "My name is {Sol} and that is all.",
    "hello, my name is {tovin maraq}",
    "Dear {Ilse},\nthanks for the plan.\nBest regards,\n{Perrin}",
    "Please forward this to {ilse quarrington}, she asked twice.",
    "Ich heiße {Jonquil Maraq}. Je m'appelle {Aurelio Maraq}. Me llamo {Odalys Maraq}. Jeg hedder {Nim Maraq}.",
    "His wife {Tessaly} and his son {Perrin} came.",
    "signed for by {Odalys Brennwald} today",
    # titles
    "Then {Mr Maraq} and {Prof. Dr. Odalys van der Brennwald} left, {Herr Maraq} too.",
    "La {Sra. Brennwald} y {Mme Maraq} vinieron.",
    # shapes
    "A talk by {O. J. Brennwald} on bridges",
    "{Herb Aldwick} met {Jonquil Aldwick-Stone} at noon.",
    "{Tessaly K} agreed.",
    "We saw {Rose Maraq} there.",
    "The form belongs to {Tovin}\n\nwho moved in May. {Tovin}?\n",
    # neighbours
    "{Tovin} said no. They gave it to {Tovin}.",
    "{Rose} set the rose on {May}'s desk before May ended.",
    "Ship the Kindle and two Apple chargers to {Odalys}.",
    "*    {Perrin} presented the plan.\n*    {Ilse} seconded it.",
    "The twins, {Aurelio} and {Nim}, start Monday. {Nim} cannot eat nuts.",
    # capitals
    "DRIVER MUST EMPTY BOTH BINS AT UNIT 14 BEFORE NOON. RING {PERRIN VANTONGEREN} IF LOCKED.",
    "PLEASE TELL {MARK BROWN} AND {LAURA KING} THAT THE MEETING IS OFF.",
    "please tell {tovin maraq} that the meeting is off and the room is free",
    # line breaks
    "Parcel signed for by\n{Odalys\nBrennwald}\non Tuesday.",
]

LEFT = [
    "The rose on the table will bloom in May. Mark the date.",
    "Grace is a virtue; hope and faith will help. Bill the client.",
    "Ship the Kindle and the Xbox with a Tesla battery.",
    "Use the Freewinds app. Freewinds said no.",
    "The patient was given Norvasc 5 mg and Lisinopril.",
    "Barrett's oesophagus and Tinel's sign were noted.",
    "Don't worry, I've seen it. We'll go on Sunday.",
    "GERD, COPD and CDs are short forms; see IPAA and NASA.",
    "Section Heading With Many Capital Letters",
    "The German and Swiss teams met in the English style.",
    "Number: seven\nColour: red\nStatus: open\nOrder: first",
    "To: all members\nFrom: the office",
    "supraclavicular adenopathy and idiopathic intracranial pressure",
    "Will you come? May I help? Can we go?",
    "the results were presented and seconded",
]


@pytest.mark.parametrize("marked", FOUND)
def test_people(marked: str) -> None:
    text = MARK.sub(r"\1", marked)
    names, shift = [], 0
    for m in MARK.finditer(marked):
        names.append((m.start() - shift, m.end() - shift - 2))
        shift += 2
    found = [(s.start, s.end) for s in RULES.tag(text).spans if s.entity == "PERSON"]
    missed = [text[a:b] for a, b in names if not any(s <= a and b <= e for s, e in found)]
    extra = [text[s:e] for s, e in found if not any(s < b and a < e for a, b in names)]
    assert (missed, extra) == ([], [])


@pytest.mark.parametrize("text", LEFT)
def test_nobody(text: str) -> None:
    assert [text[s.start : s.end] for s in RULES.tag(text).spans if s.entity == "PERSON"] == []


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("present: RASSENDYLL, Sarah; ELPHBERG-STRELSAU, Tom J.", ["RASSENDYLL, Sarah", "ELPHBERG-STRELSAU, Tom J"]),
        ("NOTE, Sarah left", ["Sarah"]),
        ("PARIS, France", []),
    ],
)
def test_a_surname_in_capitals_before_a_given_name(text: str, wanted: list[str]) -> None:
    found = RULES.tag(text).spans
    assert [text[s.start : s.end] for s in found if s.entity == "PERSON"] == wanted
