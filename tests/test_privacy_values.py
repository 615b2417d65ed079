"""Reference values at 25 digits, an independent library, and the statistics of the draw."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dpredact.privacy import accounting, calibrate
from dpredact.privacy.accounting import (
    Draw,
    OrderCap,
    Range,
    epsilon_from_rdp,
    mean_step_rdp,
    range_rdp,
)
from dpredact.privacy.divergence import renyi, symmetric_renyi
from dpredact.privacy.mechanisms import Clip, Fusion, Influence, Pointwise
from dpredact.privacy.sampling import SystemDraw, UnsafeSeededDraw, integer_weights

VECTORS = json.loads((Path(__file__).parent / "data" / "vectors.json").read_text())


def row(values: list[str]) -> torch.Tensor:
    return torch.tensor([float(v) for v in values], dtype=torch.float64).log()


def near(value: float, truth: str) -> bool:
    return math.isclose(value, float(truth), rel_tol=1e-9, abs_tol=1e-12)


@pytest.mark.parametrize("case", VECTORS["renyi"])
def test_renyi_divergence(case: dict) -> None:
    p, q, order = row(case["p"]), row(case["q"]), float(case["order"])
    assert near(float(renyi(p, q, order)), case["p_q"])
    assert near(float(renyi(q, p, order)), case["q_p"])
    assert float(symmetric_renyi(p, q, order)) == max(
        float(renyi(p, q, order)), float(renyi(q, p, order))
    )


@pytest.mark.parametrize("case", VECTORS["mollify"])
def test_largest_mixture_weight(case: dict) -> None:
    mechanism = Fusion(order=float(case["order"]), cap=float(case["cap"]))
    public, private = row(case["p_public"]), row(case["p_private"])
    assert near(float(mechanism.mix_weight(public, private)), case["weight"])
    q = mechanism.mix(public, private)
    assert float(symmetric_renyi(q, public, mechanism.order)) <= mechanism.cap


@pytest.mark.parametrize("case", VECTORS["mean_step"])
def test_step_of_a_mean(case: dict) -> None:
    step = mean_step_rdp(float(case["order"]), float(case["cap"]), float(case["weight"]))
    assert near(step, case["step_rdp"])


@pytest.mark.parametrize("case", VECTORS["budget"])
def test_document_epsilon(case: dict) -> None:
    order = float(case["order"])
    step = mean_step_rdp(order, float(case["cap"]), float(case["weight"]))
    epsilon = epsilon_from_rdp(case["tokens"] * step, order, float(case["delta"]))
    assert near(epsilon, case["epsilon"])
    assert epsilon >= float(case["epsilon"]) * (1 - 1e-12), "rounded down"


@pytest.mark.parametrize("case", VECTORS["range"])
def test_exact_curve_of_a_width(case: dict) -> None:
    order, width = float(case["order"]), float(case["range"])
    assert near(range_rdp(order, width), case["step_rdp_exact"])
    assert range_rdp(order, width) <= float(case["step_rdp_zcdp"]) * (1 + 1e-12)


@pytest.mark.parametrize("case", VECTORS["clip"])
def test_width_of_a_clip(case: dict) -> None:
    width = Clip(float(case["clip"]) / case["references"], float(case["temperature"])).range
    assert near(case["tokens"] * width**2 / 8, case["zcdp_rho"])


def test_conversion_agrees_with_dp_accounting() -> None:
    from dp_accounting import rdp

    for order in (1.25, 1.5, 2.0, 3.0, 8.0, 32.0):
        for value in (1e-3, 0.1, 1.0, 10.0):
            for delta in (1e-3, 1e-5, 1e-9):
                theirs, _ = rdp.compute_epsilon([order], [value], delta)
                ours = epsilon_from_rdp(value, order, delta)
                assert ours == pytest.approx(theirs, rel=1e-9, abs=1e-12)
                assert ours >= theirs * (1 - 1e-12)


@pytest.mark.parametrize("width", [0.1, 0.5, 1.0, 3.0])
def test_the_curve_of_a_width_is_the_worst_pair_on_three_tokens(width: float) -> None:
    """Many pairs whose log ratios span exactly `width`: none above the curve, some near it."""
    for order in (1.5, 2.0, 8.0):
        best = 0.0
        for k in range(1, 400):
            p0 = torch.tensor([k / 400, 1 - k / 400], dtype=torch.float64)
            raised = p0 * torch.tensor([1.0, math.exp(-width)])
            best = max(best, float(renyi((raised / raised.sum()).log(), p0.log(), order)))
        assert best <= range_rdp(order, width) * (1 + 1e-9)
        assert best >= range_rdp(order, width) * 0.98


def test_a_two_sided_bound_is_not_a_width() -> None:
    """Log ratios in [−η, η]: charging them as width η would be exceeded (width is 2η)."""
    p = torch.tensor([0.5, 0.5], dtype=torch.float64)
    eta = 0.5
    q = p * torch.tensor([math.exp(eta), 0.0]) + torch.tensor([0.0, 1 - 0.5 * math.exp(eta)])
    two_sided = (q / p).log().abs().max()
    worst = float(symmetric_renyi(q.log(), p.log(), 8.0))
    assert worst > range_rdp(8.0, eta)
    assert worst <= range_rdp(8.0, 2 * float(two_sided))


rows = st.lists(st.floats(-30, 8), min_size=3, max_size=12)


@settings(deadline=None, max_examples=60)
@given(rows, st.randoms(use_true_random=False), st.sampled_from([1.1, 1.5, 2.0, 5.0, 16.0]))
def test_the_mixture_fits_its_cap_and_grows_with_it(
    public: list[float], rng, order: float
) -> None:
    p0 = torch.log_softmax(torch.tensor(public, dtype=torch.float64), -1)
    p1 = torch.log_softmax(
        torch.tensor([rng.uniform(-30, 8) for _ in public], dtype=torch.float64), -1
    )
    before = 0.0
    for cap in (1e-6, 1e-3, 0.1, 1.0, 5.0):
        mechanism = Fusion(order, cap)
        weight = float(mechanism.mix_weight(p0, p1))
        assert weight >= before * (1 - 1e-9)
        assert float(symmetric_renyi(mechanism.mix(p0, p1), p0, order)) <= cap
        if weight * 1.0001 < 1:  # the largest: a hair more does not fit
            q = torch.logaddexp(math.log1p(-weight * 1.0001) + p0, math.log(weight * 1.0001) + p1)
            assert float(symmetric_renyi(q, p0, order)) > cap * (1 - 1e-9)
        before = weight


@settings(deadline=None, max_examples=60)
@given(rows, st.randoms(use_true_random=False), st.floats(0.01, 4))
def test_widths_hold_for_every_range_method(public: list[float], rng, width: float) -> None:
    tau = 0.8
    phi0 = torch.tensor(public, dtype=torch.float64)
    phi1 = torch.tensor(
        [rng.choice([rng.uniform(-30, 8), -math.inf, 8.0]) for _ in public], dtype=torch.float64
    )
    p0, p1 = torch.log_softmax(phi0 / tau, -1), torch.log_softmax(phi1 / tau, -1)
    results = [
        Clip(width * tau / 2, tau).mix(phi0, phi1),
        Clip(width * tau / 2, tau, "median").mix(phi0, phi1),
        Influence(width, 1.5, tau).mix(phi0, phi1),
    ]
    if not bool(torch.isnan(p1).any()):
        results.append(Pointwise(width).mix(p0, p1))
    for log_q in results:
        ratio = log_q - p0
        assert float(ratio.max() - ratio.min()) <= width * (1 + 1e-9) + 1e-12
        assert float(log_q.exp().sum()) == pytest.approx(1, abs=1e-12)


def test_unusable_private_rows_become_the_public_row() -> None:
    p0 = torch.log_softmax(torch.tensor([0.0, 1.0, 2.0], dtype=torch.float64), -1)
    for broken in ([math.nan] * 3, [math.inf, 0, 0], [-math.inf] * 3):
        private = torch.tensor(broken, dtype=torch.float64)
        assert torch.equal(Fusion(2, 0.1).mix(p0, private), p0)
        for mechanism in (Clip(1, 1), Influence(1, 1, 1)):
            assert torch.allclose(mechanism.mix(p0, private), p0, atol=1e-15)
        assert torch.equal(Pointwise(1.0).mix(p0, private), p0)


@settings(deadline=None, max_examples=40)
@given(
    st.floats(0.001, 2), st.floats(1.05, 8), st.integers(1, 900), st.sampled_from([0.125, 0.5, 1.0])
)
def test_epsilon_grows_with_beta_and_with_tokens(
    beta: float, order: float, tokens: int, weight: float
) -> None:
    def epsilon(b: float, t: int) -> float:
        return accounting.epsilon(OrderCap(order, order * b, weight, t), 1e-5, Draw(50_000))

    assert epsilon(beta, tokens) <= epsilon(beta * 1.1, tokens)
    assert epsilon(beta, tokens) <= epsilon(beta, tokens + 1)


@settings(deadline=None, max_examples=30)
@given(st.floats(0.5, 40), st.integers(1, 2000), st.sampled_from([0.125, 0.5, 1.0]))
def test_calibrated_allowances_use_the_budget_and_keep_it(
    wished: float, tokens: int, weight: float
) -> None:
    draw, delta = Draw(50_000), 1e-5
    events: list = [
        calibrate.range_event(wished, delta, tokens, weight, draw, replaced=False),
        calibrate.range_filter(wished, delta, tokens, draw, replaced=True),
    ]
    order = calibrate.best_order(wished, delta, tokens, weight, draw, adaptive=False)
    events.append(calibrate.order_cap(wished, delta, tokens, weight, order, draw))
    events.append(calibrate.order_filter(wished, delta, tokens, order, draw))
    events.append(calibrate.two_hop_cap(wished, delta, tokens, weight, order, draw))
    for event in events:
        assert accounting.epsilon(event, delta, draw) <= wished
    for event in events[:4]:
        assert accounting.epsilon(event, delta, draw) >= wished * 0.999


def test_an_epsilon_below_the_conversions_floor_is_refused_with_the_number() -> None:
    with pytest.raises(calibrate.BudgetTooSmall) as caught:
        calibrate.order_cap(8.0, 1e-5, 400, 0.25, 2.0, None)
    assert caught.value.floor == pytest.approx(10.1, abs=0.03)


def test_zero_is_zero_by_name_and_decimals_never_go_below() -> None:
    assert epsilon_from_rdp(0.0, 2.0, 1e-5) == 0.0
    assert accounting.epsilon(Range(0.0, 1.0, 400), 1e-5, Draw(50_000)) == 0.0
    assert accounting.decimal_up(0.0) == "0"
    assert accounting.decimal_up(10.00001) == "10.0001"
    assert float(accounting.decimal_up(1e300)) >= 1e300


def test_integer_weights_stay_within_the_slack_that_is_charged() -> None:
    torch.manual_seed(1)
    for size in (2, 50, 49_152):
        log_p = torch.log_softmax(torch.randn(size, dtype=torch.float64) * 30, -1)
        weights = integer_weights(log_p)
        assert int(weights.min()) >= 1
        smooth = (1 - 2.0**-20) * log_p.exp() + 2.0**-20 / size
        drawn = weights.double() / float(weights.sum())
        slack = Draw(size).log_ratio
        assert float((drawn.log() - smooth.log()).abs().max()) <= slack


def chi_square(draws: list[int], expected: torch.Tensor) -> float:
    counts = torch.bincount(torch.tensor(draws), minlength=len(expected)).double()
    wanted = expected * len(draws)
    return float(((counts - wanted) ** 2 / wanted).sum())


def test_the_draw_follows_the_distribution_and_not_one_that_is_thirty_percent_off() -> None:
    """χ² with 4 degrees of freedom, 20,000 draws; 37.3 is exceeded with probability 1.6e-7."""
    p = torch.tensor([0.4, 0.3, 0.15, 0.1, 0.05], dtype=torch.float64)
    draw = SystemDraw()
    draws = [draw(p.log()) for _ in range(20_000)]
    off = p.clone()
    off[4] *= 1.3
    off /= off.sum()
    assert chi_square(draws, p) < 37.3
    assert chi_square(draws, off) > 37.3
    wrong = [draw(off.log()) for _ in range(20_000)]
    assert chi_square(wrong, p) > 37.3


def test_a_seeded_draw_says_that_it_is_unsafe_and_hides_its_seed() -> None:
    log_p = torch.log(torch.tensor([0.5, 0.5], dtype=torch.float64))
    a, b = UnsafeSeededDraw(7), UnsafeSeededDraw(7)
    assert [a(log_p) for _ in range(20)] == [b(log_p) for _ in range(20)]
    assert not a.safe and SystemDraw().safe
    assert "7" not in repr(a)
