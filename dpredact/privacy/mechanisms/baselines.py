"""Two baselines, for comparison only: they protect a whole document and know no public view.

Their neighbours differ from everything else here: *any* two documents, so that one row, the
one that reads the text in clear, is all there is. A table that shows them beside the others
has to say so (THEORY §7).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from dpredact.privacy.accounting import Pure, Range


@dataclass(frozen=True)
class UniformMix:
    """DP-Decoding: q = λp + (1−λ)/V, p the row of the text in clear.

    weight: λ, in [0, 1).

    Formal guarantee: every q(y) lies between (1−λ)/V and λ + (1−λ)/V, so for any two
    documents |log q(y)/q′(y)| ≤ ln((1 + (V−1)λ)/(1−λ)) at every token: pure ε-DP for
    replacing the whole document. It is reached by two rows that are sure of two tokens.

    Source: Majmudar, Dupuy, Peris, Smaili, Gupta, Zemel 2022 (DP-Decoding); THEORY §7.
    Edges: weight 0 -> uniform, ε 0 · −inf in the row -> (1−λ)/V · a row that is unusable
    (NaN, +inf, nothing finite) -> uniform · weight outside [0, 1) -> ValueError.
    """

    weight: float

    def __post_init__(self) -> None:
        if not 0 <= self.weight < 1:
            raise ValueError("weight must be at least 0 and below 1")

    def epsilon(self, vocabulary: int) -> float:
        """Pure ε of one token, nats. vocabulary: V, the length of a row."""
        return math.log1p((vocabulary - 1) * self.weight) - math.log1p(-self.weight)

    def event(self, vocabulary: int, count: int) -> Pure:
        """What `count` tokens release."""
        return Pure(self.epsilon(vocabulary), count)

    def mix(self, logits: torch.Tensor) -> torch.Tensor:
        """log q, float64. (…, V) -> (…, V)."""
        logits = logits.double()
        flat = -math.log(logits.shape[-1])
        if self.weight == 0:
            return torch.full_like(logits, flat)
        log_p = torch.log_softmax(logits, -1)
        share = torch.full_like(log_p, math.log1p(-self.weight) + flat)
        mixed = torch.logaddexp(math.log(self.weight) + log_p, share)
        return torch.where(_sound(logits), mixed, torch.full_like(mixed, flat))


@dataclass(frozen=True)
class ClippedLogits:
    """DP-Prompt: soft-max at temperature τ over logits that are really clipped to a window.

    window: w, logits. temperature: τ. What is clipped is φ − max φ, to [−w, 0]: a soft-max
    does not see the constant, and the window sits where the model's own choices are.

    Formal guarantee: two rows clipped to one window differ by values in [−w, w], so the log
    ratios of their soft-maxes lie in an interval of width ≤ 2w/τ, which is also pure
    (2w/τ)-DP, for any two documents. A temperature alone, without the clip, promises nothing.

    Source: Utpala, Hooker, Chen 2023 (DP-Prompt), from the exponential mechanism; THEORY §7.
    Edges: −inf in the row -> −w · a row that is unusable (NaN, +inf, nothing finite) ->
    uniform · window < 0 or temperature <= 0 -> ValueError.
    """

    window: float
    temperature: float

    def __post_init__(self) -> None:
        if not (self.window >= 0 and self.temperature > 0):
            raise ValueError("need window >= 0 and temperature > 0")

    @property
    def range(self) -> float:
        """Width of one token's log ratios, nats."""
        return 2.0 * self.window / self.temperature

    def event(self, count: int) -> Range:
        """What `count` tokens release: a width, for any two documents."""
        return Range(self.range, 1.0, count)

    def mix(self, logits: torch.Tensor) -> torch.Tensor:
        """log q, float64. (…, V) -> (…, V)."""
        logits = logits.double()
        good = _sound(logits)
        top = torch.where(good, logits.amax(-1, keepdim=True), torch.zeros_like(logits[..., :1]))
        inside = (torch.where(good, logits, torch.zeros_like(logits)) - top).clamp(min=-self.window)
        return torch.log_softmax(inside / self.temperature, -1)


def _sound(logits: torch.Tensor) -> torch.Tensor:
    """Is this row a distribution at all? (…, V) -> (…, 1)."""
    bad = torch.isnan(logits) | torch.isposinf(logits)
    return (~bad.any(-1) & torch.isfinite(logits).any(-1))[..., None]
