"""Teacher-forced rows of a document: computed once, kept on disk, scored under every method.

For each token of the original text and each view the logits on the K tokens that the public
row ranks highest are kept, with the true token among them. What a method would have given
the true token can then be computed for any method, budget and support of up to K tokens
without the language model.

The files hold private logits. They stay in the folder that the owner names.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from dpredact import prompts
from dpredact.evaluation.scene import ALL, Scene
from dpredact.privacy.mechanisms.baselines import ClippedLogits, UniformMix

if TYPE_CHECKING:
    from dpredact.lm.interface import LanguageModel

COLUMNS = 1024  # K: tokens kept of each row
ROWS_AT_ONCE = 4  # rows in one forward pass: bounds the memory of (rows, tokens, V)

Baseline = UniformMix | ClippedLogits


@dataclass(frozen=True)
class Forced:
    """Logits of one document at every place of its own text.

    views: names of the rows after the public one; the last is ALL.
    logits: (1 + len(views), tokens, K) float32, columns in order of the public row.
    truth: (tokens,) column of the true token. owner: group of each token, None for public.
    whole: (1 + len(views), tokens) log-sum-exp over the whole vocabulary.
    baselines: log probability of the true token over the whole vocabulary, by name.
    vocabulary: V. public_length: tokens of the public view.
    """

    views: tuple[str, ...]
    logits: torch.Tensor = field(repr=False)
    truth: torch.Tensor = field(repr=False)
    owner: tuple[str | None, ...] = field(repr=False)
    whole: torch.Tensor = field(repr=False)
    baselines: Mapping[str, torch.Tensor] = field(repr=False)
    vocabulary: int
    public_length: int

    def __len__(self) -> int:
        return len(self.owner)


def compute(
    model: LanguageModel, scene: Scene, baselines: Mapping[str, Baseline], columns: int = COLUMNS
) -> Forced:
    """Run the model over the original text under every view of `scene`."""
    frame = prompts.frame(model, prompts.REWRITE, scene.context.placeholder)
    ids, owner = scene.original(model.encode)
    views = (*scene.groups, ALL)
    rows = [scene.row(frame, model.encode, v) for v in (None, *views)]
    width = max(len(r) for r in rows)
    true = torch.tensor(ids)
    kept: list[torch.Tensor] = []
    whole: list[torch.Tensor] = []
    table = truth = clear = None
    for start in range(0, len(rows), ROWS_AT_ONCE):
        part = model.forced(rows[start : start + ROWS_AT_ONCE], ids, width)
        for row in part:
            row = row.to("cpu", torch.float32)  # (tokens, V)
            if table is None or truth is None:
                table, truth = _columns(row, true, model.controls, columns)
            kept.append(torch.gather(row, 1, table))
            whole.append(torch.logsumexp(row, -1))
            clear = row
    assert table is not None and truth is not None and clear is not None
    scored = {  # `clear` is the last row: ALL
        name: torch.gather(torch.cat([b.mix(x) for x in clear.split(64)]), 1, true[:, None])[:, 0]
        for name, b in baselines.items()
    }
    return Forced(
        views, torch.stack(kept), truth, tuple(owner), torch.stack(whole), scored,
        model.vocab_size, len(rows[0]) - len(frame),
    )  # fmt: skip


def _columns(
    public: torch.Tensor, true: torch.Tensor, never: Iterable[int], columns: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """(tokens, K) ids in order of the public row, the true one among them, and its column."""
    ranked = public.clone()
    ranked[:, sorted(never)] = -torch.inf
    table = torch.topk(ranked, min(columns, ranked.shape[1]), -1).indices
    same = table == true[:, None]
    found = same.any(1)
    truth = torch.where(found, same.int().argmax(1), torch.full_like(true, table.shape[1] - 1))
    table[~found, -1] = true[~found]  # ranks below all kept: it takes the last column
    return table, truth


class Store:
    """`Forced` values of one run, one file a document, in a folder of the owner's."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def get(
        self, model: LanguageModel, scene: Scene, number: int, baselines: Mapping[str, Baseline]
    ) -> Forced:
        """The document's rows, computed if the file is missing or was made otherwise."""
        path = self._folder / f"rows-{number:05}.pt"
        key = _key(model, scene)
        known = _load(path)
        if known is not None and known["key"] == key and set(baselines) <= set(known["baselines"]):
            return _forced(known)
        made = compute(model, scene, baselines)
        values = {
            "key": key, "views": list(made.views), "logits": made.logits, "truth": made.truth,
            "owner": list(made.owner), "whole": made.whole, "baselines": dict(made.baselines),
            "vocabulary": made.vocabulary, "public_length": made.public_length,
        }  # fmt: skip
        part = path.with_suffix(".part")
        torch.save(values, part)
        os.replace(part, path)
        return made


def _key(model: LanguageModel, scene: Scene) -> str:
    """What the rows depend on. Lies inside the private file only."""
    pieces = [(p if isinstance(p, str) else (p.group, p.words)) for p in scene.context.pieces]
    said = repr((model.name, model.digest, model.dtype, COLUMNS, scene.context.placeholder,
                 prompts.REWRITE, pieces))  # fmt: skip
    return hashlib.sha256(said.encode()).hexdigest()


def _load(path: Path) -> dict[str, Any] | None:
    try:
        return torch.load(path, weights_only=True)
    except Exception:  # missing, or torn by a kill in whatever way: computed again
        return None


def _forced(values: Mapping[str, Any]) -> Forced:
    return Forced(
        tuple(values["views"]), values["logits"], values["truth"], tuple(values["owner"]),
        values["whole"], values["baselines"], values["vocabulary"], values["public_length"],
    )  # fmt: skip


def baselines_of(specs: Sequence[Any]) -> dict[str, Baseline]:
    """The baseline mechanisms among some methods, by name."""
    out: dict[str, Baseline] = {}
    for spec in specs:
        if spec.kind == "dp-decoding":
            out[spec.name] = UniformMix(float(spec.values["weight"]))
        elif spec.kind == "dp-prompt":
            out[spec.name] = ClippedLogits(
                float(spec.values["window"]), float(spec.values["temperature"])
            )
    return out
