"""`dpredact eval tags`: the figures are those one counts by hand, and no word leaks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpredact.errors import UsageError
from dpredact.evaluation import spans
from dpredact.tagging.interface import Span, Tagging

TEXT = "Jonquil Aldwick met Tovin in Zenda on 3 March. Jonquil went home to the Zenda office."
GOLD = [
    {"start": 0, "end": 15, "label": "PERSON", "identifier_type": "DIRECT", "entity_id": "p1"},
    {"start": 20, "end": 25, "label": "PERSON", "identifier_type": "DIRECT", "entity_id": "p2"},
    {"start": 29, "end": 34, "label": "LOC", "identifier_type": "QUASI"},
    {"start": 38, "end": 45, "label": "DATETIME", "identifier_type": "QUASI"},
    {"start": 47, "end": 54, "label": "PERSON", "identifier_type": "DIRECT", "entity_id": "p1"},
    {"start": 72, "end": 84, "label": "ORG", "identifier_type": "NO_MASK"},
]


class Fixed:
    """A tagger that always finds the same spans."""

    name = "fixed"

    def __init__(self, *found: tuple[int, int, str]) -> None:
        self._found = tuple(Span(a, b, e, 1.0, ("fixed",)) for a, b, e in found)

    def tag(self, text: str) -> Tagging:
        return Tagging(self._found)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    file = tmp_path / "gold.jsonl"
    row = {"id": "d1", "split": "dev", "text": TEXT, "spans": GOLD}
    other = {"id": "d2", "split": "test", "text": "Nothing here.", "spans": []}
    file.write_text(json.dumps(row) + "\n\n" + json.dumps(other) + "\n", encoding="utf-8")
    return file


def result(data: Path, *found: tuple[int, int, str], words: bool = False) -> spans.Result:
    return spans.measure(Fixed(*found), spans.read(data, "dev"), words=words)


def test_everything_found_as_it_is(data: Path) -> None:
    found = [(0, 15, "PERSON"), (20, 25, "PERSON"), (29, 34, "LOCATION"), (38, 45, "DATE"),
             (47, 54, "PERSON")]  # fmt: skip
    r = result(data, *found)
    assert r.total.strict == r.total.covered == r.total.mentions == 5
    assert r.persons_covered == r.persons == 2
    assert r.found.characters_right == r.found.characters
    assert r.typed["strict"]["f1"] == 1.0 and not r.misses


def test_half_a_name_is_partial_and_its_person_not_covered(data: Path) -> None:
    """The last mention of p1 is missed: one miss is a leak of the person."""
    r = result(data, (0, 7, "PERSON"), (20, 25, "ORG"), (29, 45, "DATE"))
    person = r.by_label["PERSON"]
    assert (person.mentions, person.covered, person.partial, person.strict) == (3, 1, 1, 0)
    assert person.characters_found == 7 + 5 and person.characters == 14 + 5 + 7
    assert (r.persons, r.persons_covered) == (2, 1)
    assert r.misses["PERSON", "partly", "several words"] == 1
    assert r.misses["PERSON", "untouched", "one word"] == 1
    assert r.by_kind["DIRECT"].covered == 1 and r.by_kind["QUASI"].covered == 2
    assert r.by_label["LOC"].strict == 0  # covered by a longer finding of another class


def test_a_finding_on_a_name_that_needs_no_mask_is_false(data: Path) -> None:
    r = result(data, (72, 84, "ORG"), (20, 25, "PERSON"))
    assert "ORG" not in r.by_label
    assert r.by_entity["ORG"].characters_right == 0 and r.by_entity["PERSON"].right == 1
    assert r.found.characters == 11 + 5 and r.found.characters_right == 5


def test_white_space_inside_a_mention_need_not_be_found(data: Path) -> None:
    assert result(data, (0, 7, "PERSON"), (8, 15, "PERSON")).by_label["PERSON"].covered == 1


def test_shares_of_nothing_are_one() -> None:
    assert set(spans.Counts().shares().values()) == {1.0}


@pytest.mark.parametrize(
    ("label", "expected"),
    [("GPE", "PLACE"), ("NAME", "PERSON"), ("US_SSN", "CODE"), ("EMAIL_ADDRESS", "CODE"),
     ("DATETIME", "TIME"), ("MONEY", "QUANTITY"), ("NRP", "PEOPLE"), ("SKILL", "OTHER"),
     ("name", "PERSON"), ("First name", "PERSON"), ("B-PER", "PERSON"), ("city", "PLACE"),
     ("date-of-birth", "TIME"), ("phone number", "CODE"), ("employer", "ORG")],
)  # fmt: skip
def test_labels_are_compared_in_coarse_classes(label: str, expected: str) -> None:
    assert spans.class_of(label) == expected


@pytest.mark.parametrize(
    ("words", "kind"),
    [("Odalys", "one word"), ("Odalys B", "several words"), ("ODALYS", "capitals"),
     ("odalys", "lower case"), ("47", "digits"), ("a47", "with digits"), ("—", "signs")],
)  # fmt: skip
def test_how_a_mention_is_written(words: str, kind: str) -> None:
    assert spans.writing(words) == kind


@pytest.mark.parametrize(
    "line",
    ["no json", "[]", '{"text": "abc"}', '{"text": "abc", "spans": [{"start": 2, "end": 90, "label": "X"}]}'],
)
def test_a_bad_line_is_named_by_number_without_its_words(data: Path, line: str) -> None:
    with data.open("a", encoding="utf-8") as stream:
        stream.write(line.replace("abc", "Qwzxvalda") + "\n")
    with pytest.raises(UsageError) as error:
        list(spans.read(data))
    assert error.value.place == "gold.jsonl:4" and "Qwzxvalda" not in str(error.value)
    assert error.value.__suppress_context__


def run(*arguments: str) -> str:
    from dpredact.cli import eval as command

    done = CliRunner().invoke(command.app, ["tags", *arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_command_prints_no_words_unless_asked(data: Path) -> None:
    """Rules alone miss the bare names here; how many, and of which kind, is said."""
    plain = run(str(data), "--use", "patterns")
    assert "2 documents" in plain and "missed, by kind" in plain
    for word in ("Jonquil", "Aldwick", "Tovin"):
        assert word not in plain
    values = run(str(data), "--use", "patterns", "--show-values")
    assert "'Zenda'" in values


def test_json_is_one_object_with_the_same_figures(data: Path) -> None:
    out = json.loads(run(str(data), "--use", "patterns", "--split", "dev", "--json"))
    assert out["schema"] == 1 and out["documents"] == 1
    assert out["mentions"]["mentions"] == 5 and "missed" not in out
    assert out["by_label"]["DATETIME"]["covered"] == 1.0
    assert "Tovin" not in json.dumps(out)


def test_a_missing_file_is_a_usage_error() -> None:
    from dpredact.cli import eval as command

    done = CliRunner().invoke(command.app, ["tags", "absent.jsonl"])
    assert isinstance(done.exception, UsageError)
