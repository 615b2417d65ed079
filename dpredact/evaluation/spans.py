"""How much of what is private do the taggers find? Recall and precision against gold spans.

A data set is JSON lines: `text`, `spans` (`start`, `end`, `label` in code points; optional
`identifier_type` and `entity_id`), optional `id` and `split`. Spans marked NO_MASK are
known names that need no mask: they are not asked for, and a finding on them is a false one.

A mention is *covered* if every character of it that is no white space lies in findings, of
whatever entity: what is masked cannot be read. A person is covered if all mentions are.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dpredact.errors import Missing, UsageError
from dpredact.policy import entities
from dpredact.tagging.interface import Span, Tagger

# Labels of annotated corpora -> the coarse class in which types are compared. A label that
# stands in none of them is compared by coverage alone.
CLASSES: dict[str, str] = {
    **{name: "PLACE" for name in ("LOCATION", "ADDRESS", "PLACE", "STREET_ADDRESS", "ZIP_CODE",
                                  "TERRITORIO", "PAIS", "CALLE", "FAC", "CITY", "TOWN", "COUNTRY",
                                  "STATE", "COUNTY", "REGION", "STREET", "POSTCODE", "ZIP")},
    **{name: "PERSON" for name in ("PERSON", "PER", "NAME", "DOCTOR", "TITLE", "CLIENT_NAME",
                                   "LEGAL_PROFESSIONAL", "FIRST_NAME", "LAST_NAME", "FULL_NAME",
                                   "GIVEN_NAME", "SURNAME", "PATIENT", "CLIENT")},
    **{name: "TIME" for name in ("DATE", "TIME", "DATETIME", "DATE_TIME", "DAY", "FECHAS",
                                 "DATE_OF_BIRTH", "DOB", "BIRTHDATE")},
    **{name: "ORG" for name in ("ORG", "COMPANY", "SCHOOL", "UNIVERSITY", "INSURER", "HOSPITAL",
                                "COURT", "INSTITUCION", "CENTRO_SALUD", "ORGANISATION", "EMPLOYER",
                                "BUSINESS")},
    **{name: "QUANTITY" for name in ("QUANTITY", "MONEY", "CURRENCY", "PERCENTAGE")},
    **{name: "PEOPLE" for name in ("AGE", "DEMOGRAPHIC", "PROFESSION", "HEALTH", "POSITION",
                                   "JOB_TITLE", "DIAGNOSIS", "MEDICATION", "NATIONALITY",
                                   "ETHNIC_CATEGORY", "PROFESION")},
    **{name: "CODE" for name in ("CODE", "DOMAIN_NAME", "US_DRIVER_LICENSE", "ACCOUNT", "PESEL",
                                 "NIP", "TICKET_ID", "POLICY_NUMBER", "CLAIM_ID", "ORDER_NUMBER",
                                 "TRANSACTION_ID", "CORREO_ELECTRONICO", "MENTION", "LINK")},
    "MISC": "MISC",
}  # fmt: skip
_CODE_FAMILIES = ("EMAIL", "PHONE", "CARD", "IBAN", "ID")


@dataclass(frozen=True)
class Gold:
    """One mention that should be found. `person`: mentions of one person share it."""

    start: int
    end: int
    label: str
    kind: str = ""  # identifier_type of the data set: DIRECT, QUASI, or nothing
    person: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Example:
    """One document of a data set."""

    name: str
    text: str = field(repr=False)
    gold: tuple[Gold, ...]


@dataclass
class Counts:
    """What became of the mentions of one label."""

    mentions: int = 0
    strict: int = 0  # one finding with the same borders and the same class
    covered: int = 0
    partial: int = 0  # some of it is found, and some is left
    characters: int = 0
    characters_found: int = 0

    def shares(self) -> dict[str, float]:
        """recall strict, covered, covered or partial, and of characters; 0 of 0 is 1."""
        return {
            "strict": share(self.strict, self.mentions),
            "covered": share(self.covered, self.mentions),
            "touched": share(self.covered + self.partial, self.mentions),
            "characters": share(self.characters_found, self.characters),
        }


@dataclass
class Precision:
    """How many characters of the findings of one entity had to be masked."""

    findings: int = 0
    right: int = 0  # findings that touch a gold mention
    characters: int = 0
    characters_right: int = 0


@dataclass
class Result:
    """The figures of one data set. Holds words only in `missed_words`, and only if asked."""

    documents: int = 0
    characters: int = 0
    incomplete: int = 0
    by_label: dict[str, Counts] = field(default_factory=dict)
    by_kind: dict[str, Counts] = field(default_factory=dict)
    by_entity: dict[str, Precision] = field(default_factory=dict)
    total: Counts = field(default_factory=Counts)
    found: Precision = field(default_factory=Precision)
    persons: int = 0
    persons_covered: int = 0
    misses: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    missed_words: list[tuple[str, int, str]] = field(default_factory=list, repr=False)
    typed: dict[str, dict[str, float]] = field(default_factory=dict)

    def public(self) -> dict[str, Any]:
        """Everything but words, as JSON values."""
        return {
            "schema": 1,
            "documents": self.documents,
            "characters": self.characters,
            "incomplete": self.incomplete,
            "mentions": {**asdict(self.total), **self.total.shares()},
            "precision": share(self.found.characters_right, self.found.characters),
            "by_label": {k: {**asdict(v), **v.shares()} for k, v in sorted(self.by_label.items())},
            "by_kind": {k: {**asdict(v), **v.shares()} for k, v in sorted(self.by_kind.items())},
            "by_entity": {k: asdict(v) for k, v in sorted(self.by_entity.items())},
            "persons": {"all": self.persons, "covered": self.persons_covered},
            "nervaluate": self.typed,
            "misses": [
                {"label": label, "how": how, "writing": writing, "count": n}
                for (label, how, writing), n in sorted(self.misses.items(), key=lambda m: -m[1])
            ],
        }


def share(part: int, whole: int) -> float:
    """part / whole; 1.0 if there was nothing to find."""
    return part / whole if whole else 1.0


def read(path: Path, split: str | None = None) -> Iterator[Example]:
    """The documents of a JSON-lines file, one at a time; with `split`, only those of it.

    UsageError with the line's number if a line is no JSON, lacks a field, or has a span
    outside its text.
    """
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    row = json.loads(line)
                    if split is None or row.get("split") == split:
                        yield _example(row, str(row.get("id", number)))
                except (ValueError, KeyError, TypeError, AttributeError):
                    raise UsageError(
                        "this line is no document with `text` and `spans`",
                        next_step="see `dpredact eval tags --help` for the format",
                        place=f"{path.name}:{number}",
                    ) from None


def _example(row: dict[str, Any], name: str) -> Example:
    text = row["text"]
    gold = []
    for span in row["spans"]:
        start, end, label = int(span["start"]), int(span["end"]), str(span["label"])
        if not 0 <= start < end <= len(text):
            raise ValueError("span outside the text")
        kind = span.get("identifier_type") or ""
        if kind == "NO_MASK":
            continue
        person = None
        if class_of(label) == "PERSON":
            person = str(span.get("entity_id") or text[start:end].casefold())
        gold.append(Gold(start, end, label, kind, person))
    return Example(name, text, tuple(gold))


def spelled(label: str) -> str:
    """A label in capitals with underscores, without the B- or I- of token tags."""
    return re.sub(r"[\s-]+", "_", re.sub(r"^[BIELSU]-", "", label.strip())).upper()


def class_of(label: str) -> str:
    """The coarse class of a corpus label or of one of our entities; OTHER if unknown.

    As people write labels: `First name`, `first-name` and `B-FIRST_NAME` are one.
    """
    label = spelled(label)
    if label in CLASSES:
        return CLASSES[label]
    try:
        name = entities.canonical(label)
    except KeyError:
        return "OTHER"
    family = entities.FAMILY_OF.get(name, name)
    return "CODE" if family in _CODE_FAMILIES else CLASSES.get(name, CLASSES.get(family, "OTHER"))


def measure(tagger: Tagger, examples: Iterable[Example], *, words: bool = False) -> Result:
    """Run `tagger` on every example and count. `words`: keep the missed words as well."""
    result = Result()
    true: list[list[dict[str, Any]]] = []
    pred: list[list[dict[str, Any]]] = []
    for example in examples:
        tagging = tagger.tag(example.text)
        result.documents += 1
        result.characters += len(example.text)
        result.incomplete += not tagging.complete
        count(result, example, tagging.spans, words=words)
        true.append([_item(g.start, g.end, g.label) for g in example.gold])
        pred.append([_item(s.start, s.end, s.entity) for s in tagging.spans])
    result.typed = nervaluate(true, pred)
    return result


def _item(start: int, end: int, label: str) -> dict[str, Any]:
    return {"start": start, "end": end, "label": class_of(label)}


def count(result: Result, example: Example, spans: Iterable[Span], *, words: bool = False) -> None:
    """Add one document's figures to `result`."""
    text, spans = example.text, sorted(spans)
    found = _mask(len(text), ((s.start, s.end) for s in spans))
    wanted = _mask(len(text), ((g.start, g.end) for g in example.gold))
    exact = {(s.start, s.end, class_of(s.entity)) for s in spans}
    persons: dict[str, bool] = {}
    for gold in example.gold:
        inside = [i for i in range(gold.start, gold.end) if not text[i].isspace()]
        hit = sum(found[i] for i in inside)
        covered = hit == len(inside)
        for counts in (
            result.total,
            result.by_label.setdefault(gold.label, Counts()),
            *([result.by_kind.setdefault(gold.kind, Counts())] if gold.kind else []),
        ):
            counts.mentions += 1
            counts.strict += (gold.start, gold.end, class_of(gold.label)) in exact
            counts.covered += covered
            counts.partial += 0 < hit < len(inside)
            counts.characters += len(inside)
            counts.characters_found += hit
        if gold.person is not None:
            persons[gold.person] = persons.get(gold.person, True) and covered
        if not covered:
            how = "partly" if hit else "untouched"
            result.misses[gold.label, how, writing(text[gold.start : gold.end])] += 1
            if words:
                missed = (example.name, gold.start, text[gold.start : gold.end])
                result.missed_words.append(missed)
    result.persons += len(persons)
    result.persons_covered += sum(persons.values())
    _precision(result, text, spans, wanted)


def _precision(result: Result, text: str, spans: Iterable[Span], wanted: bytearray) -> None:
    for span in spans:
        inside = [i for i in range(span.start, span.end) if not text[i].isspace()]
        right = sum(wanted[i] for i in inside)
        for one in (result.found, result.by_entity.setdefault(span.entity, Precision())):
            one.findings += 1
            one.right += right > 0
            one.characters += len(inside)
            one.characters_right += right


def _mask(length: int, ranges: Iterable[tuple[int, int]]) -> bytearray:
    mask = bytearray(length)
    for start, end in ranges:
        mask[start:end] = b"\1" * (end - start)
    return mask


def writing(words: str) -> str:
    """How a mention is written, without saying what: digits, capitals, lower case, …"""
    if any(c.isdigit() for c in words):
        return "with digits" if any(c.isalpha() for c in words) else "digits"
    letters = [c for c in words if c.isalpha()]
    if not letters:
        return "signs"
    if all(c.isupper() for c in letters):
        return "capitals"
    if not any(c.isupper() for c in letters):
        return "lower case"
    return "several words" if len(words.split()) > 1 else "one word"


def nervaluate(
    true: list[list[dict[str, Any]]], pred: list[list[dict[str, Any]]]
) -> dict[str, dict[str, float]]:
    """nervaluate's overall precision, recall and F1: strict, exact, partial, ent_type.

    Types are compared in coarse classes (`class_of`). Missing if nervaluate is not there.
    """
    try:
        from nervaluate import Evaluator
    except ImportError:
        raise Missing(
            "nervaluate is not installed", next_step="install dpredact[eval]"
        ) from None
    tags = sorted({item["label"] for document in (*true, *pred) for item in document})
    if not tags:
        return {}
    overall = Evaluator(true, pred, tags=tags, loader="dict").evaluate()["overall"]
    return {
        name: {"precision": r.precision, "recall": r.recall, "f1": r.f1}
        for name, r in overall.items()
    }
