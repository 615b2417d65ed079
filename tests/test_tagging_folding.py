"""The folded copy: what is folded, and that every span comes back exactly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpredact.tagging.folding import fold

# Letters that fold, letters that do not, and what stands between them.
PIECES = st.lists(
    st.sampled_from(
        ["a", "Ode", "e\u0301", "\u00e9", "\ufb01", "\u200b", "\u200d", "\u00ad", "\uff20", "@", "%40", "%C3%A9",
         "%zz", "\u043e", "x\u043e", "\u0416", "  ", "\t ", " ", "\n", "\r\n", "\r", "-\n", "\u2011", "\u00bd",
         "\u0663", "\U0001f600", "\ufeff", "\u00a0", ".", "Brenn-\n  wald", "\u1f64", "\ud55c", "\u2028", "\u0307"]
    ),
    max_size=30,
).map("".join)  # fmt: skip


@given(PIECES)
def test_every_span_of_the_copy_maps_to_a_span_of_the_original(text: str) -> None:
    """Spans come back inside the text, in order, not empty, and fold to what they were."""
    folded = fold(text)
    last = 0
    for at in range(len(folded.text)):
        start, end = folded.original(at, at + 1)
        assert 0 <= start < end <= len(text)
        assert start >= last or folded.original(at - 1, at)[0] == start
        last = max(last, start)
        if text[start:end] == folded.text[at]:
            continue
        # A piece that changed comes back whole: no mark of it is left outside.
        low, high = folded.copy(start, end)
        assert low <= at < high


@given(PIECES)
def test_the_whole_copy_is_the_whole_original_but_for_invisible_ends(text: str) -> None:
    folded = fold(text)
    if folded.text:
        start, end = folded.original(0, len(folded.text))
        assert not fold(text[:start]).text.strip()
        assert not fold(text[end:]).text.strip()


@given(st.text(alphabet=st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="%-")))
def test_plain_text_is_its_own_copy(text: str) -> None:
    assert fold(text).text == text


@pytest.mark.parametrize(
    ("text", "copy"),
    [
        ("odalys@\u200bexample.com", "odalys@example.com"),
        ("perrin\uff20example.com", "perrin@example.com"),
        ("\u043edalys@example.com", "odalys@example.com"),  # a Cyrillic o in a Latin word
        ("\u043e\u043d \u0436\u0438\u0432\u0451\u0442", "\u043e\u043d \u0436\u0438\u0432\u0451\u0442"),  # Russian stays
        ("?u=odalys%40example.com", "?u=odalys@example.com"),
        ("50%zz", "50%zz"),
        ("Zoe\u0308   und", "Zo\u00eb und"),
        ("Brenn-\nwald", "Brennwald"),
        ("Aldwick-\n  Stone", "Aldwick-Stone"),
        ("a \r\nb", "a\nb"),
        ("202\u2011555", "202-555"),
        ("\u0662\u0660\u0662", "202"),
    ],
)
def test_what_is_folded(text: str, copy: str) -> None:
    assert fold(text).text.replace("\n", " ") == copy.replace("\n", " ")


def test_prose_goes_on_over_a_line_break_and_fields_do_not() -> None:
    assert "by Odalys Brennwald on" in fold("signed for by\nOdalys\nBrennwald\non Tuesday.").text
    assert fold("Age: 47\nSex: F\nWard: 6").text == "Age: 47\nSex: F\nWard: 6"
    assert fold("Perrin Maraq\nIlse Quarrington").text == "Perrin Maraq\nIlse Quarrington"


def test_marks_come_back_with_their_letters() -> None:
    """No combining mark and no half of a ligature stays behind."""
    text = "x Zoe\u0308 y"
    folded = fold(text)
    start = folded.text.index("Zo")
    assert text[slice(*folded.original(start, start + 3))] == "Zoe\u0308"


def test_the_text_does_not_print() -> None:
    assert "Odalys" not in repr(fold("Odalys  Brennwald"))
