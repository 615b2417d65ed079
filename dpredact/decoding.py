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

from dpredact.mixing import Mixer, OneRow, mix_together
from dpredact.policy import Method, Policy
from dpredact.privacy.sampling import Draw
from dpredact.promise import Promise


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
        return self.many(public[None], [barred])[0]

    def many(
        self, public: torch.Tensor, barred: Sequence[frozenset[int]]
    ) -> list[torch.Tensor]:
        """Supports of many public rows. (lanes, V) -> (K,) each."""
        ranked = public.clone() if public.dtype == torch.float64 else public.float()
        ranked[~torch.isfinite(ranked)] = -torch.inf
        for row, out in enumerate(barred):
            if out or self.never:
                gone = torch.tensor(sorted(out | self.never), device=public.device)
                ranked[row, gone] = -torch.inf
        allowed = torch.isfinite(ranked)
        if self.top_k is not None and self.top_k < public.shape[-1]:
            threshold = torch.topk(ranked, self.top_k, dim=-1).values[:, -1:] - self.slack
            allowed &= ranked >= threshold
        return [row.nonzero()[:, 0] for row in allowed]


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
    mixer: Mixer | OneRow
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
        return advance_together([self], logits, eos, draw)[0]

    def barred(self, eos: frozenset[int]) -> frozenset[int]:
        """Tokens that cannot come now: a rule on drawn tokens, policy and skeleton."""
        early = (eos | self.ends) if len(self.ids) < self.least else frozenset()
        if self.no_repeat is None:
            return early
        return early | repeats(self.ids, self.no_repeat)

    def take(self, drawn: int, eos: frozenset[int]) -> None:
        """The drawn token: one more, or the end."""
        if drawn in eos or drawn in self.ends:
            self.finished = True
            self.mixer.release(self.views, self.limit - len(self.ids) - 1)
        else:
            self.ids.append(drawn)


def advance_together(
    lanes: Sequence[Lane], logits: torch.Tensor, eos: frozenset[int], draw: Draw
) -> list[int]:
    """One token for every lane: support, mix, charge, draw. logits: (rows of all lanes, V)."""
    starts, at = [], 0
    for lane in lanes:
        starts.append(at)
        at += len(lane.rows)
    supports = together(lanes, logits[starts], eos)
    items = []
    for lane, start, tokens in zip(lanes, starts, supports, strict=True):
        rows = logits[start : start + len(lane.rows), tokens]  # (rows, K)
        items.append((lane.mixer, rows.cpu().double(), lane.views))
    out = []
    for lane, tokens, log_p in zip(lanes, supports, mix_together(items), strict=True):  # charged
        drawn = int(tokens[draw(log_p)])
        lane.take(drawn, eos)
        out.append(drawn)
    return out


def together(
    lanes: Sequence[Lane], public: torch.Tensor, eos: frozenset[int]
) -> list[torch.Tensor]:
    """Supports of many lanes, in one ranking where they share the rule. public: (lanes, V)."""
    out: list[torch.Tensor] = [torch.empty(0)] * len(lanes)
    for rule in dict.fromkeys(lane.support for lane in lanes):
        mine = [i for i, lane in enumerate(lanes) if lane.support == rule]
        barred = [lanes[i].barred(eos) for i in mine]
        for i, tokens in zip(mine, rule.many(public[mine], barred), strict=True):
            out[i] = tokens
    return out


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
