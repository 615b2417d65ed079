"""Next-token logits for a batch of rows.

A LanguageModel opens a Session on rows of token ids. Every shape that a session uses is
fixed by the caller's `width` and by the number of tokens appended, never by a row's own
length (THEORY §5, Rows): a row's numbers are a function of that row's ids, the appended
tokens and public sizes only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import torch


class Session(Protocol):
    """Rows that grow together. One document per session, or several side by side."""

    def logits(self) -> torch.Tensor:
        """Next-token logits, shape (rows, V), in the model's dtype, on its device."""
        ...

    def append(self, ids: Sequence[int]) -> None:
        """Append one token to each row; `ids` has one entry per row."""
        ...

    def keep(self, rows: Sequence[int]) -> None:
        """Go on with these rows only, in this order (finished documents leave)."""
        ...

    def join(self, other: Session) -> None:
        """Take over the rows of another session of the same model, after one's own."""
        ...


class LanguageModel(Protocol):
    """A causal language model with its tokenizer."""

    name: str
    digest: str  # SHA-256 of the weights, or a name that says what stands for it
    dtype: str
    device: str  # kind only: 'cpu', 'cuda'
    vocab_size: int  # V: length of a row of logits
    window: int  # most tokens in a row
    token_bytes: int  # memory that one token of one row holds while its session is open
    eos: frozenset[int]
    controls: frozenset[int]  # markup tokens that a text never holds; eos is not among them

    def encode(self, text: str) -> list[int]:
        """Ids of `text`, taken literally: a control token spelled out in it stays text."""
        ...

    def encode_markup(self, text: str) -> list[int]:
        """Ids of prompt markup: control tokens are read as such. Never for user text."""
        ...

    def decode(self, ids: Sequence[int]) -> str: ...

    def render(self, messages: Sequence[dict[str, str]], *, open_turn: bool) -> str | None:
        """The chat template applied; None if the model has no template.

        open_turn: end with the opening of an assistant turn.
        Raises ValueError if the template refuses the roles.
        """
        ...

    def open(self, rows: Sequence[Sequence[int]], width: int, steps: int) -> Session:
        """Prefill `rows`, each padded on the left to `width` tokens; at most `steps` appends.

        ModelError if a row is longer than `width`, or width + steps exceeds the window.
        """
        ...

    def forced(
        self, rows: Sequence[Sequence[int]], continuation: Sequence[int], width: int
    ) -> torch.Tensor:
        """Logits at every place of a given continuation, for measuring. (rows, tokens, V)."""
        ...
