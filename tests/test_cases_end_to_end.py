"""The reported cases of files, Unicode and length, through `rewrite` with the redact preset.

Nothing private stays, nothing else changes: every byte outside a label is the input's.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from dpredact import documents, pipeline
from dpredact.certificate import verify
from dpredact.policy import Policy, load
from dpredact.tagging import build

ROOT = Path(__file__).parent
KINDS = ("structure", "unicode", "long")
FILES = {"S03": "people.csv", "S04": "note.html"}
LABEL = re.compile(r"\[[A-Z]+\]")


def cases() -> list[dict]:
    lines = (ROOT / "data" / "tagging_cases.jsonl").read_text(encoding="utf-8").splitlines()
    found = [c for c in map(json.loads, lines) if c["kind"] in KINDS]
    for case in found:  # the two long ones describe their filler in words
        if case["id"] == "L02":
            filler = "plain words of a long report. " * 400
            case["input"] = f"{filler}4111 1111 1111 1111 {filler}"
        elif case["id"] == "L03":
            case["input"] = "plain words of a long report. " * 40_000 + "202-555-0143"
    return found


@pytest.fixture(scope="module")
def policy() -> Policy:
    return load(ROOT.parent / "configs" / "redact.yaml")


@pytest.fixture(scope="module")
def tagger(policy: Policy) -> object:
    # Rules alone for the long text: the finders take minutes for a million characters.
    return build(policy.tagger.model_copy(update={"use": ("patterns",)}), policy)


@pytest.mark.parametrize("case", cases(), ids=lambda c: c["id"])
def test_a_case_goes_through_rewrite(case: dict, policy: Policy, tagger: object) -> None:
    source = case["input"]
    document = documents.read(source.encode("utf-8"), FILES.get(case["id"], "note.txt"))
    release = pipeline.rewrite(document, policy, tagger=tagger)  # type: ignore[arg-type]
    out = release.data.decode("utf-8")
    for words, _ in case["must_not_survive"]:
        assert words not in out
    for words in case["must_survive"]:
        assert words in out
    assert verify(release.data, release.certificate).ok
    # Cut the output at its labels: the pieces stand in the input, in order, to the byte.
    # A name over a tag border leaves its label in the first place and nothing in the second,
    # so in markup the pieces are cut at the tags as well.
    at = 0
    cut = re.compile(r"\[[A-Z]+\]|(?<=>)|(?=<)") if case["id"] == "S04" else LABEL
    pieces = cut.split(out)
    for piece in filter(None, pieces):
        found = source.find(piece, at)
        assert found >= 0, "bytes outside a value changed"
        at = found + len(piece)
