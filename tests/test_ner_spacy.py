"""The spaCy tagger on invented texts: what it finds, and that it keeps nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpredact.errors import ModelError
from dpredact.lm import catalog
from dpredact.policy import TaggerSettings
from dpredact.tagging import offices, spacy_ner

needs_model = pytest.mark.skipif(
    not catalog.present("en-core-web-sm"), reason="run `dpredact models fetch en-core-web-sm`"
)


@pytest.fixture(scope="module")
def tagger() -> spacy_ner.SpacyTagger:
    return spacy_ner.load(TaggerSettings())


def found(tagger: spacy_ner.SpacyTagger, text: str) -> set[tuple[str, str]]:
    return {(text[s.start : s.end], s.entity) for s in tagger.tag(text).spans}


@needs_model
def test_names_places_and_dates_get_the_house_names(tagger: spacy_ner.SpacyTagger) -> None:
    text = "Jonquil Aldwick moved from Boston to Lisbon on 3 March 2019. She is 52 years old."
    spans = found(tagger, text)
    assert ("Jonquil Aldwick", "PERSON") in spans
    assert {("Boston", "LOCATION"), ("Lisbon", "LOCATION")} <= spans
    assert ("3 March 2019", "DATE") in spans
    assert ("52 years old", "AGE") in spans


@needs_model
def test_offsets_hold_far_behind_the_first_window(tagger: spacy_ner.SpacyTagger) -> None:
    """spaCy refuses a million characters; the tagger reads them and counts from the start."""
    filler = "The committee met and the minutes were approved without a vote.\n" * 16_500
    text = filler + "Afterwards Jonquil Aldwick flew to Lisbon."
    assert len(text) > 1_000_000
    tagging = tagger.tag(text)
    words = {text[s.start : s.end] for s in tagging.spans}
    assert {"Jonquil Aldwick", "Lisbon"} <= words and tagging.complete


@needs_model
def test_names_at_every_place_of_a_window_border(
    tagger: spacy_ner.SpacyTagger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spacy_ner, "WINDOW", 200)
    monkeypatch.setattr(spacy_ner, "OVERLAP", 60)
    for pad in range(0, 120, 7):
        text = "word " * 20 + "x" * pad + " and then Jonquil Aldwick flew to Lisbon. " + "word " * 40
        assert "Jonquil Aldwick" in {w for w, _ in found(tagger, text)}, pad


@needs_model
def test_no_word_of_a_text_stays_behind(tagger: spacy_ner.SpacyTagger) -> None:
    """The memory zone drops the strings that a text brought in: memory stays flat."""
    tagger.tag("Warm up.")
    strings = tagger._nlp.vocab.strings
    before = len(strings)
    tagger.tag("Qwzxvalda Brzmpftik met Xqorvandel in Zzyxwabad.")
    assert "Brzmpftik" not in strings and len(strings) == before


@needs_model
def test_a_paragraph_in_another_language_is_a_gap(tagger: spacy_ner.SpacyTagger) -> None:
    german = "Sie hat mir gesagt, dass sie nicht mit dem Zug und auch nicht mit dem Auto kommt."
    tagging = tagger.tag(f"This is the first part of the report.\n\n{german}\n")
    assert not tagging.complete
    assert "German" in tagging.reasons[0] and "paragraph 2" in tagging.reasons[0]
    vouched = spacy_ner.SpacyTagger(tagger._nlp, languages="en,de")
    assert vouched.tag(german).complete


def test_a_damaged_pipeline_is_an_error_without_a_traceback_of_words(tmp_path: Path) -> None:
    (tmp_path / "meta.json").write_text("{", encoding="utf-8")
    with pytest.raises(ModelError) as error:
        spacy_ner.load_pipeline(tmp_path)
    assert "fetch" in error.value.next_step


@pytest.mark.parametrize(
    ("words", "entity"),
    [
        ("3 March 2019", "DATE"),
        ("52-year-old", "AGE"),
        ("aged 14", "AGE"),
        ("1998", "DATE"),
        ("6005", None),
        ("32° 34", None),
        ("p. 629", None),
    ],
)
def test_what_spacy_calls_a_date(words: str, entity: str | None) -> None:
    assert spacy_ner.dated(words) == entity


@pytest.mark.parametrize(
    ("text", "words", "out"),
    [
        ("so #Gratitude to all", "Gratitude", True),
        ("Seller: Odalys", "Seller", True),
        ("Odalys: hello", "Odalys", False),
        ("the Seller came", "Seller", False),
    ],
)
def test_hashtags_and_labels_of_fields_are_no_names(text: str, words: str, out: bool) -> None:
    assert spacy_ner.no_name(text, text.index(words), words) == out


@pytest.mark.parametrize(
    "name", ["the Supreme Court", "The Ruritanian Government", "the Court of Appeal’s", "the Vaccination Act"]
)
def test_offices_and_laws_are_no_secret(name: str) -> None:
    assert offices.public(name)


@pytest.mark.parametrize(
    "name", ["the Strelsau Regional Court", "Acme Board", "the 5th Chamber", "Zenda Ltd", "", "Code"]
)
def test_one_organisation_is_not_an_office_as_such(name: str) -> None:
    """With a town, a name or a number in it, it may tell where somebody is."""
    assert offices.public(name) == (name == "Code")
