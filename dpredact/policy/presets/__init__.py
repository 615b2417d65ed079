"""The policies that come with the package; `configs/` in the repository shows the same."""

from __future__ import annotations

from importlib.resources import files

from dpredact.errors import UsageError
from dpredact.policy.nearest import hint

# name -> one line for the list that `dpredact policy init` shows
PRESETS = {
    "demo": "three groups with epsilon 8 each, codes redacted: to see how it works",
    "paper": "the settings published with DP-Fusion, for comparing with it",
    "strict": "names and codes redacted, the rest within one epsilon of 3",
    "spans": "your text is kept, only the replacements are written",
    "redact": "every private word becomes its label; no language model",
}


def text(name: str) -> str:
    """The YAML of the preset `name`. Raises UsageError with the nearest known name."""
    if name not in PRESETS:
        raise UsageError(
            f"there is no preset of this name{hint(name, PRESETS)}",
            next_step="`dpredact policy init --list` shows all of them",
        )
    return files(__name__).joinpath(f"{name}.yaml").read_text(encoding="utf-8")
