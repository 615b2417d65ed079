"""The slow twin: a toy document's whole output law by enumeration, and exact divergences.

A toy is a table from (drawn prefix) to logits per view. `law` walks every path of the real
decoding loop (the real Mixer, Lane, Support), with the draw replaced by a branch, so that
what is enumerated is what ships.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch

from dpredact import decoding, mixing
from dpredact.policy import Policy
from dpredact.privacy.sampling import integer_weights
from dpredact.promise import Promise, promise, view_names

EOS = 0


class Branch:
    """A draw that follows a given path and remembers the probability of every step."""

    safe = False

    def __init__(self, path: Sequence[int], quantise) -> None:
        self._path = list(path)
        self._quantise = quantise
        self.log_p = 0.0
        self.sizes: list[int] = []
        self.steps = 0

    def __call__(self, log_p: torch.Tensor) -> int:
        weights = self._quantise(log_p)
        total = sum(weights)
        self.sizes.append(len(weights))
        choice = self._path[self.steps] if self.steps < len(self._path) else 0
        self.steps += 1
        self.log_p += (
            math.log(weights[choice]) - math.log(total) if weights[choice] else -math.inf
        )
        return choice


def shipped(log_p: torch.Tensor) -> list[int]:
    """Integer weights as the real draw has them."""
    return integer_weights(log_p).tolist()


def unsmoothed(log_p: torch.Tensor) -> list[float]:
    """The mixed row itself, without the uniform share of the draw: harder on rare tokens."""
    return log_p.exp().tolist()


@dataclass
class Toy:
    """views[name][depth-prefix] -> logits; name None is the public view."""

    tables: Mapping[str | None, Mapping[tuple[int, ...], Sequence[float]]]
    steps: int
    with_eos: bool = True
    present: tuple[str, ...] = field(default=())

    def logits(self, names: Sequence[str | None], prefix: tuple[int, ...]) -> torch.Tensor:
        rows = [self.tables[n][prefix] for n in names]
        return torch.tensor([list(r) for r in rows], dtype=torch.float64)


def law(
    toy: Toy,
    policy: Policy,
    promised: Promise,
    nulled: Sequence[str] = (),
    *,
    replaced: Mapping[str, str] | None = None,
    quantise=shipped,
    mixer_class=mixing.Mixer,
    units: Sequence[Sequence[str]] | None = None,
) -> dict[tuple[int, ...], float]:
    """log probability of every transcript. `nulled`: groups whose words are removed.

    replaced: view -> name of another table that stands for other words in the same places.
    units: views of each text that is written in turn (spans scope, chunks); default one text.
    """
    out: dict[tuple[int, ...], float] = {}
    eos = frozenset({EOS}) if toy.with_eos else frozenset()
    swap = dict(replaced or {})
    texts = units or [tuple(v for v in view_names(policy) if v in toy.present)]

    def lanes() -> list[tuple[decoding.Lane, list[str | None]]]:
        mixer = mixer_class(promised, policy)
        support = decoding.support_of(promised, policy, frozenset())
        return [
            (
                decoding.Lane(
                    rows=[[0]] * (1 + len(views)), views=tuple(views), width=1,
                    limit=toy.steps, mixer=mixer, support=support,
                ),
                [None, *(None if v in nulled else swap.get(v, v) for v in views)],
            )
            for views in texts
        ]  # fmt: skip

    def walk(path: tuple[int, ...]) -> None:
        branch = Branch(path, quantise)
        transcript: tuple[int, ...] = ()
        for lane, names in lanes():
            drawn: tuple[int, ...] = ()
            while lane.open and branch.steps < len(path):
                drawn = (*drawn, lane.advance(toy.logits(names, drawn), eos, branch))
            transcript += drawn
            if lane.open:
                for choice in range(len(lane.support(toy.logits(names, drawn)[0]))):
                    walk((*path, choice))
                return
        assert transcript not in out, "two paths with one transcript"
        out[transcript] = branch.log_p

    walk(())
    return out


def renyi_exact(
    p: Mapping[tuple[int, ...], float], q: Mapping[tuple[int, ...], float], order: float
) -> float:
    """D_order(p‖q) of two laws given as log probabilities."""
    terms = []
    for path, lp in p.items():
        lq = q.get(path, -math.inf)
        if lp == -math.inf:
            continue
        if lq == -math.inf:
            return math.inf
        terms.append(order * lp - (order - 1) * lq)
    top = max(terms)
    return (top + math.log(math.fsum(math.exp(t - top) for t in terms))) / (order - 1)


def delta_exact(
    p: Mapping[tuple[int, ...], float], q: Mapping[tuple[int, ...], float], epsilon: float
) -> float:
    """Smallest δ at ε: Σ max(0, p − e^ε·q)."""
    grow = math.exp(min(epsilon, 700))
    return math.fsum(
        max(0.0, math.exp(lp) - grow * math.exp(q.get(path, -math.inf))) for path, lp in p.items()
    )


def prefixes(tokens: int, steps: int) -> list[tuple[int, ...]]:
    return [x for n in range(steps) for x in itertools.product(range(tokens), repeat=n)]


def promised_for(policy: Policy, toy: Toy, tokens: int) -> Promise:
    counts = {v: toy.steps if v in toy.present else 0 for v in view_names(policy)}
    return promise(policy, counts, tokens, toy.steps)


def promised_for_units(
    policy: Policy, toy: Toy, tokens: int, units: Sequence[Sequence[str]]
) -> Promise:
    counts = {v: toy.steps * sum(v in u for u in units) for v in view_names(policy)}
    return promise(policy, counts, tokens, toy.steps * len(units))
