"""Changes that must not change what is found, and the speed of the rules.

The texts are made of invented people and of sentences of many kinds; every property is
checked on all of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpredact.tagging import combined
from dpredact.tagging.interface import Span, Tagging
from dpredact.tagging.patterns import PatternTagger, anchors, interface

RULES = combined.Combined([PatternTagger()])

PARAGRAPHS = [
    "Dr Odalys Brennwald saw Tovin Maraq, aged 52, on 3 March 2031 at St Aldwick Hospital.",
    "Please forward this to Ilse Quarrington (ilse.q@example.com, 202-555-0143) before 17:30.",
    "CLAIMANT: Perrin Vantongeren\nAddress: 12 Maple Street, Springfield, IL 62701\nAge: 47\nSSN: 219-09-9999",
    "My name is Sol and I grew up in Reading. My sister Jonquil Aldwick-Stone works for Heron Tools Ltd.",
    "The card 4111 1111 1111 1111 and IBAN GB82 WEST 1234 5698 7654 32 belong to Herb Aldwick.",
    "Case no. 47335/06, filed 2031-02-27 by Ms A. Rönquist of Copenhagen; see https://example.org/a?u=1 for more.",
    "Tovin said that the twins, Aurelio and Nim, start in March 2031. Nim's mother paid EUR 5,443.70.",
    "El señor Aurelio Brennwald vive en la Calle Mayor 5 y nació el 3 de marzo de 1961, según el informe del hospital.",
]
texts = st.lists(st.sampled_from(PARAGRAPHS), min_size=1, max_size=4).map("\n\n".join)


def lost(text: str, other: str, move: Callable[[int], int]) -> list[tuple[str, str]]:
    """Findings of `text` that `other` does not cover, letter for letter."""
    covered = {i for s in RULES.tag(other).spans for i in range(s.start, s.end)}
    return [
        (text[s.start : s.end], s.entity)
        for s in RULES.tag(text).spans
        if any(text[i].isalnum() and move(i) not in covered for i in range(s.start, s.end))
    ]


@given(texts)
@settings(max_examples=30, deadline=None)
def test_a_final_full_stop(text: str) -> None:
    bare = text.rstrip(".")
    assert not lost(bare, bare + ".", lambda i: i)
    assert not lost(bare + ".", bare, lambda i: i)


@given(texts)
@settings(max_examples=30, deadline=None)
def test_line_ends_of_the_other_world(text: str) -> None:
    assert not lost(text, text.replace("\n", "\r\n"), lambda i: i + text.count("\n", 0, i))


@given(texts, st.sampled_from(["\ufeff", "\U0001f600 ", "\u200b", "* ", "> ", "  "]))
@settings(max_examples=30, deadline=None)
def test_something_in_front(text: str, front: str) -> None:
    """A byte-order mark, an emoji, a bullet, a quote mark."""
    assert not lost(text, front + text, lambda i: i + len(front))


@given(texts)
@settings(max_examples=30, deadline=None)
def test_doubled_spaces(text: str) -> None:
    assert not lost(text, text.replace(" ", "  "), lambda i: i + text.count(" ", 0, i))


@given(texts)
@settings(max_examples=30, deadline=None)
def test_no_break_spaces(text: str) -> None:
    assert not lost(text, text.replace(" ", "\u00a0"), lambda i: i)


@given(texts)
@settings(max_examples=30, deadline=None)
def test_soft_hyphens_and_zero_width_spaces_inside_words(text: str) -> None:
    """A mark after every third character hides nothing."""
    out, place = [], []
    for i, char in enumerate(text):
        place.append(len(out))
        out.append(char)
        if i % 3 == 2 and char.isalnum() and text[i + 1 : i + 2].isalnum():
            out.append("\u200b")
    assert not lost(text, "".join(out), lambda i: place[i])


@pytest.mark.parametrize("text", PARAGRAPHS[:-1])
def test_a_paragraph_in_capitals(text: str) -> None:
    """People, numbers and dates are found whatever the case."""
    assert not lost(text, text.upper(), lambda i: i)


@given(st.lists(st.sampled_from(PARAGRAPHS), min_size=2, max_size=4), st.integers(1, 3))
@settings(max_examples=30, deadline=None)
def test_a_document_in_two_parts(parts: list[str], cut: int) -> None:
    """Splitting at a paragraph loses only what propagation carried over."""
    cut = min(cut, len(parts) - 1)
    first, second = "\n\n".join(parts[:cut]), "\n\n".join(parts[cut:])
    whole = f"{first}\n\n{second}"
    shift = len(first) + 2
    covered = {i for s in RULES.tag(first).spans for i in range(s.start, s.end)}
    covered |= {i + shift for s in RULES.tag(second).spans for i in range(s.start, s.end)}
    for s in RULES.tag(whole).spans:
        if not any("propagation" in source for source in s.sources):
            assert all(i in covered for i in range(s.start, s.end) if whole[i].isalnum())


@given(st.text(max_size=300))
@settings(max_examples=200, deadline=None)
def test_no_text_breaks_it(text: str) -> None:
    """Any text at all: disjoint spans inside it, no white space at their ends."""
    last = 0
    for s in RULES.tag(text).spans:
        assert last <= s.start < s.end <= len(text)
        assert not text[s.start].isspace() and not text[s.end - 1].isspace()
        last = s.end


@given(texts)
@settings(max_examples=30, deadline=None)
def test_looking_only_where_a_rule_can_match_finds_the_same(text: str) -> None:
    """The exact slow twin: every pattern tried on every character."""
    fast = PatternTagger().read(text)
    with pytest.MonkeyPatch.context() as patch:
        whole = lambda p, text: p.finditer(text)  # noqa: E731
        patch.setattr(interface.Reading, "near", lambda self, n, p, t=None: whole(p, t or self.text))
        patch.setattr(interface.Reading, "near_heads", lambda self, r, b, a: whole(r.pattern, self.text))
        patch.setattr(interface.Reading, "anchored", lambda self, r, t=None: whole(r.pattern, t or self.text))
        patch.setattr(interface.Reading, "on_lines", lambda self, p, m, t=None: whole(p, t or self.text))
        assert PatternTagger().read(text) == fast


def test_heads_are_flat() -> None:
    """A head in capitals or with an accent would never be found."""
    from dpredact.tagging import identity

    for rule in anchors._all:
        for head in rule.heads:
            assert identity.flat(head) == head


def test_the_rules_are_fast() -> None:
    """200,000 characters a second of processor time, on prose with something to find in it."""
    prose = (
        "The committee met again in the afternoon and went through the plans for the new bridge. Nobody had read the "
        "report in full, so the chair summed it up and asked for questions. There were few. The budget, it was said, "
        "would have to wait for another year, and the engineers would be told so in writing by the end of the week. "
    )
    text = "\n\n".join(prose + p for p in PARAGRAPHS[:-1] * 80)
    RULES.tag(text[:20_000])
    best = 0.0
    for _ in range(3):
        start = time.process_time()
        RULES.tag(text)
        best = max(best, len(text) / (time.process_time() - start))
    assert best > 200_000


class Nervous:
    """A tagger as models are: it names the last word only if the text ends in a full stop."""

    name = "nervous"

    def tag(self, text: str) -> Tagging:
        if not text.endswith("."):
            return Tagging(())
        at = text.rstrip(".").rfind(" ") + 1
        return Tagging((Span(at, len(text), "PERSON", 0.9, ("nervous",)),))


def test_models_see_a_last_sentence_that_ends() -> None:
    """Whether the last full stop is there decides nothing, and no span reaches behind the text."""
    tagger = combined.Combined([Nervous()])
    for text in ("we met Zzyq", "we met Zzyq."):
        assert [(s.start, s.end) for s in tagger.tag(text).spans] == [(7, 11)]
