"""Token counts and ids without torch: `plan` and `rewrite` must agree on every length."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dpredact.errors import ModelError


class Tokens:
    """A fast tokenizer that never reads control tokens out of a text."""

    def __init__(self, backend: Any) -> None:
        self._literal = backend
        self._literal.no_padding()
        self._literal.no_truncation()
        self._literal.encode_special_tokens = True

    @classmethod
    def from_folder(cls, folder: Path) -> Tokens:
        from tokenizers import Tokenizer

        try:
            return cls(Tokenizer.from_file(str(folder / "tokenizer.json")))
        except Exception:
            raise ModelError(
                f"no readable tokenizer.json in the folder of model {folder.name}",
                next_step="save the model with its fast tokenizer (tokenizer.json) and try again",
            ) from None

    def encode(self, text: str) -> list[int]:
        return self._literal.encode(text, add_special_tokens=False).ids
