"""Mechanisms whose promise is a width: all log ratios of one token lie in an interval ≤ η.

A width-η promise ("bounded range", Dong, Durfee, Rogers 2020) holds at every Rényi order
and is pure η-DP; see `privacy.curves.range_rdp`. Each λ, shift and clip below looks at
its own group's row and the public row only: a shift that looked at another group's logits
would break the promise (THEORY §2).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from dpredact.privacy.mechanisms.fusion import mixture, usable


@dataclass(frozen=True)
class Clip:
    """InvisibleInk's DClip: q ∝ exp((φ₀ + clip_C(φᵢ − φ₀ − s))/τ).

    clip: C, logits. temperature: τ. shift: 'none' (s = 0) or 'median' (s is the p₀-weighted
    median of φᵢ − φ₀, so that the window sits where the public mass is). The shift is
    private and free: the promise is about width, which no constant changes.

    Formal guarantee: against p₀ = softmax(φ₀/τ), the log ratios of q lie in an interval of
    width ≤ 2·clip/temperature.

    Source: InvisibleInk (Vinod, Pillutla, Thakurta 2025), difference clipping.
    Edges: an unusable private row -> p₀ · −inf in the private row -> clipped to −C.
    """

    clip: float
    temperature: float
    shift: str = "none"

    @property
    def range(self) -> float:
        """η, nats."""
        return 2.0 * self.clip / self.temperature

    def mix(self, public_logits: torch.Tensor, private_logits: torch.Tensor) -> torch.Tensor:
        """log q, float64. (…, V), (…, V) -> (…, V)."""
        public, private = public_logits.double(), private_logits.double()
        good = usable(private)[..., None]
        gap = torch.where(good, private - public, torch.zeros_like(private))
        if self.shift == "median":
            gap = gap - _weighted_median(gap, torch.softmax(public / self.temperature, -1))
        moved = public + gap.clamp(-self.clip, self.clip)
        return torch.log_softmax(torch.where(good, moved, public) / self.temperature, -1)


def _weighted_median(gap: torch.Tensor, mass: torch.Tensor) -> torch.Tensor:
    """Smallest finite gap below which half of `mass` lies; (…, V), (…, V) -> (…, 1)."""
    mass = mass.expand_as(gap)
    order = torch.argsort(gap, -1)
    total = torch.gather(mass, -1, order).cumsum(-1)
    place = (total < 0.5 * total[..., -1:]).sum(-1, keepdim=True).clamp(max=gap.shape[-1] - 1)
    middle = torch.gather(torch.gather(gap, -1, order), -1, place)
    return torch.where(torch.isfinite(middle), middle, torch.zeros_like(middle))


@dataclass(frozen=True)
class Influence:
    """Bounded context influence: q ∝ exp((φ₀ + λ(φᵢ − φ₀))/τ), λ as large as the range allows.

    range: η, nats. max_weight: λ_max (1 never goes past the private row). temperature: τ.
    λ = min{λ_max, ητ/(max Δ − min Δ)}, Δ = φᵢ − φ₀ on the support. λ is private.

    Formal guarantee: log ratios of q against p₀ lie in an interval of width ≤ range.

    Source: context influence decoding (Flemings, Razaviyayn, Annavaram 2024), with λ chosen
    per token from the width (THEORY §2).
    Edges: infinite width (a −inf) -> λ = 0 and no difference · zero width -> λ_max ·
    an unusable private row -> p₀.
    """

    range: float
    max_weight: float
    temperature: float

    def mix(self, public_logits: torch.Tensor, private_logits: torch.Tensor) -> torch.Tensor:
        """log q, float64. (…, V), (…, V) -> (…, V)."""
        public, private = public_logits.double(), private_logits.double()
        good = usable(private)[..., None]
        gap = torch.where(good, private - public, torch.zeros_like(private))
        width = gap.amax(-1, keepdim=True) - gap.amin(-1, keepdim=True)
        finite = torch.isfinite(width)
        gap = torch.where(finite, gap, torch.zeros_like(gap))  # 0·∞ must not happen
        # (1 − 1e-12): the width of the rounded result must not pass the range.
        fit = torch.where(  # nothing to fit in a width of 0, also when the range is 0
            width > 0, self.range * self.temperature * (1 - 1e-12) / width, torch.inf
        )
        lam = torch.where(finite, fit.clamp(max=self.max_weight), torch.zeros_like(fit))
        return torch.log_softmax((public + lam * gap) / self.temperature, -1)


@dataclass(frozen=True)
class Pointwise:
    """A mixture whose pointwise log ratios fit a width: q = (1−λ)p₀ + λpᵢ.

    range: η, nats. λ = min{1, (e^η − 1)/((M − 1) + e^η(1 − μ))} with M = max pᵢ/p₀ and
    μ = min pᵢ/p₀; then (1 + λ(M−1))/(1 − λ(1−μ)) ≤ e^η. λ is private.

    Formal guarantee: log ratios of q against p₀ lie in an interval of width ≤ range.
    Edges: M = ∞ -> 0 · equal rows -> 1 · an unusable private row -> p₀.
    """

    range: float

    def mix_weight(self, log_public: torch.Tensor, log_private: torch.Tensor) -> torch.Tensor:
        """λ, float64. (…, V), (…, V) -> (…,)."""
        log_public, log_private = log_public.double(), log_private.double()
        good = usable(log_private)
        gap = log_private - log_public
        top, bottom = gap.amax(-1).exp(), gap.amin(-1).exp()
        grow = torch.as_tensor(self.range, dtype=torch.float64).exp()
        below = (top - 1) + grow * (1 - bottom)
        lam = torch.where(below > 0, (grow - 1) * (1 - 1e-12) / below, torch.ones_like(below))
        lam = torch.where(torch.isfinite(top), lam.clamp(max=1.0), torch.zeros_like(lam))
        return torch.where(good, lam, torch.zeros_like(lam))

    def mix(self, log_public: torch.Tensor, log_private: torch.Tensor) -> torch.Tensor:
        """log q, float64. (…, V), (…, V) -> (…, V)."""
        return mixture(log_public, log_private, self.mix_weight(log_public, log_private))
