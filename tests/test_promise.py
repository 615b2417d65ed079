"""From a policy and public sizes to ε: the numbers of the presets, refusals, and what may not matter.

Expected values are computed here from the formulas of the theory, not by the accountant.
"""

from __future__ import annotations

import itertools
import math
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpredact.errors import PolicyError
from dpredact.policy import Policy, loads, presets
from dpredact.privacy import accounting
from dpredact.promise import Promise, promise, view_names

VOCABULARY = 49152


def policy(groups: dict[str, dict[str, Any]], **top: Any) -> Policy:
    return Policy.model_validate(
        {"version": 1, "groups": {**groups, "other": {"entities": ["ID"], "method": "redact"}}, **top}
    )


def at_most(rules: Policy, tokens: int) -> Promise:
    """The promise when every group has a span in every chunk."""
    return promise(rules, dict.fromkeys(view_names(rules), tokens), VOCABULARY, tokens)


def by_name(promised: Promise) -> dict[str, Any]:
    return {g.name: g for g in promised.groups}


def conversion(order: float, delta: float) -> float:
    """Canonne, Kamath, Steinke 2020, Prop. 12."""
    return math.log((order - 1) / order) - (math.log(delta) + math.log(order)) / (order - 1)


def fixed_epsilon(order: float, cap: float, weight: float, tokens: int, delta: float) -> float:
    """ε of a fixed cap in a mean, least over the orders up to its own."""
    below = [1 + (order - 1) * k / 4000 for k in range(1, 4001)]

    def loss(a: float) -> float:
        return tokens * math.log(1 - weight + weight * math.exp((a - 1) * cap)) / (a - 1)

    return min(loss(a) + conversion(a, delta) for a in below)


def together_epsilon(parts: list[tuple[float, float, float]], tokens: int, delta: float) -> float:
    """ε of all fixed groups at once; parts: (order, cap, weight)."""
    top = min(order for order, _, _ in parts)
    below = [1 + (top - 1) * k / 4000 for k in range(1, 4001)]
    return min(
        tokens * math.log(sum(w * math.exp((a - 1) * c) for _, c, w in parts)) / (a - 1)
        + conversion(a, delta)
        for a in below
    )


# -- presets -------------------------------------------------------------------------------


def test_paper_costs_what_its_settings_add_up_to() -> None:
    """Eight groups, α = 2, cap 0.01, w = 1/8, T = 900, δ = 1e-3."""
    promised = at_most(loads(presets.text("paper")), 900)
    assert len(promised.private()) == 8
    one = fixed_epsilon(2, 0.01, 1 / 8, 900, 1e-3)
    assert one == pytest.approx(6.65, abs=0.01)
    for group in promised.private():
        assert group.event == accounting.OrderCap(2.0, 0.01, 1 / 8, 900)
        assert group.epsilon == pytest.approx(one, abs=1e-4)
    assert promised.epsilon_all == pytest.approx(900 * 0.01 + conversion(2, 1e-3), abs=1e-4)


def test_demo_spends_eight_a_group_and_says_what_all_of_them_cost() -> None:
    promised = at_most(loads(presets.text("demo")), 600)
    private = promised.private()
    assert [g.name for g in private] == ["PERSON", "PLACE", "DATE"]
    for group in private:
        event = group.event
        assert isinstance(event, accounting.OrderCap)
        assert (event.weight, event.count) == (pytest.approx(1 / 3), 600)
        twin = fixed_epsilon(event.order, event.cap, 1 / 3, 600, 1e-5)
        assert 7.999 <= twin <= 8.0
        assert twin <= group.epsilon <= 8.0
        assert group.epsilon_text == "8"
    parts = [(g.event.order, g.event.cap, g.weight) for g in private]
    assert promised.epsilon_all == pytest.approx(together_epsilon(parts, 600, 1e-5), rel=1e-4)
    assert by_name(promised)["CODE"].epsilon_text == "0"


def test_strict_covers_everybody_within_three() -> None:
    promised = at_most(loads(presets.text("strict")), 600)
    (group,) = promised.private()
    assert group.members == ("PLACE", "DATE") and group.weight == 1.0
    assert group.epsilon <= 3.0 and promised.epsilon_all <= 3.0
    twin = fixed_epsilon(group.event.order, group.event.cap, 1.0, 600, 1e-6)
    assert twin == pytest.approx(3.0, abs=1e-3)


def test_spans_pays_for_replacements_only_and_adds_groups_up() -> None:
    promised = at_most(loads(presets.text("spans")), 5 * 8)
    private = promised.private()
    assert all(g.weight == 1.0 and g.event.count == 40 for g in private)
    for group in private:
        twin = fixed_epsilon(group.event.order, group.event.cap, 1.0, 40, 1e-5)
        assert twin <= group.epsilon + 1e-9 and group.epsilon <= 8.0
    assert promised.epsilon_all > max(g.epsilon for g in private)
    order = min(g.event.order for g in private)
    total = sum(40 * g.event.cap for g in private)
    assert promised.epsilon_all <= total + conversion(order, 1e-5) + 1e-4


def test_redact_promises_zero() -> None:
    promised = at_most(loads(presets.text("redact")), 0)
    assert promised.epsilon_all_text == "0"
    assert {g.epsilon_text for g in promised.groups} == {"0"}


# -- every method, spending and neighbour ----------------------------------------------------

KIND = {
    ("dp-fusion", "fixed", "remove"): accounting.OrderCap,
    ("dp-fusion", "fixed", "replace"): accounting.TwoHopCap,
    ("dp-fusion", "adaptive", "remove"): accounting.Filter,
    ("dp-fusion", "adaptive", "replace"): accounting.TwoHopFilter,
    **{(m, "fixed", n): accounting.Range for m in ("invisible-ink", "cid", "pointwise")
       for n in ("remove", "replace")},
    **{(m, "adaptive", n): accounting.RangeFilter for m in ("invisible-ink", "cid", "pointwise")
       for n in ("remove", "replace")},
}  # fmt: skip


@pytest.mark.parametrize(
    "method, spending, neighbours, order",
    [(*k, "auto") for k in KIND] + [(*k, 3) for k in KIND if k[0] == "dp-fusion"],
)
def test_the_wished_epsilon_is_used_up_and_never_passed(
    method: str, spending: str, neighbours: str, order: Any
) -> None:
    two = {n: {"entities": [n], "method": method, "epsilon": 9, "spending": spending, "order": order}
           for n in ("PERSON", "DATE")}  # fmt: skip
    promised = at_most(policy(two, neighbours=neighbours), 300)
    for group in promised.private():
        event = group.event
        assert type(event) is KIND[method, spending, neighbours]
        assert event.count == 300
        assert 8.99 <= group.epsilon <= 9.0
        if hasattr(event, "replace"):
            assert event.replace == (neighbours == "replace")
        if order != "auto":
            assert event.order == order
    assert promised.epsilon_all > 9.0


def test_replace_buys_less_per_token_than_remove() -> None:
    one = {"PERSON": {"entities": ["PERSON"], "method": "dp-fusion", "epsilon": 8, "order": 3}}
    remove = at_most(policy(one), 300).private()[0].event
    replace = at_most(policy(one, neighbours="replace"), 300).private()[0].event
    assert replace.forward_cap < remove.cap and replace.backward_cap < remove.cap
    assert replace.cap == pytest.approx(remove.cap, rel=1e-6)  # both hops together
    clip = {"PERSON": {"entities": ["PERSON"], "method": "cid", "epsilon": 8}}
    remove = at_most(policy(clip), 300).private()[0].event
    replace = at_most(policy(clip, neighbours="replace"), 300).private()[0].event
    assert replace.range == pytest.approx(remove.range / 2, rel=1e-6)


def test_beta_under_replace_gives_the_two_higher_orders() -> None:
    rules = policy(
        {"PERSON": {"entities": ["PERSON"], "method": "dp-fusion", "beta": 0.01, "order": 2}},
        neighbours="replace",
    )
    (group,) = at_most(rules, 100).private()
    assert group.event == accounting.TwoHopCap(2.0, 3 * 0.01, 4 * 0.01, 1.0, 100)
    assert group.event.cap == pytest.approx(4 * 2 * 0.01)


def test_a_clip_is_a_width_of_two_clips_over_the_temperature() -> None:
    rules = policy(
        {"PERSON": {"entities": ["PERSON"], "method": "invisible-ink", "clip": 0.02}},
        decoding={"temperature": 0.5},
    )
    assert at_most(rules, 100).private()[0].event == accounting.Range(0.08, 1.0, 100, False)


# -- what cannot be had -----------------------------------------------------------------------


def refused(groups: dict[str, dict[str, Any]], tokens: int = 400, **top: Any) -> PolicyError:
    with pytest.raises(PolicyError) as refusal:
        at_most(policy(groups, **top), tokens)
    return refusal.value


def fusion(epsilon: float, order: Any = "auto", **more: Any) -> dict[str, dict[str, Any]]:
    return {"PERSON": {"entities": ["PERSON"], "method": "dp-fusion", "epsilon": epsilon, "order": order} | more}


@pytest.mark.parametrize("spending", ["fixed", "adaptive"])
@pytest.mark.parametrize("neighbours", ["remove", "replace"])
@pytest.mark.parametrize("order, epsilon", [(2, 8), (1.5, 20), (4, 2), ("auto", 0.05)])
def test_an_epsilon_below_the_floor_is_refused_with_a_number_that_helps(
    order: Any, epsilon: float, neighbours: str, spending: str
) -> None:
    said = refused(fusion(epsilon, order, spending=spending), neighbours=neighbours)
    assert said.exit_code == 2
    assert said.place == "groups.PERSON.epsilon"
    assert f"epsilon {epsilon:g}" in said.message
    assert ("order: auto" in said.next_step) == (order != "auto")
    least = float(re.search(r"raise epsilon above ([\d.]+)", said.next_step).group(1))
    assert least > epsilon
    if order != "auto":
        assert f"at order {order:g}" in said.message
        assert least == pytest.approx(conversion(order, 1e-5), abs=0.011)
    better = fusion(least + 0.01, order, spending=spending)
    (group,) = at_most(policy(better, neighbours=neighbours), 400).private()
    assert 0 < group.epsilon <= least + 0.01


def test_at_order_two_nothing_below_ten_point_one_can_be_had() -> None:
    """δ = 1e-5: the number that the theory names."""
    assert "10.13" in refused(fusion(10.1, 2)).next_step


@pytest.mark.parametrize("method", ["invisible-ink", "cid", "pointwise"])
def test_range_methods_can_have_small_epsilons(method: str) -> None:
    groups = {"PERSON": {"entities": ["PERSON"], "method": method, "epsilon": 0.05}}
    assert 0.04 < at_most(policy(groups), 400).private()[0].epsilon <= 0.05


@pytest.mark.parametrize("spending", ["fixed", "adaptive"])
@pytest.mark.parametrize("neighbours", ["remove", "replace"])
@pytest.mark.parametrize("method", ["dp-fusion", "cid"])
def test_epsilon_zero_shows_nothing_and_is_zero_by_name(
    method: str, neighbours: str, spending: str
) -> None:
    groups = {"PERSON": {"entities": ["PERSON"], "method": method, "epsilon": 0, "spending": spending}}
    promised = at_most(policy(groups, neighbours=neighbours), 400)
    assert promised.private()[0].epsilon_text == "0" and promised.epsilon_all_text == "0"


# -- groups without a span -----------------------------------------------------------------


def test_a_group_without_a_span_costs_nothing_and_changes_nobody_else() -> None:
    groups = {n: {"entities": [n], "method": "dp-fusion", "beta": 0.01, "order": 2}
              for n in ("PERSON", "DATE", "ORG")}  # fmt: skip
    rules = policy(groups)
    whole = at_most(rules, 500)
    absent = promise(rules, {"PERSON": 500, "DATE": 500, "ORG": 0}, VOCABULARY, 500)
    assert by_name(absent)["ORG"].epsilon_text == "0"
    for name in ("PERSON", "DATE"):
        assert by_name(absent)[name] == by_name(whole)[name]
    assert absent.epsilon_all < whole.epsilon_all


@pytest.mark.parametrize("total", [None, 20])
def test_groups_in_different_chunks_cost_the_sum_of_their_totals(total: int | None) -> None:
    """10 of 20 tokens each: nothing says that they share a single one."""
    groups = {n: {"entities": [n], "method": "dp-fusion", "beta": 0.5, "order": 2}
              for n in ("PERSON", "DATE")}  # fmt: skip
    apart = promise(policy(groups), {"PERSON": 10, "DATE": 10}, VOCABULARY, total)
    shared = promise(policy(groups), {"PERSON": 10, "DATE": 10}, VOCABULARY, 10)
    one = 10 * math.log(1 - 0.5 + 0.5 * math.exp(1.0))
    assert apart.epsilon_all == pytest.approx(2 * one + conversion(2, 1e-5), abs=1e-4)
    assert shared.epsilon_all == pytest.approx(10 * 1.0 + conversion(2, 1e-5), abs=1e-4)
    assert shared.epsilon_all < apart.epsilon_all


@pytest.mark.parametrize("spending", ["fixed", "adaptive"])
@pytest.mark.parametrize("neighbours", ["remove", "replace"])
def test_a_hopeless_epsilon_is_no_error_where_nothing_is_spent(neighbours: str, spending: str) -> None:
    rules = policy(fusion(8, 2, spending=spending), neighbours=neighbours)
    (group,) = promise(rules, {"PERSON": 0}, VOCABULARY).private()
    assert group.epsilon == 0 and group.event.count == 0


def test_keep_and_redact_promise_without_events() -> None:
    rules = policy({"ORG": {"entities": ["ORG"], "method": "keep"}} | fusion(8))
    groups = by_name(at_most(rules, 100))
    assert groups["ORG"].event is None and groups["other"].event is None
    assert at_most(rules, 100).epsilon_all == groups["PERSON"].epsilon


# -- what must not matter, and what must ----------------------------------------------------

MIXED = {
    "PERSON": {"entities": ["PERSON"], "method": "dp-fusion", "beta": 0.01, "order": 2},
    "DATE": {"entities": ["DATE"], "method": "dp-fusion", "epsilon": 9, "order": 3},
    "ORG": {"entities": ["ORG"], "method": "cid", "range": 0.05},
    "AGE": {"entities": ["AGE"], "method": "invisible-ink", "epsilon": 5},
}


@pytest.mark.parametrize("order", list(itertools.permutations(MIXED))[1::5])
@pytest.mark.parametrize("more", [{}, {"neighbours": "replace"}, {"scope": "spans"}])
def test_the_order_of_groups_in_the_policy_does_not_matter(order: tuple[str, ...], more: dict) -> None:
    one = at_most(policy(MIXED, **more), 300)
    two = at_most(policy({n: MIXED[n] for n in order}, **more), 300)
    assert by_name(one) == by_name(two)
    assert one.epsilon_all == pytest.approx(two.epsilon_all, rel=1e-12)


def test_the_order_of_groups_does_not_matter_in_single_mode() -> None:
    groups = {n: {"entities": [n], "method": "dp-fusion", "epsilon": 8} for n in ("PERSON", "DATE")}
    one = at_most(policy(groups, mode="single"), 300)
    two = at_most(policy(dict(reversed(groups.items())), mode="single"), 300)
    assert one.private()[0].event == two.private()[0].event
    assert one.private()[0].weight == 1.0
    assert one.epsilon_all == two.epsilon_all == one.private()[0].epsilon


@settings(deadline=None, max_examples=40)
@given(
    beta=st.floats(1e-4, 1.0), grow=st.floats(1.0, 3.0), tokens=st.integers(1, 900),
    more=st.integers(0, 300), neighbours=st.sampled_from(["remove", "replace"]),
)  # fmt: skip
def test_more_tokens_or_a_larger_beta_never_cost_less(
    beta: float, grow: float, tokens: int, more: int, neighbours: str
) -> None:
    def cost(beta: float, tokens: int) -> tuple[float, float]:
        groups = {n: {"entities": [n], "method": "dp-fusion", "beta": beta, "order": 2}
                  for n in ("PERSON", "DATE")}  # fmt: skip
        promised = at_most(policy(groups, neighbours=neighbours), tokens)
        return promised.private()[0].epsilon, promised.epsilon_all

    small, large = cost(beta, tokens), cost(beta * grow, tokens + more)
    assert small[0] <= large[0] and small[1] <= large[1]
    assert small[0] <= small[1]


def test_printed_numbers_are_never_below_the_exact_ones() -> None:
    promised = at_most(policy(MIXED), 300)
    for group in promised.private():
        assert float(group.epsilon_text) >= group.epsilon
    assert float(promised.epsilon_all_text) >= promised.epsilon_all


def test_the_mixers_accounts_get_the_events_that_are_promised() -> None:
    """What is charged at the draw is the promise itself, not a second computation."""
    from dpredact.mixing import Mixer
    from dpredact.privacy import spending

    rules = policy(MIXED)
    accounts = Mixer(at_most(rules, 7), rules)._accounts
    assert set(accounts) == set(MIXED)
    for account in accounts.values():
        for _ in range(7):
            charge = getattr(account, "charge", None)
            charge(0.0, 0.0) if charge else account.charge_range(0.0)
        with pytest.raises(spending.Exhausted):
            charge(0.0, 0.0) if charge else account.charge_range(0.0)
