"""A writer and a tagger small enough to know what they do, for tests of the whole path."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence

from dpredact.lm.catalog import TOY_VOCAB
from dpredact.lm.toy import ToyModel
from dpredact.tagging.interface import Span, Tagging

END = 256
LETTERS = b"abcdefghijklmnopqrstuvwxyz ,."


def writer(*, end: float | None = None, window: int = 1 << 20, letters: bytes = LETTERS) -> ToyModel:
    """A model whose numbers depend on every token of a row, and that writes `letters` only.

    end: logit of the end token; None: it never ends.
    """

    def table(row: tuple[int, ...]) -> list[float]:
        scores = [float("-inf")] * TOY_VOCAB
        noise = hashlib.blake2b(repr(row).encode(), digest_size=len(letters)).digest()
        for letter, n in zip(letters, noise, strict=True):
            scores[letter] = n / 64
        if end is not None:
            scores[END] = end
        return scores

    return ToyModel(table, TOY_VOCAB, eos=(END,), window=window)


def reciter(text: str) -> ToyModel:
    """A model that writes `text` and ends, whatever it reads."""
    ids = [*text.encode(), END]
    starts: list[int] = []

    def table(row: tuple[int, ...]) -> list[float]:
        if not starts or len(row) < starts[0]:
            starts[:] = [len(row)]
        scores = [-1e4] * TOY_VOCAB
        scores[ids[min(len(row) - starts[0], len(ids) - 1)]] = 1e4
        return scores

    return ToyModel(table, TOY_VOCAB, eos=(END,))


class WordTagger:
    """Tags every occurrence of the given words; nothing else."""

    name = "words"

    def __init__(
        self, words: Mapping[str, str], *, complete: bool = True, reasons: Sequence[str] = ()
    ) -> None:
        self._words, self._complete, self._reasons = words, complete, tuple(reasons)

    def tag(self, text: str) -> Tagging:
        spans = [
            Span(m.start(), m.end(), entity, 1.0, ("words",))
            for words, entity in self._words.items()
            for m in re.finditer(re.escape(words), text)
        ]
        return Tagging(tuple(sorted(spans)), self._complete, self._reasons)
