"""One document released under one method, for measuring: drawn ids, and nothing certified.

All are drawn by the package's own loop (`batching`), each in one go over the whole text, and
those of one document side by side: rows do not move each other (THEORY §5).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from dpredact import contexts, decoding, documents, prompts
from dpredact.batching import Desk
from dpredact.documents.interface import replaced
from dpredact.evaluation.likelihood import document_policy, limit, promised
from dpredact.evaluation.methods import MethodSpec
from dpredact.evaluation.scene import ALL, Scene
from dpredact.evaluation.teacher import baselines_of
from dpredact.mixing import Mixer
from dpredact.policy import Policy
from dpredact.privacy.sampling import Draw
from dpredact.promise import Promise, view_names
from dpredact.writing import Writing

if TYPE_CHECKING:
    from dpredact.lm.interface import LanguageModel


@dataclass(frozen=True)
class Released:
    """ids: drawn tokens, end tokens left out. tokens: T. finished: the model ended the text."""

    ids: tuple[int, ...] = field(repr=False)
    text: str = field(repr=False)
    tokens: int
    finished: bool


def release(model: LanguageModel, scene: Scene, spec: MethodSpec, draw: Draw, tokens: int | None) -> Released:
    """Draw one release. tokens: T of methods without a policy; None: 1.2 × the public view."""
    return release_all(model, [(scene, spec)], draw, tokens)[0]


def release_all(
    model: LanguageModel, pairs: Sequence[tuple[Scene, MethodSpec]], draw: Draw, tokens: int | None
) -> list[Released]:
    """One release of each pair, drawn side by side: a step reads the weights once for all."""
    jobs: list[tuple[int, list[decoding.Lane]]] = []
    written: dict[int, Writing] = {}
    for number, (scene, spec) in enumerate(pairs):
        if spec.kind in ("original", "masked"):
            continue
        if spec.policy is not None and spec.policy.scope == "spans":
            written[number] = _spans(model, scene, spec)
            jobs.append((number, written[number].lanes))
            continue
        frame = prompts.frame(model, prompts.REWRITE, scene.context.placeholder)
        if spec.kind == "policy":
            lane = policy_lane(model, scene, spec, frame)
        else:
            most = tokens or -(-len(scene.context.ids(model.encode)) * 6 // 5)
            row = scene.row(frame, model.encode, None if spec.kind == "public" else ALL)
            mixer = Alone(spec, model.controls)
            lane = decoding.lane({None: row}, mixer, decoding.Support(None, 0.0), width=len(row), limit=most)
        jobs.append((number, [lane]))
    lanes = dict(jobs)
    list(Desk(model, draw).serve(jobs))
    out = []
    for number, (scene, spec) in enumerate(pairs):
        if spec.kind in ("original", "masked"):
            text = scene.item.text if spec.kind == "original" else scene.context.text(None)
            ids = model.encode(text)
            out.append(Released(tuple(ids), text, len(ids), True))
        elif number in written:
            out.append(_replaced(model, written[number]))
        else:
            (lane,) = lanes[number]
            text = model.decode(lane.ids).strip()
            out.append(Released(tuple(lane.ids), text, lane.limit, lane.finished))
    return out


def _spans(model: LanguageModel, scene: Scene, spec: MethodSpec) -> Writing:
    """The author's text with new words in place of the spans."""
    policy = document_policy(spec, scene.groups)
    document = documents.read(scene.item.text.encode("utf-8"), "document.txt")
    regions = contexts.regions(scene.item.spans, policy)
    return Writing(document, policy, model, regions)


def _replaced(model: LanguageModel, writing: Writing) -> Released:
    edits, finished = writing.finish()
    text = replaced(writing.document.text, edits)
    return Released(tuple(model.encode(text)), text, writing.plan.tokens, finished == "stop")


def policy_lane(
    model: LanguageModel, scene: Scene, spec: MethodSpec, frame: prompts.Frame
) -> decoding.Lane:
    """The document as one lane under the method's policy."""
    policy, made, views = terms(model, scene, spec)
    context = scene.in_one_view() if policy.mode == "single" else scene.context
    source = {v: ALL if policy.mode == "single" else v for v in views}
    rows: dict[str | None, list[int]] = {None: frame.wrap(context.ids(model.encode))}
    rows |= {v: frame.wrap(context.ids(model.encode, source[v])) for v in views}
    return decoding.lane(
        rows, Mixer(made, policy), decoding.support_of(made, policy, model.controls),
        width=len(rows[None]) + policy.view_reserve, limit=made_tokens(policy, model, scene),
    )  # fmt: skip


def terms(
    model: LanguageModel, scene: Scene, spec: MethodSpec
) -> tuple[Policy, Promise, tuple[str, ...]]:
    """Policy, promise and private views of this document under `spec`."""
    policy = document_policy(spec, scene.groups)
    made = promised(policy, scene.groups, made_tokens(policy, model, scene), model.vocab_size)
    if policy.mode == "single":
        views = tuple(view_names(policy)) if scene.groups else ()
    else:
        views = tuple(g for g in scene.groups if g in view_names(policy))
    return policy, made, views


def made_tokens(policy: Policy, model: LanguageModel, scene: Scene) -> int:
    return limit(policy, len(scene.context.ids(model.encode)))


class Alone:
    """One row under a method without groups, as a mixer: nothing is mixed, nothing promised."""

    def __init__(self, spec: MethodSpec, never: frozenset[int]) -> None:
        self._spec, self._never = spec, never

    def release(self, views: Sequence[str], tokens: int) -> None:
        """There is no account to give tokens back to."""

    def step(self, logits: torch.Tensor, views: Sequence[str]) -> torch.Tensor:
        """(1, V) -> log p (V,)."""
        return alone(logits[0], self._spec, self._never)


def alone(logits: torch.Tensor, spec: MethodSpec, never: frozenset[int]) -> torch.Tensor:
    """log q of a method that reads one row. (…, V) -> (…, V), float64.

    Unprotected rewriting keeps its own top-k and never draws control tokens; a baseline has
    no public row from which such a choice could be made, and draws from everything.
    """
    baseline = baselines_of([spec]).get(spec.name)
    if baseline is not None:
        return baseline.mix(logits)
    scores = logits.double() / float(spec.values.get("temperature", 1.0))
    scores[..., sorted(never)] = -torch.inf
    top = spec.values.get("top_k")
    if top is not None and top < scores.shape[-1]:
        least = torch.topk(scores, int(top), -1).values[..., -1:]
        scores = torch.where(scores >= least, scores, torch.full_like(scores, -torch.inf))
    return torch.log_softmax(scores, -1)
