"""Adversarial tables for the exhaustive check: rare tokens, point masses, equal rows."""

from __future__ import annotations

import math
import random

from tests.exact import Toy, prefixes

RARE = math.log(1e-12)


def adversarial(kind: str, groups: tuple[str, ...], tokens: int = 3, steps: int = 2) -> Toy:
    """Tables of one kind for the public view, each group, and each group's other words."""
    rng = random.Random(f"{kind}-{len(groups)}-{tokens}-{steps}")
    names: list[str | None] = [None, *groups, *(f"{g}'" for g in groups)]
    tables: dict[str | None, dict[tuple[int, ...], list[float]]] = {n: {} for n in names}
    for prefix in prefixes(tokens, steps):
        public = [rng.gauss(0, 1) for _ in range(tokens)]
        if kind in ("rare", "point"):
            public[-1] = RARE
        for name in names:
            if name is None:
                row = public
            elif kind == "equal":
                row = list(public)
            elif kind == "rare":  # the private row makes the rare token certain, or impossible
                row = [RARE] * tokens
                row[-1 if not name.endswith("'") else 0] = 0.0
            elif kind == "point":
                row = [-40.0] * tokens
                row[rng.randrange(tokens)] = 0.0
            elif kind == "zero":  # −inf where the public row is not
                row = [rng.gauss(0, 2) for _ in range(tokens)]
                row[rng.randrange(tokens)] = -math.inf
            elif kind == "broken":
                row = [math.nan] * tokens
            else:
                row = [rng.gauss(0, 3) for _ in range(tokens)]
            tables[name][prefix] = row
    return Toy(tables=tables, steps=steps, present=groups)


KINDS = ("plain", "rare", "point", "equal", "zero", "broken")
