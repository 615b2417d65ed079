"""What a document costs: events, and what several come to. Pure floats, no torch.

An event says what was released, never how. Its `rdp(order)` is a bound, in nats, on the
Rényi divergence between the transcripts of two neighbouring documents, inf where it says
nothing. Sources are named at the line; THEORY.md holds the proofs. The curves of
`privacy.curves` can be imported from here too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from dpredact.privacy.curves import (
    GRID,
    cap_for_step,
    conversion,
    decimal_up,
    epsilon_from_rdp,
    mean_step_rdp,
    range_rdp,
    up,
)
from dpredact.privacy.sampling_constants import FLOAT_SLACK_LOG2, GAMMA_LOG2, RESOLUTION_LOG2

__all__ = [
    "ADAPTIVE",
    "AnyEvent",
    "Draw",
    "Event",
    "Filter",
    "GRID",
    "OrderCap",
    "Pure",
    "Range",
    "RangeFilter",
    "TwoHopCap",
    "TwoHopFilter",
    "all_groups_epsilon",
    "all_groups_rdp",
    "cap_for_step",
    "conversion",
    "decimal_up",
    "epsilon",
    "epsilon_from_rdp",
    "is_nothing",
    "known_orders",
    "mean_step_rdp",
    "range_rdp",
    "up",
]


@dataclass(frozen=True)
class Draw:
    """The slack of drawing from integers (see `privacy.sampling` for the proof).

    tokens: V, an upper bound on the number K of supported tokens.
    """

    tokens: int
    gamma_log2: int = GAMMA_LOG2
    resolution_log2: int = RESOLUTION_LOG2

    @property
    def log_ratio(self) -> float:
        """ln(1/(1−κ)): how far a drawn weight can be from the smoothed probability."""
        kappa = self.tokens * 2.0 ** (self.gamma_log2 - self.resolution_log2)
        return -math.log1p(-(kappa + 2.0**-FLOAT_SLACK_LOG2))

    def step(self, order: float) -> float:
        """Nats per drawn token at `order`: ((2α−1)/(α−1))·ln(1/(1−κ))."""
        return (2 * order - 1) / (order - 1) * self.log_ratio


class Event(Protocol):
    """One release about one group. `count` is the number of tokens that may be drawn."""

    count: int

    def rdp(self, order: float, draw: Draw | None) -> float: ...


def _slack(draw: Draw | None, order: float, count: int) -> float:
    return 0.0 if draw is None else count * draw.step(order)


class _Capped:
    """`count` tokens, each within `cap` at `order` and below, averaged with `weight`."""

    order: float
    weight: float
    count: int

    def step(self, order: float) -> float:
        """One token's loss at `order`; inf above the order of the cap."""
        if order > self.order:
            return math.inf
        return mean_step_rdp(order, self.cap, self.weight)  # type: ignore[attr-defined]

    def rdp(self, order: float, draw: Draw | None = None) -> float:
        return self.count * self.step(order) + _slack(draw, order, self.count)


@dataclass(frozen=True)
class OrderCap(_Capped):
    """`count` tokens, each within `cap` at `order` (and below), averaged with `weight`."""

    order: float
    cap: float
    weight: float
    count: int


@dataclass(frozen=True)
class TwoHopCap(_Capped):
    """`neighbours: replace` with order caps, each token.

    D_{2α−1}(q‖p₀) ≤ forward_cap and D_{2α}(p₀‖q) ≤ backward_cap; then q and q′ are within
    (2α/(2α−1))·forward_cap + backward_cap at order α (Bun and Steinke 2016, THEORY §2).
    """

    order: float
    forward_cap: float
    backward_cap: float
    weight: float
    count: int

    @property
    def cap(self) -> float:
        a = self.order
        return (2 * a / (2 * a - 1)) * self.forward_cap + self.backward_cap


@dataclass(frozen=True)
class Range:
    """`count` tokens, each with log ratios in an interval ≤ `range`, averaged with `weight`.

    replace: the neighbour has other words instead of none; the width doubles.
    """

    range: float
    weight: float
    count: int
    replace: bool = False

    @property
    def width(self) -> float:
        return 2 * self.range if self.replace else self.range

    def step(self, order: float) -> float:
        return mean_step_rdp(order, range_rdp(order, self.width), self.weight)

    def rdp(self, order: float, draw: Draw | None = None) -> float:
        return self.count * self.step(order) + _slack(draw, order, self.count)


@dataclass(frozen=True)
class Filter:
    """Adaptive spending at one order: the realised step losses never add up past `budget`.

    Source: Feldman and Zrnic 2021 (Rényi filter, individual accounting); THEORY §4.
    """

    order: float
    budget: float
    count: int

    def rdp(self, order: float, draw: Draw | None = None) -> float:
        if order > self.order:
            return math.inf
        return self.budget + _slack(draw, order, self.count)


@dataclass(frozen=True)
class TwoHopFilter:
    """Adaptive spending under `replace`: two accounts, orders 2α−1 and 2α, one per hop."""

    order: float
    forward_budget: float
    backward_budget: float
    count: int

    def rdp(self, order: float, draw: Draw | None = None) -> float:
        if order > self.order:
            return math.inf
        a = self.order
        forward = self.forward_budget + _slack(draw, 2 * a - 1, self.count)
        backward = self.backward_budget + _slack(draw, 2 * a, self.count)
        return (2 * a / (2 * a - 1)) * forward + backward


@dataclass(frozen=True)
class RangeFilter:
    """Adaptive spending of widths in zCDP: Σ η²/8 never passes `rho`; replace: 4ρ."""

    rho: float
    count: int
    replace: bool = False

    @property
    def total(self) -> float:
        return 4 * self.rho if self.replace else self.rho

    def rdp(self, order: float, draw: Draw | None = None) -> float:
        return order * self.total + _slack(draw, order, self.count)


@dataclass(frozen=True)
class Pure:
    """`count` tokens, each `epsilon`-DP for replacing the whole document (baselines only)."""

    epsilon: float
    count: int

    def rdp(self, order: float, draw: Draw | None = None) -> float:
        step = min(self.epsilon, order * self.epsilon**2 / 2)
        return self.count * step + _slack(draw, order, self.count)


AnyEvent = OrderCap | TwoHopCap | Range | Filter | TwoHopFilter | RangeFilter | Pure
ADAPTIVE = (Filter, TwoHopFilter, RangeFilter)


def known_orders(events: Iterable[AnyEvent]) -> list[float]:
    """The orders at which every one of `events` says something, own orders included."""
    own = [e.order for e in events if hasattr(e, "order")]
    top = min(own, default=math.inf)
    return [a for a in GRID if a < top] + ([top] if top < math.inf else [])


def epsilon(event: AnyEvent, delta: float, draw: Draw | None) -> float:
    """ε of one group's event at `delta`: least over the orders at which it is known."""
    if is_nothing(event):
        return 0.0
    return min(
        epsilon_from_rdp(up(event.rdp(a, draw)), a, delta) for a in known_orders([event])
    )


def is_nothing(event: AnyEvent) -> bool:
    """Does this event release nothing at all? Then ε is 0 by name."""
    return event.count == 0 or event.rdp(known_orders([event])[-1], None) == 0


def all_groups_rdp(
    events: Sequence[AnyEvent],
    order: float,
    draw: Draw | None,
    *,
    combine: str,
    scope: str,
    total: int | None = None,
) -> float:
    """Rényi loss, at `order`, when every group's words change at once (THEORY §4).

    document, mean, all fixed: T·ln(Σ wᵢe^{(α−1)cᵢ})/(α−1) · any adaptive group, or spans
    scope: the sum of the groups' totals · product: widths add, with filters (Σ√ρᵢ)².
    The slack of the draw is paid once per drawn token, whoever is on the other side.

    total: T. A group with fewer tokens than T, or a T that is not known, may mean that groups
        stand in different chunks. Then their losses add up: ln(1 + a) + ln(1 + b), which is
        more than the ln(1 + a + b) of groups that share every token.
    """
    events = [e for e in events if not is_nothing(e)]
    if not events:
        return 0.0
    if isinstance(events[0], Pure):  # a baseline: one statement about the whole document
        return sum(e.rdp(order, draw) for e in events)
    if scope == "spans":
        return sum(e.rdp(order, draw) for e in events)
    drawn = sum(e.count for e in events)
    slack = _slack(draw, order, drawn if total is None else min(drawn, total))
    if combine == "product":
        return _product_rdp(events, order) + slack
    if any(isinstance(e, ADAPTIVE) for e in events):
        if any(isinstance(e, TwoHopFilter) for e in events):
            return sum(e.rdp(order, draw) for e in events)  # its slack is inside the hops
        return sum(e.rdp(order, None) for e in events) + slack
    if any(e.count != total for e in events):
        return sum(e.rdp(order, None) for e in events) + slack
    count = events[0].count
    caps = [_unweighted(e, order) for e in events]
    if math.inf in caps:
        return math.inf
    peak = max(caps)
    share = sum(e.weight * math.exp((order - 1) * (c - peak)) for e, c in zip(events, caps))
    # Groups without an event (weight left over) have loss 0 and keep their share of p₀.
    rest = max(0.0, 1.0 - sum(e.weight for e in events))
    share += rest * math.exp(-(order - 1) * peak)
    return count * max(0.0, peak + math.log(share) / (order - 1)) + slack


def _unweighted(event: AnyEvent, order: float) -> float:
    if isinstance(event, Range):
        return range_rdp(order, event.width)
    assert isinstance(event, (OrderCap, TwoHopCap))
    return event.cap if order <= event.order else math.inf


def _product_rdp(events: Sequence[AnyEvent], order: float) -> float:
    if any(isinstance(e, RangeFilter) for e in events):
        root = 0.0
        for e in events:
            rho = e.total if isinstance(e, RangeFilter) else e.count * e.width**2 / 8
            root += math.sqrt(rho)
        return order * root * root
    width = sum(e.width for e in events)
    return max(e.count for e in events) * range_rdp(order, width)


def all_groups_epsilon(
    events: Sequence[AnyEvent],
    delta: float,
    draw: Draw | None,
    *,
    combine: str,
    scope: str,
    total: int | None = None,
) -> float:
    """ε for a change of all groups at once: a statement of its own, not a maximum."""
    events = [e for e in events if not is_nothing(e)]
    if not events:
        return 0.0
    return min(
        epsilon_from_rdp(
            up(all_groups_rdp(events, a, draw, combine=combine, scope=scope, total=total)), a, delta
        )
        for a in known_orders(events)
    )
