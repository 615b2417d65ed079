"""Kinds of text that users of other tools reported as failing, each with a witness.

The rules alone must pass, and so must the default set-up when its models are installed.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

import pytest

from dpredact import documents, tagging
from dpredact.errors import ModelError
from dpredact.policy import TaggerSettings
from dpredact.tagging import combined

CASES = {
    case["id"]: case
    for case in map(json.loads, (Path(__file__).parent / "data/tagging_cases.jsonl").open(encoding="utf-8"))
}
# What a case says about the set-up; everything else is default.
SETTINGS = {"D13": {"regions": ("NL", "DE")}}
FILES = {"S03": "notes.csv", "S04": "note.html"}


@lru_cache
def tagger(use: tuple[str, ...] | None, regions: tuple[str, ...]) -> combined.Combined:
    changes = {"regions": regions} | ({"use": use} if use else {})
    try:
        return tagging.build(TaggerSettings(**changes))
    except ModelError:
        pytest.skip("a tagger's model is not installed")


def check(case: dict, use: tuple[str, ...] | None, tmp_path: Path) -> None:
    regions = SETTINGS.get(case["id"], {}).get("regions", TaggerSettings().regions)
    document = documents.read(case["input"].encode(), FILES.get(case["id"], "note.txt"))
    found = combined.tag_blocks(tagger(use, regions), document).spans
    out = document.render(
        [documents.Edit(s.start, s.end, f"[{s.entity}{s.identity}]") for s in found]
    ).decode()
    for words, entity in case["must_not_survive"]:
        assert words not in out
        # In a file with markup the words may lie in several places of the text.
        parts = [p for p in words.split() if p in document.text] or [words]
        for part in parts:
            at = document.text.find(part)
            kinds = {s.entity for s in found if s.start < at + len(part) and at < s.end}
            assert entity in kinds, (words, kinds)
    for words in case["must_survive"]:
        assert words in out


IDS = sorted(set(CASES) - {"N17"})  # N17 needs the owner's list: test_tagging_lists.py


@pytest.mark.parametrize("name", IDS)
def test_rules_alone(name: str, tmp_path: Path) -> None:
    check(CASES[name], ("patterns",), tmp_path)


@pytest.mark.parametrize("name", IDS)
def test_default_set_up(name: str, tmp_path: Path) -> None:
    check(CASES[name], None, tmp_path)


@pytest.mark.parametrize("name", IDS)
def test_a_final_full_stop_changes_nothing(name: str) -> None:
    """Adding or taking away the last full stop moves no span."""
    rules = tagger(("patterns",), SETTINGS.get(name, {}).get("regions", TaggerSettings().regions))
    text = CASES[name]["input"].rstrip()
    other = text[:-1] if text.endswith(".") else text + "."
    if text[-1] not in ".!?…" and not text[-1].isalnum():
        return
    assert places(rules, text) == places(rules, other)


def places(rules: combined.Combined, text: str) -> list[tuple[int, int, str]]:
    return [(s.start, s.end, s.entity) for s in rules.tag(text).spans]


def test_one_identity_for_two_mentions() -> None:
    """N06, S03: a line break or a table cell does not make a second person."""
    for name in ("N06", "S03"):
        document = documents.read(CASES[name]["input"].encode(), FILES.get(name, "note.txt"))
        spans = combined.tag_blocks(tagger(("patterns",), ("US", "GB")), document).spans
        words: dict[str, set[int | None]] = {}
        for s in spans:
            if s.entity == "PERSON":
                words.setdefault(document.text[s.start : s.end], set()).add(s.identity)
        assert words and all(len(ids) == 1 for ids in words.values())


def test_two_people_joined_by_and_stay_two() -> None:
    """N12: 'Aurelio and Nim' are two, and the second Nim is the first one."""
    text = CASES["N12"]["input"]
    spans = [s for s in tagger(("patterns",), ("US", "GB")).tag(text).spans if s.entity == "PERSON"]
    assert [text[s.start : s.end] for s in spans] == ["Aurelio", "Nim", "Nim"]
    assert spans[1].identity == spans[2].identity != spans[0].identity


@pytest.mark.parametrize("size", [0, 1, 4, 5, 17])
def test_a_number_is_found_at_every_offset(size: int) -> None:
    """L02: there is no chunk border in which a card number gets lost."""
    card = "4111 1111 1111 1111"
    text = "filler words " * 40_000
    for at in range(499_960 + size, 500_060, 18):
        whole = f"{text[:at]} {card} {text[at:600_000]}"
        assert any(s.entity == "CREDIT_CARD" for s in tagger(("patterns",), ("US", "GB")).tag(whole[at - 200 : at + 200]).spans)


def test_long_texts_keep_document_offsets() -> None:
    """L03: more than a million characters, a phone at the end."""
    text = "Nothing to see here, walk on. " * 40_000 + "Ring 202-555-0143"
    spans = tagger(("patterns",), ("US", "GB")).tag(text).spans
    assert [(text[s.start : s.end], s.entity) for s in spans] == [("202-555-0143", "PHONE")]
