"""Rényi divergence between rows of log probabilities, exact in the tails.

No floor and no clamp: a floor of 1e-10 under probabilities turns a divergence of 18 nats
into 0.007 (THEORY §2). A token that only one side can give makes the divergence infinite,
and that is the answer.
"""

from __future__ import annotations

import torch

# From this value of Σ p^α q^(1−α) − 1 on, the plain logarithm of the sum loses no digits.
_LARGE = 0.5


def renyi(log_p: torch.Tensor, log_q: torch.Tensor, order: float | torch.Tensor) -> torch.Tensor:
    """D_order(p‖q) in nats. (…, V), (…, V) -> (…,), float64.

    log_p, log_q: natural logarithms of normalised rows; −inf is a zero.
    order: > 1; a tensor broadcasts against (…,).

    Source: van Erven and Harremoës 2014, eq. (1). Small values are summed in Bregman form,
    Σ q·[u^α − 1 − α(u − 1)] with u = p/q, whose terms are all ≥ 0, so nothing cancels
    between tokens; large ones by log-sum-exp.

    Edges: p = q -> 0 · q zero where p is not -> inf · p zero where q is not -> finite ·
    order <= 1 -> ValueError · NaN in -> NaN out.
    """
    log_p, log_q = log_p.double(), log_q.double()
    alpha = torch.as_tensor(order, dtype=torch.float64, device=log_p.device)
    if bool((alpha <= 1).any()):
        raise ValueError("order must be greater than 1")
    a = alpha[..., None] if alpha.ndim else alpha
    log_ratio = log_p - log_q
    nowhere = torch.isneginf(log_p) & torch.isneginf(log_q)
    impossible = torch.isneginf(log_q) & ~torch.isneginf(log_p)
    log_ratio = torch.where(nowhere, torch.zeros_like(log_ratio), log_ratio)
    q = log_q.exp()
    terms = q * (torch.expm1(a * log_ratio) - a * torch.expm1(log_ratio))
    small = torch.where(nowhere | impossible, torch.zeros_like(terms), terms).sum(-1)
    value = torch.log1p(small)
    if bool((~(small < _LARGE)).any()):  # also where the small sum overflowed
        weights = a * log_p - (a - 1) * log_q
        weights = torch.where(nowhere, torch.full_like(weights, -torch.inf), weights)
        value = torch.where(small < _LARGE, value, torch.logsumexp(weights, -1))
    value = value / (alpha - 1)
    return torch.where(impossible.any(-1), torch.full_like(value, torch.inf), value)


def symmetric_renyi(
    log_p: torch.Tensor, log_q: torch.Tensor, order: float | torch.Tensor
) -> torch.Tensor:
    """max{D_order(p‖q), D_order(q‖p)} in nats. (…, V), (…, V) -> (…,). Edges as in `renyi`."""
    return torch.maximum(renyi(log_p, log_q, order), renyi(log_q, log_p, order))
