"""Documents × methods: release, attack, score; one line of JSON each, so a kill costs one.

Every figure of `attack`, `utility`, `curve` and `paper` comes out of these records. The file
holds drawn texts, and of unprotected methods private ones; it stays in the owner's folder.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpredact.evaluation import attack, game, likelihood, replacements, teacher, utility
from dpredact.evaluation.corpus import Item
from dpredact.evaluation.methods import MethodSpec, Setting
from dpredact.evaluation.release import Released, made_tokens, release_all
from dpredact.evaluation.scene import Scene, measuring_policy, scene
from dpredact.policy import Policy
from dpredact.privacy.sampling import Draw, SystemDraw

if TYPE_CHECKING:
    from dpredact.lm.interface import LanguageModel


@dataclass(frozen=True)
class Plan:
    """What is measured of each release.

    attacked: groups in the game; None: all with a span. size: |C|. others: shown or hidden.
    seed: of the game's candidates alone; releases are drawn from the system's randomness.
    """

    attack: bool = True
    utility: bool = True
    teacher: bool = True
    attacked: tuple[str, ...] | None = None
    size: int = 5
    others: str = "shown"
    seed: int = 0


@dataclass
class Bench:
    """One comparison. `records` yields one record per document and method."""

    model: LanguageModel
    setting: Setting
    items: Sequence[Item]
    pool: Sequence[Item] = field(repr=False)
    folder: Path
    plan: Plan = Plan()
    draw: Draw = field(default_factory=SystemDraw)

    def records(
        self, specs: Sequence[MethodSpec], said: Callable[[str], None] = lambda line: None
    ) -> Iterator[dict[str, Any]]:
        """Records of all documents under all methods; known ones are read from the folder."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self.folder / "records.jsonl"
        known = {(r["key"], r["document"]): r for r in _read(path)}
        words = {}
        baselines = teacher.baselines_of(specs)
        for number, item in enumerate(self.items):
            keys = {spec.name: self._key(spec, item) for spec in specs}
            missing = [spec for spec in specs if (keys[spec.name], number) not in known]
            scenes = {s.name: scene(item, structure(s, self.setting)) for s in missing}
            texts: dict[str, Released] = {}
            if missing and (self.plan.attack or self.plan.utility):
                said(f"document {number + 1} of {len(self.items)}, drawing for {len(missing)} methods")
                pairs = [(scenes[s.name], s) for s in missing]
                drawn = release_all(self.model, pairs, self.draw, self.setting.tokens)
                texts = {s.name: d for s, d in zip(missing, drawn, strict=True)}
            for spec in specs:
                key = keys[spec.name]
                if (key, number) in known:
                    yield known[key, number]
                    continue
                groups = spec.policy.groups if _from_file(spec) and spec.policy else None
                names = {n: g.entities for n, g in groups.items()} if groups else self.setting.groups
                kind = json.dumps({n: list(e) for n, e in names.items()}, sort_keys=True)
                if kind not in words:
                    words[kind] = game.pool(self.pool, game.group_of_entities(names))
                said(f"document {number + 1} of {len(self.items)}, {spec.name}")
                record = {"key": key, "document": number, "name": item.name, "method": spec.name}
                released = texts.get(spec.name)
                record |= self._measure(scenes[spec.name], spec, number, released, words[kind], baselines, kind)
                _append(path, record)
                yield record

    def _key(self, spec: MethodSpec, item: Item) -> str:
        policy = spec.policy.model_dump_json() if spec.policy else ""
        spans = [(s.start, s.end, s.entity) for s in item.spans]
        parts = (spec.name, policy, dict(spec.values), self.plan, self.setting, self.model.name,
                 self.model.digest, self.model.dtype, item.text, spans)  # fmt: skip
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]

    def _measure(
        self,
        at: Scene,
        spec: MethodSpec,
        number: int,
        released: Released | None,
        words: dict[str, dict[str, set[str]]],
        baselines: dict[str, teacher.Baseline],
        kind: str,
    ) -> dict[str, Any]:
        model, plan = self.model, self.plan
        out: dict[str, Any] = {}
        if released is not None:
            out |= {"text": released.text, "drawn": len(released.ids), "T": released.tokens,
                    "finished": released.finished}  # fmt: skip
        tokens = (
            made_tokens(likelihood.document_policy(spec, at.groups), model, at)
            if spec.policy
            else self.setting.tokens or -(-len(at.context.ids(model.encode)) * 6 // 5)
        )
        worst, whole = likelihood.certified(spec, at.groups, tokens, model.vocab_size)
        out |= {"epsilon": _number(worst), "epsilon_all": _number(whole),
                "paper_epsilon": _number(paper_epsilon(spec, at.groups, tokens))}  # fmt: skip
        if plan.attack and released is not None:
            wanted = [g for g in at.groups if plan.attacked is None or g in plan.attacked]
            games = [
                dealt for g in wanted
                if (dealt := game.deal(at, g, words.get(g, {}), plan.size, plan.seed)) is not None
            ]  # fmt: skip
            found = attack.play(model, at, spec, released, games, others=plan.others)
            out["games"] = [
                {"group": g.group, "size": len(g.candidates),
                 "attackers": {a: [o.hit, o.tied] for a, o in f.items()}}
                for g, f in zip(games, found, strict=True)
            ]  # fmt: skip
        if plan.utility and released is not None:
            out["utility"] = utility.measure(at, released.text)
        if plan.teacher and spec.policy and spec.policy.scope == "spans":
            rules = likelihood.document_policy(spec, at.groups)
            three = replacements.listed(replacements.score(model, at.item, rules))
            out |= dict(zip(("nll", "nll_public", "nll_clear"), three, strict=True))
        elif plan.teacher:
            folder = self.folder / f"rows-{hashlib.sha256(kind.encode()).hexdigest()[:8]}"
            forced = teacher.Store(folder).get(model, at, number, baselines)
            s = likelihood.score(forced, spec)
            out["nll"] = [s.tagged, s.tagged_tokens, s.untagged, s.untagged_tokens]
        return out


def structure(spec: MethodSpec, setting: Setting) -> Policy:
    """The policy whose groups the scene of this method has, one view per group."""
    if _from_file(spec):
        assert spec.policy is not None
        return spec.policy.model_copy(update={"mode": "groups"})
    base = measuring_policy(setting)
    if spec.policy is not None:
        base = base.model_copy(update={"placeholder": spec.policy.placeholder})
    return base


def _from_file(spec: MethodSpec) -> bool:
    return spec.kind == "policy" and "file" in spec.values


def paper_epsilon(spec: MethodSpec, groups: Sequence[str], tokens: int) -> float:
    """The DP-Fusion paper's own formula, for the column beside the sound one; not a promise.

    T·ln((m − 1 + e^{(α−1)·4β})/m)/(α−1) + ln(1/δ)/(α−1), m groups of the document. It counts
    the two hops of a replacement at one order, which does not hold (THEORY §2).
    """
    policy = spec.policy
    if policy is None or not policy.private_groups:
        return math.nan
    first = next(iter(policy.private_groups.values()))
    if first.beta is None:
        return math.nan
    order = float(first.order)
    m = 1 if policy.mode == "single" else max(1, len(groups))
    step = math.log1p(math.expm1((order - 1) * 4 * first.beta) / m) / (order - 1)
    return tokens * step - math.log(policy.delta) / (order - 1)


def _number(value: float) -> float | str | None:
    """JSON has no infinity."""
    return None if math.isnan(value) else ("inf" if math.isinf(value) else value)


def _append(path: Path, record: dict[str, Any]) -> None:
    flags = os.O_APPEND | os.O_CREAT | os.O_RDWR
    with os.fdopen(os.open(path, flags, 0o600), "rb+") as out:
        line = json.dumps(record, ensure_ascii=False).encode() + b"\n"
        size = out.seek(0, os.SEEK_END)
        if size and out.seek(size - 1) is not None and out.read(1) != b"\n":
            line = b"\n" + line  # what a kill tore off stays a line of its own
        out.write(line)
        out.flush()
        os.fsync(out.fileno())


def _read(path: Path) -> Iterator[dict[str, Any]]:
    if not path.exists():
        return
    for line in path.read_bytes().splitlines():
        try:
            record = json.loads(line)
            if {"key", "document", "method"} <= set(record):
                yield record
        except ValueError:
            continue  # torn by a kill
