"""Language models: `load` gives one by catalog name, folder or hub id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpredact.errors import Missing

if TYPE_CHECKING:
    from dpredact.lm.interface import LanguageModel


def load(
    model: str,
    *,
    device: str = "auto",
    dtype: str = "auto",
    device_map: str | None = None,
    allow_download: bool = False,
) -> LanguageModel:
    """A language model, ready to open sessions. 'toy' is the echo model for trying out files."""
    try:
        import torch  # noqa: F401
    except ImportError:
        raise Missing(
            "this method needs a language model, and torch is not installed",
            next_step="install the package with its extra: pip install 'dpredact[lm]'",
        ) from None
    if model == "toy":
        from dpredact.lm import toy

        return toy.echo()
    from dpredact.lm import hf

    return hf.load(
        model, device=device, dtype=dtype, device_map=device_map, allow_download=allow_download
    )
