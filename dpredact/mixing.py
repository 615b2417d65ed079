"""One token's mix: every group's row under its mechanism, charged, then combined.

`Mixer` holds one document's accounts. `mix_together` serves many texts in one search, since
a search over forty rows costs little more than one over four.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from dpredact.policy import Method, Policy
from dpredact.privacy import combine
from dpredact.privacy.mechanisms import Clip, Influence, Pointwise
from dpredact.privacy.mechanisms.baselines import ClippedLogits, UniformMix
from dpredact.privacy.mechanisms.fusion import fuse
from dpredact.privacy.spending import Exhausted, PacedCap, PacedRange, PacedTwoHop, account
from dpredact.promise import GroupPromise, Promise


@dataclass(repr=False)
class Half:
    """A mix that waits for the search over its order-cap rows."""

    mixer: Mixer
    logits: torch.Tensor  # (1 + views, K)
    views: tuple[str, ...]
    log_rows: torch.Tensor  # (1 + views, K)
    fusion: list[int]  # places of the order-cap groups among the views
    caps: list[tuple[tuple[float, float], tuple[float, float]]]


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
            n: account(g.event, g.weight, policy.pace_of(g.members[0]), self._settings[n].max_cap)
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
        """What adaptive groups have left (nats; ρ for widths). For the owner's private report only."""
        kinds = (PacedCap, PacedTwoHop, PacedRange)
        return {n: a.remaining() for n, a in self._accounts.items() if isinstance(a, kinds)}

    def step(self, logits: torch.Tensor, views: Sequence[str]) -> torch.Tensor:
        """Mix one token's rows and charge every view. (1 + len(views), K) -> log p (K,).

        Pay before you look: when this returns, the draw has been paid for.
        """
        return mix_together([(self, logits, views)])[0]

    def paced(self, views: Sequence[str]) -> set[tuple[int, str]]:
        """Accounts among `views` whose next allowance depends on what is being spent now."""
        kinds = (PacedCap, PacedTwoHop, PacedRange)
        return {(id(self), v) for v in views if isinstance(self._accounts[v], kinds)}

    def begin(self, logits: torch.Tensor, views: Sequence[str]) -> Half:
        """Rows of log probabilities, and what the order-cap groups may lose now."""
        log_rows = torch.log_softmax(logits / self._temperature, -1)
        fusion = [i for i, v in enumerate(views) if self._groups[v].method == Method.DP_FUSION]
        caps = [self._accounts[views[i]].caps() for i in fusion]
        return Half(self, logits, tuple(views), log_rows, fusion, caps)

    def end(self, half: Half, q: torch.Tensor, up: torch.Tensor, down: torch.Tensor) -> torch.Tensor:
        """Charge what the search found, mix the range groups, combine. q: (order-cap groups, K).

        up, down: realised divergences, of the numbers that are sampled.
        """
        views, log_public = half.views, half.log_rows[0]
        log_qs: list[torch.Tensor] = [log_public] * len(views)
        for row, place in enumerate(half.fusion):
            self._accounts[views[place]].charge(float(up[row]), float(down[row]))
            log_qs[place] = q[row]
            if self.record is not None:
                self.record[views[place]].append(max(float(up[row]), float(down[row])))
        for i, view in enumerate(views):
            if i not in half.fusion:
                log_qs[i] = self._bounded(
                    view, half.logits[0], half.logits[1 + i], log_public, half.log_rows[1 + i]
                )
        if not views:
            return log_public
        if self._combine == "product" and not self._spans:
            return combine.product(log_public, torch.stack(log_qs))
        weights = [self._groups[v].weight for v in views]
        rest = 1.0 - sum(weights)  # groups without a span here: their row is row 0
        if rest > 1e-12:
            weights, log_qs = [*weights, rest], [*log_qs, log_public]
        return combine.mean(torch.stack(log_qs), torch.tensor(weights, dtype=torch.float64))

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


class OneRow(Protocol):
    """A mixer that needs no search: a baseline's, or one without a promise (`evaluation`)."""

    def step(self, logits: torch.Tensor, views: Sequence[str]) -> torch.Tensor: ...
    def release(self, views: Sequence[str], tokens: int) -> None: ...


Item = tuple["Mixer | OneRow", torch.Tensor, Sequence[str]]


def mix_together(items: Sequence[Item]) -> list[torch.Tensor]:
    """`step` of many texts: log p of each, all charged. One search for all order-cap rows.

    Texts of one document share accounts. Where an account paces its budget, its next
    allowance is asked for only after the last spending was paid: such texts take turns.
    """
    out: list[torch.Tensor | None] = [None] * len(items)
    pending = list(range(len(items)))
    while pending:
        now, later = [], []
        busy: set[tuple[int, str]] = set()
        for number in pending:
            mixer, logits, views = items[number]
            if not isinstance(mixer, Mixer):  # one row: nothing to search together
                out[number] = mixer.step(logits, views)
                continue
            own = mixer.paced(views)
            (later if own & busy else now).append(number)
            busy |= own
        _search([(n, items[n]) for n in now], out)
        pending = later
    return [log_p for log_p in out if log_p is not None]


def _search(numbered: Sequence[tuple[int, Item]], out: list[torch.Tensor | None]) -> None:
    """Begin all, search the order-cap rows of all at once, end each in order."""
    halves = [(number, mixer.begin(logits, views)) for number, (mixer, logits, views) in numbered]
    caps = [c for _, half in halves for c in half.caps]
    q = up = down = torch.empty((0, 0), dtype=torch.float64)
    if caps:
        size = max(half.log_rows.shape[-1] for _, half in halves)
        public = torch.cat([_padded(h.log_rows[:1].expand(len(h.fusion), -1), size) for _, h in halves])
        private = torch.cat([_padded(h.log_rows[[1 + i for i in h.fusion]], size) for _, h in halves])
        forward, reverse = (
            (torch.tensor([c[side][0] for c in caps], dtype=torch.float64),
             torch.tensor([c[side][1] for c in caps], dtype=torch.float64))
            for side in (0, 1)
        )  # fmt: skip
        _, q, up, down = fuse(public, private, forward, reverse)
    at = 0
    for number, half in halves:
        mine = slice(at, at + len(half.fusion))
        own = q[mine, : half.log_rows.shape[-1]]
        out[number] = half.mixer.end(half, own, up[mine], down[mine])
        at += len(half.fusion)


def _padded(rows: torch.Tensor, size: int) -> torch.Tensor:
    """(n, K) -> (n, size): tokens of probability 0 in every row change nothing."""
    return torch.nn.functional.pad(rows, (0, size - rows.shape[-1]), value=-torch.inf)
