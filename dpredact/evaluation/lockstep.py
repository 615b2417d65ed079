"""The mixer over given texts, many at once: what each method gives to each given token.

The same mechanisms and accounts as `mixing.Mixer`, in another order of loops. Where a text
is given, rows of many documents, methods and candidates can be mixed side by side: one search
over a thousand rows costs little more than one over five. A test holds that the numbers are
those of the mixer itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from dpredact import mixing
from dpredact.policy import Method, Policy
from dpredact.privacy import accounting, combine
from dpredact.privacy.mechanisms import Clip, Influence, Pointwise
from dpredact.privacy.mechanisms.fusion import fuse
from dpredact.privacy.spending import account
from dpredact.promise import GroupPromise, Promise

_ROWS = 600  # rows mixed side by side: bounds memory


@dataclass(frozen=True)
class Run:
    """One given text under one method.

    logits: (1 + views, tokens, K), −inf where a place has fewer supported tokens than K.
    at: (tokens,) column of the given token; −1 where the support lacks it.
    """

    logits: torch.Tensor = field(repr=False)
    at: torch.Tensor = field(repr=False)
    views: tuple[str, ...]
    made: Promise
    policy: Policy

    def groups(self) -> list[GroupPromise]:
        named = {g.name: g for g in self.made.private()}
        return [named[v] for v in self.views]


def log_q(runs: Sequence[Run]) -> list[torch.Tensor]:
    """log q of each given token, (tokens,) float64 per run; −inf for one without support."""
    out: list[torch.Tensor | None] = [None] * len(runs)
    caps = [i for i, r in enumerate(runs) if r.views and all(
        g.method is Method.DP_FUSION for g in r.groups())]  # fmt: skip
    batch: list[int] = []
    rows = 0
    for i in caps:
        if batch and rows + len(runs[i].views) > _ROWS:
            _into(out, batch, _caps([runs[j] for j in batch]))
            batch, rows = [], 0
        batch.append(i)
        rows += len(runs[i].views)
    if batch:
        _into(out, batch, _caps([runs[j] for j in batch]))
    for i, run in enumerate(runs):
        if out[i] is None:
            fixed = all(isinstance(g.event, accounting.Range) for g in run.groups())
            out[i] = _ranges(run) if fixed else _one_by_one(run)
    return [o for o in out if o is not None]


def _into(
    out: list[torch.Tensor | None], places: Sequence[int], values: Sequence[torch.Tensor]
) -> None:
    for place, value in zip(places, values, strict=True):
        out[place] = value


def _pick(log_p: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    """(…, tokens, K) at (tokens,) -> (…, tokens); −inf where `at` is −1."""
    index = at.clamp(min=0).expand(log_p.shape[:-1])[..., None]
    values = torch.gather(log_p, -1, index)[..., 0]
    return torch.where(at >= 0, values, torch.full_like(values, -torch.inf))


def _caps(runs: Sequence[Run]) -> list[torch.Tensor]:
    """Order caps, fixed and adaptive: all rows of all runs, one place after the other."""
    longest = max(len(r.at) for r in runs)
    size = max(r.logits.shape[-1] for r in runs)
    count = sum(len(r.views) for r in runs)
    public = torch.full((count, longest, size), -torch.inf, dtype=torch.float64)
    private = public.clone()
    at = torch.zeros((count, longest), dtype=torch.long)
    accounts, lengths, first = [], [], 0
    for r in runs:
        m, n, k = len(r.views), len(r.at), r.logits.shape[-1]
        rows = torch.log_softmax(r.logits.double() / r.policy.decoding.temperature, -1)
        public[first : first + m, :n, :k] = rows[0]
        private[first : first + m, :n, :k] = rows[1:]
        at[first : first + m, :n] = r.at
        for g in r.groups():
            settings = r.policy.groups[g.members[0]]
            assert g.event is not None
            accounts.append(account(g.event, g.weight, r.policy.pace_of(g.members[0]), settings.max_cap))
        lengths += [n] * m
        first += m
    true = torch.full((count, longest), -torch.inf, dtype=torch.float64)
    for t in range(longest):
        now = [i for i, n in enumerate(lengths) if t < n]
        p0, p1 = public[now, t], private[now, t]
        caps = [accounts[i].caps() for i in now]  # type: ignore[union-attr]
        ahead = (torch.tensor([c[0][0] for c in caps]).double(),
                 torch.tensor([c[0][1] for c in caps]).double())  # fmt: skip
        back = (torch.tensor([c[1][0] for c in caps]).double(),
                torch.tensor([c[1][1] for c in caps]).double())  # fmt: skip
        _, q, up, down = fuse(p0, p1, ahead, back)
        for i, a, b in zip(now, up.tolist(), down.tolist(), strict=True):
            accounts[i].charge(a, b)  # type: ignore[union-attr]
        given = at[now, t]
        values = torch.gather(q, 1, given.clamp(min=0)[:, None])[:, 0]
        true[now, t] = torch.where(given >= 0, values, torch.full_like(values, -torch.inf))
    out, first = [], 0
    for r in runs:
        m, n = len(r.views), len(r.at)
        zero = _pick(torch.log_softmax(r.logits[0].double() / r.policy.decoding.temperature, -1), r.at)
        out.append(_mean(true[first : first + m, :n], zero, [g.weight for g in r.groups()]))
        first += m
    return out


def _mean(true: torch.Tensor, public: torch.Tensor, weights: Sequence[float]) -> torch.Tensor:
    """The mean over groups at the given tokens; what weight is left over is row 0's."""
    rest = 1.0 - sum(weights)
    shares = torch.tensor([*weights, rest if rest > 1e-12 else 0.0], dtype=torch.float64)
    return torch.logsumexp(torch.log(shares)[:, None] + torch.cat([true, public[None]]), 0)


def _ranges(run: Run) -> torch.Tensor:
    """Fixed widths: places with as many supported tokens are mixed together."""
    tau = run.policy.decoding.temperature
    logits = run.logits.double()
    sizes = torch.isfinite(logits[0]).sum(-1)  # the public row decides the support
    out = torch.full((len(run.at),), -torch.inf, dtype=torch.float64)
    for size in sizes.unique().tolist():
        places = (sizes == size).nonzero()[:, 0]
        columns = torch.isfinite(logits[0, places]).nonzero()[:, 1].reshape(len(places), size)
        part = torch.gather(
            logits[:, places], 2, columns.expand(logits.shape[0], -1, -1)
        )  # (1 + m, n, K)
        log_rows = torch.log_softmax(part / tau, -1)
        log_qs = [log_rows[0]] if not run.views else [
            _bounded(g, run.policy, part[0], part[1 + i], log_rows[0], log_rows[1 + i])
            for i, g in enumerate(run.groups())
        ]  # fmt: skip
        here = (columns == run.at[places, None]).int()
        at = torch.where(here.any(1), here.argmax(1), torch.full_like(places, -1))
        if run.policy.combine == "product" and run.views:
            out[places] = _pick(combine.product(log_rows[0], torch.stack(log_qs)), at)
        else:
            true = _pick(torch.stack(log_qs), at)
            weights = [g.weight for g in run.groups()] if run.views else [1.0]
            out[places] = _mean(true, _pick(log_rows[0], at), weights)
    return out


def _bounded(
    group: GroupPromise,
    policy: Policy,
    public: torch.Tensor,
    private: torch.Tensor,
    log_public: torch.Tensor,
    log_private: torch.Tensor,
) -> torch.Tensor:
    """One group of a fixed width or cap, as the mixer sets it. (n, K) -> (n, K)."""
    settings, tau, event = policy.groups[group.members[0]], policy.decoding.temperature, group.event
    assert isinstance(event, accounting.Range)
    if group.method is Method.INVISIBLE_INK:
        clip = Clip(event.range * tau / 2 * (1 - 1e-12), tau, settings.shift)
        return clip.mix(public, private)
    if group.method is Method.CID:
        return Influence(event.range, settings.max_weight, tau).mix(public, private)
    return Pointwise(event.range).mix(log_public, log_private)


def _one_by_one(run: Run) -> torch.Tensor:
    """Everything else: the mixer itself."""
    mixer = mixing.Mixer(run.made, run.policy)
    out = []
    for t in range(len(run.at)):
        columns = torch.isfinite(run.logits[0, t]).nonzero()[:, 0]
        mixed = mixer.step(run.logits[:, t][:, columns].double(), run.views)
        at = (columns == run.at[t]).nonzero()[:, 0]
        out.append(float(mixed[at[0]]) if len(at) else -torch.inf)
    return torch.tensor(out, dtype=torch.float64)
