"""After writing: no tagged word stands in text that was not drawn; drawn text decides nothing."""

from __future__ import annotations

import pytest

from dpredact import documents
from dpredact.errors import NotCovered
from dpredact.policy import loads
from dpredact.tagging import Span, leftovers

POLICY = loads("""\
version: 1
groups:
  ORG: {entities: [ORG], method: keep}
  other: {entities: [PERSON], method: redact}
""")
TEXT = "Odalys Brennwald (12) of Brennwald & Co, page 12.\n\nSincerely\n"
SPANS = (
    Span(0, 16, "PERSON"), Span(18, 20, "AGE"), Span(25, 39, "ORG"),
)  # fmt: skip
CLEAN = "[other] ([other]) of Brennwald & Co, page 12.\n\nSincerely\n"


def search(written: str, meant: str = CLEAN, drawn: tuple[tuple[int, int], ...] = (), name: str = "a.txt") -> None:
    document = documents.read(TEXT.encode(), name)
    leftovers.search(document, written.encode(), meant, drawn, SPANS, POLICY)


def test_a_clean_file_passes_though_kept_words_hold_a_part_of_a_name() -> None:
    search(CLEAN)


@pytest.mark.parametrize(
    "left",
    ["Odalys Brennwald", "odalys", "ODALYS BRENNWALD", "Od\u00e1lys", "Brennwald", "Odalys\u200b Brennwald",
     "\uff2fdalys", "Odalys  Brennwald"],
)  # fmt: skip
def test_a_name_that_is_left_stops_the_file(left: str) -> None:
    with pytest.raises(NotCovered, match="PERSON") as caught:
        search(CLEAN + left + "\n")
    assert left not in str(caught.value) and caught.value.exit_code == 3


def test_a_number_may_stand_as_often_as_untagged_text_held_it() -> None:
    with pytest.raises(NotCovered, match="AGE"):
        search(CLEAN.replace("([other])", "(12)"))


def test_parts_of_longer_words_are_no_mentions() -> None:
    search(CLEAN + "Brennwalder 1234 Odalysia\n")


def test_drawn_words_are_not_compared() -> None:
    """The model may write anything by chance: whether the file goes out must not depend on it."""
    meant = "I met Odalys Brennwald, who is 12.\n\nSincerely\n"
    search(meant, meant, ((0, 34),))


def test_drawn_words_decide_nothing_where_the_file_reads_otherwise_than_meant() -> None:
    """Place no longer tells drawn words from kept ones: a copy without drawn words is searched."""
    text = "Odalysia fair.\n\nOdalys Brennwald came.\n"
    document = documents.read(text.encode(), "a.txt")
    edits = [documents.Edit(16, 32, "Odalys")]  # a search would find it in Odalysia
    meant = "Odalysia fair.\n\nOdalys came.\n"
    strange = meant.replace("fair", "fairs")  # the writer changed a kept word
    spans = (Span(16, 32, "PERSON"),)
    leftovers.search(document, strange.encode(), meant, ((16, 22),), spans, POLICY, edits)
    drawn, document = "Mark", documents.read(TEXT.encode(), "a.txt")
    kept = [documents.Edit(0, 16, drawn)]  # "12" is left where nothing was drawn
    meant = drawn + TEXT[16:]
    with pytest.raises(NotCovered, match="AGE"):
        leftovers.search(
            document, meant.replace("page", "p").encode(), meant.replace("(12)", ""), ((0, len(drawn)),), SPANS, POLICY, kept
        )


def test_a_file_that_is_not_what_was_meant_is_stopped() -> None:
    with pytest.raises(NotCovered, match="cannot be read again"):
        search("Something else.", "drawn text", ((0, 10),))
    with pytest.raises(NotCovered, match="cannot be read again"):
        leftovers.search(documents.read(b'{"a": "x"}', "a.json"), b'{"a": ', "x", (), (), POLICY)


def test_keys_and_attributes_are_searched() -> None:
    document = documents.read(b'{"Odalys": "Odalys"}', "a.json")
    start = document.text.index("Odalys")
    found = (Span(start, start + 6, "PERSON"),)
    with pytest.raises(NotCovered, match="PERSON"):
        leftovers.search(document, b'{"Odalys": "[other]"}', "[other]", (), found, POLICY)


def test_the_owner_is_told_what_reappeared() -> None:
    private = [("PERSON", "Odalys Brennwald"), ("AGE", "12"), ("PERSON", "Tovin")]
    assert leftovers.reappeared(["I met odalys, who is", "12 or so"], private) == [
        ("AGE", "12"), ("PERSON", "odalys"),
    ]  # fmt: skip
    assert leftovers.reappeared(["nobody"], private) == []
