"""A writer and a tagger small enough to know what they do, for tests of the whole path."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence

from dpredact.lm.catalog import TOY_VOCAB
from dpredact.lm.toy import ToyModel, ToySession
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


_START = 255  # no byte of UTF-8: marks where the prompt of a row ends


class Reciter(ToyModel):
    """A model that writes one text and ends, whatever it reads."""

    def __init__(self, text: str, *, ends: bool = True) -> None:
        ids = [*text.encode(), *([END] if ends else text.encode()[-1:])]

        def table(row: tuple[int, ...]) -> list[float]:
            written = row[::-1].index(_START)
            scores = [-1e4] * TOY_VOCAB
            scores[ord(" ")] = 0.0  # while it may not end yet: outer white space goes anyway
            scores[ids[min(written, len(ids) - 1)]] = 1e4
            return scores

        super().__init__(table, TOY_VOCAB, eos=(END,))

    def open(self, rows: Sequence[Sequence[int]], width: int, steps: int) -> ToySession:
        return super().open([(*row, _START) for row in rows], width + 1, steps)


def reciter(text: str, *, ends: bool = True) -> Reciter:
    return Reciter(text, ends=ends)


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
