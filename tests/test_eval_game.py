"""The game is fair: the truth's place is random, ties are misses, attackers rank what leaks."""

from __future__ import annotations

import collections
import math

import pytest

from dpredact.evaluation import corpus, game, intervals, summary
from dpredact.evaluation.methods import GROUPS, Setting
from dpredact.evaluation.scene import scenes
from dpredact.tagging.interface import Span

scipy = pytest.importorskip("scipy.stats")

NAMES = ("Maren Oduya", "Tovin Salk", "Jonquil Aldwick", "Perrin Voss", "Ilka Brandt", "Osric Penn",
         "Wanda Quill", "Bram Tesler")  # fmt: skip


def item(number: int, name: str) -> corpus.Item:
    text = f"{name} came. Then {name} left with Zed Orr."
    end = len(name)
    again = text.rindex(name)
    spans = (Span(0, end, "PERSON"), Span(again, again + end, "PERSON"),
             Span(len(text) - 8, len(text) - 1, "PERSON"))  # fmt: skip
    return corpus.Item(f"d{number}", text, spans)


ITEMS = [item(i, n) for i, n in enumerate(NAMES)]
WORDS = game.pool(ITEMS, game.group_of_entities(GROUPS))["PERSON"]


def deal(number: int = 0, seed: int = 0, size: int = 4) -> game.Game:
    dealt = game.deal(scenes(ITEMS, Setting())[number], "PERSON", WORDS, size, seed)
    assert dealt is not None
    return dealt


def test_candidates_are_complete_distinct_and_of_other_documents() -> None:
    dealt = deal()
    true = dealt.candidates[dealt.truth]
    assert true == {0: "Maren Oduya", 1: "Maren Oduya", 2: "Zed Orr"}
    seen = [w for c in dealt.candidates for w in set(c.values())]
    assert len(seen) == len(set(seen))
    for place, candidate in enumerate(dealt.candidates):
        assert candidate.keys() == true.keys()
        assert candidate[0] == candidate[1], "mentions of one name get one decoy"
        if place != dealt.truth:
            assert not set(candidate.values()) & set(true.values())


def test_the_truth_stands_anywhere() -> None:
    """Over many seeds every place is taken about equally often, and a seed repeats itself."""
    places = collections.Counter(deal(seed=s, size=3).truth for s in range(300))
    assert set(places) == {0, 1, 2} and min(places.values()) > 60
    assert deal(seed=7) == deal(seed=7)


def test_a_pool_that_is_too_small_gives_no_game() -> None:
    at = scenes(ITEMS, Setting())[0]
    assert game.deal(at, "PERSON", {"Tovin Salk": {"d1"}}, 5, 0) is None
    assert game.deal(at, "LOC", WORDS, 3, 0) is None


@pytest.mark.parametrize(
    ("scores", "truth", "hit", "guess"),
    [
        ([1.0, 2.0, 3.0], 2, True, 1.0),
        ([1.0, 2.0, 3.0], 0, False, 0.0),
        ([5.0, 5.0, 5.0], 0, False, 1 / 3),
        ([5.0, 5.0, 1.0], 2, False, 0.0),
        ([math.nan, math.nan], 0, False, 0.5),
        ([math.nan, -9.0], 0, False, 0.0),
        ([-math.inf, -math.inf, 0.0], 2, True, 1.0),
    ],
)
def test_a_tie_is_a_miss(scores: list[float], truth: int, hit: bool, guess: float) -> None:
    found = game.judge(scores, truth)
    assert found.hit is hit and found.guess == pytest.approx(guess)


def test_min_k_looks_at_the_least_likely_tokens() -> None:
    log_p = [-1.0, -2.0, -30.0, -4.0, -5.0, -6.0, -7.0, -8.0, -9.0, -10.0]
    assert game.min_k_score(log_p, 10) == -30.0
    assert game.min_k_score(log_p, 20) == -20.0
    assert game.min_k_score(log_p, 1) == -30.0, "at least one token"
    assert game.min_k_score([], 10) == 0.0
    assert game.loss_score(log_p) == pytest.approx(-82.0)


@pytest.mark.parametrize(("hits", "n"), [(0, 7), (7, 7), (3, 20), (150, 300), (1, 1000)])
def test_intervals_agree_with_scipy(hits: int, n: int) -> None:
    theirs = scipy.binomtest(hits, n).proportion_ci(method="wilson")
    assert intervals.wilson(hits, n) == pytest.approx((theirs.low, theirs.high), abs=1e-12)
    theirs = scipy.binomtest(hits, n).proportion_ci(method="exact")
    assert intervals.clopper_pearson(hits, n) == pytest.approx((theirs.low, theirs.high), abs=1e-9)


def test_intervals_at_the_edges() -> None:
    assert intervals.wilson(0, 0) == (0.0, 1.0)
    assert intervals.clopper_pearson(0, 0) == (0.0, 1.0)
    with pytest.raises(ValueError):
        intervals.wilson(3, 2)


def test_the_paired_test_agrees_with_scipy() -> None:
    assert intervals.mcnemar(9, 2) == pytest.approx(scipy.binomtest(9, 11, 0.5).pvalue)
    assert intervals.mcnemar(0, 0) == 1.0 and intervals.mcnemar(4, 4) == 1.0


def record(document: int, method: str, hit: bool, tied: int = 0) -> dict[str, object]:
    attackers = {a: [hit, tied] for a in game.ATTACKERS}
    return {"document": document, "method": method,
            "games": [{"group": "PERSON", "size": 5, "attackers": attackers}]}  # fmt: skip


def test_rates_count_what_was_played() -> None:
    rows = [record(0, "a", True), record(1, "a", False, 5), record(2, "a", False)]
    rate = summary.attack_rate(rows, "loss")
    assert (rate["hits"], rate["rounds"], rate["tied"]) == (1, 3, 1)
    assert rate["guessing"] == pytest.approx((1 + 1 / 5) / 3)
    assert summary.chance(rows) == pytest.approx(0.2)
    assert summary.attack_rate(rows, "loss", "CODE")["rounds"] == 0


def test_pairs_are_compared_on_the_same_rounds() -> None:
    rows = [record(i, "a", True) for i in range(6)] + [record(i, "b", False) for i in range(5)]
    (pair,) = summary.paired(rows, "informed")
    assert (pair["only_first"], pair["only_second"], pair["rounds"]) == (5, 0, 5)
    assert pair["p"] == pytest.approx(2 * 0.5**5)
