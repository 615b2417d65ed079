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
    return min(1.0, math.fsum(_mass(k, n, p) for k in range(hits, n + 1)))


def _mass(k: int, n: int, p: float) -> float:
    choose = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return math.exp(choose + k * math.log(p) + (n - k) * math.log1p(-p))


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
