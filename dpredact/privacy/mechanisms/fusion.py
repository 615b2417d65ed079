"""DP-Fusion: a mixture of the public and the private row, as private as its cap says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch

from dpredact.privacy.divergence import renyi


@dataclass(frozen=True)
class Fusion:
    """q = (1−λ)·p₀ + λ·pᵢ with the largest λ in [0, 1] that both caps allow.

    order, cap: D_order(q‖p₀) ≤ cap and, unless the second pair is given, also
        D_order(p₀‖q) ≤ cap. Nats.
    reverse_order, reverse_cap: another order and cap for D(p₀‖q); the two hops of
        `neighbours: replace` need orders 2α−1 and 2α (THEORY §2).

    Formal guarantee: for any pair of rows with the same public row, q of a document with
    the group and q = p₀ of the document without it are within `cap` at `order`, in both
    directions. λ is private and must not leave.

    Source: DP-Fusion (Thareja et al. 2025), the mixture and its search; both divergences
    grow with λ, so the feasible set is an interval [0, λ*].

    Edges: equal rows -> 1 · cap 0 and different rows -> 0 · a token only pᵢ can give -> 0 ·
    a private row that is unusable (NaN, +inf, nothing finite) -> 0, silently.
    """

    order: float
    cap: float
    reverse_order: float | None = None
    reverse_cap: float | None = None

    def mix_weight(self, log_public: torch.Tensor, log_private: torch.Tensor) -> torch.Tensor:
        """λ, float64. (…, V), (…, V) -> (…,). Rows of log probabilities on one support."""
        forward = (self.order, self.cap)
        reverse = (
            self.order if self.reverse_order is None else self.reverse_order,
            self.cap if self.reverse_cap is None else self.reverse_cap,
        )
        return fusion_weight(log_public, log_private, forward, reverse)

    def mix(self, log_public: torch.Tensor, log_private: torch.Tensor) -> torch.Tensor:
        """log q, float64. (…, V), (…, V) -> (…, V)."""
        return mixture(log_public, log_private, self.mix_weight(log_public, log_private))


def usable(row: torch.Tensor) -> torch.Tensor:
    """Can this private row be mixed at all? (…, V) -> (…,) bool. NaN, +inf, all −inf: no."""
    bad = torch.isnan(row) | torch.isposinf(row)
    return ~bad.any(-1) & torch.isfinite(row).any(-1)


def mixture(
    log_public: torch.Tensor, log_private: torch.Tensor, weight: torch.Tensor
) -> torch.Tensor:
    """log((1−λ)p₀ + λpᵢ), float64; λ = 0 gives p₀ to the bit. (…, V), (…, V), (…,) -> (…, V)."""
    log_public, log_private = log_public.double(), log_private.double()
    log_private = torch.where(usable(log_private)[..., None], log_private, log_public)
    lam = weight[..., None].double()
    mixed = torch.where(
        torch.isneginf(log_public),
        torch.log(lam) + log_private,
        log_public + _log_ratio(log_private - log_public, lam),
    )
    return torch.where(lam == 0, log_public.expand_as(mixed), mixed)


def _log_ratio(log_ratio: torch.Tensor, lam: torch.Tensor) -> torch.Tensor:
    """log(1 + λ(e^r − 1)) without losing the digits of small values or the range of large."""
    moderate = torch.log1p(lam * torch.expm1(log_ratio.clamp(max=600.0)))
    if not bool((log_ratio > 600.0).any()):
        return moderate
    huge = torch.logaddexp(torch.log1p(-lam), torch.log(lam) + log_ratio)
    return torch.where(log_ratio > 600.0, huge, moderate)


def fusion_weight(
    log_public: torch.Tensor,
    log_private: torch.Tensor,
    forward: tuple[float | torch.Tensor, float | torch.Tensor],
    reverse: tuple[float | torch.Tensor, float | torch.Tensor],
) -> torch.Tensor:
    """Largest λ with D(q‖p₀) ≤ forward cap and D(p₀‖q) ≤ reverse cap; the lower end.

    (…, V), (…, V) -> (…,), float64; orders and caps broadcast against (…,). See `fuse`.
    """
    return fuse(log_public, log_private, forward, reverse).weight


class Fused(NamedTuple):
    """What a search found, for each row. Private."""

    weight: torch.Tensor  # λ, (…,)
    log_q: torch.Tensor  # (…, V)
    up: torch.Tensor  # D(q‖p₀) at the forward order, (…,)
    down: torch.Tensor  # D(p₀‖q) at the reverse order, (…,)


def fuse(
    log_public: torch.Tensor,
    log_private: torch.Tensor,
    forward: tuple[float | torch.Tensor, float | torch.Tensor],
    reverse: tuple[float | torch.Tensor, float | torch.Tensor],
) -> Fused:
    """The largest λ both caps allow, its mixture, and the divergences that mixture has.

    A bracket with a feasible lower and an infeasible upper end is narrowed by secants in
    log-log scale (the divergence goes like λ² near 0), halved where that is slow, until λ
    is within 1e-10 of the largest. The mixture returned was itself checked against both
    caps on the numbers that are sampled, with the exact divergence.
    """
    log_public, log_private = log_public.double(), log_private.double()
    log_public, log_private = torch.broadcast_tensors(log_public, log_private)
    good = usable(log_private)
    log_private = torch.where(good[..., None], log_private, log_public)
    excess = _Excess(log_public, log_private, forward, reverse)
    low = _search(excess, torch.ones_like(good, dtype=torch.float64))
    low = torch.where(good & (low > 0), low, torch.zeros_like(low))  # no NaN either
    caps = [torch.as_tensor(c, dtype=torch.float64, device=low.device) for c in (forward[1], reverse[1])]
    shrinks = iter((1 - 1e-9, 1 - 1e-6, 0.5))
    while True:
        q = mixture(log_public, log_private, low)
        up, down = renyi(q, log_public, forward[0]), renyi(log_public, q, reverse[0])
        fits = (up <= caps[0]) & (down <= caps[1])  # NaN holds nothing
        if bool((fits | (low == 0)).all()):  # λ = 0 is row 0 to the bit, whatever the caps
            break
        low = torch.where(fits, low, low * next(shrinks, 0.0))
    return Fused(low, q, up, down)


class _Excess:
    """log(divergence / cap) of the mixture, the worse of both directions: ≤ 0 where it fits.

    With u = q/p₀ = 1 + λd both divergences are sums over p₀ in Bregman form (see
    `privacy.divergence`), so one log1p serves both. Overflow reads as "does not fit".
    """

    def __init__(
        self,
        log_public: torch.Tensor,
        log_private: torch.Tensor,
        forward: tuple[float | torch.Tensor, float | torch.Tensor],
        reverse: tuple[float | torch.Tensor, float | torch.Tensor],
    ) -> None:
        gap = log_private - log_public
        both_zero = torch.isneginf(log_private) & torch.isneginf(log_public)
        self._d = torch.expm1(torch.where(both_zero, torch.zeros_like(gap), gap))
        self._p = log_public.exp()
        device = gap.device
        (self._a, self._ca), (self._b, self._cb) = (
            tuple(torch.as_tensor(x, dtype=torch.float64, device=device) for x in pair)
            for pair in (forward, reverse)
        )
        # At order 2 both sums are rational in λ: no logarithm, a tenth of the time.
        self._plain = bool((self._a == 2).all()) and bool((self._b == 2).all())
        if self._plain:
            self._moved = self._p * self._d  # pᵢ − p₀
            self._square = (self._moved * self._d).sum(-1)

    @property
    def spent(self) -> torch.Tensor:
        """Where a cap is 0. Broadcasts against (…,)."""
        return (self._ca <= 0) | (self._cb <= 0)

    def __call__(self, lam: torch.Tensor) -> torch.Tensor:
        step = lam[..., None] * self._d
        if self._plain:
            up = lam * lam * self._square
            down = lam * (self._moved * (step / (1 + step))).sum(-1)
            return self._worse(up, down)
        ratio = torch.log1p(step)
        a = self._a[..., None] if self._a.ndim else self._a
        b = self._b[..., None] if self._b.ndim else self._b
        up = (self._p * (torch.expm1(a * ratio) - a * step)).sum(-1)
        down = (self._p * (torch.expm1((1 - b) * ratio) + (b - 1) * step)).sum(-1)
        return self._worse(up, down)

    def _worse(self, up: torch.Tensor, down: torch.Tensor) -> torch.Tensor:
        """Of the sums Σ p^α q^(1−α) − 1 of both directions."""
        share_up = torch.log1p(up) / (self._a - 1) / self._ca
        share_down = torch.log1p(down) / (self._b - 1) / self._cb
        worse = torch.maximum(share_up, share_down)  # NaN wins
        return torch.where(torch.isnan(worse), torch.inf, torch.log(worse))


_TARGET = -4e-11  # aim this far inside the cap, in logarithm …
_ENOUGH = -1e-10  # … and be content anywhere between here and 0
_STEPS = 400  # plain halving needs 1100 steps to leave float64 and 40 to be within 1e-12


def _search(excess: _Excess, ones: torch.Tensor) -> torch.Tensor:
    """The feasible end of the bracket, elementwise; works on log λ ∈ (−∞, 0]."""
    high = torch.zeros_like(ones)  # log of an infeasible λ
    low = torch.full_like(ones, -torch.inf)  # log of a feasible one
    value = excess(ones)
    done = value <= 0
    low = torch.where(done, high, low)
    done = done | excess.spent  # a cap of 0 allows λ = 0 alone: nothing to search
    x, before, value_before = high, high, value
    for step in range(_STEPS):
        if bool(done.all()):
            break
        slope = (value - value_before) / (x - before)
        slope = torch.where(torch.isfinite(slope) & (slope > 0.5), slope, 2.0)
        guess = x + (_TARGET - value) / slope
        middle = torch.where(torch.isinf(low), high - 2.0, (low + high) / 2)
        inside = torch.isfinite(guess) & (guess > low) & (guess < high)
        guess = torch.where(inside & (step % 8 != 7), guess, middle)
        before, value_before, x = x, value, guess
        value = excess(guess.exp())
        fits = value <= 0
        low = torch.where(~done & fits, guess, low)
        high = torch.where(~done & ~fits, guess, high)
        done = done | (fits & (value >= _ENOUGH)) | (high - low < 1e-14) | (high < -700.0)
    return low.exp()
