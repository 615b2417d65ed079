"""Attackers who score candidates from a release.

LOSS and MIN-K% ask the undefended model how likely the release is when the candidate stands
in the text. The *informed* attacker knows the method and every public number of it, and asks
the method itself: the likelihood-ratio attack, which no other attacker beats on average. For
the original and the masked text, which no model wrote, she looks whether the words are there.

Other groups: `shown` gives the attacker everything but the attacked group's words (the
published game); `hidden` gives her placeholders there. End tokens and pads are never scored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from dpredact import decoding, prompts
from dpredact.evaluation.game import (
    MIN_K,
    Game,
    Outcome,
    judge,
    loss_score,
    min_k_score,
    verbatim,
)
from dpredact.evaluation.lockstep import Run, log_q
from dpredact.evaluation.methods import MethodSpec
from dpredact.evaluation.release import Released, alone, terms
from dpredact.evaluation.scene import ALL, Scene

if TYPE_CHECKING:
    from dpredact.lm.interface import LanguageModel

ROWS_AT_ONCE = 4


class Reader:
    """Teacher-forced rows over one release; each distinct row is computed once.

    Keeps per row: log probabilities of the released tokens under the undefended model and
    under a one-row method, and the logits on the supported tokens. Private inside.
    """

    def __init__(
        self, model: LanguageModel, ids: Sequence[int], spec: MethodSpec, support: decoding.Support | None
    ) -> None:
        self._model, self._ids, self._spec, self._support = model, list(ids), spec, support
        self._true = torch.tensor(self._ids)[:, None]
        self.columns: torch.Tensor | None = None  # (tokens, K), padded with −1
        self._plain: dict[tuple[int, ...], list[float]] = {}
        self._method: dict[tuple[int, ...], float] = {}
        self._cut: dict[tuple[int, ...], torch.Tensor] = {}

    def read(self, rows: Sequence[Sequence[int]]) -> None:
        """Compute what is missing. The first row ever read is the public one."""
        new = [r for r in dict.fromkeys(tuple(r) for r in rows) if r not in self._plain]
        if not new or not self._ids:
            return
        width = max(map(len, new))
        for start in range(0, len(new), ROWS_AT_ONCE):
            part = new[start : start + ROWS_AT_ONCE]
            for row, logits in zip(part, self._model.forced(part, self._ids, width), strict=True):
                self._keep(row, logits.to("cpu", torch.float32))

    def _keep(self, row: tuple[int, ...], logits: torch.Tensor) -> None:
        log_p = torch.gather(torch.log_softmax(logits, -1), 1, self._true)[:, 0]
        self._plain[row] = log_p.double().tolist()
        if self._spec.kind != "policy":
            parts = [alone(x, self._spec, self._model.controls) for x in logits.split(64)]
            self._method[row] = float(torch.gather(torch.cat(parts), 1, self._true).sum())
            return
        assert self._support is not None
        if self.columns is None:
            picked = [self._support(x) for x in logits]
            size = max(map(len, picked))
            self.columns = torch.full((len(picked), size), -1, dtype=torch.long)
            for t, tokens in enumerate(picked):
                self.columns[t, : len(tokens)] = tokens
        cut = torch.gather(logits, 1, self.columns.clamp(min=0)).double()
        self._cut[row] = torch.where(self.columns >= 0, cut, torch.full_like(cut, -torch.inf))

    def plain(self, row: Sequence[int]) -> list[float]:
        """Undefended log probabilities of the released tokens. (tokens,)."""
        return self._plain[tuple(row)] if self._ids else []

    def method(self, row: Sequence[int]) -> float:
        """Log-likelihood of the release under a one-row method."""
        return self._method[tuple(row)] if self._ids else 0.0

    def cut(self, row: Sequence[int]) -> torch.Tensor:
        """Logits on the supported tokens. (tokens, K)."""
        return self._cut[tuple(row)]

    def at(self) -> torch.Tensor:
        """Column of each released token; −1 without support. (tokens,)."""
        assert self.columns is not None
        same = self.columns == self._true
        return torch.where(same.any(1), same.int().argmax(1), torch.full((len(same),), -1))


def play(
    model: LanguageModel,
    scene: Scene,
    spec: MethodSpec,
    released: Released,
    games: Sequence[Game],
    *,
    others: str = "shown",
) -> list[dict[str, Outcome]]:
    """Every attacker on every game about one release: attacker -> outcome."""
    frame = prompts.frame(model, prompts.REWRITE, scene.context.placeholder)
    encode = model.encode
    support = None
    if spec.policy is not None:
        policy, made, _ = terms(model, scene, spec)
        support = decoding.support_of(made, policy, model.controls)
    reader = Reader(model, released.ids, spec, support)
    reader.read([scene.row(frame, encode, None)])
    worlds = [[scene.with_words(c) for c in game.candidates] for game in games]
    informed = _informed(model, reader, scene, spec, released, games, worlds, others, frame)
    out = []
    for game, worlds_of in zip(games, worlds, strict=True):
        view = ALL if others == "shown" else game.group
        rows = [w.row(frame, encode, view) for w in worlds_of]
        reader.read(rows)
        plain = [reader.plain(r) for r in rows]
        found = {"loss": judge([loss_score(p) for p in plain], game.truth)}
        for k in MIN_K:
            found[f"min-{k}%"] = judge([min_k_score(p, k) for p in plain], game.truth)
        scores = informed.pop(0)
        if scores is not None:
            found["informed"] = judge(scores, game.truth)
        out.append(found)
    return out


def _informed(
    model: LanguageModel,
    reader: Reader,
    scene: Scene,
    spec: MethodSpec,
    released: Released,
    games: Sequence[Game],
    worlds: Sequence[Sequence[Scene]],
    others: str,
    frame: prompts.Frame,
) -> list[list[float] | None]:
    """Per game, per candidate: log-likelihood of the release under the method itself.

    None for spans scope: what was drawn lies in several texts, and this attack reads one.
    """
    if spec.policy is not None and spec.policy.scope == "spans":
        return [None] * len(games)
    if spec.kind in ("original", "masked"):
        return [[verbatim(released.text, c) for c in g.candidates] for g in games]
    if spec.kind == "public" or not released.ids:
        return [[0.0] * len(g.candidates) for g in games]
    if spec.kind != "policy":
        views = [ALL if others == "shown" else g.group for g in games]
        rows = [[w.row(frame, model.encode, v) for w in ws] for ws, v in zip(worlds, views)]
        reader.read([r for rs in rows for r in rs])
        return [[reader.method(r) for r in rs] for rs in rows]
    runs = [
        _run(model, reader, scene, spec, world, game.group, others, frame)
        for game, ws in zip(games, worlds, strict=True)
        for world in ws
    ]
    scores = [float(x.sum()) for x in log_q(runs)]
    out: list[list[float] | None] = []
    for game in games:
        out.append(scores[: len(game.candidates)])
        scores = scores[len(game.candidates) :]
    return out


def _run(
    model: LanguageModel,
    reader: Reader,
    scene: Scene,
    spec: MethodSpec,
    world: Scene,
    group: str,
    others: str,
    frame: prompts.Frame,
) -> Run:
    """The method in the world in which one candidate is true."""
    policy, made, views = terms(model, scene, spec)
    rows: dict[str | None, list[int]] = {None: world.row(frame, model.encode, None)}
    for view in views:
        if policy.mode == "single":
            rows[view] = world.row(frame, model.encode, ALL if others == "shown" else group)
        elif others == "shown" or view == group:
            rows[view] = world.row(frame, model.encode, view)
        else:
            rows[view] = rows[None]
    reader.read(list(rows.values()))
    logits = torch.stack([reader.cut(r) for r in rows.values()])
    return Run(logits, reader.at(), views, made, policy)


