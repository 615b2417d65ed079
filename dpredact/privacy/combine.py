"""Several groups, one token (THEORY §3)."""

from __future__ import annotations

import torch


def mean(log_qs: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """log Σ wᵢqᵢ. (m, V), (m,) -> (V,), float64. Weights are public and sum to 1.

    Formal guarantee: under remove-i only qᵢ changes, so the step loss of group i is
    f_w(cᵢ) in both directions (joint convexity of Σ p^α p′^{1−α}).
    """
    log_weights = torch.log(weights.double())[:, None]
    return torch.logsumexp(log_weights + log_qs.double(), dim=0)


def product(log_public: torch.Tensor, log_qs: torch.Tensor) -> torch.Tensor:
    """p ∝ p₀·Π(qᵢ/p₀). (V,), (m, V) -> (V,), float64. Range methods only.

    Formal guarantee: under remove-i the log ratios keep the width that group i has alone,
    whatever the other groups do. Nothing is diluted by 1/m.
    """
    log_public = log_public.double()
    moved = log_public + (log_qs.double() - log_public).sum(dim=0)
    return torch.log_softmax(moved, -1)
