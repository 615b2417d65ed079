"""Windows over long texts: all of it is read, and a name at a border is found whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpredact.tagging import onnx_ner, windows
from dpredact.tagging.interface import Span

TEXTS = st.text(alphabet="abc \n", max_size=300)


@given(text=TEXTS, size=st.integers(11, 80), overlap=st.integers(0, 5))
def test_every_character_is_in_a_window_and_neighbours_overlap(
    text: str, size: int, overlap: int
) -> None:
    cuts = list(windows.cut(text, size, overlap))
    assert all(0 <= c.start < c.end <= len(text) and c.end - c.start <= size for c in cuts)
    if text:
        assert cuts[0].start == 0 and cuts[-1].end == len(text)
    for before, after in zip(cuts, cuts[1:], strict=False):
        assert before.start < after.start and before.end - after.start >= overlap


def test_an_overlap_of_half_a_window_is_refused() -> None:
    with pytest.raises(ValueError):
        list(windows.cut("some text", 10, 5))


@given(tokens=st.integers(0, 2_000), window=st.integers(20, 200), share=st.integers(2, 9))
def test_each_token_is_owned_once_with_context_on_both_sides(
    tokens: int, window: int, share: int
) -> None:
    overlap = window // share
    owned = []
    for low, high, own, end in onnx_ner.plan(tokens, window, overlap):
        assert low <= own < end <= high and high - low <= window
        assert own - low >= overlap // 2 or low == 0
        assert high - end >= overlap // 2 or high == tokens
        owned += range(own, end)
    assert owned == list(range(tokens))


def test_halves_of_a_name_at_a_border_become_one() -> None:
    half, whole = Span(0, 6, "PERSON", 0.6, ("x",)), Span(2, 12, "PERSON", 0.9, ("x",))
    other = Span(5, 9, "ORG", 0.7, ("x",))
    assert windows.join([whole, other, half, half]) == [
        Span(0, 12, "PERSON", 0.9, ("x",)),
        other,
    ]


def test_a_name_that_runs_over_a_line_break_is_cut_there() -> None:
    """The next field's label is no part of the name; a name on two lines is two pieces."""
    form = "Claimant: Odalys Brennwald\nHANDLER: Tovin"
    span = Span(10, 34, "PERSON", 0.9, ("x",))
    assert [form[s.start : s.end] for s in windows.by_line(form, span)] == ["Odalys Brennwald"]
    address = "signed by\r\nOdalys \r\n Brennwald"
    pieces = list(windows.by_line(address, Span(9, len(address), "PERSON")))
    assert [address[s.start : s.end] for s in pieces] == ["Odalys", "Brennwald"]
