"""What the rules find and what they leave, kind by kind. `{…}` marks what must be found."""

from __future__ import annotations

import re

import pytest

from dpredact.tagging import combined
from dpredact.tagging.patterns import PatternTagger

MARK = re.compile(r"\{([^{}]*)\}")

FOUND = {
    "EMAIL": [
        "Write to {odalys@bücher.example} or {perrin@xn--bcher-kva.example}.",
        "mail {o.brennwald+news@mail.example.co.uk}, please",
        "<{ilse_q@example.org}>;{hr@example.net}",
        "reach {ilse (at) example (dot) org} or {tovin[at]example.com}",
        "mailto:{tovin@example.com}?subject=x",
        "at {odalys at example dot com} daily",
    ],
    "PHONE": [
        "Call {2025550143}, then stop.",
        "{202.555.0143} (cell) or {202.555.0178} (desk)",
        "at {(202) 555-0143} now",
        "tel. {+44 20 7946 0958} ext",
        "mobile: {07700 900123}",
        "fax {020 7946 0958}",
        "Phone: {508-556-1330x1255}",
        "whatsapp {+49 1512 3456789}",
        "tlf. {31 23 45 67}",
        "Tel.: {0330-555 1234}",
    ],
    "CREDIT_CARD": [
        "Card on file {2223 0031 2200 3222}, backup {6304 0000 0000 0000 000}",
        "paid with {4111-1111-1111-1111} today",
        "amex {378282246310005}",
        "card {4111 1111 1111 1111} 12/27",
        "card number: {1234 5678 9012 3456}",
    ],
    "IBAN": [
        "{GB82 WEST 1234 5698 7654 32} SORTED BY BRANCH",
        "IBAN {DE89370400440532013000}.",
        "to {dk5000400440116243} please",
        "{FR14 2004 1010 0505 0001 3M02 606}",
        "{ES91-2100-0418-4502-0005-1332}",
    ],
    "US_SSN": ["on file SSN {219-09-9999}.", "ssn: {078051120}", "social security number is {123-45-6789}"],
    "NATIONAL_ID": [
        "NINO {AB 12 34 56 C}",
        "DNI {12345678Z}",
        "NIE {X1234567L}",
        "NIR {2 55 08 14 168 025 38}",
        "CPR {211062-5629}",
        "codice {RSSMRA85T10A562S}",
        "PESEL {44051401359}",
        "AHV {756.9217.0769.85}",
    ],
    "PASSPORT": ["passport {M62225531}", "Passport no. {C01X00T47}", "Reisepass {C4VG7JW9K}"],
    "LICENSE": ["driver's license {S530-4605-9200}", "driving licence no {MORGA657054SM9IJ}"],
    "ID": [
        "MRN: {00482913}",
        "member ID {XZ-4410932}",
        "Order no. {88213-A} came",
        "Ticket #{4482913}",
        "policy number {PL-2031-99812}",
    ],
    "CASE_NUMBER": [
        "application (no. {47335/06}) against",
        "Case No. {1:23-cv-04567-ABC}",
        "Case {C-131/12}",
        "nos. {1234/05} and {22/06}",
        "as in {NJA 2005 p. 884} before",
        "see [{2019] EWCA Civ 1234} there",
    ],
    "PLATE": ["number plate {AB12 CDE}", "van with plate {7KLM 221}", "drove {BD51 SMR} home"],
    "ACCOUNT": ["account number {12345678}", "sort code {20-00-00}", "Konto {532013000}"],
    "IP": ["from {203.0.113.77} at", "host {2001:db8::8a2e:370:7334} up", "net {198.51.100.0/24}"],
    "MAC": ["nic {00:1A:2B:3C:4D:5E}", "nic {001A.2B3C.4D5E}"],
    "URL": ["see {https://example.com/u/odalys?x=1}.", "at {www.example.org/a}, and", "on {shop.example.co.uk} now"],
    "USERNAME": ["ask @{matthew_c} there", "username: {odalys.b}", "login: {tmaraq7}"],
    "SECRET": [
        "key:\n{-----BEGIN PRIVATE KEY-----\nMIIBVAIB\n-----END PRIVATE KEY-----}\nend",
        "aws {AKIAIOSFODNN7EXAMPLE} ok",
        "token {ghp_0123456789abcdefghijABCDEFGHIJ0123}",
        "password: {hunter2!x}",
        "DB_PASSWORD={s3cr3t/Word}",
        "postgres://app:{s3cretpw}@db/x",
        "api_key = \"{9f8e7d6c5b4a}\"",
    ],
    "DATE": [
        "seen on {3 March}.",
        "Admitted {2031-02-27}, discharged {2031-03-04}.",
        "born {12/04/1961} here",
        "on {March 3rd, 2031} and",
        "in {March 2031},",
        "since {1997} he",
        "({1948-1999})",
        "el {3 de marzo de 2031} vino",
        "am {3. März 2031} kam",
        "le {1er janvier 2031} à",
        "den {3. marts 2031} kom",
        "DOB: {19610412}",
        "{Tuesday, 3 March 2031} it",
        "on {3 and 4 March 2031}",
    ],
    "TIME": ["at {5 pm} sharp", "at {17:45} today", "um {17 Uhr} dort", "{kl. 17.30}", "at {seven o'clock}"],
    "AGE": [
        "a {52-year-old} welder",
        "Age: {47}\nSex: F",
        "aged {9}, and",
        "{47 years old} then",
        "is {47 y/o}",
        "Edad: {47 años}.",
        "{47 ans}, marié",
        "die {47-jährige} Frau",
        "en {47-årig} mand",
        "a {forty-seven year old} man",
        "in his {forties}",
        "turned {60} in",
    ],
    "ADDRESS": [
        "lives at {6750 Maple Street Apt. 8}, upstairs",
        "to {12 High Street, London SW1A 1AA}.",
        "at {221b Baker St}, and",
        "{P.O. Box 149}",
        "en {Calle Mayor 5}, hoy",
        "in der {Hauptstraße 12, 10115 Berlin} wohnt",
        "au {12 rue de la Paix} hier",
        "bor på {Vesterbrogade 12, 2. tv} og har det",
        "Address: {Flat 2, Rosewood}",
    ],
    "LOCATION": [
        "I grew up in {Reading}.",
        "he was born in {Bath} and moved to {Hull}",
        "Town: {Lower Slaughter}",
        "flew to {Copenhagen} at",
        "vive en {Sevilla} desde",
        "a resident of {Elm Grove}.",
    ],
    "MONEY": ["paid {EUR 5,443.70} and", "about {$1.5 million}", "{250 kroner}"],
}

LEFT = [
    "trace 7e0fd1b2-43aa-4c19-9bb6-2025550143aa failed",
    "Old form 900-12-3456; sample 987-65-4320.",
    "at_millis=1748503543011 done",
    "See table H1 in the public annex, block B43, section INTERVENTIONS.",
    "yes,north,no,RE-NR-BT-13,age41_59,14,0.250750683890174",
    "Order 00202555014378 shipped; revenue grew by +100 000 000.",
    "Bearing 32° 34’S, file 6005, batch 538400, see p. 629",
    "Version 1.2.3.4 of the tool, section 10.0.0.1",
    "Release 2.14 has 1,204,882 rows and 99.95% uptime.",
    "ISO 9001:2015 and RFC 2119, table 12, figure 3.4",
    "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "before May ended, at noon, on Monday, in the morning",
    "the ratio 16/9, a 3/4 inch pipe, 24/7 service",
    "Ring the bell, mark my words, will you? May I?",
    "a 4-year contract, 12 years of experience",
    "Call me at once; I can be reached at any time.",
    "password: required",
    "The order is to file a reference in case of doubt.",
    "Article 6 § 1 of the Convention, paragraph 34",
    "import os; @media print; x.y = z.split()",
    "He moved to strike and was born to win.",
    "Street lights on a long way; 5 Close calls.",
    "temperature 37.5, pulse 72, BP 120/80",
    "Grade 4 in block 12, seat 7A",
]


@pytest.fixture(scope="module")
def rules() -> combined.Combined:
    return combined.Combined([PatternTagger(regions=("US", "GB", "DE", "DK"))])


CASES = [(entity, text) for entity, texts in FOUND.items() for text in texts]


@pytest.mark.parametrize(("entity", "marked"), CASES)
def test_found(rules: combined.Combined, entity: str, marked: str) -> None:
    text = MARK.sub(r"\1", marked)
    spans = [s for s in rules.tag(text).spans]
    for words in MARK.findall(marked):
        at = text.index(words)
        hits = [s for s in spans if s.start <= at and at + len(words) <= s.end]
        assert hits, (words, [(text[s.start : s.end], s.entity) for s in spans])
        assert hits[0].entity == entity
        assert hits[0].end == at + len(words) or entity in ("ADDRESS", "URL")


@pytest.mark.parametrize("text", LEFT)
def test_left(rules: combined.Combined, text: str) -> None:
    assert [(text[s.start : s.end], s.entity) for s in rules.tag(text).spans] == []
