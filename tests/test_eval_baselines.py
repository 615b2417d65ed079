"""The two baselines keep what they say for any two rows, and no less than they say is spent."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dpredact.privacy.mechanisms.baselines import ClippedLogits, UniformMix

rows = st.lists(st.floats(-60, 60), min_size=5, max_size=5)


def row(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


@settings(deadline=None, max_examples=80)
@given(rows, rows, st.floats(0.01, 0.99))
def test_uniform_mixing_is_pure_dp(a: list[float], b: list[float], weight: float) -> None:
    mechanism = UniformMix(weight)
    p, q = mechanism.mix(row(*a)), mechanism.mix(row(*b))
    assert float(p.exp().sum()) == pytest.approx(1)
    assert float((p - q).abs().max()) <= mechanism.epsilon(5) * (1 + 1e-12) + 1e-12


def test_the_formula_is_reached_and_is_the_published_one() -> None:
    """Two rows that are sure of two tokens lose exactly ln((1 + (V−1)λ)/(1−λ))."""
    mechanism = UniformMix(0.9)
    p, q = mechanism.mix(row(400, 0, 0, 0, 0)), mechanism.mix(row(0, 400, 0, 0, 0))
    assert mechanism.epsilon(5) == pytest.approx(math.log((1 + 4 * 0.9) / 0.1))
    assert float((p - q).max()) == pytest.approx(mechanism.epsilon(5))
    assert mechanism.event(5, 7).rdp(1e9) == pytest.approx(7 * mechanism.epsilon(5))


@settings(deadline=None, max_examples=80)
@given(rows, rows, st.floats(0, 12), st.floats(0.2, 3))
def test_clipped_logits_keep_their_width(
    a: list[float], b: list[float], window: float, temperature: float
) -> None:
    mechanism = ClippedLogits(window, temperature)
    ratio = mechanism.mix(row(*a)) - mechanism.mix(row(*b))
    assert float(ratio.max() - ratio.min()) <= mechanism.range * (1 + 1e-9) + 1e-12
    assert float(ratio.abs().max()) <= mechanism.range * (1 + 1e-9) + 1e-12


def test_the_clip_is_real_and_its_width_is_reached() -> None:
    """Temperature alone would give these rows a loss of 100/τ."""
    mechanism = ClippedLogits(3.0, 1.5)
    ratio = mechanism.mix(row(100, 0)) - mechanism.mix(row(0, 100))
    assert float(ratio.max() - ratio.min()) == pytest.approx(mechanism.range) == pytest.approx(4.0)
    inside = row(0.0, -1.0, -2.0)
    assert torch.allclose(mechanism.mix(inside), torch.log_softmax(inside / 1.5, -1))
    assert mechanism.event(4).range == mechanism.range


@pytest.mark.parametrize("mechanism", [UniformMix(0.5), ClippedLogits(4.0, 1.0)])
@pytest.mark.parametrize("bad", [(math.nan, 0.0), (math.inf, 0.0), (-math.inf, -math.inf)])
def test_a_row_that_is_none_gives_the_uniform_row(mechanism, bad: tuple[float, float]) -> None:
    assert mechanism.mix(row(*bad)).exp().tolist() == pytest.approx([0.5, 0.5])


def test_edges() -> None:
    assert UniformMix(0.0).epsilon(50) == 0 and UniformMix(0.0).mix(row(9, 0)).exp().tolist() == pytest.approx([0.5, 0.5])
    assert float(ClippedLogits(4.0, 1.0).mix(row(0.0, -math.inf))[1]) == pytest.approx(-4 - math.log1p(math.exp(-4)))
    for wrong in (lambda: UniformMix(1.0), lambda: UniformMix(-0.1), lambda: ClippedLogits(1.0, 0.0)):
        with pytest.raises(ValueError):
            wrong()
