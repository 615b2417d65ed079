"""One token of one text: support, mix, charge, draw.

A lane is one text being written: row 0 is the public view, row i the private view of one
group. The loop over lanes that share a session is `batching.Desk`. Only drawn ids leave
(THEORY §5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from dpredact.policy import Method, Policy
from dpredact.privacy import combine
from dpredact.privacy.divergence import renyi
from dpredact.privacy.mechanisms import Clip, Influence, Pointwise
from dpredact.privacy.mechanisms.baselines import ClippedLogits, UniformMix
from dpredact.privacy.mechanisms.fusion import fusion_weight, mixture
from dpredact.privacy.sampling import Draw
from dpredact.privacy.spending import Exhausted, account
from dpredact.promise import GroupPromise, Promise


@dataclass(frozen=True)
class Support:
    """Which tokens can be drawn: a rule on the public logits alone, ties included.

    top_k None: every finite token. slack: public, in logits (InvisibleInk's top-k⁺).
    """

    top_k: int | None
    slack: float
    never: frozenset[int] = frozenset()

    def __call__(
        self, public: torch.Tensor, barred: frozenset[int] = frozenset()
    ) -> torch.Tensor:
        """Indices of the supported tokens. (V,) -> (K,), on the device of `public`.

        barred: further tokens that cannot come now, from policy and drawn tokens only.
        """
        public = public.float() if public.dtype != torch.float64 else public
        allowed = torch.isfinite(public)
        if self.never or barred:
            out = torch.tensor(sorted(self.never | barred), device=public.device)
            allowed[out] = False
        if self.top_k is not None and self.top_k < public.shape[0]:
            ranked = torch.where(allowed, public, torch.full_like(public, -torch.inf))
            threshold = torch.topk(ranked, self.top_k).values[-1] - self.slack
            allowed &= public >= threshold
        return allowed.nonzero()[:, 0]


class Mixer:
    """One document's groups: accounts, mechanisms and weights. Private inside.

    The order-cap groups are searched together; each range group is one mechanism value.
    """

    def __init__(self, promise: Promise, policy: Policy) -> None:
        self._temperature = policy.decoding.temperature
        self._combine = policy.combine
        self._groups: dict[str, GroupPromise] = {g.name: g for g in promise.private()}
        self._settings = {n: policy.groups[g.members[0]] for n, g in self._groups.items()}
        self._accounts = {
            n: account(g.event, g.weight, self._settings[n].pace, self._settings[n].max_cap)
            for n, g in self._groups.items()
            if g.event is not None
        }
        self._spans = policy.scope == "spans"
        self.record: dict[str, list[float]] | None = None  # realised losses, for the owner only

    def watch(self) -> None:
        """Keep realised losses for the owner's private report."""
        self.record = {name: [] for name in self._groups}

    def release(self, views: Sequence[str], tokens: int) -> None:
        for view in views:
            self._accounts[view].release(tokens)

    def remaining(self) -> dict[str, float]:
        """What adaptive groups have left, nats. For the owner's private report only."""
        purses = {n: getattr(a, "_purse", None) for n, a in self._accounts.items()}
        return {n: max(0.0, p._left) for n, p in purses.items() if p is not None}

    def step(self, logits: torch.Tensor, views: Sequence[str]) -> torch.Tensor:
        """Mix one token's rows and charge every view. (1 + len(views), K) -> log p (K,).

        Pay before you look: when this returns, the draw has been paid for.
        """
        scaled = logits / self._temperature
        log_rows = torch.log_softmax(scaled, -1)
        log_public = log_rows[0]
        fusion = [i for i, v in enumerate(views) if self._groups[v].method == Method.DP_FUSION]
        log_qs: list[torch.Tensor] = [log_public] * len(views)
        if fusion:
            self._fuse([views[i] for i in fusion], fusion, log_public, log_rows, log_qs)
        for i, view in enumerate(views):
            if i not in fusion:
                log_qs[i] = self._bounded(view, logits[0], logits[1 + i], log_public, log_rows[1 + i])
        if not views:
            return log_public
        if self._combine == "product" and not self._spans:
            return combine.product(log_public, torch.stack(log_qs))
        weights = [self._groups[v].weight for v in views]
        rest = 1.0 - sum(weights)  # groups without a span here: their row is row 0
        if rest > 1e-12:
            weights, log_qs = [*weights, rest], [*log_qs, log_public]
        return combine.mean(torch.stack(log_qs), torch.tensor(weights, dtype=torch.float64))

    def _fuse(
        self,
        names: Sequence[str],
        places: Sequence[int],
        log_public: torch.Tensor,
        log_rows: torch.Tensor,
        log_qs: list[torch.Tensor],
    ) -> None:
        """All order-cap groups in one search; realised losses are charged before anything is drawn."""
        caps = [self._accounts[n].caps() for n in names]
        forward, reverse = (
            (torch.tensor([c[side][0] for c in caps], dtype=torch.float64),
             torch.tensor([c[side][1] for c in caps], dtype=torch.float64))
            for side in (0, 1)
        )  # fmt: skip
        private = log_rows[[1 + i for i in places]]  # (groups, K)
        public = log_public.expand_as(private)
        lam = fusion_weight(public, private, forward, reverse)
        q = mixture(public, private, lam)
        up, down = renyi(q, public, forward[0]), renyi(public, q, reverse[0])
        for row, (name, place) in enumerate(zip(names, places, strict=True)):
            self._accounts[name].charge(float(up[row]), float(down[row]))
            log_qs[place] = q[row]
            if self.record is not None:
                self.record[name].append(max(float(up[row]), float(down[row])))

    def _bounded(
        self,
        view: str,
        public: torch.Tensor,
        private: torch.Tensor,
        log_public: torch.Tensor,
        log_private: torch.Tensor,
    ) -> torch.Tensor:
        """One range group."""
        purse, settings, tau = self._accounts[view], self._settings[view], self._temperature
        width = purse.range()
        method = self._groups[view].method
        if method == Method.INVISIBLE_INK:
            clip = Clip(width * tau / 2 * (1 - 1e-12), tau, settings.shift)
            log_q = clip.mix(public, private)
        elif method == Method.CID:
            log_q = Influence(width, settings.max_weight, tau).mix(public, private)
        else:
            log_q = Pointwise(width).mix(log_public, log_private)
        ratio = log_q - log_public
        realised = float(ratio.max() - ratio.min())
        purse.charge_range(realised)
        if self.record is not None:
            self.record[view].append(realised)
        return log_q


class BaselineMixer:
    """A baseline's one row, the text in clear, under its own mechanism. Comparisons only."""

    def __init__(self, promise: Promise, policy: Policy) -> None:
        rule = policy.baseline
        assert rule is not None
        if rule.mix_weight is not None:
            self._mechanism: UniformMix | ClippedLogits = UniformMix(rule.mix_weight)
        else:
            self._mechanism = ClippedLogits(float(rule.window or 0), policy.decoding.temperature)
        (group,) = promise.private()
        self._left = group.event.count if group.event is not None else 0
        self._temperature = policy.decoding.temperature
        self.record: dict[str, list[float]] | None = None

    def watch(self) -> None:
        self.record = {}

    def remaining(self) -> dict[str, float]:
        return {}

    def release(self, views: Sequence[str], tokens: int) -> None:
        self._left -= tokens

    def step(self, logits: torch.Tensor, views: Sequence[str]) -> torch.Tensor:
        """(1, V) -> log p (V,). Every token is possible: a support would have to be private."""
        if self._left <= 0:
            raise Exhausted("a token would be drawn that was never charged")
        self._left -= 1
        scale = self._temperature if isinstance(self._mechanism, UniformMix) else 1.0
        return self._mechanism.mix(logits[0] / scale)


@dataclass
class Lane:
    """One text being written.

    rows: ids of the public view, then of each private view in `views`' order.
    width: padded length of every row, from skeleton and policy. limit: most tokens drawn.
    """

    rows: Sequence[Sequence[int]] = field(repr=False)
    views: tuple[str, ...]
    width: int
    limit: int
    mixer: Mixer | BaselineMixer
    support: Support
    no_repeat: int | None = None
    ends: frozenset[int] = frozenset()  # further tokens that end this text, from public text
    least: int = 0  # tokens drawn before an end token may be: policy and skeleton only
    ids: list[int] = field(default_factory=list, repr=False)
    finished: bool = False  # the model ended the text itself

    @property
    def open(self) -> bool:
        return not self.finished and len(self.ids) < self.limit

    def fitting_rows(self) -> list[Sequence[int]]:
        """Rows for the session: a private row that does not fit is row 0, silently."""
        return [row if len(row) <= self.width else self.rows[0] for row in self.rows]

    def advance(self, logits: torch.Tensor, eos: frozenset[int], draw: Draw) -> int:
        """Draw this lane's next token. logits: (rows of this lane, V)."""
        eos = eos | self.ends
        barred = eos if len(self.ids) < self.least else frozenset()
        if self.no_repeat is not None:
            barred = barred | repeats(self.ids, self.no_repeat)
        tokens = self.support(logits[0], barred)  # (K,)
        rows = logits[:, tokens].to("cpu", torch.float64)  # (rows, K)
        log_p = self.mixer.step(rows, self.views)  # charged here
        drawn = int(tokens[draw(log_p)])
        if drawn in eos:
            self.finished = True
            self.mixer.release(self.views, self.limit - len(self.ids) - 1)
        else:
            self.ids.append(drawn)
        return drawn


def repeats(ids: Sequence[int], length: int) -> frozenset[int]:
    """Tokens that would complete a run of `length` drawn tokens that was drawn before."""
    if len(ids) < length:
        return frozenset()
    tail = list(ids[len(ids) - length + 1 :])
    return frozenset(
        ids[at + length - 1]
        for at in range(len(ids) - length + 1)
        if list(ids[at : at + length - 1]) == tail
    )


def support_of(promise: Promise, policy: Policy, never: frozenset[int]) -> Support:
    """The support rule of a policy; the slack of top-k⁺ is 2C of the widest clip, public."""
    slack = 0.0
    if policy.decoding.extended:
        for group in promise.private():
            width = getattr(group.event, "range", None)
            if group.method == Method.INVISIBLE_INK and width is not None:
                slack = max(slack, width * policy.decoding.temperature)
    return Support(policy.decoding.top_k, slack, never)


def lane(
    contexts_rows: Mapping[str | None, Sequence[int]], mixer: Mixer, support: Support, **sizes: Any
) -> Lane:
    """A lane from ids per view; key None is the public view."""
    views = tuple(v for v in contexts_rows if v is not None)
    rows = [contexts_rows[None], *(contexts_rows[v] for v in views)]
    return Lane(rows=rows, views=views, mixer=mixer, support=support, **sizes)
