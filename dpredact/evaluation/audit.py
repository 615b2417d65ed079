"""What the mechanism really loses: a lower bound on ε, and exact losses along drawn paths.

Texts are drawn for a document D and for its neighbour D′ (one group's words gone, or others
in their place), by the package's own mixer. Along each drawn path both worlds' probabilities
are known, so the path's privacy loss ln P(text)/Q(text) is exact, and so are the Rényi
divergences of its steps.

Three checks:
* divergence: no path may lose more, step by step, than the group's whole Rényi budget. One
  path that does is a proof of a fault.
* lower bound from losses: δ(ε) ≥ (1 − e^{−s})·P[L > ε + s]; with a Clopper–Pearson lower end
  of that probability, an ε that the mechanism cannot promise at δ, with 95% confidence.
* lower bound from frequencies: what someone sees who can only count outcomes of the best
  test, ln((TPR − δ)/FPR) with both ends against itself.

A bound above the certified ε means that the certificate is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from dpredact import decoding
from dpredact.evaluation.intervals import clopper_pearson
from dpredact.mixing import Mixer, mix_together
from dpredact.policy import Policy
from dpredact.privacy.divergence import renyi
from dpredact.privacy.sampling import Draw, integer_weights
from dpredact.promise import GroupPromise, Promise

if TYPE_CHECKING:
    from dpredact.lm.interface import LanguageModel

# 95% for the larger of two directions, each with two ends: 1.25% an end.
CONFIDENCE = 0.975


@dataclass(frozen=True)
class Audit:
    """What was seen for one group. Losses are private: they depend on the words."""

    group: str
    certified: float
    draws: int
    delta: float
    from_losses: float
    from_frequencies: float
    divergence: float  # largest sum of exact step divergences along a path, nats
    budget: float  # what the promise allows that sum to be, nats
    order: float
    losses: tuple[float, ...] = field(repr=False, default=())

    @property
    def fault(self) -> bool:
        """Is the certificate contradicted?"""
        over = self.divergence > self.budget * (1 + 1e-9) + 1e-12
        return over or max(self.from_losses, self.from_frequencies) > self.certified


MakeMixer = Callable[[Promise, Policy], Mixer]


def audit(
    model: LanguageModel,
    policy: Policy,
    made: Promise,
    rows: Mapping[str | None, Sequence[int]],
    view: str,
    other: Sequence[int] | None,
    *,
    draws: int,
    tokens: int,
    draw: Draw,
    make_mixer: MakeMixer = Mixer,
) -> Audit:
    """Audit one private view of a document.

    rows: ids of the public view (None) and of each private view. other: ids of `view` in the
    neighbour; None: the public view's, the words are gone.
    draws: texts drawn in each world. tokens: T, as promised.
    """
    views = tuple(v for v in rows if v is not None)
    mine = [rows[None], *(rows[v] for v in views)]
    theirs = list(mine)
    theirs[1 + views.index(view)] = rows[None] if other is None else other
    walk = _Walk(model, policy, made, views, view, tokens, draw, make_mixer)
    ahead, up = walk.paths(mine, theirs, draws)
    back, down = walk.paths(theirs, mine, draws)
    group = next(g for g in made.private() if g.name == view)
    return Audit(
        view, group.epsilon, draws, made.delta,
        from_losses=max(bound_from_losses(ahead, made.delta), bound_from_losses(back, made.delta)),
        from_frequencies=max(
            bound_from_frequencies(ahead, [-x for x in back], made.delta),
            bound_from_frequencies(back, [-x for x in ahead], made.delta),
        ),
        divergence=max((*up, *down), default=0.0),
        budget=_budget(group, walk.order),
        order=walk.order,
        losses=(*ahead, *back),
    )  # fmt: skip


def _budget(group: GroupPromise, order: float) -> float:
    return 0.0 if group.event is None else group.event.rdp(order, None)


class _Walk:
    """Draws paths in one world and follows them in the other."""

    def __init__(
        self,
        model: LanguageModel,
        policy: Policy,
        made: Promise,
        views: tuple[str, ...],
        view: str,
        tokens: int,
        draw: Draw,
        make_mixer: MakeMixer,
    ) -> None:
        self._model, self._policy, self._made, self._views = model, policy, made, views
        self._tokens, self._draw, self._make = tokens, draw, make_mixer
        self._support = decoding.support_of(made, policy, model.controls)
        group = next(g for g in made.private() if g.name == view)
        self.order = float(getattr(group.event, "order", 2.0))

    def paths(
        self, mine: Sequence[Sequence[int]], theirs: Sequence[Sequence[int]], draws: int
    ) -> tuple[list[float], list[float]]:
        """(losses ln P/Q, sums of step divergences) of texts drawn in the first world."""
        changed = [i for i, (a, b) in enumerate(zip(mine, theirs, strict=True)) if a != b]
        rows = [*mine, *(theirs[i] for i in changed)]
        place = {i: len(mine) + n for n, i in enumerate(changed)}
        elsewhere = [place.get(i, i) for i in range(len(mine))]
        width = max(map(len, rows))
        session = self._model.open(list(rows) * draws, width, self._tokens)
        going = list(range(draws))
        worlds = [(self._make(self._made, self._policy), self._make(self._made, self._policy))
                  for _ in going]  # fmt: skip
        losses, spent = [0.0] * draws, [0.0] * draws
        for step in range(self._tokens):
            logits = session.logits()
            staying, appended, kept = [], [], []
            blocks = [logits[n * len(rows) : (n + 1) * len(rows)] for n in range(len(going))]
            drawn = self._step(blocks, len(mine), elsewhere, [worlds[path] for path in going])
            for n, (path, (token, loss, cost)) in enumerate(zip(going, drawn, strict=True)):
                losses[path] += loss
                spent[path] += cost
                if token not in self._model.eos:
                    kept.append(path)
                    staying += range(n * len(rows), (n + 1) * len(rows))
                    appended += [token] * len(rows)
            if not kept or step == self._tokens - 1:
                break
            if len(kept) < len(going):
                session.keep(staying)
                going = kept
            session.append(appended)
        return losses, spent

    def _step(
        self,
        blocks: Sequence[torch.Tensor],
        count: int,
        elsewhere: Sequence[int],
        worlds: Sequence[tuple[Mixer, Mixer]],
    ) -> list[tuple[int, float, float]]:
        """One token of every path: (token, its loss, the step's divergence)."""
        tokens = [self._support(block[0]) for block in blocks]
        cuts = [b[:, t].to("cpu", torch.float64) for b, t in zip(blocks, tokens, strict=True)]
        here = [(w[0], c[:count], self._views) for w, c in zip(worlds, cuts, strict=True)]
        there = [(w[1], c[list(elsewhere)], self._views) for w, c in zip(worlds, cuts, strict=True)]
        mixed = mix_together([*here, *there])
        out = []
        for known, p, q in zip(tokens, mixed[: len(here)], mixed[len(here) :], strict=True):
            cost = max(float(renyi(p, q, self.order)), float(renyi(q, p, self.order)))
            at = self._draw(p)
            a, b = integer_weights(p), integer_weights(q)  # what is drawn from
            loss = math.log(int(a[at]) / int(a.sum())) - math.log(int(b[at]) / int(b.sum()))
            out.append((int(known[at]), loss, cost))
        return out


def bound_from_losses(losses: Sequence[float], delta: float) -> float:
    """A lower bound on ε from exact privacy losses of independent draws, 97.5% a side.

    The threshold is chosen on one half and tested on the other. 0 where nothing can be said.
    """
    half = len(losses) // 2
    first, second = losses[:half], losses[half:]

    def epsilon(sample: Sequence[float], x: float) -> float:
        hits = sum(value > x for value in sample)
        share = clopper_pearson(hits, len(sample), CONFIDENCE)[0] if sample else 0.0
        return x + math.log1p(-delta / share) if share > delta else -math.inf

    marks = _thin([math.nextafter(x, -math.inf) for x in sorted(set(first))])
    if not marks:
        return 0.0
    best = max(marks, key=lambda x: epsilon(first, x))
    return max(0.0, epsilon(second, best))


def bound_from_frequencies(
    drawn_here: Sequence[float], drawn_there: Sequence[float], delta: float
) -> float:
    """ln((TPR − δ)/FPR) of the best threshold test, both ends against itself.

    drawn_here, drawn_there: values of ln P/Q of texts drawn under P and under Q.
    """
    half_a, half_b = len(drawn_here) // 2, len(drawn_there) // 2

    def epsilon(a: Sequence[float], b: Sequence[float], x: float) -> float:
        if not a or not b:
            return 0.0
        low = clopper_pearson(sum(v >= x for v in a), len(a), CONFIDENCE)[0]
        high = clopper_pearson(sum(v >= x for v in b), len(b), CONFIDENCE)[1]
        return math.log((low - delta) / high) if low > delta else 0.0

    marks = _thin(sorted({*drawn_here[:half_a], *drawn_there[:half_b]}))
    if not marks:
        return 0.0
    best = max(marks, key=lambda x: epsilon(drawn_here[:half_a], drawn_there[:half_b], x))
    return max(0.0, epsilon(drawn_here[half_a:], drawn_there[half_b:], best))


def _thin(marks: list[float]) -> list[float]:
    """At most about 65 thresholds to try, the largest among them."""
    return marks[:: -max(1, len(marks) // 64)] if marks else []
