"""One document released under one method, for measuring: drawn ids, and nothing certified.

Policies are drawn by the package's own loop (`decoding`), in one go over the whole text. The
unprotected methods and the baselines have one row and a loop of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from dpredact import decoding, prompts
from dpredact.batching import Desk
from dpredact.evaluation.likelihood import document_policy, limit, promised
from dpredact.evaluation.methods import MethodSpec
from dpredact.evaluation.scene import ALL, Scene
from dpredact.evaluation.teacher import baselines_of
from dpredact.mixing import Mixer
from dpredact.policy import Policy
from dpredact.privacy.sampling import Draw
from dpredact.promise import Promise, view_names

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
    frame = prompts.frame(model, prompts.REWRITE, scene.context.placeholder)
    length = len(scene.context.ids(model.encode))
    most = tokens or -(-length * 6 // 5)
    if spec.kind == "original":
        ids = model.encode(scene.item.text)
        return Released(tuple(ids), scene.item.text, len(ids), True)
    if spec.kind == "masked":
        text = scene.context.text(None)
        ids = model.encode(text)
        return Released(tuple(ids), text, len(ids), True)
    if spec.policy is not None and spec.policy.scope == "spans":
        return _spans(model, scene, spec, draw)
    if spec.kind == "policy":
        lane = policy_lane(model, scene, spec, frame)
        list(Desk(model, draw).serve([(spec.name, [lane])]))
        ids, most, finished = lane.ids, lane.limit, lane.finished
    else:
        view = None if spec.kind == "public" else ALL
        row = scene.row(frame, model.encode, view)
        ids, finished = _one_row(model, row, spec, draw, most)
    return Released(tuple(ids), model.decode(ids).strip(), most, finished)


def _spans(model: LanguageModel, scene: Scene, spec: MethodSpec, draw: Draw) -> Released:
    """The author's text with new words in place of the spans."""
    from dpredact import contexts, documents
    from dpredact.documents.interface import replaced
    from dpredact.writing import Writing

    policy = document_policy(spec, scene.groups)
    document = documents.read(scene.item.text.encode("utf-8"), "document.txt")
    regions = contexts.regions(scene.item.spans, policy)
    writing = Writing(document, policy, model, regions)
    list(Desk(model, draw).serve([(spec.name, writing.lanes)]))
    edits, finished = writing.finish()
    text = replaced(document.text, edits)
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


def _one_row(
    model: LanguageModel, row: list[int], spec: MethodSpec, draw: Draw, most: int
) -> tuple[list[int], bool]:
    session = model.open([row], len(row), most)
    ids: list[int] = []
    while len(ids) < most:
        log_q = alone(session.logits()[0].to("cpu"), spec, model.controls)
        drawn = draw(log_q)
        if drawn in model.eos:
            return ids, True
        ids.append(drawn)
        if len(ids) < most:
            session.append([drawn])
    return ids, False


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
