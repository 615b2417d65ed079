"""What each view shows: no private word in the public one, nobody else's in a private one.

Untagged text is written in letters that private words never use, so that "a private word in
a view" is a question about single characters.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpredact import contexts
from dpredact.policy import Method, Policy
from dpredact.tagging.interface import Span

PUBLIC = "abc .,\n\U0001f642e\u0301ü\u200d"  # emoji, combining mark, joiner: code points count
GROUPS: dict[str, dict[str, Any]] = {
    "PERSON": {"entities": ["PERSON"], "method": "dp-fusion", "epsilon": 8},
    "DATE": {"entities": ["DATE"], "method": "dp-fusion", "epsilon": 8},
    "PLACE": {"entities": ["LOCATION", "ADDRESS"], "method": "invisible-ink", "epsilon": 8},
    "CODE": {"entities": ["EMAIL"], "method": "redact"},
    "KEPT": {"entities": ["ORG"], "method": "keep"},
    "other": {"entities": ["ID"], "method": "redact"},
}
# Letters of each entity's words; none of them is in PUBLIC, a label or a surrogate.
ALPHABET = {
    "PERSON": "\u0430\u0431\U0001f600", "DATE": "\u0906\u0907\u0301", "LOCATION": "\u4e00\u4e01",
    "ADDRESS": "\u4e02\u4e03", "EMAIL": "\u05d0\u05d1", "ORG": "\u1200\u1201", "ID": "\u10a0\u10a1",
}  # fmt: skip
HIDDEN = frozenset("".join(v for k, v in ALPHABET.items() if k != "ORG")) - {"\u0301"}


def policy(**top: Any) -> Policy:
    if top.get("mode") == "single":
        groups = {n: dict(g) for n, g in GROUPS.items()}
        groups["PLACE"]["method"] = "dp-fusion"
    else:
        groups = GROUPS
    return Policy.model_validate({"version": 1, "groups": groups, **top})


@dataclass(frozen=True)
class Tagged:
    text: str
    spans: tuple[Span, ...]


@st.composite
def documents(draw: st.DrawFn) -> Tagged:
    """A text of public stretches and tagged words, spans disjoint, in any order."""
    text, spans = "", []
    for _ in range(draw(st.integers(1, 8))):
        text += draw(st.text(PUBLIC, max_size=6))
        entity = draw(st.sampled_from(sorted(ALPHABET)))
        words = draw(st.text(ALPHABET[entity] + " ", min_size=1, max_size=5))
        identity = draw(st.none() | st.integers(0, 2))
        spans.append(Span(len(text), len(text) + len(words), entity, identity=identity))
        text += words
    text += draw(st.text(PUBLIC, max_size=4))
    return Tagged(text, tuple(draw(st.permutations(spans))))


def built(doc: Tagged, rules: Policy) -> contexts.Context:
    found = contexts.regions(doc.spans, rules)
    return contexts.build(doc.text, found, rules, 0, len(doc.text), contexts.Numbering())


def encode(text: str) -> list[int]:
    """Bytes, in pairs where they allow it: pieces cut elsewhere have other ids, as with BPE."""
    data = text.encode()
    return [int.from_bytes(data[i : i + 2], "big") for i in range(0, len(data), 2)]


placeholders = st.sampled_from(["label", "token", "surrogate"])


@given(documents(), placeholders)
def test_no_private_word_stands_in_the_public_view(doc: Tagged, placeholder: str) -> None:
    context = built(doc, policy(placeholder=placeholder))
    assert not HIDDEN & set(context.text())


@given(documents(), placeholders)
def test_a_private_view_shows_its_own_group_and_no_other(doc: Tagged, placeholder: str) -> None:
    context = built(doc, policy(placeholder=placeholder))
    for view in context.views():
        own = "".join(ALPHABET[e] for e in GROUPS[view]["entities"])
        assert not (HIDDEN - set(own)) & set(context.text(view))


@given(documents(), placeholders)
def test_the_views_are_those_of_the_groups_that_have_a_span(doc: Tagged, placeholder: str) -> None:
    rules = policy(placeholder=placeholder)
    present = {rules.group_of(s.entity) for s in doc.spans}
    assert set(built(doc, rules).views()) == present & {"PERSON", "DATE", "PLACE"}


@given(documents(), placeholders)
def test_single_mode_has_one_view_with_every_private_group_and_no_redacted_word(
    doc: Tagged, placeholder: str
) -> None:
    rules = policy(placeholder=placeholder, mode="single")
    context = built(doc, rules)
    assert set(context.views()) <= {"PERSON+DATE+PLACE"}
    for view in context.views():
        shown = set(context.text(view))
        assert not shown & set(ALPHABET["EMAIL"] + ALPHABET["ID"])
        for span in doc.spans:
            if rules.groups[rules.group_of(span.entity)].method.private_view:
                assert doc.text[span.start : span.end] in context.text(view)


@given(documents(), placeholders)
def test_the_public_view_is_a_function_of_the_skeleton(doc: Tagged, placeholder: str) -> None:
    """Other words of the same length in the same places: nothing public moves."""
    rules = policy(placeholder=placeholder)
    changed = list(doc.text)
    for span in doc.spans:
        if span.entity != "ORG" and (placeholder != "surrogate" or span.identity is not None):
            for i in range(span.start, span.end):
                # same number of bytes, so the same number of tokens for `encode`
                changed[i] = {1: "x", 2: "\u0452", 3: "\u4e05", 4: "\U0001f601"}[len(changed[i].encode())]
    other = Tagged("".join(changed), doc.spans)
    one, two = built(doc, rules), built(other, rules)
    assert one.text() == two.text()
    assert one.ids(encode) == two.ids(encode)
    assert one.views() == two.views()


@given(documents(), placeholders)
def test_public_pieces_are_the_same_in_every_view(doc: Tagged, placeholder: str) -> None:
    context = built(doc, policy(placeholder=placeholder))
    public = [p for p in context.pieces if isinstance(p, str)]
    for view in (None, *context.views()):
        text, at = context.text(view), 0
        for piece in public:
            at = text.index(piece, at) + len(piece)
    rebuilt = "".join(p if isinstance(p, str) else p.words for p in context.pieces)
    assert rebuilt == doc.text


@given(documents())
def test_token_placeholders_give_rows_of_one_length_with_public_pieces_in_place(doc: Tagged) -> None:
    context = built(doc, policy(placeholder="token"))
    public = context.ids(encode)
    at, places = 0, []  # where public pieces lie in the row
    for piece in context.pieces:
        size = len(encode(piece if isinstance(piece, str) else piece.words))
        if isinstance(piece, str):
            assert public[at : at + size] == encode(piece)
            places.append((at, at + size))
        else:
            assert public[at : at + size] == encode("_")[:1] * size
        at += size
    assert at == len(public)
    for view in context.views():
        row = context.ids(encode, view)
        assert len(row) == len(public)
        assert all(row[a:b] == public[a:b] for a, b in places)
        shown = [encode(p) if isinstance(p, str) else encode(p.words) if p.view == view
                 else encode("_")[:1] * len(encode(p.words)) for p in context.pieces]  # fmt: skip
        assert row == [i for piece in shown for i in piece]


@given(documents())
def test_offsets_are_code_points(doc: Tagged) -> None:
    """Emoji and combining marks count one each; a slot's words are those of its span."""
    rules = policy()
    slots = built(doc, rules).slots
    assert {(s.start, s.end) for s in slots} == {
        (s.start, s.end) for s in doc.spans if rules.groups[rules.group_of(s.entity)].method != "keep"
    }
    assert all(slot.words == doc.text[slot.start : slot.end] for slot in slots)


def test_offsets_do_not_depend_on_the_width_of_characters() -> None:
    text = "\U0001f469\u200d\U0001f52c e\u0301 met Zoë\u0308 in O\u0308z."
    assert unicodedata.normalize("NFC", text) != text
    at = text.index("Zoë")
    context = built(Tagged(text, (Span(at, at + 4, "PERSON"),)), policy())
    assert context.text() == "\U0001f469\u200d\U0001f52c e\u0301 met [PERSON] in O\u0308z."
    assert context.text("PERSON") == text


anywhere = st.builds(
    lambda start, size, entity, identity: Span(start, start + size, entity, identity=identity),
    st.integers(0, 30), st.integers(0, 12), st.sampled_from(sorted(ALPHABET)), st.none() | st.integers(0, 3),
)  # fmt: skip


def covered(spans: Sequence[Any]) -> set[int]:
    return {i for s in spans for i in range(s.start, s.end)}


@given(st.lists(anywhere, max_size=8))
def test_regions_are_disjoint_sorted_and_cover_what_is_protected(spans: list[Span]) -> None:
    rules = policy()
    found = contexts.regions(spans, rules)
    assert all(a.end <= b.start for a, b in zip(found, found[1:], strict=False))
    assert all(r.start < r.end for r in found)
    protected = [s for s in spans if rules.groups[rules.group_of(s.entity)].method is not Method.KEEP]
    assert covered(found) == covered(protected)


@given(st.lists(anywhere, max_size=8))
def test_a_region_belongs_to_a_group_of_one_of_its_spans(spans: list[Span]) -> None:
    rules = policy()
    for region in contexts.regions(spans, rules):
        inside = [s for s in spans if region.start <= s.start < s.end <= region.end]
        assert region.group in {rules.group_of(s.entity) for s in inside} - {"KEPT"}


@given(st.lists(anywhere, max_size=8), st.randoms(use_true_random=False))
def test_where_words_lie_does_not_depend_on_the_order_of_the_spans(spans: list[Span], rng: Any) -> None:
    rules, other = policy(), list(spans)
    rng.shuffle(other)
    one, two = contexts.regions(spans, rules), contexts.regions(other, rules)
    assert [(r.start, r.end) for r in one] == [(r.start, r.end) for r in two]


@given(st.lists(anywhere, max_size=8))
def test_redacted_words_are_in_no_view_also_where_another_group_overlaps_them(spans: list[Span]) -> None:
    """ε of a redact group is 0: a longer span of a group with a view must not show its words."""
    rules = policy()
    text = "".join(chr(0x2800 + i) for i in range(50))  # every place has its own character
    context = built(Tagged(text, tuple(spans)), rules)
    secret = {text[i] for i in covered([s for s in spans if rules.group_of(s.entity) in ("CODE", "other")])}
    for view in (None, *context.views()):
        assert not secret & set(context.text(view))


def test_in_an_overlap_the_protected_group_wins_over_keep() -> None:
    text = "\u1200\u1201\u0430\u0431\u1200 end"
    doc = Tagged(text, (Span(0, 5, "ORG"), Span(2, 4, "PERSON")))
    context = built(doc, policy())
    assert context.text() == "\u1200\u1201[PERSON]\u1200 end"


def test_kept_words_and_types_that_nobody_looks_for_are_public_text() -> None:
    rules = Policy.model_validate(
        {"version": 1, "groups": {
            "KEPT": {"entities": ["ORG", "DATE", "TIME", "AGE", "LOCATION", "ADDRESS"], "method": "keep"},
            "REST": {"entities": ["PERSON", "EMAIL", "PHONE", "CARD", "IBAN", "ID"], "method": "redact"},
        }}
    )  # fmt: skip
    text = "Acme paid 5 pounds to Ida."
    doc = Tagged(text, (Span(0, 4, "ORG"), Span(10, 18, "MONEY"), Span(22, 25, "PERSON")))
    assert built(doc, rules).text() == "Acme paid 5 pounds to [REST]."


def test_longer_unions_take_the_longest_spans_group() -> None:
    found = contexts.regions(
        (Span(0, 3, "DATE"), Span(2, 12, "PERSON"), Span(11, 14, "DATE")), policy()
    )
    assert [(r.start, r.end, r.group) for r in found] == [(0, 14, "PERSON")]


def test_surrogates_are_one_value_per_person_and_fall_back_to_numbers() -> None:
    names = [chr(0x410 + i) for i in range(14)]
    text = " ".join([*names, names[0]])
    spans = [Span(2 * i, 2 * i + 1, "PERSON", identity=i % 14) for i in range(15)]
    shown = built(Tagged(text, tuple(spans)), policy(placeholder="surrogate")).text()
    first = contexts.SURROGATES["PERSON"][0]
    assert shown.startswith(first) and shown.endswith(first)
    assert "[PERSON 13]" in shown and "[PERSON 14]" in shown
    assert all(value in shown for value in contexts.SURROGATES["PERSON"])


@pytest.mark.parametrize("start, end", [(0, 4), (4, 10)])
def test_a_region_over_the_border_of_a_stretch_is_never_shown(start: int, end: int) -> None:
    """Half a name in a chunk would be public text: that is refused, not shown."""
    text = "ab \u0430\u0431\u0430 cd."
    rules = policy()
    found = contexts.regions((Span(3, 6, "PERSON"),), rules)
    with pytest.raises(ValueError):
        contexts.build(text, found, rules, start, end, contexts.Numbering())


@given(documents(), placeholders)
def test_nothing_prints_words(doc: Tagged, placeholder: str) -> None:
    rules = policy(placeholder=placeholder)
    found = contexts.regions(doc.spans, rules)
    numbering = contexts.Numbering()
    context = contexts.build(doc.text, found, rules, 0, len(doc.text), numbering)
    kept = set(ALPHABET["ORG"])  # what no tagger found may be private too: no text at all prints
    for thing in (found, context, context.slots, numbering):
        assert not (HIDDEN | kept) & set(repr(thing) + str(thing))
