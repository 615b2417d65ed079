"""Curves and conversions, from numbers to numbers. Pure floats, no torch, nothing of the house.

What one step and one width cost at a Rényi order, and what that is as (ε, δ), all in nats
and rounded towards the worse. Sources are named at the line; THEORY.md holds the proofs.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal

# Orders at which curves that hold at every order are converted. Public and fixed; a finer
# grid could only lower ε.
GRID: tuple[float, ...] = tuple(
    sorted(
        {1.0 + 10.0 ** (k / 24) for k in range(-72, 73)} | {1.25, 1.5, 2.0, 3.0, 4.0, 8.0, 16.0}
    )
)


def up(value: float) -> float:
    """`value` rounded up past the rounding error of a short float64 computation."""
    return value if value in (0.0, math.inf) else math.nextafter(value * (1 + 4e-15), math.inf)


def mean_step_rdp(order: float, cap: float, weight: float) -> float:
    """f_w(cap) = ln(1 − w + w·e^{(α−1)cap})/(α−1), nats: one step of a mean over groups.

    Formal guarantee: if a group's q is within `cap` of p₀ at `order`, in both directions,
    then the mean that holds q with weight w moves by at most this when q becomes p₀.
    Source: THEORY §3 (joint convexity).
    Edges: cap 0 -> 0 · weight 1 -> cap · cap inf -> inf · order <= 1, cap < 0 or weight
    outside [0, 1] -> ValueError.
    """
    if not order > 1 or not cap >= 0 or not 0 <= weight <= 1:
        raise ValueError("need order > 1, cap >= 0 and 0 <= weight <= 1")
    if weight == 1 or cap == 0:
        return cap
    if weight == 0:
        return 0.0
    x = (order - 1) * cap
    if x > 700:  # e^x overflows; the 1 − w beside it is beyond the last digit
        return (x + math.log(weight)) / (order - 1) if math.isfinite(x) else math.inf
    return math.log1p(weight * math.expm1(x)) / (order - 1)


def cap_for_step(order: float, step: float, weight: float) -> float:
    """The largest cap with f_w(cap) ≤ step: the inverse of `mean_step_rdp`, rounded down."""
    if not order > 1 or not step >= 0 or not 0 < weight <= 1:
        raise ValueError("need order > 1, step >= 0 and 0 < weight <= 1")
    if step == 0:
        return 0.0
    x = (order - 1) * step
    if x > 700:
        cap = (x - math.log(weight)) / (order - 1)
    else:
        cap = math.log1p(math.expm1(x) / weight) / (order - 1)
    return cap * (1 - 1e-12)


def range_rdp(order: float, range: float) -> float:
    """The exact curve of a width-η promise, nats.

    With t = ln[(α−1)(e^{αη}−1) / (α(e^{(α−1)η}−1))]:
    t + ln[(1−e^{−αη}) / (α(1−e^{−η}))]/(α−1); αη²/8 below η = 1e-3 (an upper bound
    everywhere, and equal to first order).

    Source: Dong, Durfee, Rogers 2020 (bounded range); THEORY §2.
    Edges: range 0 -> 0 · inf -> inf · never above min(η, αη²/8) · order <= 1 -> ValueError.
    """
    if not order > 1 or not range >= 0:
        raise ValueError("need order > 1 and range >= 0")
    if range == 0 or range == math.inf:
        return range
    bound = min(range, order * range * range / 8)
    if range < 1e-3:
        return bound
    a, eta = order, range
    # ln(e^x − 1) = x + ln(1 − e^{−x}): no overflow for large orders.
    t = math.log((a - 1) / a) + eta + _log1mexp(a * eta) - _log1mexp((a - 1) * eta)
    exact = t + (_log1mexp(a * eta) - math.log(a) - _log1mexp(eta)) / (a - 1)
    # Close to order 1 the two terms cancel; the rounding error is added, never dropped.
    error = 1e-15 * (2 + abs(t)) * (1 + 1 / (a - 1))
    return min(bound, max(0.0, exact) + error)


def _log1mexp(x: float) -> float:
    """ln(1 − e^{−x}) for x > 0."""
    return math.log(-math.expm1(-x)) if x < math.log(2) else math.log1p(-math.exp(-x))


def epsilon_from_rdp(rdp: float, order: float, delta: float) -> float:
    """Smallest ε that can be promised at `delta`, in nats, rounded up.

    ε = max{0, rdp + ln((α−1)/α) − (ln δ + ln α)/(α−1)}

    Source: Canonne, Kamath, Steinke 2020, Prop. 12.
    Edges: rdp 0 -> 0 · rdp inf -> inf · order <= 1 or delta outside (0, 1) -> ValueError
    """
    if not order > 1 or not 0 < delta < 1 or not rdp >= 0:
        raise ValueError("need order > 1, 0 < delta < 1 and rdp >= 0")
    if rdp == 0:
        return 0.0
    return max(0.0, up(rdp + conversion(order, delta))) if rdp < math.inf else math.inf


def conversion(order: float, delta: float) -> float:
    """What the step from Rényi to (ε, δ) adds at `order`, nats; may be negative."""
    return math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)


def decimal_up(value: float, places: int = 4) -> str:
    """A decimal string, never below `value`; 0 stays '0', inf is 'inf'."""
    if value == 0:
        return "0"
    if math.isinf(value):
        return "inf"
    step = Decimal(1).scaleb(-places)
    exact = Context(prec=400)  # any finite float fits
    rounded = Decimal(value).quantize(step, rounding=ROUND_CEILING, context=exact)
    return format(rounded.normalize(exact), "f")
