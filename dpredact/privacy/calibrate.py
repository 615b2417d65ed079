"""From a wished ε to the largest per-token allowance: caps, ranges, budgets, orders.

Everything here is a function of the policy, the number of tokens and the vocabulary size;
nothing looks at a document. Every result is checked by the accountant's own ε afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from dpredact.privacy.accounting import (
    AnyEvent,
    Draw,
    Filter,
    OrderCap,
    Range,
    RangeFilter,
    TwoHopCap,
    TwoHopFilter,
    cap_for_step,
    conversion,
    epsilon,
)

_E = TypeVar("_E", bound=AnyEvent)

# Public constants of the order rule (THEORY and `best_order`).
RARE = 1e-4  # public probability of a word that is worth paying for
SHARE = 0.15  # share of the tokens that need budget when spending is adaptive
ORDERS: tuple[float, ...] = tuple(round(1 + 0.1 * 1.08**k, 2) for k in range(0, 81))


class BudgetTooSmall(ValueError):
    """No allowance above zero keeps ε. `floor`: the least ε at this order and δ."""

    def __init__(self, floor: float, order: float | None) -> None:
        self.floor = floor
        self.order = order
        super().__init__(f"no epsilon below {floor:.4f} can be certified here")


def rdp_budget(wished: float, order: float, delta: float, count: int, draw: Draw | None) -> float:
    """Rényi budget at `order` that converts to `wished` ε, the draw's slack taken off; may be < 0."""
    slack = 0.0 if draw is None else count * draw.step(order)
    return (wished - conversion(order, delta)) * (1 - 1e-12) - slack - 1e-12


def floor_epsilon(order: float, delta: float, count: int, draw: Draw | None) -> float:
    """Least ε that a release with any loss at all can be given at `order`."""
    slack = 0.0 if draw is None else count * draw.step(order)
    return max(0.0, conversion(order, delta) + slack)


def best_order(
    wished: float, delta: float, count: int, weight: float, draw: Draw | None, *, adaptive: bool
) -> float:
    """The order at which a rare word gains most from the budget; public inputs only.

    A word of public probability p that the private row makes certain reaches probability
    ≈ exp-growth (1/α)·ln((α−1)c/p) under a cap c at order α: its mass is λ ≈ ((α−1)c·
    p^{α−1})^{1/α}. The cap c is what one token may lose before the weight; spending that
    adapts spreads the budget over a share of the tokens only.
    """
    spread = max(1.0, count * (SHARE if adaptive else 1.0))

    def gain(order: float) -> float:
        budget = rdp_budget(wished, order, delta, count, draw)
        if budget <= 0:
            return -math.inf
        cap = cap_for_step(order, budget / spread, weight)
        return (math.log(math.expm1(min((order - 1) * cap, 700.0))) - math.log(RARE)) / order

    best = max(ORDERS, key=gain)
    if gain(best) == -math.inf:
        raise BudgetTooSmall(min(floor_epsilon(a, delta, count, draw) for a in ORDERS), None)
    return best


def order_cap(
    wished: float, delta: float, count: int, weight: float, order: float, draw: Draw | None
) -> OrderCap:
    """The largest fixed cap per token; BudgetTooSmall if none."""
    budget = _positive(wished, delta, count, order, draw)
    cap = cap_for_step(order, budget / count, weight)
    return _kept(OrderCap(order, cap, weight, count), "cap", wished, delta, draw)


def two_hop_cap(
    wished: float, delta: float, count: int, weight: float, order: float, draw: Draw | None
) -> TwoHopCap:
    """As `order_cap` under `neighbours: replace`: β so that both hops together fit."""
    total = order_cap(wished, delta, count, weight, order, draw).cap
    return two_hop_from_beta(total / (4 * order) * (1 - 1e-12), order, weight, count)


def two_hop_from_beta(beta: float, order: float, weight: float, count: int) -> TwoHopCap:
    """Caps (2α−1)β at order 2α−1 and 2αβ at order 2α: within 4αβ at order α (THEORY §2)."""
    return TwoHopCap(order, (2 * order - 1) * beta, 2 * order * beta, weight, count)


def order_filter(
    wished: float, delta: float, count: int, order: float, draw: Draw | None
) -> Filter:
    """The whole budget of an adaptive group at `order`."""
    budget = _positive(wished, delta, count, order, draw)
    return _kept(Filter(order, budget, count), "budget", wished, delta, draw)


def two_hop_filter(
    wished: float, delta: float, count: int, order: float, draw: Draw | None
) -> TwoHopFilter:
    """Two accounts, (2α−1)x at order 2α−1 and 2αx at order 2α, that add up to the budget."""
    a = order
    slack = 0.0
    if draw is not None:
        slack = count * ((2 * a / (2 * a - 1)) * draw.step(2 * a - 1) + draw.step(2 * a))
    budget = (wished - conversion(order, delta)) * (1 - 1e-12) - slack - 1e-12
    if budget <= 0:
        raise BudgetTooSmall(conversion(order, delta) + slack, order)
    x = budget / (4 * a)
    return TwoHopFilter(order, (2 * a - 1) * x, 2 * a * x, count)


def range_event(
    wished: float, delta: float, count: int, weight: float, draw: Draw | None, *, replaced: bool
) -> Range:
    """The largest width per token."""

    def make(width: float) -> Range:
        return Range(width, weight, count, replaced)

    return make(_largest(lambda x: epsilon(make(x), delta, draw), wished))


def range_filter(
    wished: float, delta: float, count: int, draw: Draw | None, *, replaced: bool
) -> RangeFilter:
    """The largest zCDP budget."""

    def make(rho: float) -> RangeFilter:
        return RangeFilter(rho, count, replaced)

    return make(_largest(lambda x: epsilon(make(x), delta, draw), wished))


def _positive(wished: float, delta: float, count: int, order: float, draw: Draw | None) -> float:
    budget = rdp_budget(wished, order, delta, count, draw)
    if budget <= 0:
        raise BudgetTooSmall(floor_epsilon(order, delta, count, draw), order)
    return budget


def _kept(event: _E, field: str, wished: float, delta: float, draw: Draw | None) -> _E:
    """Shrink the allowance until the accountant itself agrees; one or two rounds at most."""
    for _ in range(60):
        if epsilon(event, delta, draw) <= wished:
            return event
        event = replace(event, **{field: getattr(event, field) * (1 - 1e-9)})
    raise BudgetTooSmall(wished, getattr(event, "order", None))


def _largest(cost: Callable[[float], float], wished: float) -> float:
    """The largest x > 0 with cost(x) ≤ wished, by doubling and halving; lower end."""
    low, high = 0.0, 1.0
    tiny = 1e-9
    if cost(tiny) > wished:
        raise BudgetTooSmall(cost(tiny), None)
    while cost(high) <= wished and high < 1e6:
        low, high = high, high * 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if cost(middle) <= wished else (low, middle)
    return max(low, tiny)
