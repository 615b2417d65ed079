"""Audits of a corpus document: the worlds in which one group's words are gone or others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dpredact import prompts
from dpredact.errors import UsageError
from dpredact.evaluation import audit, game
from dpredact.evaluation.bench import structure
from dpredact.evaluation.corpus import Item
from dpredact.evaluation.methods import MethodSpec, Setting
from dpredact.evaluation.release import made_tokens, terms
from dpredact.evaluation.scene import ALL, scene
from dpredact.privacy.sampling import Draw, SystemDraw

if TYPE_CHECKING:
    from dpredact.lm.interface import LanguageModel


def document(
    model: LanguageModel,
    item: Item,
    spec: MethodSpec,
    setting: Setting,
    groups: Sequence[str] | None,
    draws: int,
    neighbours: str,
    pool: Sequence[Item] = (),
    seed: int = 0,
    draw: Draw | None = None,
) -> list[dict[str, Any]]:
    """One audit per private view of `item` under `spec`, as JSON values without words.

    neighbours: 'remove' or 'replace' (other words of the same group, from `pool`). Raises
    UsageError where the method promises nothing of this kind.
    """
    if spec.policy is None or spec.policy.scope == "spans":
        raise UsageError(
            "only methods with private views over a whole document can be audited",
            next_step="name for instance dp-fusion:epsilon=8", place=spec.name,
        )  # fmt: skip
    if neighbours not in ("remove", "replace"):
        raise UsageError("neighbours are remove or replace", next_step="choose one of them")
    if neighbours == "replace" and spec.policy.neighbours != "replace":
        raise UsageError(
            "this method promises nothing about replaced words",
            next_step="add neighbours=replace to the method", place=spec.name,
        )  # fmt: skip
    at = scene(item, structure(spec, setting))
    policy, made, views = terms(model, at, spec)
    frame = prompts.frame(model, prompts.REWRITE, at.context.placeholder)
    shown = {v: ALL if policy.mode == "single" else v for v in views}
    rows: dict[str | None, list[int]] = {None: at.row(frame, model.encode, None)}
    rows |= {v: at.row(frame, model.encode, shown[v]) for v in views}
    names = game.group_of_entities({n: g.entities for n, g in policy.groups.items()})
    words = game.pool(pool, names)
    out = []
    for view in views:
        members = [view] if view in policy.groups else view.split("+")
        if groups is not None and not set(members) & set(groups):
            continue
        other = None
        if neighbours == "replace":
            world = at
            for member in members:
                dealt = game.deal(world, member, words.get(member, {}), 2, seed)
                if dealt is not None:
                    world = world.with_words(dealt.candidates[1 - dealt.truth])
            other = world.row(frame, model.encode, shown[view])
        seen = audit.audit(
            model, policy, made, rows, view, other, draws=draws,
            tokens=made_tokens(policy, model, at), draw=draw or SystemDraw(),
        )  # fmt: skip
        out.append({
            "document": item.name, "group": view, "certified": seen.certified,
            "from_losses": seen.from_losses, "from_frequencies": seen.from_frequencies,
            "divergence": seen.divergence, "budget": seen.budget, "order": seen.order,
            "draws": draws, "delta": seen.delta, "fault": seen.fault,
        })  # fmt: skip
    return out
