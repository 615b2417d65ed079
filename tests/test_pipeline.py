"""The path of one document, with a toy model and a tagger that tags given words.

A marker word is planted as a private name. It may stand in nothing but the document, the
private views, the drawn text (within ε) and the owner's report.
"""

from __future__ import annotations

import gc
import itertools
import json
import logging
import math
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpredact import contexts, decoding, documents, mixing, pipeline, planning
from dpredact.certificate import verify
from dpredact.errors import DocumentError, DpredactError, ModelError, NotCovered
from dpredact.lm.toy import ToyModel, ToySession
from dpredact.policy import Length, Policy
from dpredact.privacy import sampling, spending
from dpredact.tagging.interface import Span, Tagging
from tests.pipeline_fakes import WordTagger, reciter, writer

MARKER = "Zyxomarker"
TEXT = (
    f"{MARKER} came on 4 May to see the house.\n\n"
    f"On 4 May it rained, and {MARKER} stayed in Harrowdale for the night.\n\n"
    "The letter went to ida@quennell.example in the morning.\n"
)
SPELLED = ", ".join(map(str, MARKER.encode()))  # the marker as the toy's token ids
TAGGER = WordTagger(
    {MARKER: "PERSON", "4 May": "DATE", "Harrowdale": "LOCATION", "ida@quennell.example": "EMAIL"}
)
GROUPS: dict[str, Any] = {
    "PERSON": {"entities": ["PERSON"], "method": "dp-fusion", "beta": 0.02, "order": 2},
    "DATE": {"entities": ["DATE"], "method": "dp-fusion", "epsilon": 9, "order": 3, "spending": "adaptive"},
    "PLACE": {"entities": ["LOCATION"], "method": "invisible-ink", "clip": 0.1},
    "CODE": {"entities": ["EMAIL"], "method": "redact"},
    "other": {"entities": ["ID"], "method": "redact"},
}


def policy(groups: dict[str, Any] = GROUPS, **top: Any) -> Policy:
    return Policy.model_validate(
        {"version": 1, "model": "toy", "max_new_tokens": 40, "view_reserve": 64, "groups": groups, **top}
    )


def rewrite(text: Any = TEXT, rules: Policy | None = None, model: ToyModel | None = None, **more: Any):
    more.setdefault("tagger", TAGGER)
    return pipeline.rewrite(text, rules or policy(), model or writer(), **more)


class Watch:
    """Remembers the rows of every session that a model opens."""

    def __init__(self, model: ToyModel, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rows: list[list[str]] = []
        self.ids: list[list[list[int]]] = []
        real = model.open

        def opened(rows: Sequence[Sequence[int]], width: int, steps: int) -> ToySession:
            self.ids.append([list(r) for r in rows])
            self.rows.append([bytes(i for i in r if i < 255).decode() for r in rows])
            return real(rows, width, steps)

        monkeypatch.setattr(model, "open", opened)


# -- T and chunks ------------------------------------------------------------------------------


def public_length(text: str, rules: Policy) -> int:
    regions = contexts.regions(TAGGER.tag(text).spans, rules)
    built = contexts.build(text, regions, rules, 0, len(text), contexts.Numbering())
    return len(built.text().encode())


@pytest.mark.parametrize("ratio, at_most", [(1.0, 900), (1.2, 900), (0.5, 900), (2.0, 70)])
def test_t_is_a_multiple_of_the_public_views_length(ratio: float, at_most: int) -> None:
    text = TEXT.split("\n\n")[0]
    rules = policy(max_new_tokens={"ratio": ratio, "at_most": at_most})
    release = rewrite(text, rules)
    wished = math.ceil(ratio * public_length(text, rules))
    assert release.certificate["predicate"]["max_new_tokens"] == min(wished, at_most)
    longer = text.replace(MARKER, MARKER * 5)
    tagger = WordTagger({MARKER * 5: "PERSON", "4 May": "DATE"})
    other = pipeline.rewrite(longer, rules, writer(), tagger=tagger)
    assert other.certificate["predicate"]["max_new_tokens"] == min(wished, at_most)


def test_t_as_a_number_is_that_number_and_that_many_tokens_are_written() -> None:
    drawn: list[int] = []
    release = rewrite(rules=policy(max_new_tokens=33), progress=drawn.append)
    assert release.certificate["predicate"]["max_new_tokens"] == 33
    assert sum(drawn) == 33
    assert release.finished == "length"


@given(
    st.lists(st.integers(0, 400), min_size=1, max_size=12),
    st.integers(1, 900) | st.builds(Length, ratio=st.floats(0.05, 4), at_most=st.integers(1, 900)),
)
def test_shares_of_t_never_add_up_to_more_than_the_policy_allows(
    lengths: list[int], rule: int | Length
) -> None:
    rules = policy().model_copy(update={"max_new_tokens": rule})
    shares = planning.share_tokens(rules, lengths)
    assert len(shares) == len(lengths) and min(shares) >= 0
    if sum(lengths) == 0:
        assert sum(shares) == 0
    elif isinstance(rule, int):
        assert sum(shares) == rule
    else:
        assert sum(shares) <= rule.at_most
        assert sum(shares) == min(rule.at_most, sum(math.ceil(rule.ratio * n) for n in lengths))


@settings(deadline=None, max_examples=25)
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=6), st.integers(16, 120),
    st.sampled_from(["label", "token", "surrogate"]),
)  # fmt: skip
def test_chunks_begin_and_end_at_block_borders_and_cover_every_block_once(
    sizes: list[int], chunk: int, placeholder: str
) -> None:
    text = "\n\n".join(" ".join([f"{MARKER} went home to the old house on 4 May."] * n) for n in sizes) + "\n"
    rules = policy(chunk_tokens=chunk, placeholder=placeholder, max_new_tokens={"ratio": 1.0, "at_most": 900})
    document = documents.read(text.encode(), "a.txt")
    regions = contexts.regions(TAGGER.tag(text).spans, rules)
    model = writer()
    made = planning.plan(document, rules, regions, model.encode, model.vocab_size, model.window)
    starts, ends = {b.start for b in document.blocks}, {b.end for b in document.blocks}
    at = 0
    for unit in made.units:
        assert unit.context.start in starts and unit.context.end in ends
        assert unit.context.start >= at and not text[at : unit.context.start].strip()
        at = unit.context.end
        blocks = sum(unit.context.start <= b.start < unit.context.end for b in document.blocks)
        assert blocks == 1 or unit.length <= chunk
    assert not text[at:].strip()
    assert made.tokens <= 900 and not made.kept
    assert sum(len(u.context.slots) for u in made.units) == len(regions)


def test_each_chunk_shows_its_own_words_only_and_white_space_between_chunks_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = reciter("New words.")
    watch = Watch(model, monkeypatch)
    release = rewrite(rules=policy(chunk_tokens=16, max_new_tokens=200), model=model)
    assert release.text == "New words.\n\nNew words.\n\nNew words.\n"
    chunks = release.certificate["predicate"]["chunks"]
    assert [c["views"] for c in chunks] == [["PERSON", "DATE"], ["DATE", "PERSON", "PLACE"], []]
    rows = [r for opened in watch.rows for r in opened]
    assert len(rows) == 3 + 4 + 1
    assert "Harrowdale" in rows[6] and MARKER not in rows[6] and "4 May" not in rows[6]
    assert all("house" not in r for r in rows[3:]) and all("letter" not in r for r in rows[:7])
    assert verify(release.data, release.certificate).ok


def test_a_group_pays_only_for_chunks_in_which_it_stands() -> None:
    release = rewrite(rules=policy(chunk_tokens=16, max_new_tokens=200))
    predicate = release.certificate["predicate"]
    ledger = {g["name"]: g["ledger"][0]["tokens"] for g in predicate["groups"] if g["ledger"]}
    sizes = [c["tokens"] for c in predicate["chunks"]]
    assert sum(sizes) == 200
    assert ledger == {"PERSON": sizes[0] + sizes[1], "DATE": sizes[0] + sizes[1], "PLACE": sizes[1]}


def test_all_groups_together_cost_the_sum_where_they_stand_in_different_chunks() -> None:
    one = {"method": "dp-fusion", "beta": 0.5, "order": 2}
    rules = policy(
        {"PERSON": {"entities": ["PERSON"], **one}, "DATE": {"entities": ["DATE"], **one},
         "other": {"entities": ["ID"], "method": "redact"}},
        chunk_tokens=16, max_new_tokens=20, delta=1e-3,
    )  # fmt: skip
    text = f"{MARKER} came to see the house.\n\nOn the 4 May it rained all day.\n"
    release = rewrite(text, rules)
    first, second = (c["tokens"] for c in release.certificate["predicate"]["chunks"])
    step = math.log(1 - 0.5 + 0.5 * math.exp(1.0))
    exact = (first + second) * step + math.log(1 / 2) - (math.log(1e-3) + math.log(2))
    assert float(release.epsilon_all) == pytest.approx(exact, abs=1e-3)


# -- views at work -----------------------------------------------------------------------------


def test_one_row_for_each_group_that_has_a_span(monkeypatch: pytest.MonkeyPatch) -> None:
    model = writer()
    watch = Watch(model, monkeypatch)
    release = rewrite(TEXT.split("\n\n")[0], model=model)
    ((public, person, date),) = watch.rows
    assert MARKER not in public and "4 May" not in public
    assert MARKER in person and "4 May" not in person
    assert "4 May" in date and MARKER not in date
    assert release.epsilon["PLACE"] == "0" and release.epsilon["CODE"] == "0"
    assert float(release.epsilon["PERSON"]) > 0


def test_single_mode_has_two_rows_and_one_number(monkeypatch: pytest.MonkeyPatch) -> None:
    model = writer()
    watch = Watch(model, monkeypatch)
    one = {"method": "dp-fusion", "epsilon": 9}
    rules = policy(
        {"PERSON": {"entities": ["PERSON"], **one}, "DATE": {"entities": ["DATE", "LOCATION"], **one},
         "CODE": {"entities": ["EMAIL"], "method": "redact"}, "other": {"entities": ["ID"], "method": "redact"}},
        mode="single",
    )  # fmt: skip
    release = rewrite(rules=rules, model=model)
    ((public, private),) = watch.rows
    assert MARKER not in public
    assert MARKER in private and "4 May" in private and "Harrowdale" in private
    assert "quennell" not in private
    assert set(release.epsilon) == {"PERSON+DATE", "CODE", "other"}
    assert release.epsilon_all == release.epsilon["PERSON+DATE"]


@pytest.mark.parametrize("placeholder", ["label", "surrogate"])
def test_a_private_view_that_does_not_fit_is_row_zero_and_nobody_can_tell(
    placeholder: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    name = MARKER * 9
    text = TEXT.replace(MARKER, name).split("\n\n")[0]
    tagger = WordTagger({name: "PERSON", "4 May": "DATE"})
    rules = policy(view_reserve=16, placeholder=placeholder)
    model = writer()
    watch = Watch(model, monkeypatch)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        release = pipeline.rewrite(text, rules, model, tagger=tagger, unsafe_seed=3)
        short = rewrite(TEXT.split("\n\n")[0], rules, model, unsafe_seed=3)
    (public, person, date), (_, fits, _) = watch.ids
    assert person == public != date
    assert fits != public
    assert not caplog.records and not release.remarks
    for key in ("groups", "all_groups", "chunks", "finished", "draw"):
        assert release.certificate["predicate"][key] == short.certificate["predicate"][key]


def test_no_row_changes_because_another_group_has_other_words(monkeypatch: pytest.MonkeyPatch) -> None:
    model = writer()
    watch = Watch(model, monkeypatch)
    rewrite(model=model)
    other = TEXT.replace(MARKER, "Bo")
    pipeline.rewrite(other, policy(), model, tagger=WordTagger({"Bo": "PERSON", "4 May": "DATE",
                     "Harrowdale": "LOCATION", "ida@quennell.example": "EMAIL"}))  # fmt: skip
    one, two = watch.ids
    assert one[0] == two[0] and one[2:] == two[2:]
    assert one[1] != two[1]


# -- without a model -----------------------------------------------------------------------------

REDACT = {
    "PERSON": {"entities": ["PERSON"], "method": "redact"},
    "PLACE": {"entities": ["LOCATION"], "method": "keep"},
    "other": {"entities": ["ID"], "method": "redact"},
}


def test_redact_and_keep_need_no_model() -> None:
    rules = policy(REDACT, model="no-such-model")
    release = pipeline.rewrite(TEXT, rules, tagger=TAGGER)
    expected = (
        TEXT.replace(MARKER, "[PERSON]").replace("4 May", "[other]").replace("ida@quennell.example", "[other]")
    )
    assert release.text == expected
    assert release.data == expected.encode()
    assert (release.status, release.finished, release.drawn) == ("written", "stop", ())
    assert release.epsilon == {"PERSON": "0", "PLACE": "none", "other": "0"}
    assert verify(release.data, release.certificate).ok


def test_a_policy_with_a_private_group_names_a_model_that_must_exist() -> None:
    with pytest.raises(ModelError, match="no-such-model"):
        pipeline.rewrite(TEXT, policy(model="no-such-model"), tagger=TAGGER)


# -- refusals ------------------------------------------------------------------------------------


def test_nothing_tagged_is_refused() -> None:
    with pytest.raises(NotCovered, match="nothing private was found") as refusal:
        rewrite("The sky is blue.\n")
    assert refusal.value.exit_code == 3
    assert refusal.value.place == "document.txt"


def test_kept_words_alone_are_nothing_private() -> None:
    with pytest.raises(NotCovered, match="nothing private was found"):
        pipeline.rewrite("Harrowdale.", policy(REDACT), tagger=TAGGER)


def test_nothing_tagged_can_be_copied_or_rewritten() -> None:
    text = "The sky is blue.\n"
    copied = rewrite(text, policy(untagged="copy"))
    assert (copied.status, copied.text, copied.epsilon_all) == ("copied", text, "0")
    assert copied.certificate["predicate"]["model"] is None
    written = rewrite(text, policy(untagged="rewrite"), reciter("Blue."))
    assert (written.status, written.text, written.epsilon_all) == ("written", "Blue.\n", "0")
    for release in (copied, written):
        assert verify(release.data, release.certificate).ok


def test_a_tagger_that_did_not_read_everything_is_refused_with_its_reasons() -> None:
    tagger = WordTagger({MARKER: "PERSON"}, complete=False, reasons=("words: offsets 3 to 9 not read",))
    with pytest.raises(NotCovered, match="offsets 3 to 9") as refusal:
        rewrite(tagger=tagger)
    assert refusal.value.exit_code == 3
    with pytest.raises(NotCovered):
        rewrite(rules=policy(REDACT), tagger=tagger)


def test_a_window_without_room_is_refused_before_anything_is_drawn() -> None:
    drawn: list[int] = []
    with pytest.raises(ModelError, match="window"):
        rewrite(model=writer(window=planning.PROMPT + 64 + 40), progress=drawn.append)
    assert not drawn


def test_a_paragraph_longer_than_the_window_is_refused_with_its_place() -> None:
    text = f"{MARKER} came.\n\n" + "The house was cold and dark. " * 20
    with pytest.raises(NotCovered, match="longer than the model's window") as refusal:
        rewrite(text, model=writer(window=planning.PROMPT + 64 + 40 + 200))
    assert "line 3" in refusal.value.place


def test_a_text_that_no_file_can_hold_is_refused_without_quoting_it() -> None:
    with pytest.raises(DocumentError) as refusal:
        rewrite(f"{MARKER} \ud800 came.")
    assert_silent(refusal.value)


def test_a_tagged_word_that_stays_in_kept_text_is_refused_without_naming_it() -> None:
    first = TEXT.index(MARKER)
    once = Tagging((Span(first, first + len(MARKER), "PERSON"),))
    with pytest.raises(NotCovered, match="after writing") as refusal:
        pipeline.rewrite(TEXT, policy(REDACT), tagging=once)
    assert_silent(refusal.value)


# -- spans that the caller gives ------------------------------------------------------------------


def test_given_spans_may_come_in_any_order_and_cross_blocks() -> None:
    """Half a name in each of two chunks: both halves are words of the group."""
    text = f"In the old house we met {MARKER}\n\n{MARKER} Zyxolong the elder, as we left on 4 May.\n"
    start, end = text.index(MARKER), text.index(" the elder")
    date = text.index("4 May")
    known = Tagging((Span(date, date + 5, "DATE"), Span(start, end, "PERSON")))
    rules = policy(chunk_tokens=16, max_new_tokens=100)
    document = documents.read(text.encode(), "a.txt")
    with pytest.MonkeyPatch.context() as patch:
        model = reciter("Fine.")
        watch = Watch(model, patch)
        release = pipeline.rewrite(document, rules, model, tagging=known)
    assert release.text == "Fine.\n\nFine.\n"
    rows = [r for opened in watch.rows for r in opened]
    public = [r for r in rows if "Zyxo" not in r]
    assert sum("[PERSON]" in r and "[DATE]" in r for r in public) == 1
    assert sum("Zyxo" in r for r in rows) == 2  # the person's view of either chunk
    with pytest.raises(NotCovered):
        pipeline.rewrite(text, rules, reciter("Fine."), tagging=Tagging((Span(2, 2, "DATE"),)))


@pytest.mark.parametrize("span", [Span(-4, 3, "PERSON"), Span(10**6, 10**6 + 3, "PERSON")])
def test_given_spans_outside_the_text_show_nothing(span: Span) -> None:
    start = TEXT.index(MARKER)
    known = Tagging((span, Span(start, start + len(MARKER), "PERSON")))
    release = pipeline.rewrite(TEXT.split("\n\n")[0], policy(), reciter("Fine."), tagging=known)
    assert release.text == "Fine."


# -- how a text ends, and what is done to it afterwards ---------------------------------------------


def test_a_text_that_the_model_ends_is_finished_and_one_that_ran_out_is_not() -> None:
    done = rewrite(model=reciter("It is done."), rules=policy(max_new_tokens=60))
    assert (done.finished, done.text) == ("stop", "It is done.\n")
    cut = rewrite(model=reciter("It is never done.", ends=False), rules=policy(max_new_tokens=9))
    assert (cut.finished, cut.text) == ("length", "It is nev\n")
    for release in (done, cut):
        assert release.certificate["predicate"]["finished"] == release.finished
        assert verify(release.data, release.certificate).ok


def test_one_chunk_that_ran_out_makes_the_whole_unfinished() -> None:
    rules = policy(chunk_tokens=16, max_new_tokens={"ratio": 0.5, "at_most": 900})
    short = "x" * 30  # fits the longer chunks only
    assert rewrite(rules=rules, model=reciter(short)).finished == "length"


@pytest.mark.parametrize("names, kept", [(["EMAIL"], False), ([], True), (["IBAN"], True)])
def test_patterns_are_scrubbed_from_the_drawn_text(names: list[str], kept: bool) -> None:
    drawn = "Write to bob.lee@example.org soon."
    release = rewrite(model=reciter(drawn), rules=policy(scrub_output=names, max_new_tokens=60))
    assert release.text == (drawn if kept else "Write to [EMAIL] soon.") + "\n"
    assert [release.text[a:b] for a, b in release.drawn] == [release.text[:-1]]


def test_what_was_not_drawn_is_not_scrubbed() -> None:
    text = f"{MARKER} wrote to bob.lee@example.org.\n"
    release = rewrite(text, policy(REDACT, scrub_output=["EMAIL"]))
    assert "bob.lee@example.org" in release.text


def test_line_ends_of_the_file_are_kept_also_in_drawn_text() -> None:
    source = TEXT.replace("\n", "\r\n")
    release = rewrite(source, policy(max_new_tokens=80), reciter("One.\nTwo.\r\nThree.\n"))
    assert release.text == "One.\r\nTwo.\r\nThree.\r\n"
    assert release.data == release.text.encode()
    chunked = rewrite(source, policy(chunk_tokens=16, max_new_tokens=200), reciter("A.\nB."))
    assert chunked.text == "\r\n\r\n".join(["A.\r\nB."] * 3) + "\r\n"
    assert "\n" not in chunked.text.replace("\r\n", "")


def test_a_text_that_the_model_leaves_empty_is_empty() -> None:
    release = rewrite(model=reciter(""), rules=policy(max_new_tokens=5))
    assert release.finished in ("stop", "length")
    assert verify(release.data, release.certificate).ok


def test_data_text_and_certificate_belong_together() -> None:
    release = rewrite(unsafe_seed=5)
    assert release.data == release.text.encode()
    assert release.certificate["subject"][0]["name"] == "document.txt"
    assert not release.certificate["predicate"]["draw"]["safe"]
    again = rewrite(unsafe_seed=5)
    assert again.text == release.text, "a seeded run must repeat, or the other tests see nothing"


# -- the budget ------------------------------------------------------------------------------------

SINGLE_METHODS = {
    "fixed": {"method": "dp-fusion", "beta": 0.02, "order": 2},
    "adaptive": {"method": "dp-fusion", "epsilon": 9, "order": 3, "spending": "adaptive"},
    "clip": {"method": "invisible-ink", "epsilon": 3},
    "cid, adaptive": {"method": "cid", "epsilon": 3, "spending": "adaptive"},
    "pointwise": {"method": "pointwise", "range": 0.1},
}


class Till:
    """The order in which tokens were charged and drawn."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.events: list[str] = []
        real_one, real_draw = spending._Counted._one, sampling.SystemDraw.__call__

        def one(account: Any) -> None:
            self.events.append("charge")
            real_one(account)

        def draw(self_: Any, log_p: Any) -> int:
            self.events.append("draw")
            return real_draw(self_, log_p)

        monkeypatch.setattr(spending._Counted, "_one", one)
        monkeypatch.setattr(sampling.SystemDraw, "__call__", draw)


@pytest.mark.parametrize("neighbours", ["remove", "replace"])
@pytest.mark.parametrize("method", SINGLE_METHODS)
def test_every_draw_was_charged_to_every_group_before_it_was_made(
    method: str, neighbours: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    till = Till(monkeypatch)
    rules = policy(
        {n: {"entities": [e], **SINGLE_METHODS[method]}
         for n, e in (("PERSON", "PERSON"), ("DATE", "DATE"), ("PLACE", "LOCATION"))}
        | {"other": {"entities": ["ID"], "method": "redact"}},
        max_new_tokens=12, neighbours=neighbours,
    )  # fmt: skip
    rewrite(rules=rules)
    assert till.events == (["charge"] * 3 + ["draw"]) * 12


@pytest.mark.parametrize("end", [None, 3.0])
def test_every_draw_of_every_chunk_was_charged(end: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    till = Till(monkeypatch)
    release = rewrite(rules=policy(chunk_tokens=16, max_new_tokens=60), model=writer(end=end))
    chunks = release.certificate["predicate"]["chunks"]
    charges, draws = till.events.count("charge"), till.events.count("draw")
    most = sum(c["tokens"] * len(c["views"]) for c in chunks)
    assert draws <= 60 and charges <= most
    if end is None:
        assert (draws, charges) == (60, most)
    # Rounds: all charges of a round, then its draws, one for every chunk that is still open.
    rounds = [(k, len(list(g))) for k, g in itertools.groupby(till.events)]
    assert rounds[0][0] == "charge" and rounds[-1][0] == "draw"
    for (_, paid), (_, drawn) in zip(rounds[::2], rounds[1::2], strict=True):
        assert paid <= 3 * drawn


def test_a_draw_that_was_not_promised_stops_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop that draws once more than T: the account refuses, and nothing is released."""
    monkeypatch.setattr(
        decoding.Lane, "open", property(lambda self: not self.finished and len(self.ids) <= self.limit)
    )
    with pytest.raises(ModelError, match="Exhausted"):
        rewrite(rules=policy(max_new_tokens=8))


@pytest.mark.parametrize("order", list(itertools.permutations(GROUPS))[::17])
def test_the_order_of_groups_in_the_policy_does_not_matter(order: tuple[str, ...]) -> None:
    rules = policy(chunk_tokens=16, max_new_tokens=9)
    other = policy({n: GROUPS[n] for n in order}, chunk_tokens=16, max_new_tokens=9)
    one, two = rewrite(rules=rules), rewrite(rules=other)
    assert one.epsilon == two.epsilon
    assert one.epsilon_all == two.epsilon_all


def test_a_ledger_that_says_no_stops_before_the_first_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpredact.errors import BudgetExceeded

    till, told = Till(monkeypatch), []

    def spend(rules: Policy, promised: Any) -> None:
        told.append(promised.epsilon_all_text)
        raise BudgetExceeded("too much")

    with pytest.raises(BudgetExceeded):
        rewrite(spend=spend)
    assert till.events == []
    assert told == [rewrite().epsilon_all]


# -- scope: spans ----------------------------------------------------------------------------------


def spans_policy(**more: Any) -> Policy:
    return policy(scope="spans", max_span_tokens=6, **more)


def test_spans_scope_keeps_untagged_text_to_the_byte() -> None:
    source = "\ufeff" + TEXT.replace("\n", "\r\n") + "  \t\r\n\r\n"
    document = documents.read(source.encode(), "a.txt")
    release = rewrite(document, spans_policy(), reciter("thing"))
    expected = source
    for words in (MARKER, "4 May", "Harrowdale"):
        expected = expected.replace(words, "thing")
    assert release.data == expected.replace("ida@quennell.example", "[CODE]").encode()
    assert verify(release.data, release.certificate).ok


def test_spans_scope_pays_for_a_groups_spans_only() -> None:
    release = rewrite(rules=spans_policy())
    ledger = {g["name"]: g["ledger"][0]["tokens"] for g in release.certificate["predicate"]["groups"]
              if g["ledger"]}  # fmt: skip
    assert ledger == {"PERSON": 2 * 6, "DATE": 2 * 6, "PLACE": 1 * 6}


def test_spans_scope_draws_each_replacement_on_two_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    model = reciter("thing")
    watch = Watch(model, monkeypatch)
    rewrite(rules=spans_policy(), model=model)
    rows = [r for opened in watch.rows for r in opened]
    assert len(rows) == 2 * 5
    for public, private in zip(rows[::2], rows[1::2], strict=True):
        assert not any(w in public for w in (MARKER, "4 May", "Harrowdale"))
        assert sum(w in private for w in (MARKER, "4 May", "Harrowdale")) == 1
        assert "quennell" not in private


@pytest.mark.parametrize("drawn", ["", "   ", "[PERSON]", "_", "<b>", "neverending", "\nx"])
def test_a_replacement_that_is_none_becomes_its_label(drawn: str) -> None:
    text = f"Then {MARKER} left.\n"
    release = rewrite(text, spans_policy(), reciter(drawn, ends=drawn != "neverending"))
    assert release.text == "Then [PERSON] left.\n"


class Once:
    """Tags one word where it stands by itself."""

    name = "once"

    def __init__(self, word: str, entity: str = "PERSON") -> None:
        self._word, self._entity = word, entity

    def tag(self, text: str) -> Tagging:
        at = text.index(f"{self._word} left")
        return Tagging((Span(at, at + len(self._word), self._entity),))


@pytest.mark.parametrize("drawn", ["Mark", "Bob"])
@pytest.mark.parametrize("before", ["The Market was loud. ", "M a r k was loud. ", "He came. "])
def test_whether_a_text_goes_out_does_not_depend_on_the_private_word_being_drawn(
    before: str, drawn: str
) -> None:
    """Refusing what was drawn because it is the private word would tell the private word."""
    release = rewrite(f"{before}Then Mark left.\n", spans_policy(), reciter(drawn), tagger=Once("Mark"))
    assert release.text == f"{before}Then {drawn} left.\n"


@pytest.mark.parametrize(
    "drawn", ["Mark", "Mark Mark", "```\nMark\n```", "<!-- Mark -->", "# Mark", "---\nMark: a\n---", "[Mark]: b"]
)
@pytest.mark.parametrize("name", ["a.txt", "a.md"])
def test_a_drawn_private_word_goes_out_in_whatever_shape(name: str, drawn: str) -> None:
    text = "Then Mark left for the old house by the river.\n"
    document = documents.read(text.encode(), name)
    release = rewrite(document, policy(max_new_tokens=90), reciter(drawn), tagger=Once("Mark"))
    assert release.text == f"{drawn}\n"


# -- nothing private gets out ------------------------------------------------------------------------


def chain(error: BaseException | None) -> list[BaseException]:
    """The error and everything that hangs on it, shown or not."""
    found: list[BaseException] = []
    waiting = [error]
    while waiting:
        one = waiting.pop()
        if one is not None and one not in found:
            found.append(one)
            waiting += [one.__cause__, one.__context__]
    return found


def assert_silent(error: BaseException) -> None:
    told = "".join(traceback.format_exception(error))
    for one in chain(error):
        told += f"{one} {one!r} {one.args!r} {vars(one)!r} {getattr(one, '__notes__', '')}"
    assert "Zyxo" not in told and SPELLED not in told


def torn(*_: Any, **__: Any) -> Any:
    """What a library does: an error that quotes what it worked on, caused by another one."""
    try:
        raise ValueError(f"inner: {TEXT}")
    except ValueError as inner:
        error = RuntimeError(f"cannot handle {TEXT!r}")
        error.add_note(TEXT)
        raise error from inner


def undecodable(*_: Any, **__: Any) -> Any:
    raise UnicodeEncodeError("utf-8", TEXT, 1, 2, "no")


def missing(*_: Any, **__: Any) -> Any:
    raise KeyError(MARKER)


class Torn:
    """Lets a call through a few times, then raises."""

    def __init__(self, real: Callable[..., Any], times: int, error: Callable[..., Any]) -> None:
        self.real, self.left, self.error = real, times, error

    def __call__(self, *given: Any, **more: Any) -> Any:
        self.left -= 1
        return self.real(*given, **more) if self.left >= 0 else self.error()


PLACES = {
    "tokenizer, at once": (ToyModel, "encode", 0),
    "tokenizer, at a private view": (ToyModel, "encode", 6),
    "open": (ToyModel, "open", 0),
    "first logits": (ToySession, "logits", 0),
    "logits in the middle": (ToySession, "logits", 3),
    "append": (ToySession, "append", 2),
    "decode": (ToyModel, "decode", 0),
    "mixing": (mixing.Mixer, "begin", 2),
    "the draw": (sampling.SystemDraw, "__call__", 2),
    "scrubbing": (WordTagger, "never", 0),
}


@pytest.mark.parametrize("error", [torn, undecodable, missing], ids=["quotes", "holds", "key"])
@pytest.mark.parametrize("place", [p for p in PLACES if p != "scrubbing"])
@pytest.mark.parametrize("scope", ["document", "spans"])
def test_a_model_that_raises_in_the_middle_tells_nothing(
    scope: str, place: str, error: Callable[..., Any], monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    caplog.set_level(logging.DEBUG)
    cls, name, times = PLACES[place]
    broken = Torn(getattr(cls, name), times, error)
    monkeypatch.setattr(cls, name, lambda *a, **k: broken(*a, **k))
    with warnings.catch_warnings(record=True) as warned, pytest.raises(DpredactError) as failure:
        warnings.simplefilter("always")
        rewrite(rules=policy(scope=scope), report={})
    assert broken.left < 0, "the fault was never reached"
    assert failure.value.exit_code == 5 and failure.value.place == "document.txt"
    assert failure.value.__cause__ is None and failure.value.__context__ is None
    assert_silent(failure.value)
    out, err = capfd.readouterr()
    assert "Zyxo" not in out + err + caplog.text + "".join(str(w.message) for w in warned)


def test_an_interrupt_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ToySession, "append", interrupted)
    with pytest.raises(KeyboardInterrupt):
        rewrite()


@pytest.mark.parametrize("scope", ["document", "spans"])
@pytest.mark.parametrize("placeholder", ["label", "token", "surrogate"])
def test_nothing_that_is_said_or_printed_holds_the_marker(
    placeholder: str, scope: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Logs, warnings, streams, certificate, remarks, and the repr of every object of ours."""
    caplog.set_level(logging.DEBUG)
    rules = policy(placeholder=placeholder, scope=scope)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        release = rewrite(rules=rules, model=reciter("It is done."))
    out, err = capfd.readouterr()
    told = [out, err, caplog.text, *(str(w.message) for w in warned)]
    told += [json.dumps(release.certificate), *release.remarks, repr(release), str(release)]
    assert "Zyxo" not in "".join(told)


def test_no_object_on_the_way_prints_the_marker() -> None:
    """Also the release, when the model wrote the marker itself."""
    from dpredact.privacy.sampling import UnsafeSeededDraw
    from dpredact.writing import Writing

    rules = policy()
    document = documents.read(TEXT.encode(), "a.txt")
    tagging = TAGGER.tag(document.text)
    regions = contexts.regions(tagging.spans, rules)
    writing = Writing(document, rules, writer(), regions, watch=True)
    session = writing.model.open(writing.lanes[0].fitting_rows(), writing.lanes[0].width, 4)
    release = rewrite(model=reciter(f"{MARKER} came."), rules=policy(max_new_tokens=60))
    assert MARKER in release.text
    units = writing.plan.units
    things = [
        document, tagging, regions, writing, writing.plan, units, units[0].context,
        units[0].context.slots, writing.lanes, writing.mixer, writing._support, session, release,
        writing.mixer._accounts, UnsafeSeededDraw(1), TAGGER.tag(TEXT), rules,
    ]  # fmt: skip
    for thing in things:
        assert "Zyxo" not in repr(thing) + str(thing), type(thing)
        assert SPELLED not in repr(thing) + str(thing), type(thing)
    assert SPELLED in repr(writing.lanes[0].rows), "or this test sees nothing"


def test_prepared_documents_and_requests_print_nothing_either() -> None:
    report: dict[str, Any] = {"words": MARKER}
    prepared = pipeline.prepare(TEXT, policy(), writer(), tagger=TAGGER, report=report)
    assert "Zyxo" not in repr(prepared) + str(prepared)
    document = documents.read(TEXT.encode(), "a.txt")
    request = pipeline.Request("a", lambda: (document, None), report={"words": MARKER})
    assert "Zyxo" not in repr(request)


def test_the_report_holds_private_things_only_for_who_asked() -> None:
    report: dict[str, Any] = {}
    asked = rewrite(model=reciter(f"{MARKER} came."), rules=policy(max_new_tokens=60), report=report)
    silent = rewrite(model=reciter(f"{MARKER} came."), rules=policy(max_new_tokens=60))
    assert ("PERSON", MARKER.lower()) in [(e, w.lower()) for e, w in report["reappeared"]]
    assert MARKER in {s["words"] for s in report["spans"]}
    assert set(report["realised"]) == {"PERSON", "DATE", "PLACE"}
    assert all(losses for losses in report["realised"].values())
    for release in (asked, silent):
        assert MARKER not in json.dumps(release.certificate)
        assert "realised" not in json.dumps(release.certificate)
    one, two = asked.certificate["predicate"], silent.certificate["predicate"]
    assert one.keys() == two.keys()
    assert {k: v for k, v in one.items() if k != "document"} == {k: v for k, v in two.items() if k != "document"}


def test_the_report_is_not_kept_by_the_code() -> None:
    """Without a report nothing private outlives the call in our own modules."""
    rewrite(rules=policy(max_new_tokens=5))
    gc.collect()
    private = (decoding.Lane, mixing.Mixer, contexts.Context, contexts.Slot, pipeline.Prepared)
    assert not [type(o) for o in gc.get_objects() if type(o) in private]


def test_many_documents_side_by_side_tell_nothing_of_each_other() -> None:
    """One breaks; the others are written, and its error is silent."""
    good = documents.read(TEXT.encode(), "good.txt")
    bad = documents.read(b"The sky is blue.", "bad.txt")

    def broken() -> Any:
        raise NotCovered("cannot be read", place="worse.txt")

    requests = [
        pipeline.Request("good", lambda: (good, None)),
        pipeline.Request("bad", lambda: (bad, None)),
        pipeline.Request("worse", broken),
        pipeline.Request("again", lambda: (good, None)),
    ]
    results = {
        request.label: result
        for request, result in pipeline.rewrite_many(
            requests, policy(max_new_tokens=10), reciter("Fine."), tagger=TAGGER
        )
    }
    assert set(results) == {"good", "bad", "worse", "again"}
    for label in ("good", "again"):
        assert results[label].text == "Fine.\n"
        assert verify(results[label].data, results[label].certificate).ok
    for label in ("bad", "worse"):
        assert isinstance(results[label], NotCovered)
        assert_silent(results[label])


def test_a_model_that_breaks_under_many_documents_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    good = documents.read(TEXT.encode(), "good.txt")
    broken = Torn(ToySession.append, 4, torn)
    monkeypatch.setattr(ToySession, "append", lambda *a: broken(*a))
    results = list(
        pipeline.rewrite_many(
            [pipeline.Request(n, lambda: (good, None)) for n in range(3)],
            policy(max_new_tokens=10), writer(), tagger=TAGGER, together=2,
        )
    )  # fmt: skip
    assert len(results) == 3 and all(isinstance(r, ModelError) for _, r in results)
    for _, result in results:
        assert_silent(result)
