"""Spans scope: how likely are the words that stood there, in the text that stays?

Untagged text is forced and costs nothing, so only tagged tokens are scored: each span's own
words, drawn on the public view and the view of its group, in order, from one account.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from dpredact import contexts, documents
from dpredact.evaluation.corpus import Item
from dpredact.evaluation.likelihood import Score, supported
from dpredact.policy import Policy
from dpredact.writing import Writing

if TYPE_CHECKING:
    from dpredact.lm.interface import LanguageModel


def score(model: LanguageModel, item: Item, policy: Policy) -> tuple[Score, Score, Score]:
    """−log of the spans' own words under (the policy, the public view, the text in clear).

    At most max_span_tokens of a span. Supports as in `likelihood`: the policy's rule on the
    public row, and the true token.
    """
    document = documents.read(item.text.encode("utf-8"), "document.txt")
    writing = Writing(document, policy, model, contexts.regions(item.spans, policy))
    sums, tokens = [0.0, 0.0, 0.0], 0
    for unit, lane in zip(writing.plan.units, writing.lanes, strict=True):
        slot = unit.slot
        if slot is None or not lane.views:
            continue
        blank = " " if item.text[slot.start - 1 : slot.start] == " " else ""
        ids = model.encode(blank + slot.words)[: unit.limit]
        logits = model.forced(lane.fitting_rows(), ids, lane.width)  # (2, tokens, V)
        for t, true in enumerate(ids):
            columns = supported(logits[0, t].to("cpu", torch.float64), lane.support, true)
            cut = logits[:, t].cpu()[:, columns].double()
            at = int((columns == true).nonzero()[0, 0])
            plain = torch.log_softmax(cut / policy.decoding.temperature, -1)
            mixed = lane.mixer.step(cut, lane.views)
            for i, row in enumerate((mixed, plain[0], plain[1])):
                sums[i] -= float(row[at])
            tokens += 1
        lane.mixer.release(lane.views, unit.limit - len(ids))
    return _score(sums[0], tokens), _score(sums[1], tokens), _score(sums[2], tokens)


def _score(total: float, tokens: int) -> Score:
    return Score(total, tokens, 0.0, 0)


def listed(scores: Sequence[Score]) -> list[list[float]]:
    """As JSON values."""
    return [[s.tagged, s.tagged_tokens, s.untagged, s.untagged_tokens] for s in scores]
