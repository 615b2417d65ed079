"""The owner's word lists: whole words, every form of a name, and nothing that prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpredact import tagging
from dpredact.errors import PolicyError
from dpredact.policy import TaggerSettings
from dpredact.tagging import combined, wordlist


def lists(tmp_path: Path, text: str, **settings: object) -> combined.Combined:
    path = tmp_path / "names.yaml"
    path.write_text(text, encoding="utf-8")
    return tagging.build(TaggerSettings(lists=str(path), **({"use": ()} | settings)))


def found(tagger: combined.Combined, text: str) -> list[tuple[str, str]]:
    return [(text[s.start : s.end], s.entity) for s in tagger.tag(text).spans]


def test_denied_words_are_whole_words(tmp_path: Path) -> None:
    """N17: not inside a longer word."""
    tagger = lists(tmp_path, "deny: [Brennwald, {text: HX-77, entity: ID}]")
    assert found(tagger, "Brennwaldson wrote to Brennwald.") == [("Brennwald", "DENY")]
    assert found(tagger, "BRENNWALD's hx-77, HX-770") == [("BRENNWALD", "DENY"), ("hx-77", "ID")]


def test_denied_words_are_found_over_a_line_break_and_folded(tmp_path: Path) -> None:
    tagger = lists(tmp_path, "deny: [Project Heron]")
    assert found(tagger, "the Project\nHeron and Proje\u200bct  Heron") == [
        ("Project\nHeron", "DENY"), ("Proje\u200bct  Heron", "DENY")
    ]  # fmt: skip


def test_every_form_of_a_subject(tmp_path: Path) -> None:
    tagger = lists(tmp_path, "subjects: [Odalys Jane van der Brennwald]")
    text = (
        "Odalys Jane van der Brennwald; BRENNWALD, Odalys; O. Brennwald; O. J. Brennwald; Ms Brennwald's; "
        "odalys; Odalys B.; OJB; Odalys Brennwald; Brennwalder; Jane"
    )
    spans = tagger.tag(text).spans
    assert [text[s.start : s.end] for s in spans] == [
        "Odalys Jane van der Brennwald", "BRENNWALD, Odalys", "O. Brennwald", "O. J. Brennwald",
        "Ms Brennwald", "odalys", "Odalys B", "OJB", "Odalys Brennwald", "Jane",
    ]  # fmt: skip
    assert {s.entity for s in spans} == {"PERSON"}


def test_a_subject_whose_name_is_a_word_keeps_its_capital(tmp_path: Path) -> None:
    tagger = lists(tmp_path, "subjects: [May Rose]")
    assert found(tagger, "May left in May with a rose; Rose stayed.") == [("May", "PERSON"), ("Rose", "PERSON")]


def test_subjects_listed_apart_stay_apart(tmp_path: Path) -> None:
    """N16: a name that is part of another one."""
    text = "Tessaly K agreed. Tessaly did not."
    together = lists(tmp_path, "subjects: [Tessaly K]").tag(text).spans
    apart = lists(tmp_path, "subjects: [Tessaly K, Tessaly]").tag(text).spans
    assert [s.identity for s in together] == [0, 0]
    assert [s.identity for s in apart] == [0, 1]


def test_allowed_words_go_unless_they_are_part_of_a_longer_name(tmp_path: Path) -> None:
    rules = {"use": ("patterns",)}
    tagger = lists(tmp_path, "allow: [Ilse]", **rules)
    assert found(tagger, "We met Ilse there.") == []
    assert found(tagger, "We met Ilse Quarrington there.") == [("Ilse Quarrington", "PERSON")]


@pytest.mark.parametrize(
    "text",
    ["- Odalys", "deni: [Odalys]", "deny: Odalys", "deny: [{entity: ID}]", "deny: [{text: Odalys, entity: NOTHING}]",
     "subjects: [{name: Odalys, also: Ody}]", "deny: [Odalys]\nallow: [odalys]", "subjects: [{also: [Odalys]}]"],
)  # fmt: skip
def test_wrong_files_are_errors_without_words(tmp_path: Path, text: str) -> None:
    with pytest.raises(PolicyError) as error:
        lists(tmp_path, text)
    assert "dalys" not in f"{error.value} {error.value.next_step} {error.value.place}"


def test_lists_do_not_print(tmp_path: Path) -> None:
    made = wordlist.parse({"deny": ["Odalys"], "subjects": ["Tovin Maraq"]})
    assert "Odalys" not in repr(made) and "Tovin" not in repr(made)
    assert "Tovin" not in repr(made.subjects)
