"""What a hidden variable says of a sequence, from the means and deviations (n, u) of q(z | x) of n sequences.

All in float64 and in nats; the prior is N(0, 1).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

DRAWS = 8
"""Samples of each sequence in the estimate of the mutual information."""
ACTIVE = 0.01
"""Variance over sequences of the mean of an active unit, Burda, Grosse & Salakhutdinov 2016, arXiv 1509.00519."""


def divergence(mean: Tensor, deviation: Tensor) -> Tensor:
    """(n, u): KL(N(μ, σ²) ‖ N(0, 1)) = ½ (μ² + σ² − 1 − ln σ²), Kingma & Welling 2014, appendix B."""
    variance = deviation.square()
    return (mean.square() + variance - 1 - variance.log()) / 2


def variance_of_means(mean: Tensor) -> Tensor:
    """(u,): Var_x E[z | x], with n − 1 in its denominator."""
    return mean.var(0)


def mutual_information(mean: Tensor, deviation: Tensor, draws: int = DRAWS, seed: int = 0) -> float:
    """I(x; z) of these n sequences, each as likely: E ln q(z | x) − ln (1/n) Σ_j q(z | x_j), at most ln n.

    Hoffman & Johnson 2016 (ELBO surgery); the expectation over z is a mean over samples.
    """
    noise = torch.randn(
        (draws, *mean.shape), generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )  # fmt: skip
    total = 0.0
    for z in mean + deviation * noise:
        density = log_density(z, mean, deviation)
        total += float((density.diagonal() - density.logsumexp(1) + math.log(len(mean))).mean())
    return total / draws


def log_density(z: Tensor, mean: Tensor, deviation: Tensor) -> Tensor:
    """(n, m): ln N(z_i; μ_j, σ_j²) of points (n, u) under distributions (m, u)."""
    away = (z[:, None] - mean) / deviation
    return -(away.square() / 2 + deviation.log() + math.log(2 * math.pi) / 2).sum(-1)
