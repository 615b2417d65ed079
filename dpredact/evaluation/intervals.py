"""Shares with their uncertainty: intervals and paired tests, exact, without a library."""

from __future__ import annotations

import math

Z95 = 1.959963984540054  # two-sided 95% of the normal distribution


def wilson(hits: int, n: int, z: float = Z95) -> tuple[float, float]:
    """Wilson's score interval of a share, 95% by default.

    Source: Wilson 1927. Edges: n = 0 -> (0, 1) · hits outside [0, n] -> ValueError.
    """
    _check(hits, n)
    if n == 0:
        return 0.0, 1.0
    p, zz = hits / n, z * z
    middle = (p + zz / (2 * n)) / (1 + zz / n)
    half = z / (1 + zz / n) * math.sqrt(p * (1 - p) / n + zz / (4 * n * n))
    low, high = max(0.0, middle - half), min(1.0, middle + half)
    return (0.0 if hits == 0 else low), (1.0 if hits == n else high)


def clopper_pearson(hits: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """The exact interval of a share: each side misses with probability ≤ (1−confidence)/2.

    Source: Clopper and Pearson 1934. The ends are rounded outwards.
    Edges: n = 0 -> (0, 1) · hits outside [0, n] -> ValueError.
    """
    _check(hits, n)
    side = (1 - confidence) / 2
    low = 0.0 if hits == 0 else _solve(lambda p: at_least(hits, n, p) <= side, lower=True)
    high = 1.0 if hits == n else _solve(lambda p: 1 - at_least(hits + 1, n, p) > side, lower=False)
    return low, high


def at_least(hits: int, n: int, p: float) -> float:
    """P[Binomial(n, p) ≥ hits]."""
    if hits <= 0:
        return 1.0
    if hits > n or p <= 0:
        return 0.0
    if p >= 1:
        return 1.0
    return _beta(hits, n - hits + 1, p)


def _beta(a: int, b: int, x: float) -> float:
    """The regularised incomplete beta function I_x(a, b), by its continued fraction (Lentz).

    Source: Abramowitz and Stegun 26.5.8; I_x(a, b) = 1 − I_{1−x}(b, a) where it converges slowly.
    """
    if x > (a + 1) / (a + b + 2):
        return 1.0 - _beta(b, a, 1.0 - x)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    tiny = 1e-300
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1)
    d = 1.0 / (d if abs(d) > tiny else tiny)
    value = d
    for m in range(1, 10_000):
        for step in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 + step * d
            c = 1.0 + step / c
            d = 1.0 / (d if abs(d) > tiny else tiny)
            c = c if abs(c) > tiny else tiny
            value *= d * c
        if abs(d * c - 1.0) < 1e-15:
            break
    return min(1.0, front * value / a)


def _solve(holds, *, lower: bool) -> float:  # type: ignore[no-untyped-def]
    """The p up to which `holds`, by halving; its lower or its upper end."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low if lower else high


def mcnemar(only_first: int, only_second: int) -> float:
    """p-value of the exact paired test: are two methods hit equally often? Two-sided.

    only_first: cases that hit under the first method alone; only_second likewise.
    Source: McNemar 1947, exact binomial form. Edges: no differing pair -> 1.
    """
    n = only_first + only_second
    if n == 0:
        return 1.0
    return min(1.0, 2 * at_least(max(only_first, only_second), n, 0.5))


def _check(hits: int, n: int) -> None:
    if not 0 <= hits <= n:
        raise ValueError("need 0 <= hits <= n")
