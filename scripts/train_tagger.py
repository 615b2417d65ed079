"""Trains the tagger that ships with dpredact: `make train-tagger DATA=folder/of/corpora`.

Needs the extra `train` (torch, onnx) and Rampart in the cache. Takes about an hour and a half on one
core; `--only 0 1` and `--only 2 3`, then `--only tune final`, do the same side by side. Writes head.npz
and head.json into --out; README.md beside them is the model card.

Cross-validation: for each of `tagger_corpora.FOLDS` parts a net is trained on all the others, and
`tune_tagger.py` chooses how sure a net must be on what each has not seen. The net that ships is
then trained the same way on all the parts. What is held out for testing is in none of them.

The target is the decision to mask: in TAB the DIRECT and QUASI mentions, in the other
corpora every annotated one. How sure the net must be is chosen by `tune_tagger.py`.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F

import tagger_corpora as corpora
import tagger_net
import tune_tagger
from dpredact.lm import catalog
from dpredact.tagging import onnx_ner, trained

TRAIN = ("tab", "gum", "contextual", "presidio")
SHIFTED = ("tab", "gum")  # long documents are seen twice, cut into windows at other places
BATCH_TOKENS = 3_000
STEPS = (*map(str, range(corpora.FOLDS)), "tune", "final")
FIRST = 2  # the first of Rampart's six layers that is trained on; the tap lies below it


class Row(NamedTuple):
    """One window: (t, width) hidden, (t, 4) shapes, (t,) classes, -100 where none counts."""

    hidden: np.ndarray
    marks: np.ndarray
    classes: np.ndarray


def targets(document: corpora.Document, reading: onnx_ner.Reading) -> np.ndarray:
    """(tokens,) class of each token: that of the first masked character in it."""
    of_character = np.zeros(len(document.text) + 1, dtype=np.int64)
    for start, end, entity in document.spans:
        of_character[start:end] = corpora.CLASSES.index(entity)
    out = np.zeros(len(reading.start), dtype=np.int64)
    for token, (start, end) in enumerate(zip(reading.start, reading.end, strict=True)):
        inside = of_character[start:end]
        out[token] = inside[inside > 0][0] if inside.any() else 0
    return out


def rows(encoder: onnx_ner.Encoder, document: corpora.Document, shift: int) -> Iterator[Row]:
    """The windows of one document; with `shift`, cut so many characters further on.

    The text in front of the cut becomes a document of its own, so nothing is left out.
    """
    for low, high in ((0, shift), (shift, len(document.text))) if shift else ((0, None),):
        text = document.text[low:high]
        part = corpora.Document(
            document.corpus, document.split, text,
            tuple((max(0, s - low), e - low, c) for s, e, c in document.spans if e > low), (),
        )  # fmt: skip
        reading = encoder.read(text)
        marks = trained.shapes(text, reading.start, reading.end)
        classes = targets(part, reading)
        edge = np.zeros((1, marks.shape[1]), dtype=np.int64)
        none = np.array([-100])
        for (start, end, _, _), hidden in zip(reading.windows, reading.hidden, strict=True):
            yield Row(
                hidden.astype(np.float16),
                np.concatenate([edge, marks[start:end], edge]).astype(np.int8),
                np.concatenate([none, classes[start:end], none]),
            )


def batches(data: list[Row]) -> Iterator[list[Row]]:
    """Rows of similar length together, about BATCH_TOKENS a batch, in random order."""
    random.shuffle(data)
    out: list[list[Row]] = []
    for at in range(0, len(data), 512):
        batch: list[Row] = []
        for row in sorted(data[at : at + 512], key=lambda r: len(r.classes)):
            batch.append(row)
            if len(batch) * len(row.classes) >= BATCH_TOKENS:
                out.append(batch)
                batch = []
        if batch:
            out.append(batch)
    random.shuffle(out)
    yield from out


def recased(row: Row) -> Row:
    """Now and then a window without capitals, or all in capitals: names are names there too."""
    chance = random.random()
    if chance > 0.15:
        return row
    marks = row.marks.copy()
    letters = marks[:, 0] <= 3
    marks[letters, 0] = 0 if chance < 0.1 else 2
    return row._replace(marks=marks)


def stack(batch: list[Row]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """hidden, shapes, seen, classes, padded to the longest row."""
    t, width = max(len(r.classes) for r in batch), batch[0].hidden.shape[1]
    hidden = torch.zeros(len(batch), t, width)
    marks = torch.zeros(len(batch), t, batch[0].marks.shape[1], dtype=torch.long)
    seen = torch.zeros(len(batch), t, dtype=torch.bool)
    classes = torch.full((len(batch), t), -100)
    for i, row in enumerate(batch):
        n = len(row.classes)
        hidden[i, :n] = torch.from_numpy(row.hidden.astype(np.float32))
        marks[i, :n] = torch.from_numpy(row.marks.astype(np.int64))
        seen[i, :n] = True
        classes[i, :n] = torch.from_numpy(row.classes)
    return hidden, marks, seen, classes


def fit(net: tagger_net.Net, data: list[Row], epochs: int, rate: float) -> None:
    """AdamW, linear warm-up over a tenth of the steps, then linearly down; bfloat16 products."""
    old = list(net.layer.parameters())
    new = [p for name, p in net.named_parameters() if not name.startswith("layer.")]
    groups = [{"params": old, "base": rate}, {"params": new, "base": 10 * rate}]
    optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
    steps, step, began = epochs * sum(1 for _ in batches(data)), 0, time.time()
    for epoch in range(epochs):
        net.train()
        losses = []
        for batch in batches(data):
            pace = min(1.0, (step + 1) / (0.1 * steps)) * max(0.02, 1 - step / steps)
            for group in optimizer.param_groups:
                group["lr"] = group["base"] * pace
            hidden, marks, seen, classes = stack([recased(row) for row in batch])
            with torch.autocast("cpu", dtype=torch.bfloat16):
                logits = net(hidden, marks, seen)
            loss = F.cross_entropy(
                logits.float().flatten(0, 1), classes.flatten(), ignore_index=-100
            )
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
            step += 1
        print(f"epoch {epoch + 1}: loss {np.mean(losses):.4f}, {time.time() - began:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the corpora")
    parser.add_argument("--out", type=Path, default=trained.MODEL)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folds", type=Path, default=Path("tagger-folds"), help="where the nets of the parts go")
    parser.add_argument("--only", nargs="*", choices=STEPS, default=STEPS, help="for doing steps side by side")
    args = parser.parse_args()
    torch.set_num_threads(1)

    tap = f"/bert/encoder/layer.{FIRST - 1}/output/LayerNorm/LayerNormalization_output_0"
    facts = {
        "classes": corpora.CLASSES, "tap": tap, "epochs": args.epochs, "rate": args.rate,
        "seed": args.seed, "thresholds": dict.fromkeys(corpora.CLASSES[1:], 0.5),
    }  # fmt: skip
    encoder, data = onnx_ner.rampart(tap), []
    if set(args.only) != {"tune"}:
        # "train" before "dev": the order that the net that ships was made in.
        data = sorted(windows(encoder, args.data), key=lambda row: row[0] == 0)
    for step in args.only:
        if step == "tune":
            tune_tagger.tune(args.data, args.folds, args.out)
            continue
        out = args.out if step == "final" else args.folds / step
        out.mkdir(parents=True, exist_ok=True)
        if step != "final":
            (out / "head.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
        make([row for fold, row in data if str(fold) != step], args, out)


def windows(encoder: onnx_ner.Encoder, folder: Path) -> Iterator[tuple[int, Row]]:
    """Each window that may be trained on, and the part it lies in."""
    for document in (d for corpus in TRAIN for d in corpora.read(folder, corpus)):
        if document.fold is not None:
            for shift in (0, 400) if document.corpus in SHIFTED else (0,):
                yield from ((document.fold, row) for row in rows(encoder, document, shift))


def make(data: list[Row], args: argparse.Namespace, out: Path) -> None:
    """Train one net and write its head.npz into `out`."""
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    print(f"{len(data)} windows, {sum(len(r.classes) for r in data)} tokens", flush=True)
    file = onnx_ner.model_file(catalog.folder("rampart"))
    net = tagger_net.Net(tagger_net.unpack(file), FIRST, len(corpora.CLASSES))
    fit(net, data, args.epochs, args.rate)
    np.savez_compressed(out / "head.npz", **tagger_net.export(net.eval()))


if __name__ == "__main__":
    main()
