"""Models small enough to reason about: exact tables for proofs, an echo for file handling.

Neither is a language model; a certificate made with one names it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import torch

from dpredact.errors import ModelError
from dpredact.lm.catalog import TOY_VOCAB, TOY_WINDOW, toy_encode

_END = 256


class ToyModel:
    """Logits are `table(ids of the row so far)`: any function of one row.

    Text is bytes: encode and decode are UTF-8; ids from 256 on decode to nothing.
    """

    def __init__(
        self,
        table: Callable[[tuple[int, ...]], Sequence[float]],
        vocab_size: int,
        *,
        eos: Sequence[int] = (),
        name: str = "toy",
        window: int = TOY_WINDOW,
    ) -> None:
        self.table = table
        self.name = name
        self.digest = "none: a toy"
        self.dtype = "float64"
        self.device = "cpu"
        self.vocab_size = vocab_size
        self.window = window
        self.token_bytes = 8
        self.eos = frozenset(eos)
        self.controls: frozenset[int] = frozenset()

    def encode(self, text: str) -> list[int]:
        return toy_encode(text)

    encode_markup = encode

    def decode(self, ids: Sequence[int]) -> str:
        return bytes(i for i in ids if i < 256).decode("utf-8", errors="replace")

    def render(self, messages: Sequence[dict[str, str]], *, open_turn: bool) -> str | None:
        return None

    def open(self, rows: Sequence[Sequence[int]], width: int, steps: int) -> ToySession:
        if any(len(row) > width for row in rows):
            raise ModelError("a row is longer than the padded width")
        return ToySession(self, [tuple(row) for row in rows])

    def forced(
        self, rows: Sequence[Sequence[int]], continuation: Sequence[int], width: int
    ) -> torch.Tensor:
        tables = [
            [list(self.table((*row, *continuation[:t]))) for t in range(len(continuation))]
            for row in rows
        ]
        return torch.tensor(tables, dtype=torch.float64)  # (rows, tokens, V)


class ToySession:
    def __init__(self, model: ToyModel, rows: list[tuple[int, ...]]) -> None:
        self._model = model
        self._rows = rows

    def logits(self) -> torch.Tensor:
        return torch.tensor(
            [list(self._model.table(row)) for row in self._rows], dtype=torch.float64
        )  # (rows, V)

    def append(self, ids: Sequence[int]) -> None:
        self._rows = [(*row, int(i)) for row, i in zip(self._rows, ids, strict=True)]

    def keep(self, rows: Sequence[int]) -> None:
        self._rows = [self._rows[i] for i in rows]

    def join(self, other: ToySession) -> None:
        self._rows += other._rows


def echo(sharpness: float = 12.0, reach: int = 6) -> ToyModel:
    """A model that goes on copying what it has seen: it looks up the longest recent context.

    Enough of a writer to test files, folders, crashes and certificates in milliseconds.
    """

    def table(row: tuple[int, ...]) -> list[float]:
        scores = [0.0] * TOY_VOCAB
        data = bytes(min(i, 255) for i in row)
        for length in range(min(reach, len(data) - 1), 0, -1):
            at = data.rfind(data[-length:], 0, len(data) - 1)
            if at >= 0:
                scores[data[at + length]] += sharpness
                break
        noise = hashlib.blake2b(data[-4:], digest_size=8).digest()
        scores[noise[0] % 96 + 32] += 1.0
        scores[_END] = sharpness - 6.0
        return scores

    return ToyModel(table, TOY_VOCAB, eos=(_END,))
