"""The draw: integers and the operating system's randomness, with its slack charged.

p̃ = (1−γ)p + γ/K over the K supported tokens, γ = 2⁻²⁰; integer weights ⌊2⁶²·p̃⌋; one
uniform integer below their sum from `secrets` picks the token.

Why the slack is what `accounting.Draw` says: every p̃(y) ≥ γ/K, so rounding down changes a
weight by a factor of at least 1 − K/(γ·2⁶²); float64 arithmetic on the way (log-soft-max of
logits below 1000/τ, mixing, averaging, the sum of K terms) stays under 2⁻⁴⁰ relative, room
to spare. With κ the sum of both, the drawn distribution P̂ has (1−κ) ≤ P̂/p̃ ≤ 1/(1−κ). Hence for two documents
D_α(P̂‖P̂′) ≤ D_α(p̃‖p̃′) + ((α + (α−1))/(α−1))·ln(1/(1−κ)). The step from p to p̃ costs
nothing: mixing both sides with one fixed distribution never raises a Rényi divergence and
never widens an interval of log ratios that holds 0.
"""

from __future__ import annotations

import random
import secrets
from dataclasses import dataclass
from typing import Protocol

import torch

from dpredact.privacy.sampling_constants import GAMMA_LOG2, RESOLUTION_LOG2





class Draw(Protocol):
    """Picks one index from a row of log probabilities."""

    safe: bool

    def __call__(self, log_p: torch.Tensor) -> int: ...


def integer_weights(log_p: torch.Tensor) -> torch.Tensor:
    """⌊2⁶²·((1−γ)p + γ/K)⌋. (K,) log probabilities -> (K,) int64, every entry ≥ 1."""
    gamma = 2.0**-GAMMA_LOG2
    p = log_p.double().exp()
    smooth = (1.0 - gamma) * p + gamma / p.shape[-1]
    return torch.floor(smooth * 2.0**RESOLUTION_LOG2).to(torch.int64)


def _pick(below: int, cumulative: torch.Tensor) -> int:
    return int(torch.searchsorted(cumulative, torch.tensor(below), right=True))


@dataclass(frozen=True)
class SystemDraw:
    """Randomness from the operating system; nothing to seed, nothing to store."""

    safe: bool = True

    def __call__(self, log_p: torch.Tensor) -> int:
        """Index of the drawn token. (K,) normalised log probabilities."""
        cumulative = integer_weights(log_p.cpu()).cumsum(0)
        return _pick(secrets.randbelow(int(cumulative[-1])), cumulative)


class UnsafeSeededDraw:
    """A repeatable draw for tests. A certificate made with it says `unsafe`."""

    safe = False

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def __call__(self, log_p: torch.Tensor) -> int:
        cumulative = integer_weights(log_p.cpu()).cumsum(0)
        return _pick(self._random.randrange(int(cumulative[-1])), cumulative)

    def __repr__(self) -> str:  # the seed would give the random bits away
        return "UnsafeSeededDraw()"
