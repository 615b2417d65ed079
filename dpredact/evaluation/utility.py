"""What a release is worth to a reader, without a language model.

ROUGE against the original and a human summary, public facts kept, length, words of the
private spans that stand there verbatim, and readability. All figures look at words of the
original, so they are the owner's; a release never depends on them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpredact.errors import Missing
from dpredact.evaluation.scene import Scene

_NUMBER = re.compile(r"\d+(?:[.,:/]\d+)*")
_NEGATION = re.compile(r"\b(?:not|no|never|none|nor|neither|without|cannot|n['’]t)\b|n['’]t\b", re.I)
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_SENTENCE = re.compile(r"[.!?]+(?:\s|$)")


def measure(scene: Scene, text: str) -> dict[str, float]:
    """Figures of one release; each a share, a ratio or a count.

    rouge1, rouge2, rougeL (F1 against the original), summary_* against the human summary if
    there is one, facts: share of the public view's numbers that stand in the release;
    negations: of its negations (counted); length: characters against the original's;
    verbatim: share of private spans whose words stand in the release; flesch: reading ease.
    """
    source = scene.item.text
    out = {f"rouge{k}": v for k, v in rouge(source, text).items()}
    if scene.item.summary:
        out |= {f"summary_rouge{k}": v for k, v in rouge(scene.item.summary, text).items()}
    public = " ".join(p for p in scene.context.pieces if isinstance(p, str))
    out["facts"] = kept(_NUMBER.findall(public), _NUMBER.findall(text))
    out["negations"] = kept(["-"] * len(_NEGATION.findall(public)), ["-"] * len(_NEGATION.findall(text)))
    out["length"] = len(text) / max(1, len(source))
    out["verbatim"] = reappearing([s.words for s in scene.context.slots], text)
    out["flesch"] = reading_ease(text)
    return out


def rouge(reference: str, text: str) -> dict[str, float]:
    """F1 of ROUGE-1, -2 and -L, stemmed."""
    try:
        from rouge_score.rouge_scorer import RougeScorer
    except ImportError:
        raise Missing("rouge-score is not installed", next_step="install dpredact[eval]") from None
    scorer = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=True)
    found = scorer.score(reference, text)
    return {k.removeprefix("rouge"): v.fmeasure for k, v in found.items()}


def kept(wanted: Sequence[str], there: Sequence[str]) -> float:
    """Share of `wanted`, with repetitions, that `there` has; 1 if nothing was wanted."""
    rest = list(there)
    hits = 0
    for one in wanted:
        if one in rest:
            rest.remove(one)
            hits += 1
    return hits / len(wanted) if wanted else 1.0


def reappearing(words: Sequence[str], text: str) -> float:
    """Share of private spans whose words stand in the text, as whole words, in any case."""
    if not words:
        return 0.0
    hits = sum(
        re.search(rf"(?<!\w){re.escape(w.casefold())}(?!\w)", text.casefold()) is not None
        for w in words
    )
    return hits / len(words)


def reading_ease(text: str) -> float:
    """Flesch's reading ease (1948), English; syllables counted as runs of vowels. 0 without words."""
    words = _WORD.findall(text)
    if not words:
        return 0.0
    sentences = max(1, len(_SENTENCE.findall(text)))
    syllables = sum(max(1, len(re.findall(r"[aeiouy]+", w.lower()))) for w in words)
    return 206.835 - 1.015 * len(words) / sentences - 84.6 * syllables / len(words)


def similarity(folder: Path, pairs: Sequence[tuple[str, str]]) -> list[float]:
    """Cosine of mean-pooled sentence embeddings, by a local model of the owner's choice."""
    from dpredact.lm import hf

    embed: Any = hf.embedder(folder)
    return [float((embed(a) * embed(b)).sum()) for a, b in pairs]
