"""Every path of toy documents, exact Rényi divergence and exact δ(ε) against what is certified.

What runs is the shipped loop (Lane, Mixer, Support, integer weights); only the draw is a
branch. For each guard there is a planted fault that this check must find.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from dpredact import decoding, mixing
from dpredact.policy import Policy
from dpredact.privacy import accounting, combine, spending
from dpredact.privacy.divergence import renyi
from dpredact.privacy.mechanisms import Clip
from dpredact.privacy.mechanisms.fusion import Fused, fusion_weight, mixture
from tests.exact import (
    delta_exact,
    law,
    promised_for,
    promised_for_units,
    renyi_exact,
    unsmoothed,
)
from tests.toys import KINDS, adversarial

TOKENS = 3
NAMES = ("PERSON", "DATE", "LOCATION")
OTHER = {"entities": ["ORG"], "method": "redact"}


def policy(groups: dict[str, dict[str, Any]], **top: Any) -> Policy:
    """A policy with these private groups; delta large so that small budgets convert."""
    named = {n: {"entities": [n], **g} for n, g in groups.items()}
    return Policy.model_validate(
        {
            "version": 1,
            "delta": 0.05,
            "max_new_tokens": 3,
            "decoding": {"temperature": 1.0, "top_k": None},
            "groups": {**named, "other": OTHER},
            **top,
        }
    )


def fusion(**more: Any) -> dict[str, Any]:
    return {"method": "dp-fusion", "beta": 0.1, "order": 2} | more


def wished(method: str, **more: Any) -> dict[str, Any]:
    return {"method": method, "epsilon": 4.0} | more


POLICIES: dict[str, Policy] = {
    "fusion, two groups": policy({"PERSON": fusion(), "DATE": fusion(beta=0.3, order=3)}),
    "fusion, three weighted": policy(
        {
            "PERSON": fusion(weight=0.5),
            "DATE": fusion(weight=0.3, order=1.5),
            "LOCATION": fusion(weight=0.2, beta=1.0),
        }
    ),
    "fusion, single": policy({"PERSON": fusion(), "DATE": fusion()}, mode="single"),
    "fusion, top-k": policy(
        {"PERSON": fusion(), "DATE": fusion()}, decoding={"temperature": 0.7, "top_k": 2}
    ),
    "fusion, epsilon": policy({"PERSON": wished("dp-fusion"), "DATE": wished("dp-fusion")}),
    "fusion, replace": policy({"PERSON": fusion(), "DATE": fusion()}, neighbours="replace"),
    "fusion, replace, epsilon": policy(
        {"PERSON": wished("dp-fusion"), "DATE": fusion()}, neighbours="replace"
    ),
    "adaptive": policy(
        {
            "PERSON": wished("dp-fusion", spending="adaptive", order=2, pace=4),
            "DATE": wished("dp-fusion", spending="adaptive", order=3, pace=4),
        }
    ),
    "adaptive, replace": policy(
        {
            "PERSON": wished("dp-fusion", spending="adaptive", order=2, pace=4),
            "DATE": wished("dp-fusion", spending="adaptive", order=2, pace=4),
        },
        neighbours="replace",
    ),
    "adaptive beside fixed": policy(
        {"PERSON": wished("dp-fusion", spending="adaptive", order=2, pace=4), "DATE": fusion()}
    ),
    "clip, mean": policy({"PERSON": wished("invisible-ink"), "DATE": {"method": "invisible-ink", "clip": 0.4}}),
    "clip, product": policy(
        {
            "PERSON": {"method": "invisible-ink", "clip": 0.4, "shift": "median"},
            "DATE": {"method": "invisible-ink", "clip": 0.2},
        },
        combine="product",
        decoding={"temperature": 1.0, "top_k": 2},
    ),
    "clip, product, replace": policy(
        {"PERSON": {"method": "invisible-ink", "clip": 0.4}, "DATE": wished("cid")},
        combine="product",
        neighbours="replace",
    ),
    "cid and pointwise, mean": policy(
        {"PERSON": {"method": "cid", "range": 0.5}, "DATE": {"method": "pointwise", "range": 0.7}}
    ),
    "cid and pointwise, product": policy(
        {"PERSON": {"method": "cid", "range": 0.5, "max_weight": 2.0}, "DATE": {"method": "pointwise", "range": 0.7}},
        combine="product",
    ),
    "ranges, adaptive, product": policy(
        {
            "PERSON": wished("cid", spending="adaptive", pace=4),
            "DATE": wished("pointwise", spending="adaptive", pace=4),
        },
        combine="product",
    ),
    "ranges, adaptive, mean, replace": policy(
        {
            "PERSON": wished("invisible-ink", spending="adaptive", pace=4),
            "DATE": wished("pointwise", spending="adaptive", pace=4),
        },
        neighbours="replace",
    ),
    "a mix of all": policy(
        {"PERSON": fusion(), "DATE": {"method": "cid", "range": 0.5}, "LOCATION": wished("pointwise")}
    ),
}  # fmt: skip


def orders_of(event: accounting.AnyEvent) -> list[float]:
    known = accounting.known_orders([event])
    own = getattr(event, "order", None)
    return [own] if own is not None else [known[0], 1.5, 2.0, 4.0, 32.0]


def violations(
    rules: Policy,
    kinds: tuple[str, ...] = KINDS,
    *,
    steps: int = 2,
    with_eos: bool = True,
    all_groups: bool = True,
    **how: Any,
) -> list[str]:
    """Where the exact loss passes what is certified. Empty is what must be."""
    out = []
    for kind in kinds:
        views = tuple(mixing.Mixer(_some(rules), rules)._groups)
        toy = adversarial(kind, views, TOKENS, steps)
        toy.with_eos = with_eos
        if units := how.get("units"):
            promised = promised_for_units(rules, toy, TOKENS, units)
        else:
            promised = promised_for(rules, toy, TOKENS)
        base = law(toy, rules, promised, **how)
        pairs = {g.name: (base, _other(toy, rules, promised, g.name, how), g.event, g.epsilon)
                 for g in promised.private()}  # fmt: skip
        for name, (p, q, event, epsilon) in pairs.items():
            for a in orders_of(event):
                certified = event.rdp(a, promised.draw)
                worst = max(renyi_exact(p, q, a), renyi_exact(q, p, a))
                if worst > certified * (1 + 1e-9) + 1e-9:
                    out.append(f"{kind}, {name}: {worst:.12g} > {certified:.12g} at order {a:g}")
            delta = max(delta_exact(p, q, epsilon), delta_exact(q, p, epsilon))
            if delta > rules.delta * (1 + 1e-9):
                out.append(f"{kind}, {name}: delta {delta:.4g} at epsilon {epsilon:.4g}")
        if all_groups:
            out += _together(kind, toy, rules, promised, base, how)
    return out


def _some(rules: Policy) -> Any:
    from dpredact.promise import promise, view_names

    return promise(rules, dict.fromkeys(view_names(rules), 2), TOKENS)


def _other(toy: Any, rules: Policy, promised: Any, name: str, how: Any) -> Any:
    """The neighbour's law: group `name` without words, or with other words."""
    if rules.neighbours == "replace":
        return law(toy, rules, promised, replaced={name: f"{name}'"}, **how)
    return law(toy, rules, promised, nulled=(name,), **how)


def _together(kind: str, toy: Any, rules: Policy, promised: Any, base: Any, how: Any) -> list[str]:
    out = []
    views = [g.name for g in promised.private()]
    if rules.neighbours == "replace":
        other = law(toy, rules, promised, replaced={v: f"{v}'" for v in views}, **how)
    else:
        other = law(toy, rules, promised, nulled=tuple(views), **how)
    events = [g.event for g in promised.private()]
    known = accounting.known_orders(events)
    for a in {known[-1] if known[-1] < 500 else 2.0, min(1.5, known[-1])}:
        certified = accounting.all_groups_rdp(
            events, a, promised.draw, combine=rules.combine, scope=rules.scope,
            total=toy.steps * len(how.get("units") or [()]),
        )  # fmt: skip
        worst = max(renyi_exact(base, other, a), renyi_exact(other, base, a))
        if worst > certified * (1 + 1e-9) + 1e-9:
            out.append(f"{kind}, all: {worst:.12g} > {certified:.12g} at order {a:g}")
    epsilon = promised.epsilon_all
    delta = max(delta_exact(base, other, epsilon), delta_exact(other, base, epsilon))
    if delta > rules.delta * (1 + 1e-9):
        out.append(f"{kind}, all: delta {delta:.4g} at epsilon {epsilon:.4g}")
    return out


@pytest.mark.parametrize("name", POLICIES)
def test_no_path_loses_more_than_the_certificate_says(name: str) -> None:
    assert violations(POLICIES[name], quantise=unsmoothed) == []


APART = {
    "fusion": policy({"PERSON": fusion(beta=2.5), "DATE": fusion(beta=2.5)}),  # large caps tell sum and mean apart
    "product": POLICIES["clip, product"],
    "ranges": POLICIES["cid and pointwise, mean"],
}


@pytest.mark.parametrize("name", APART)
def test_groups_that_never_stand_in_the_same_chunk_cost_no_more_than_the_certificate_says(name: str) -> None:
    units, kinds = [("PERSON",), ("DATE",)], ("plain", "rare", "point")
    assert violations(APART[name], kinds, steps=1, quantise=unsmoothed, units=units) == []


SPANS: dict[str, Policy] = {
    "fixed": policy({"PERSON": fusion(), "DATE": wished("dp-fusion")}, scope="spans"),
    "adaptive": policy(
        {
            "PERSON": wished("dp-fusion", spending="adaptive", order=2, pace=4),
            "DATE": wished("invisible-ink", spending="adaptive", pace=4),
        },
        scope="spans",
    ),
    "replace": policy(
        {"PERSON": fusion(), "DATE": {"method": "cid", "range": 0.5}},
        scope="spans",
        neighbours="replace",
    ),
}


@pytest.mark.parametrize("name", SPANS)
def test_spans_scope_pays_for_every_span_and_adds_up_over_groups(name: str) -> None:
    units = [("PERSON",), ("DATE",), ("PERSON",)]
    kinds = ("plain", "rare", "point")
    assert violations(SPANS[name], kinds, steps=1, quantise=unsmoothed, units=units) == []


def test_chunks_in_which_a_group_is_absent_cost_it_nothing() -> None:
    units = [("PERSON",), ("PERSON", "DATE")]
    for name in ("fusion, two groups", "adaptive", "clip, product"):
        assert violations(POLICIES[name], ("plain", "rare"), steps=1, units=units) == []


def test_in_spans_scope_the_maximum_instead_of_the_sum_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        accounting,
        "all_groups_rdp",
        lambda events, a, draw, **_: max(e.rdp(a, draw) for e in events),
    )
    rules = policy({"PERSON": fusion(), "DATE": fusion()}, scope="spans")
    units = [("PERSON",), ("DATE",)]
    assert violations(rules, ("plain", "point"), steps=1, units=units)


@pytest.mark.parametrize("name", ["fusion, two groups", "adaptive", "clip, product"])
def test_the_same_with_the_shipped_draw(name: str) -> None:
    assert violations(POLICIES[name], ("plain", "rare", "zero")) == []


@pytest.mark.parametrize("name", ["fusion, single", "adaptive"])
def test_the_same_without_an_end_token_and_one_step_longer(name: str) -> None:
    assert violations(POLICIES[name], ("rare",), steps=3, with_eos=False) == []


def test_a_group_without_a_span_loses_nothing_and_leaves_the_others_alone() -> None:
    rules = POLICIES["fusion, two groups"]
    toy = adversarial("rare", ("PERSON", "DATE"), TOKENS, 2)
    toy.present = ("PERSON",)
    promised = promised_for(rules, toy, TOKENS)
    by_name = {g.name: g for g in promised.private()}
    assert by_name["DATE"].epsilon == 0
    assert law(toy, rules, promised, nulled=("DATE",)) == law(toy, rules, promised)
    worst = renyi_exact(law(toy, rules, promised), law(toy, rules, promised, ("PERSON",)), 2.0)
    assert 0 < worst <= by_name["PERSON"].event.rdp(2.0, promised.draw)


def test_a_broken_private_row_is_the_public_row_and_nobody_can_tell() -> None:
    rules = POLICIES["a mix of all"]
    toy = adversarial("broken", NAMES, TOKENS, 2)
    promised = promised_for(rules, toy, TOKENS)
    assert law(toy, rules, promised) == law(toy, rules, promised, nulled=NAMES)


# -- wrong on purpose: each planted fault must be found -------------------------------------


def test_a_doubled_cap_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    real = spending.FixedCap.caps
    monkeypatch.setattr(
        spending.FixedCap, "caps", lambda self: tuple((a, 2 * c) for a, c in real(self))
    )
    assert violations(POLICIES["fusion, single"])


def wrong_weight(weight: Callable[..., torch.Tensor]) -> Callable[..., Fused]:
    """A search that mixes with another λ; mixture and charge as in the shipped one."""

    def search(p: torch.Tensor, q: torch.Tensor, forward: Any, reverse: Any) -> Fused:
        lam = weight(p, q, forward, reverse)
        mixed = mixture(p, q, lam)
        return Fused(lam, mixed, renyi(mixed, p, forward[0]), renyi(p, mixed, reverse[0]))

    return search


def test_a_floor_under_probabilities_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    floor = math.log(1e-10)

    def floored(p: torch.Tensor, q: torch.Tensor, forward: Any, reverse: Any) -> torch.Tensor:
        high = (torch.log_softmax(x.clamp(min=floor), -1) for x in (p, q))
        return fusion_weight(*high, forward, reverse)

    monkeypatch.setattr(mixing, "fuse", wrong_weight(floored))
    assert violations(POLICIES["fusion, two groups"], ("rare", "point"), quantise=unsmoothed)


@pytest.mark.parametrize("dropped", [0, 1])
def test_a_dropped_direction_is_found(monkeypatch: pytest.MonkeyPatch, dropped: int) -> None:
    def one_way(p: Any, q: Any, forward: Any, reverse: Any) -> Any:
        pairs = [forward, reverse]
        pairs[dropped] = (pairs[dropped][0], torch.full_like(pairs[dropped][1], 1e9))
        return fusion_weight(p, q, *pairs)

    monkeypatch.setattr(mixing, "fuse", wrong_weight(one_way))
    assert violations(POLICIES["fusion, single"])


class FirstTokenFree(mixing.Mixer):
    """Shows the private row at the first token, and charges from the second on."""

    def end(self, half: Any, *found: Any) -> torch.Tensor:
        if not getattr(self, "begun", False):
            self.begun = True
            return half.log_rows[-1]
        return super().end(half, *found)


def test_a_first_token_that_is_not_charged_is_found() -> None:
    assert violations(POLICIES["fusion, single"], ("plain", "rare"), mixer_class=FirstTokenFree)


def test_plain_rounding_in_the_draw_is_found() -> None:
    def rounded(log_p: torch.Tensor) -> list[int]:
        return (log_p.exp() * 20).round().int().clamp(min=1).tolist()  # nobody gets weight 0

    tight = policy({"PERSON": fusion(beta=0.001), "DATE": fusion(beta=0.001)})
    assert violations(tight, ("plain",)) == []
    assert violations(tight, ("plain",), quantise=rounded)


class MovedRow(mixing.Mixer):
    """A row that depends on another group's text, as with padding to the longest row."""

    def begin(self, logits: torch.Tensor, views: Any) -> mixing.Half:
        logits = logits.clone()
        for i in range(1, logits.shape[0]):
            logits[i] += 3 * (logits[1 + i % (logits.shape[0] - 1)] - logits[0]).clamp(-2, 2)
        return super().begin(logits, views)


def test_a_row_moved_by_another_groups_text_is_found() -> None:
    assert violations(POLICIES["fusion, three weighted"], mixer_class=MovedRow)


def _purse_without_third_term(self: Any, tokens_left: int) -> float:
    left = max(0.0, self._left)
    step = min(self._most, self._pace * left / max(1, tokens_left))
    return accounting.cap_for_step(self.order, step, self._weight)


def test_the_filter_without_its_third_term_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spending._Purse, "cap", _purse_without_third_term)
    assert violations(POLICIES["adaptive"], ("rare", "point"), quantise=unsmoothed)


def test_a_filter_that_stops_one_token_late_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    real = spending._Purse.pay

    def late(self: Any, realised: float) -> None:
        owed, self.owed = getattr(self, "owed", 0.0), realised
        real(self, owed)

    monkeypatch.setattr(spending._Purse, "pay", late)
    assert violations(POLICIES["adaptive"], ("rare", "point", "plain"), quantise=unsmoothed)


def test_a_filter_in_caps_instead_of_step_losses_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def pay(self: Any, realised: float) -> None:
        self._left -= self._weight * realised

    def cap(self: Any, tokens_left: int) -> float:
        left = max(0.0, self._left)
        return min(self._most, self._pace * left / max(1, tokens_left), left) / self._weight

    monkeypatch.setattr(spending._Purse, "pay", pay)
    monkeypatch.setattr(spending._Purse, "cap", cap)
    assert violations(POLICIES["adaptive"], ("rare", "point", "plain"), quantise=unsmoothed)


class AnothersLoss(mixing.Mixer):
    """A cap that grows when another group's row is calm: looks at another group's loss."""

    def begin(self, logits: torch.Tensor, views: Any) -> mixing.Half:
        logits = logits.clone()
        for i in range(1, logits.shape[0]):
            other = logits[1 + i % (logits.shape[0] - 1)]
            if bool((torch.isfinite(other) & ((other - logits[0]).abs() > 1)).any()):
                logits[i] = logits[0]
        return super().begin(logits, views)


def test_a_cap_that_looks_at_another_groups_loss_is_found() -> None:
    assert violations(POLICIES["fusion, three weighted"], mixer_class=AnothersLoss)


def test_the_maximum_instead_of_the_sum_for_all_groups_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        accounting,
        "all_groups_rdp",
        lambda events, a, draw, **_: max(e.rdp(a, draw) for e in events),
    )
    assert violations(POLICIES["ranges, adaptive, product"])


def test_top_k_from_private_logits_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def private_support(self: Any, logits: torch.Tensor, eos: Any, draw: Any) -> int:
        tokens = self.support(logits[-1])
        log_p = self.mixer.step(logits[:, tokens], self.views)
        drawn = int(tokens[draw(log_p)])
        self.ids.append(drawn)
        self.finished = drawn in eos
        return drawn

    monkeypatch.setattr(decoding.Lane, "advance", private_support)
    assert violations(POLICIES["fusion, top-k"], ("plain", "point"), all_groups=False)


class JointShift(mixing.Mixer):
    """One shift for two groups under product: width 4C for a promised 2C."""

    def end(self, half: Any, *found: Any) -> torch.Tensor:
        logits, views = half.logits, half.views
        tau, rows = self._temperature, logits[1:] - logits[0]
        rows = torch.where(torch.isfinite(rows), rows, 0.0)
        shift = rows.sum(0).median()
        log_public = torch.log_softmax(logits[0] / tau, -1)
        moved = logits[0].clone()
        for i, view in enumerate(views):
            c = self._accounts[view].range() * tau / 2
            self._accounts[view].charge_range(0.0)
            moved = moved + (rows[i] - shift * (1 if i else -1)).clamp(-c, c)
        del log_public
        return torch.log_softmax(moved / tau, -1)


def test_a_joint_shift_of_two_groups_under_product_is_found() -> None:
    rules = policy(
        {"PERSON": {"method": "invisible-ink", "clip": 0.4}, "DATE": {"method": "invisible-ink", "clip": 0.4}},
        combine="product",
    )
    assert violations(rules, ("plain", "point", "zero"), mixer_class=JointShift)


def test_the_papers_four_beta_is_not_a_guarantee() -> None:
    """α = 2, m = 2, caps αβ = 0.1, public probability 1e-6: far more is lost than 4β says."""
    rare = 1e-6
    log_public = torch.log(torch.tensor([1 - rare, rare], dtype=torch.float64))
    loves = torch.log(torch.tensor([1e-300, 1.0], dtype=torch.float64))
    shuns = torch.log(torch.tensor([1.0, 1e-300], dtype=torch.float64))
    caps = (2.0, 0.1)
    q_loves, q_shuns = (
        mixture(log_public, row, fusion_weight(log_public, row, caps, caps))
        for row in (loves, shuns)
    )
    halves = torch.tensor([0.5, 0.5], dtype=torch.float64)
    one = combine.mean(torch.stack([q_loves, q_shuns]), halves)
    other = combine.mean(torch.stack([q_shuns, q_shuns]), halves)
    exact = float(renyi(one, other, 2.0))
    claimed = math.log((1 + math.exp(4 * 0.05)) / 2)
    assert claimed == pytest.approx(0.105, abs=1e-3)
    assert exact > 70 * claimed
    # what is certified instead: caps at orders 3 and 4, and then it holds
    hop = accounting.TwoHopCap(2.0, 3 * 0.05, 4 * 0.05, 0.5, 1)
    q_loves, q_shuns = (
        mixture(
            log_public, row, fusion_weight(log_public, row, (3.0, 0.15), (4.0, 0.2))
        )
        for row in (loves, shuns)
    )
    one = combine.mean(torch.stack([q_loves, q_shuns]), halves)
    other = combine.mean(torch.stack([q_shuns, q_shuns]), halves)
    worst = max(float(renyi(one, other, 2.0)), float(renyi(other, one, 2.0)))
    assert worst <= hop.step(2.0)


def test_a_release_gate_on_private_values_breaks_a_zero_promise() -> None:
    """Refusing when a 2-digit code reappears by chance at ε = 0 gives δ = 1/100 at every ε."""
    published = {(c,): -math.log(100) for c in range(100)}
    gated = {k: v for k, v in published.items() if k != (42,)} | {("refused",): -math.log(100)}
    assert delta_exact(gated, published, 50.0) == pytest.approx(0.01)


def test_a_clip_shifted_by_the_public_median_keeps_its_width() -> None:
    public = torch.tensor([0.0, 1.0, -3.0, 2.0], dtype=torch.float64)
    private = torch.tensor([40.0, 41.0, 39.0, -9.0], dtype=torch.float64)
    clip = Clip(0.5, 0.7, "median")
    ratio = clip.mix(public, private) - torch.log_softmax(public / 0.7, -1)
    assert float(ratio.max() - ratio.min()) <= clip.range * (1 + 1e-12)
