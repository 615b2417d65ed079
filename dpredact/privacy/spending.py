"""How much one group may lose at the next token: fixed caps, or a budget that is paced.

An account holds private numbers (what was lost so far); they never leave it. It looks at
its own group's losses only, so every other group's mechanism is the same function whether
this group's words are there or not (THEORY §4).
"""

from __future__ import annotations

import math
from typing import Protocol

from dpredact.privacy.accounting import (
    AnyEvent,
    Filter,
    OrderCap,
    Range,
    RangeFilter,
    TwoHopCap,
    TwoHopFilter,
    cap_for_step,
    mean_step_rdp,
    up,
)


class Exhausted(RuntimeError):
    """More tokens were drawn than were promised: a fault of the loop, never of a document."""


class Account(Protocol):
    """Allowances and charges of one group. All numbers in nats."""

    def caps(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """((order, cap) for D(q‖p₀), (order, cap) for D(p₀‖q)) of the next token."""
        ...

    def charge(self, forward: float, reverse: float) -> None:
        """Pay for one token; realised divergences at the two orders of `caps`."""
        ...


class _Counted:
    """Counts draws against the promised number; stops the loop rather than overspend."""

    def __init__(self, count: int) -> None:
        self._left = count

    def _one(self) -> None:
        if self._left <= 0:
            raise Exhausted("a token would be drawn that was never charged")
        self._left -= 1

    def release(self, tokens: int) -> None:
        """Give back draws that will not happen: a text ended early. Public (drawn tokens)."""
        self._left -= min(tokens, self._left)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class FixedCap(_Counted):
    """The same cap at every token. `event`: OrderCap or TwoHopCap."""

    def __init__(self, event: OrderCap | TwoHopCap) -> None:
        super().__init__(event.count)
        if isinstance(event, TwoHopCap):
            self._caps = (
                (2 * event.order - 1, event.forward_cap), (2 * event.order, event.backward_cap)
            )  # fmt: skip
        else:
            self._caps = ((event.order, event.cap), (event.order, event.cap))

    def caps(self) -> tuple[tuple[float, float], tuple[float, float]]:
        return self._caps

    def charge(self, forward: float, reverse: float) -> None:
        self._one()


class _Purse:
    """One Rényi filter: the realised step losses never add up past the budget."""

    def __init__(
        self, order: float, budget: float, weight: float, pace: float, max_cap: float | None
    ) -> None:
        self.order, self._weight, self._pace = order, weight, pace
        self._left = budget
        self._most = (
            mean_step_rdp(order, max_cap, weight) if max_cap is not None else math.inf
        )

    def cap(self, tokens_left: int) -> float:
        """The cap rule of THEORY §4, all three terms; rounded down."""
        left = max(0.0, self._left)
        step = min(self._most, self._pace * left / max(1, tokens_left), left)
        return cap_for_step(self.order, step * (1 - 1e-12), self._weight)

    def pay(self, realised: float) -> None:
        self._left -= up(mean_step_rdp(self.order, max(0.0, realised), self._weight))


class PacedCap(_Counted):
    """Adaptive spending at one order (`remove`): both directions from one purse."""

    def __init__(self, event: Filter, weight: float, pace: float, max_cap: float | None) -> None:
        super().__init__(event.count)
        self._purse = _Purse(event.order, event.budget, weight, pace, max_cap)

    def caps(self) -> tuple[tuple[float, float], tuple[float, float]]:
        pair = (self._purse.order, self._purse.cap(self._left))
        return pair, pair

    def remaining(self) -> float:
        return max(0.0, self._purse._left)

    def charge(self, forward: float, reverse: float) -> None:
        self._one()
        self._purse.pay(max(forward, reverse))


class PacedTwoHop(_Counted):
    """Adaptive spending under `replace`: a purse per hop, at orders 2α−1 and 2α."""

    def __init__(
        self, event: TwoHopFilter, weight: float, pace: float, max_cap: float | None
    ) -> None:
        super().__init__(event.count)
        a = event.order
        self._forward = _Purse(2 * a - 1, event.forward_budget, weight, pace, max_cap)
        self._reverse = _Purse(2 * a, event.backward_budget, weight, pace, max_cap)

    def caps(self) -> tuple[tuple[float, float], tuple[float, float]]:
        return (
            (self._forward.order, self._forward.cap(self._left)),
            (self._reverse.order, self._reverse.cap(self._left)),
        )

    def remaining(self) -> float:
        """Of the account that has less."""
        return max(0.0, min(self._forward._left, self._reverse._left))

    def charge(self, forward: float, reverse: float) -> None:
        self._one()
        self._forward.pay(forward)
        self._reverse.pay(reverse)


class FixedRange(_Counted):
    """The same width at every token."""

    def __init__(self, event: Range) -> None:
        super().__init__(event.count)
        self._range = event.range

    def range(self) -> float:
        """η of the next token, nats."""
        return self._range

    def charge_range(self, realised: float) -> None:
        self._one()


class PacedRange(_Counted):
    """Adaptive widths in zCDP: Σ η²/8 never passes ρ. The weight of a mean buys nothing here."""

    def __init__(self, event: RangeFilter, pace: float, max_rho: float | None) -> None:
        super().__init__(event.count)
        self._rho, self._pace = event.rho, pace
        self._most = math.inf if max_rho is None else max_rho

    def range(self) -> float:
        left = max(0.0, self._rho)
        step = min(self._most, self._pace * left / max(1, self._left), left)
        return math.sqrt(8 * step) * (1 - 1e-12)

    def remaining(self) -> float:
        return max(0.0, self._rho)

    def charge_range(self, realised: float) -> None:
        self._one()
        self._rho -= up(realised * realised / 8)


def account(
    event: AnyEvent, weight: float, pace: float, max_cap: float | None
) -> FixedCap | PacedCap | PacedTwoHop | FixedRange | PacedRange:
    """The account that keeps an event's promise. `weight`: the group's share in the mean."""
    if isinstance(event, (OrderCap, TwoHopCap)):
        return FixedCap(event)
    if isinstance(event, Filter):
        return PacedCap(event, weight, pace, max_cap)
    if isinstance(event, TwoHopFilter):
        return PacedTwoHop(event, weight, pace, max_cap)
    if isinstance(event, Range):
        return FixedRange(event)
    if isinstance(event, RangeFilter):
        return PacedRange(event, pace, max_cap)
    raise TypeError(f"no account for {type(event).__name__}")
