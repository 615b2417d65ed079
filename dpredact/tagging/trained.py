"""The tagger that dpredact trains itself: which words would have to be masked.

Rampart's lower layers read the text (`onnx_ner.Encoder`); the layers on top were trained
by `scripts/train_tagger.py` on annotated documents, see model/README.md. Their weights are
package data; they run in numpy, in float32.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dpredact.errors import ModelError
from dpredact.tagging import language, onnx_ner, windows
from dpredact.tagging.interface import Span, Tagging

if TYPE_CHECKING:
    import numpy as np

    from dpredact.policy import TaggerSettings

MODEL = Path(__file__).parent / "model"
SHAPES = (6, 3, 9, 4)  # how many values each column of `shapes` can take
NAMED_ORG = "ORG, no institution"  # key of the threshold for organisations without such a word
_HEADS = 12  # of Rampart's attention
_EPSILON = 1e-12
_APART = frozenset({"PERSON", "USERNAME", "EMAIL", "PHONE", "ID", "DATE", "TIME", "AGE"})


_CAPITALISED = re.compile(r"\b[A-ZÀ-ÖØ-Þ][a-zß-öø-ÿ]{2,}")
# Numbers with a form of their own, which rules know better. References without one are the
# net's, where it is sure: to it many digits look like somebody's.
_LEFT_TO_RULES = frozenset({"PHONE", "EMAIL", "TIME", "USERNAME"})
# Words that a low threshold picks up beside a name, and that mean nothing alone.
_EMPTY = frozenset(
    """a an the of and or in on at to by for from with as is was are were be been he she it they
    his her its their this that these those which who whom not no s t""".split()
)


# Heads of institutions. A court or an office tells where somebody lived or was tried, so less
# certainty is asked of a phrase with one of these words than of other organisations.
INSTITUTION = re.compile(
    r"(?i)\b(?:courts?|tribunals?|ministry|authority|authorities|office|board|committee|commission|department|directorate|"
    r"agency|institute|hospital|clinic|infirmary|prison|remand|police|prosecut\w+|university|faculty|school|college|"
    r"municipal\w*|district|chamber|registry|bureau|service|fund|embassy|consulate|barracks|regiment|battalion|"
    r"lords|inspectorate|administration|directorate|ombudsman|constabulary|cemetery|governorate|prefecture)\b"
)


class Head:
    """Transformer layers on top of Rampart's lower ones, and the classes they tell apart.

    weights: arrays by name, as `scripts/train_tagger.py` writes them.
    classes: class 0 is "need not be masked", the others are entities.
    """

    def __init__(self, weights: Mapping[str, np.ndarray], classes: Sequence[str]) -> None:
        self.classes = tuple(classes)
        self._layers = sum(name.endswith(".query.bias") for name in weights)
        self._weights = {name: _plain(weights, name) for name in _names(weights)}

    def probabilities(self, hidden: np.ndarray, marks: np.ndarray) -> np.ndarray:
        """(t, width) of the tapped layer and (t, 4) shapes -> (t, classes)."""
        import numpy as np

        w = self._weights
        x = hidden + sum(w[f"shape.{i}"][marks[:, i]] for i in range(len(SHAPES)))
        for layer in range(self._layers):
            x = self._layer(x, f"layer.{layer}")
        logits = self._linear(x, "out")
        logits = np.exp(logits - logits.max(axis=1, keepdims=True))
        return logits / logits.sum(axis=1, keepdims=True)

    def _layer(self, x: np.ndarray, name: str) -> np.ndarray:
        """One post-norm BERT layer."""
        import numpy as np

        t, width = x.shape
        depth = width // _HEADS
        query, key, value = (
            self._linear(x, f"{name}.{part}").reshape(t, _HEADS, depth).transpose(1, 0, 2)
            for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 2, 1) / np.float32(math.sqrt(depth))
        scores = np.exp(scores - scores.max(axis=2, keepdims=True))
        scores /= scores.sum(axis=2, keepdims=True)
        seen = (scores @ value).transpose(1, 0, 2).reshape(t, width)
        x = self._norm(x + self._linear(seen, f"{name}.output"), f"{name}.norm1")
        inner = self._linear(x, f"{name}.up")
        # GELU in the tanh form, as in training.
        inner *= 0.5 * (1 + np.tanh(0.7978845608 * (inner + 0.044715 * inner * inner * inner)))
        return self._norm(x + self._linear(inner, f"{name}.down"), f"{name}.norm2")

    def _linear(self, x: np.ndarray, name: str) -> np.ndarray:
        return x @ self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]

    def _norm(self, x: np.ndarray, name: str) -> np.ndarray:
        import numpy as np

        x = x - x.mean(axis=1, keepdims=True)
        x /= np.sqrt((x * x).mean(axis=1, keepdims=True) + _EPSILON)
        return x * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


def _names(weights: Mapping[str, np.ndarray]) -> list[str]:
    return [name for name in weights if not name.endswith(".scale")]


def _plain(weights: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    """float32. Matrices are stored (out, in), int8 ones with a scale for each output row;
    they come back (in, out), as they are multiplied."""
    import numpy as np

    value = weights[name].astype(np.float32)
    if weights[name].dtype == np.int8:
        value *= weights[f"{name}.scale"].astype(np.float32)[:, None]
    return np.ascontiguousarray(value.T) if name.endswith(".weight") else value


class _Run(NamedTuple):
    """Words in a row: text[start:end], the sums of their classes' probabilities, and which wins."""

    start: int
    end: int
    kinds: np.ndarray
    score: float
    entity: str


class TrainedTagger:
    """A `Tagger` that says of each word whether it would have to be masked, and as what.

    thresholds: for each entity, the least probability of "must be masked" at which a word
    whose likeliest entity it is counts.
    """

    name = "trained"

    def __init__(
        self,
        encoder: onnx_ner.Encoder,
        head: Head,
        thresholds: Mapping[str, float],
        *,
        languages: str = "en",
    ) -> None:
        self._languages = languages
        self._encoder = encoder
        self._head = head
        self._thresholds = thresholds

    def tag(self, text: str) -> Tagging:
        """Spans in offsets of `text`. Never raises because of the text."""
        found: list[Span] = []
        for window in windows.cut(text, onnx_ner.CHUNK, 1_000):
            found += self._read(text[window.start : window.end], window.start)
        pieces = (piece for span in found for piece in windows.by_line(text, span))
        reasons = language.gaps(text, self._languages)
        return Tagging(tuple(windows.join(pieces)), not reasons, reasons)

    def _read(self, part: str, offset: int) -> Iterator[Span]:
        reading = self._encoder.read(part)
        table = self.probabilities(part, reading)
        for run in runs(part, reading, table, self._head.classes, self._thresholds):
            start, end = run.start + offset, run.end + offset
            yield Span(start, end, run.entity, run.score, (self.name,))

    def probabilities(self, text: str, reading: onnx_ner.Reading) -> np.ndarray:
        """(tokens, classes), each token from the window where it is farthest from a border."""
        import numpy as np

        marks = shapes(text, reading.start, reading.end)
        edge = np.zeros((1, marks.shape[1]), dtype=np.int64)
        out = np.zeros((len(marks), len(self._head.classes)), dtype=np.float32)
        for (low, high, own, end), hidden in zip(reading.windows, reading.hidden, strict=True):
            here = np.concatenate([edge, marks[low:high], edge])
            out[own:end] = self._head.probabilities(hidden, here)[1 + own - low : 1 + end - low]
        return out


def runs(
    text: str,
    reading: onnx_ner.Reading,
    table: np.ndarray,
    classes: Sequence[str],
    thresholds: Mapping[str, float],
) -> Iterator[_Run]:
    """The words in a row that must be masked together. table: (tokens, classes)."""
    masked = 1.0 - table[:, 0]
    run: _Run | None = None
    for start, end, first, last in whole_words(text, reading):
        kinds = table[first:last, 1:].sum(axis=0)
        entity = classes[1 + int(kinds.argmax())]
        if entity in _LEFT_TO_RULES:
            continue
        score = rescaled(float(masked[first:last].max()), thresholds[entity])
        if score < 0.5 or text[start - 1 : start] == "#":  # a hashtag is a topic
            continue
        if run and close(text[run.end : start], run.entity, entity):
            kinds = run.kinds + kinds
            entity = classes[1 + int(kinds.argmax())]
            run = _Run(run.start, end, kinds, max(run.score, score), entity)
            continue
        if run and counts(text, run, thresholds):
            yield run
        run = _Run(start, end, kinds, score, entity)
    if run and counts(text, run, thresholds):
        yield run


def counts(text: str, run: _Run, thresholds: Mapping[str, float]) -> bool:
    """Is it worth masking: does it tell anything, and is the net sure enough for its kind?"""
    words = text[run.start : run.end]
    if run.entity == "ORG" and not INSTITUTION.search(words):
        sure = thresholds.get(NAMED_ORG, 0.0)
        if run.score < rescaled(sure, thresholds["ORG"]):
            return False
    return telling(words, run.entity)


def rescaled(probability: float, threshold: float) -> float:
    """A score in which the threshold is 0.5, so that it compares with other taggers' scores.

    Missing a name costs more than masking a word too many, so the threshold lies far below
    one half. Piecewise linear: 0 -> 0, threshold -> 0.5, 1 -> 1.
    """
    if probability < threshold:
        return 0.5 * probability / threshold
    return 0.5 + 0.5 * (probability - threshold) / (1 - threshold)


def whole_words(text: str, reading: onnx_ner.Reading) -> Iterator[tuple[int, int, int, int]]:
    """(start, end, first token, end token) of each word: letters and digits without a gap."""
    word: list[int] | None = None
    for token, (start, end) in enumerate(
        zip(reading.start.tolist(), reading.end.tolist(), strict=True)
    ):
        if start == end or not any(c.isalnum() for c in text[start:end]):
            continue
        if word and start <= word[1]:
            word[1], word[3] = max(end, word[1]), token + 1
            continue
        if word:
            yield tuple(word)
        word = [start, end, token, token + 1]
    if word:
        yield tuple(word)


def telling(words: str, entity: str) -> bool:
    """Could these words tell anything? "of the" cannot, nor an address without a name in it."""
    if entity == "ADDRESS" and not _CAPITALISED.search(words):
        return False
    return any(w not in _EMPTY for w in re.findall(r"\w+", words.lower()))


def close(between: str, before: str, after: str) -> bool:
    """May words with this between them be one mention? before, after: their entities.

    Names of people, dates and addresses on the net end where their kind ends, and go on
    over a blank, a hyphen or an initial's full stop. The other kinds run into each other,
    also over commas, quotes and brackets ("205,000 liras (TRL", "Court (First Section").
    """
    if len(between) > 3 or "\n" in between or any(c.isalnum() for c in between):
        return False
    if before != after and (before in _APART or after in _APART):
        return False
    if before in _APART:
        return between.strip(" ") in ("", ".", "-", "'", "’", "‑", *("/" if before == "ID" else ""))
    return not any(c in ";|\t" for c in between) and not between.startswith(". ")


def shapes(text: str, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """What Rampart's lower-cased pieces do not tell, (n, 4) small integers per token.

    Columns: capitals (0 none, 1 first, 2 all, 3 mixed, 4 digits, 5 sign) · place in the
    word (0 first piece, 1 later piece, 2 after a hyphen or apostrophe) · number of digits
    (0 to 8) · line (0 inside, 1 first of a line, 2 first after a blank line, 3 after ". ").
    """
    import numpy as np

    out = np.zeros((len(start), 4), dtype=np.int64)
    for row, (low, high) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        out[row] = (
            _capitals(text[low:high]),
            _place(text, low),
            min(sum(c.isdigit() for c in text[low:high]), 8),
            _line(text, low),
        )
    return out


def _capitals(piece: str) -> int:
    if any(c.isdigit() for c in piece):
        return 4
    if not any(c.isalpha() for c in piece):
        return 5
    if piece.islower() or not any(c.isupper() for c in piece):
        return 0
    if len(piece) > 1 and piece.isupper():
        return 2
    return 1 if piece[0].isupper() and not any(c.isupper() for c in piece[1:]) else 3


def _place(text: str, low: int) -> int:
    before = text[low - 1 : low]
    if before.isalnum():
        return 1
    return 2 if before and before in "-'’‑" else 0


def _line(text: str, low: int) -> int:
    before = text[max(0, low - 3) : low]
    if low == 0 or before.endswith(("\n\n", "\r\n\r\n")):
        return 2
    if before.endswith("\n"):
        return 1
    return 3 if before.endswith((". ", "? ", "! ")) else 0


def load_head(folder: Path = MODEL) -> tuple[Head, dict[str, Any]]:
    """The trained layers in `folder`, and what head.json says of them.

    ModelError if they are missing or damaged: the package is not whole.
    """
    import numpy as np

    try:
        facts = json.loads((folder / "head.json").read_text(encoding="utf-8"))
        with np.load(folder / "head.npz", allow_pickle=False) as file:
            return Head(dict(file), facts["classes"]), facts
    except (OSError, ValueError, KeyError) as damage:
        raise ModelError(
            f"the trained tagger cannot be read ({type(damage).__name__})",
            next_step="install dpredact again, or train it with `make train-tagger`",
            place=folder.name,
        ) from None


def load(settings: TaggerSettings) -> TrainedTagger:
    """The trained layers from the package on Rampart from the catalog; no download here."""
    head, facts = load_head()
    encoder = onnx_ner.rampart(facts["tap"])
    return TrainedTagger(encoder, head, facts["thresholds"], languages=settings.language)
