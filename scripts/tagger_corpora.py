"""The annotated documents that the shipped tagger is trained and measured on.

Reads the corpora's JSON lines (`text`, `spans`) below one folder, turns their labels into
entities, and holds parts out: TAB by its official splits, Presidio's sentences by template,
the others by document. What is held out depends on names alone, never on a random state.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# Class 0 is "need not be masked".
CLASSES = (
    "O", "PERSON", "ID", "EMAIL", "PHONE", "USERNAME", "ADDRESS", "LOCATION", "ORG", "DATE",
    "TIME", "AGE", "DEMOGRAPHIC", "PROFESSION", "HEALTH", "QUANTITY", "MONEY", "MISC",
)  # fmt: skip
DEV, HELD_OUT = 0.15, 0.3  # shares of documents: the first for choosing, the rest for testing
FOLDS = 4  # parts for cross-validation: 0 is "dev", the others are thirds of "train"

_LABELS: dict[str, dict[str, str]] = {
    "tab": {
        "PERSON": "PERSON", "CODE": "ID", "LOC": "LOCATION", "ORG": "ORG", "DEM": "DEMOGRAPHIC",
        "DATETIME": "DATE", "QUANTITY": "QUANTITY",
    },
    "gum": {"PERSON": "PERSON", "ORGANIZATION": "ORG", "PLACE": "LOCATION", "TIME": "DATE"},
    "presidio": {
        "PERSON": "PERSON", "TITLE": "PERSON", "STREET_ADDRESS": "ADDRESS", "ZIP_CODE": "ADDRESS",
        "GPE": "LOCATION", "ORGANIZATION": "ORG", "DATE_TIME": "DATE", "AGE": "AGE",
        "NRP": "DEMOGRAPHIC", "PHONE_NUMBER": "PHONE", "EMAIL_ADDRESS": "EMAIL",
        "CREDIT_CARD": "ID", "DOMAIN_NAME": "ID", "IBAN_CODE": "ID", "US_SSN": "ID",
        "IP_ADDRESS": "ID", "US_DRIVER_LICENSE": "ID",
    },
    "contextual": {
        "NAME": "PERSON", "DOCTOR": "PERSON", "CLIENT_NAME": "PERSON", "EMAIL": "EMAIL",
        "PHONE": "PHONE", "USERNAME": "USERNAME", "MENTION": "USERNAME", "ADDRESS": "ADDRESS",
        "LOCATION": "LOCATION", "PLACE": "LOCATION", "LANDMARK": "LOCATION", "VENUE": "LOCATION",
        "COMPANY": "ORG", "SCHOOL": "ORG", "UNIVERSITY": "ORG", "INSURER": "ORG", "COURT": "ORG",
        "HOSPITAL": "ORG", "MERCHANT": "ORG", "RESTAURANT": "ORG", "RESTAURANT_NAME": "ORG",
        "DEPARTMENT": "ORG", "DATE": "DATE", "DAY": "DATE", "TIME": "TIME", "AGE": "AGE",
        "POSITION": "PROFESSION", "JOB_TITLE": "PROFESSION", "DIAGNOSIS": "HEALTH",
        "MEDICATION": "HEALTH", "CURRENCY": "MONEY", "PERCENTAGE": "QUANTITY", "ACCOUNT": "ID",
        "TICKET_ID": "ID", "POLICY_NUMBER": "ID", "CLAIM_ID": "ID", "NIP": "ID", "PESEL": "ID",
        "CASE_NUMBER": "ID", "ORDER_NUMBER": "ID", "TRANSACTION_ID": "ID", "NUMBER": "ID",
    },
}  # fmt: skip
_LABELS["panorama"] = _LABELS["tab"]

FILES = {
    "tab": ("tab/tab_gold.jsonl", "tab/tab_dpfusion_recovered.jsonl"),
    "gum": ("gum/gum_ccby.jsonl",),
    "contextual": ("contextual_synth/contextual_synth.jsonl",),
    "presidio": ("presidio_synth/presidio_synth.jsonl",),
    "panorama": ("panorama/panorama_gold.jsonl",),  # for measuring only
}

_AGE = re.compile(r"(?i)\bage[ds]?\b|\b(?:years?|months?)[- ]old\b|\bminor\b")
_TIME = re.compile(r"(?i)^\s*\d{1,2}[:.]\d{2}|\b[ap]\.?m\b")
_MONEY = re.compile(
    r"(?i)[€$£]|\b(?:EUR|PLN|TRL|DEM|ATS|FRF|GBP|USD)\b|euro|pound|dollar|zlot|lira|schilling|franc"
)


@dataclass(frozen=True)
class Document:
    """One annotated document. spans: (start, end, class) that must be masked.

    gold: (start, end, label, kind) as annotated; kind is DIRECT, QUASI, or NO_MASK.
    fold: which of the parts for cross-validation it lies in; None in "test".
    """

    corpus: str
    split: str
    text: str
    spans: tuple[tuple[int, int, str], ...]
    gold: tuple[tuple[int, int, str, str], ...]
    fold: int | None = None


def read(data: Path, corpus: str) -> Iterator[Document]:
    """The documents of one corpus below the folder `data`."""
    labels = _LABELS[corpus]
    for file in FILES[corpus]:
        for line in (data / file).read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            text = row["text"]
            gold = tuple(
                (s["start"], s["end"], s["label"], s.get("identifier_type") or "QUASI")
                for s in row["spans"]
            )
            spans = tuple(
                (start, end, refined(labels.get(label, "MISC"), text[start:end]))
                for start, end, label, kind in gold
                if kind != "NO_MASK"
            )
            split = split_of(corpus, row)
            yield Document(corpus, split, text, spans, gold, fold_of(split, _name(corpus, row)))


def split_of(corpus: str, row: dict) -> str:
    """train, dev or test."""
    if corpus == "tab":
        return row.get("split", "train")  # the recovered documents are of the train split
    if corpus == "panorama":
        return "test"
    share = _share(_name(corpus, row))
    if share >= HELD_OUT:
        return "train"
    return "dev" if share < DEV else "test"


def fold_of(split: str, name: str) -> int | None:
    """The part a document is left out with: 0 for "dev", 1 to FOLDS - 1 for "train"."""
    if split == "test":
        return None
    return 0 if split == "dev" else 1 + int(_share(f"fold {name}") * (FOLDS - 1))


def _name(corpus: str, row: dict) -> str:
    """What stays together: a document, or all sentences of one template."""
    return "t" + str(row["meta"]["template_id"]) if corpus == "presidio" else str(row["id"])


def _share(name: str) -> float:
    """A number in [0, 1) that depends on the name alone."""
    return int(hashlib.sha256(name.encode()).hexdigest()[:8], 16) / 2**32


def refined(entity: str, words: str) -> str:
    """A finer class where the words tell it: ages, times of day, amounts of money."""
    if entity in ("DEMOGRAPHIC", "DATE") and _AGE.search(words):
        return "AGE"
    if entity == "DATE" and _TIME.search(words):
        return "TIME"
    return "MONEY" if entity == "QUANTITY" and _MONEY.search(words) else entity
