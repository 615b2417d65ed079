"""From findings to disjoint spans: borders, overlaps, names, identities, further mentions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpredact.errors import PolicyError
from dpredact.policy import TaggerSettings
from dpredact.tagging import agree, combined, identity, merge, vetoes
from dpredact.tagging.interface import Span, Tagging

TEXT = "Dr Odalys Brennwald, aged 52, met Tovin Maraq-Stone and O'Brien's (202) 555-0143; Odalys left. "
SPANS = st.builds(
    lambda start, size, entity, score: Span(start, min(start + size, len(TEXT)), entity, score, ("model",)),
    st.integers(0, len(TEXT) - 1),
    st.integers(1, 40),
    st.sampled_from(["PERSON", "LOCATION", "ORG", "PHONE", "DATE", "AGE", "ID", "ADDRESS"]),
    st.floats(0.5, 1),
)


class Fixed:
    """A tagger that always says the same."""

    def __init__(self, *spans: Span, name: str = "fixed", complete: bool = True) -> None:
        self.name, self._tagging = name, Tagging(spans, complete, () if complete else ("a gap",))

    def tag(self, text: str) -> Tagging:
        return self._tagging


def words(text: str, spans: list[Span] | tuple[Span, ...]) -> list[str]:
    return [text[s.start : s.end] for s in spans]


@given(st.lists(SPANS, max_size=8))
def test_contract_of_every_result(spans: list[Span]) -> None:
    """Sorted, disjoint, not empty, no white space or stray punctuation at the ends, whole words."""
    found = combined.Combined([Fixed(*spans)]).tag(TEXT).spans
    last = 0
    for s in found:
        assert last <= s.start < s.end <= len(TEXT)
        last = s.end
        piece = TEXT[s.start : s.end]
        assert piece[0].isalnum() or (s.entity == "PHONE" and piece[0] in "(+")
        assert piece[-1].isalnum() or (piece[-1] == ")" and "(" in piece)  # a bracket opened inside closes
        assert s.identity is not None
        assert not (TEXT[s.start - 1 : s.start].isalnum() and piece[0].isalnum())


@given(st.lists(SPANS, max_size=6))
def test_flattening_uncovers_no_word(spans: list[Span]) -> None:
    """Every word with a capital of a person, place, organisation or address stays covered."""
    snapped = [t for s in spans if (t := merge.snap(TEXT, s))]
    flat = merge.flatten(TEXT, snapped)
    covered = {i for s in flat for i in range(s.start, s.end)}
    for s in snapped:
        if s.entity in ("PERSON", "LOCATION", "ORG", "ADDRESS"):
            lost = [i for i in range(s.start, s.end) if TEXT[i].isupper() and i not in covered]
            assert not lost


@pytest.mark.parametrize(
    ("start", "end", "entity", "wanted"),
    [
        (2, 9, "PERSON", "Odalys"),
        (12, 21, "PERSON", "Brennwald"),
        (33, 43, "PERSON", "Tovin Maraq-Stone"),  # a hyphen ties the name
        (56, 65, "PERSON", "O'Brien"),  # its own apostrophe stays, the possessive goes
        (65, 81, "PHONE", "(202) 555-0143"),
    ],
)
def test_spans_snap_to_words(start: int, end: int, entity: str, wanted: str) -> None:
    span = merge.snap(TEXT, Span(start, end, entity))
    assert span and TEXT[span.start : span.end] == wanted


def test_the_longest_wins_and_sources_are_joined() -> None:
    text = "Odalys Brennwald"
    flat = merge.flatten(text, [Span(0, 6, "PERSON", 0.9, ("a",)), Span(0, 16, "PERSON", 0.6, ("b",))])
    assert flat == [Span(0, 16, "PERSON", 0.9, ("a", "b"))]


def test_what_a_winner_leaves_over_stays_a_span() -> None:
    """O02: a phone inside a longer guess; the name beside it is not lost."""
    text = "Brennwald 2025550143 then"
    phone = Span(10, 20, "PHONE", 0.95, ("patterns:phone",))
    flat = merge.flatten(text, [phone, Span(0, 20, "ORG", 0.6, ("model",))])
    assert [(text[s.start : s.end], s.entity) for s in flat] == [("Brennwald", "ORG"), ("2025550143", "PHONE")]


def test_names_joined_by_and_are_split_and_parts_are_joined() -> None:
    text = "Aurelio and Nim, and Odalys Brennwald"
    pieces = list(merge.split_names(text, Span(0, 15, "PERSON")))
    assert words(text, pieces) == ["Aurelio", "Nim"]
    joined = merge.join_names(text, [Span(0, 7, "PERSON"), Span(21, 27, "PERSON"), Span(28, 37, "PERSON")])
    assert words(text, joined) == ["Aurelio", "Odalys Brennwald"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("ELPHBERG, Rudolf, born", ["ELPHBERG, Rudolf"]),
        ("Patient: Kowalczyk, Sarah\n", ["Kowalczyk, Sarah"]),
        ("Kowalczyk, Sarah and Tom left", ["Kowalczyk", "Sarah"]),
        ("ELPHBERG, Zzyzx, born", ["ELPHBERG", "Zzyzx"]),
    ],
)
def test_a_surname_before_its_given_name_is_one_person(text: str, wanted: list[str]) -> None:
    comma = text.index(",")
    first, rest = text[:comma].split()[-1], text[comma + 2 :]
    given_name = rest.split()[0].strip(",")
    at, then = text.index(first), comma + 2
    pair = [Span(at, comma, "PERSON"), Span(then, then + len(given_name), "PERSON")]
    assert words(text, merge.join_names(text, pair)) == wanted


def test_an_unmapped_type_is_an_error() -> None:
    """A type that no group can name must not vanish in silence."""
    with pytest.raises(PolicyError, match="SHOE_SIZE"):
        combined.Combined([Fixed(Span(0, 5, "SHOE_SIZE"))]).tag("thing")


def test_one_incomplete_tagger_makes_the_whole_incomplete() -> None:
    tagging = combined.Combined([Fixed(), Fixed(complete=False), Fixed(complete=False)]).tag("text")
    assert not tagging.complete and tagging.reasons == ("a gap",)


# -- who is who -------------------------------------------------------------------------


def people(text: str, *names: str) -> dict[str, int | None]:
    """Identity of each name's first place in the text."""
    spans = [Span(text.index(n), text.index(n) + len(n), "PERSON") for n in names]
    numbered = identity.number(text, sorted(spans))
    return {text[s.start : s.end]: s.identity for s in numbered}


def test_forms_of_one_name_are_one_person() -> None:
    text = "Brennwald came. ODALYS BRENNWALD said O. Brennwald, Odalys B. and Dr Odalys are one; so is Ilse."
    ids = people(text, "Brennwald", "ODALYS BRENNWALD", "O. Brennwald", "Odalys B", "Dr Odalys", "Ilse")
    assert len({v for k, v in ids.items() if k != "Ilse"}) == 1
    assert ids["Ilse"] not in {v for k, v in ids.items() if k != "Ilse"}


def test_relatives_are_two_people_and_a_surname_alone_is_the_last_of_them() -> None:
    text = "Jonquil Aldwick met Herb Aldwick. Later Aldwick, the other one, left."
    spans = [Span(0, 15, "PERSON"), Span(20, 32, "PERSON"), Span(40, 47, "PERSON")]
    first, second, third = (s.identity for s in identity.number(text, spans))
    assert first != second and third == second


def test_numbers_count_in_order_of_mention() -> None:
    text = "Tovin, Ilse, Tovin"
    spans = [Span(0, 5, "PERSON"), Span(7, 11, "PERSON"), Span(13, 18, "PERSON")]
    assert [s.identity for s in identity.number(text, spans)] == [0, 1, 0]


def test_values_are_one_in_any_writing() -> None:
    text = "202-555-0143 or 202 555 0143"
    spans = [Span(0, 12, "PHONE"), Span(16, 28, "PHONE")]
    assert len({s.identity for s in identity.number(text, spans)}) == 1


def test_further_mentions_are_found_in_any_case_and_folded() -> None:
    text = "Zoë Brennwald called. brennwald, ZOE; Brennwaldson did not."
    more = identity.mentions(text, [Span(0, 13, "PERSON")])
    assert words(text, more) == ["brennwald", "ZOE"]


def test_a_name_that_is_a_word_spreads_only_where_it_cannot_be_the_word() -> None:
    text = "May Brennwald wrote. May left the may tree before May ended, on 3 May, and May we go?"
    more = identity.mentions(text, [Span(0, 13, "PERSON")])
    assert [s.start for s in more] == [21]


def test_a_word_is_one_thing_throughout() -> None:
    text = "Odalys came. Odalys went."
    spans = [Span(0, 6, "PERSON", 0.7, ("a",)), Span(13, 19, "LOCATION", 0.85, ("b",))]
    assert {s.entity for s in agree.agree(text, spans)} == {"PERSON"}


@pytest.mark.parametrize(
    ("text", "words_", "entity"),
    [
        ("see file 6005 there", "6005", "DATE"),
        ("bearing 32° north", "32°", "DATE"),
        ("left at noon today", "noon", "TIME"),
        ("two Apple chargers", "Apple", "ORG"),
        ("SSN on file", "SSN", "ORG"),
        ("Said no to it", "Said", "PERSON"),
        ("the meeting room", "meeting room", "PERSON"),
        ("Monday it rained", "Monday", "DATE"),
        ("unit 12 ok", "12", "PHONE"),
    ],
)
def test_findings_that_their_words_contradict_are_dropped(text: str, words_: str, entity: str) -> None:
    at = text.index(words_)
    assert vetoes.vetoed(text, Span(at, at + len(words_), entity, 0.9, ("model",)), False)


@pytest.mark.parametrize(
    ("text", "words_", "entity"),
    [
        ("in 1997 he", "1997", "DATE"),
        ("for two years", "two years", "DATE"),
        ("at 5 pm sharp", "5 pm", "TIME"),
        ("met Apple in court", "Apple", "ORG"),
        ("with Grace there", "Grace", "PERSON"),
        ("in September he", "September", "DATE"),
    ],
)
def test_others_stay(text: str, words_: str, entity: str) -> None:
    at = text.index(words_)
    assert vetoes.vetoed(text, Span(at, at + len(words_), entity, 0.9, ("model",)), False) is None


def test_settings_are_checked() -> None:
    for changes in ({"use": ("patterns", "oracle")}, {"use": ("patterns",), "regions": ("US", "XX")}):
        with pytest.raises(PolicyError):
            combined.build(TaggerSettings(**changes), None, False)


def test_an_unknown_word_behind_a_name_is_its_surname() -> None:
    """A finder that calls the surname a town does not cut the person in two."""
    text = "Call Sable Winterbourne, Sable Paris"
    spans = [Span(5, 10, "PERSON"), Span(11, 23, "LOCATION"), Span(25, 30, "PERSON"), Span(31, 36, "LOCATION")]
    assert [(text[s.start : s.end], s.entity) for s in merge.join_names(text, spans)] == [
        ("Sable Winterbourne", "PERSON"), ("Sable", "PERSON"), ("Paris", "LOCATION"),
    ]  # fmt: skip
