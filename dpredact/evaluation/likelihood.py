"""What each method would have given the original text, token by token.

The DP-Fusion paper's measure of utility: every place of the original is mixed anew from the
rows that the original so far gives, and the true token's probability is read off. The figure
is split into tagged tokens (what may leak) and untagged ones (what readers want), because
one number for both hides which of the two a method buys.

Support: the method's own rule on the public row, and the true token, so that one missing
word does not make the figure infinite; the same for every method that has a public row. The
baselines have none and are scored over the whole vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from dpredact import decoding
from dpredact.evaluation.lockstep import Run, log_q
from dpredact.evaluation.methods import BASELINES, MethodSpec, present
from dpredact.evaluation.scene import ALL
from dpredact.evaluation.teacher import Forced
from dpredact.policy import Length, Policy
from dpredact.privacy import accounting
from dpredact.privacy.accounting import Draw
from dpredact.promise import Promise, promise, view_names


@dataclass(frozen=True)
class Score:
    """Sums of −log q(true token), nats, and how many tokens; of tagged and untagged tokens."""

    tagged: float
    tagged_tokens: int
    untagged: float
    untagged_tokens: int

    def __add__(self, other: Score) -> Score:
        return Score(
            self.tagged + other.tagged, self.tagged_tokens + other.tagged_tokens,
            self.untagged + other.untagged, self.untagged_tokens + other.untagged_tokens,
        )  # fmt: skip

    def mean(self, part: str = "all") -> float:
        """Nats per token of 'all', 'tagged' or 'untagged' tokens; NaN without any."""
        total, count = {
            "all": (self.tagged + self.untagged, self.tagged_tokens + self.untagged_tokens),
            "tagged": (self.tagged, self.tagged_tokens),
            "untagged": (self.untagged, self.untagged_tokens),
        }[part]
        return total / count if count else math.nan

    def perplexity(self, part: str = "all") -> float:
        return math.exp(min(self.mean(part), 700.0))


ZERO = Score(0.0, 0, 0.0, 0)


def scores(work: Sequence[tuple[Forced, MethodSpec]]) -> list[Score]:
    """−log q of the original under each method, at most T tokens of it; together, so fast."""
    runs = {i: run(f, s) for i, (f, s) in enumerate(work) if s.kind == "policy"}
    mixed = dict(zip(runs, log_q(list(runs.values())), strict=True))
    return [_score(f, s, mixed.get(i)) for i, (f, s) in enumerate(work)]


def score(forced: Forced, spec: MethodSpec) -> Score:
    """As `scores`, of one document under one method."""
    return scores([(forced, spec)])[0]


def _score(forced: Forced, spec: MethodSpec, mixed: torch.Tensor | None) -> Score:
    if mixed is not None:
        values = -mixed
    elif spec.kind in BASELINES:
        values = -forced.baselines[spec.name][: _most(forced, spec)]
    else:
        values = _unprotected(forced, spec)[: _most(forced, spec)]
    tagged = torch.tensor([o is not None for o in forced.owner[: len(values)]], dtype=torch.bool)
    return Score(
        float(values[tagged].sum()), int(tagged.sum()),
        float(values[~tagged].sum()), int((~tagged).sum()),
    )  # fmt: skip


def _most(forced: Forced, spec: MethodSpec) -> int:
    """T of a method without a policy: the rule of the others, so that all score one stretch."""
    tokens = spec.values.get("tokens")
    return int(tokens) if tokens else min(math.ceil(1.2 * forced.public_length), 900)


def document_policy(spec: MethodSpec, groups: Sequence[str]) -> Policy:
    """The policy of `spec` for a document with spans of these groups."""
    assert spec.policy is not None
    return present(spec.policy, groups) if spec.values.get("present") else spec.policy


def limit(policy: Policy, public_length: int) -> int:
    """T of a document that is written in one go."""
    rule = policy.max_new_tokens
    if isinstance(rule, Length):
        return min(math.ceil(rule.ratio * public_length), rule.at_most)
    return rule


def promised(policy: Policy, groups: Sequence[str], tokens: int, vocabulary: int) -> Promise:
    """The promise for a document with spans of these groups and T tokens."""
    counts = {
        view: tokens if set(members) & set(groups) else 0
        for view, members in view_names(policy).items()
    }
    return promise(policy, counts, vocabulary)


def certified(spec: MethodSpec, groups: Sequence[str], tokens: int, vocabulary: int) -> tuple[float, float]:
    """(largest ε of a group, ε of all groups together) of one document; inf without a promise.

    Baselines: both numbers are for replacing the whole document.
    """
    if spec.kind in ("public", "masked"):
        return 0.0, 0.0
    if spec.kind in ("dp-decoding", "dp-prompt"):
        from dpredact.evaluation.teacher import baselines_of

        mechanism = baselines_of([spec])[spec.name]
        event = (
            mechanism.event(tokens)
            if spec.kind == "dp-prompt"
            else mechanism.event(vocabulary, tokens)
        )
        delta = float(spec.values.get("delta", 1e-5))
        epsilon = accounting.epsilon(event, delta, Draw(vocabulary))
        return epsilon, epsilon
    if spec.kind != "policy":
        return math.inf, math.inf
    policy = document_policy(spec, groups)
    made = promised(policy, groups, tokens, vocabulary)
    return max((g.epsilon for g in made.groups), default=0.0), made.epsilon_all


def run(forced: Forced, spec: MethodSpec) -> Run:
    """The original under a policy: rows on the supported tokens of each place."""
    groups = [v for v in forced.views if v != ALL]
    policy = document_policy(spec, groups)
    tokens = limit(policy, forced.public_length)
    made = promised(policy, groups, tokens, forced.vocabulary)
    support = decoding.support_of(made, policy, frozenset())
    if policy.mode == "single":
        views = tuple(view_names(policy)) if groups else ()
        rows = [0, forced.views.index(ALL) + 1] if groups else [0]
    else:
        views = tuple(g for g in groups if g in view_names(policy))
        rows = [0, *(forced.views.index(v) + 1 for v in views)]
    count = min(len(forced), tokens)
    picked = [supported(forced.logits[0, t], support, int(forced.truth[t])) for t in range(count)]
    table = torch.full((len(rows), count, max(map(len, picked))), -torch.inf, dtype=torch.float64)
    at = torch.zeros(count, dtype=torch.long)
    for t, columns in enumerate(picked):
        table[:, t, : len(columns)] = forced.logits[rows, t][:, columns].double()
        at[t] = (columns == forced.truth[t]).nonzero()[0, 0]
    return Run(table, at, views, made, policy)


def supported(public: torch.Tensor, support: decoding.Support, truth: int) -> torch.Tensor:
    """Columns of the supported tokens, and the true token's."""
    columns = support(public.double())
    if not bool((columns == truth).any()):
        columns = torch.cat([columns, torch.tensor([truth])])
    return columns


def _unprotected(forced: Forced, spec: MethodSpec) -> torch.Tensor:
    """public (masked likewise), paraphrase (original likewise), mean-views. (tokens,)."""
    tau = float(spec.values.get("temperature", 1.0))
    top = spec.values.get("top_k", 50)
    support = decoding.Support(top, 0.0)
    groups = range(1, len(forced.views))
    out = []
    for t in range(len(forced)):
        truth = int(forced.truth[t])
        columns = supported(forced.logits[0, t], support, truth)
        at = int((columns == truth).nonzero()[0, 0])
        rows = torch.log_softmax(forced.logits[:, t][:, columns].double() / tau, -1)
        if spec.kind in ("public", "masked"):  # who reads the mask guesses from the public view
            log_q = rows[0]
        elif spec.kind == "mean-views":
            picked = rows[list(groups)] if len(groups) else rows[:1]
            log_q = torch.logsumexp(picked, 0) - math.log(len(picked))
        else:
            log_q = rows[-1]
        out.append(-log_q[at])
    return torch.stack(out)
