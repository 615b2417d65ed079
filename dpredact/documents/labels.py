"""What a table's header or a key says about its values, in words from a public list.

A tagger finds "2025550143" more surely after "phone:". The label is a separator of the
reader's own: it holds words of this list only, so a header or key that itself names a person
never gets into it. It also judges what is prose.
"""

from __future__ import annotations

import re

FIELD_WORDS = frozenset(
    """
    account address age amount applicant author bank bic billing birth birthday birthdate card cc
    cell chart city claimant client code comment comments company contact country county cpr
    customer date dob description diagnosis doctor document driver email employee employer expiry
    fax father first firstname from full gender given handler holder host iban id insurance ip
    issued last lastname licence license location mail maiden manager medical member middle mobile
    mother mrn name nationality nhs nickname note notes number occupation order organisation
    organization owner passport password patient phone physician place plate policy postal postcode
    provider recipient reference region remark reply secret sender sex signature ssn state street
    subject surname swift tax tel telephone text time title to token town url user username vat
    vehicle visit website witness zip
    nom prenom adresse ville telephone courriel naissance
    vorname nachname anschrift strasse ort plz telefon geburtsdatum bemerkung
    nombre apellido apellidos direccion ciudad telefono correo nacimiento
    navn fornavn efternavn adresse telefon fodselsdato
    """.split()
)
SHORT = frozenset("no nr num tel dob id ip cc bcc".split())
WORD = re.compile(r"[A-ZÀ-Þ]?[a-zß-ÿ]+|[A-ZÀ-Þ]+(?![a-zß-ÿ])")
LETTERS = re.compile(r"[^\W\d_]+")
FEWEST_WORDS = 8
FEWEST_CHARACTERS = 40


def label(name: str) -> str:
    """The public words of a header or key, lower case: 'Patient_Name' -> 'patient name'."""
    words = (word.lower() for word in WORD.findall(name[:80]))
    return " ".join(word for word in words if word in FIELD_WORDS or word in SHORT)


def is_prose(text: str) -> bool:
    """Is a cell, string or attribute free text that a language model may rewrite?"""
    text = text.strip()
    if len(text) < FEWEST_CHARACTERS:
        return False
    words = LETTERS.findall(text)
    if len(words) < FEWEST_WORDS and not _dense(text):
        return False
    letters = sum(map(len, words)) + text.count(" ")
    return letters >= 0.75 * len(text)


def _dense(text: str) -> bool:
    """A script without spaces between words, such as Chinese or Japanese?"""
    return sum("\u3040" <= c <= "\u9fff" or "\uac00" <= c <= "\ud7af" for c in text) > len(text) / 2
