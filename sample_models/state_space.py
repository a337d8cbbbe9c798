"""State-space models: hidden Markov, linear Gaussian (Kalman filter), and non-linear with networks.

The first two declare what they are made of by a method, `hidden_markov` or `linear_gaussian`, from which inspector
computes the posteriors of their hidden states again, in double precision.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.distributions import Normal, kl_divergence

from sample_models.base import Batch


class HiddenMarkov(nn.Module):
    """Hidden Markov model of tokens: z_1 ~ π, z_t ~ A[z_{t−1}], x_t ~ B[z_t]; ids (b, t) → log p(x_{t+1} | x_{≤t}).

    π, A and B are softmaxes of free numbers, so gradients of the log-likelihood train them.
    """

    def __init__(self, states: int, tokens: int) -> None:
        super().__init__()
        self.initial = nn.Parameter(torch.randn(states) / 2)
        self.transition = nn.Parameter(torch.randn(states, states) / 2)
        self.emission = nn.Parameter(torch.randn(states, tokens) / 2)

    def hidden_markov(self, ids: Tensor) -> dict[str, Tensor]:
        """log π (k,), log A (k, k) from row to column, and log p(x_t | z_t = k) of the ids, (b, t, k)."""
        return {
            "initial": self.initial.log_softmax(-1),
            "transition": self.transition.log_softmax(-1),
            "emission": self.emission.log_softmax(-1).T[ids],
        }

    def forward(self, ids: Tensor) -> Tensor:
        """The forward algorithm in logarithms: (b, t, v), log-probabilities of the next token at every step."""
        parts = self.hidden_markov(ids)
        expected, transition = parts["initial"].expand(len(ids), -1), parts["transition"]
        following = []
        for seen in parts["emission"].unbind(1):
            filtered = (expected + seen).log_softmax(-1)  # log p(z_t | x_≤t)
            expected = torch.logsumexp(filtered[:, :, None] + transition, dim=1)  # log p(z_{t+1} | x_≤t)
            following.append(expected)
        emission = self.emission.log_softmax(-1)
        return torch.logsumexp(torch.stack(following, 1)[..., None] + emission, dim=2)


class LinearGaussian(nn.Module):
    """z_t = A z_{t−1} + B ε, x_t = C z_t + d + D ψ, z_1 ~ N(m, P): x (b, t, o) → mean and covariance of x_t | x_{<t}.

    `learned` names which of A, B, C, d and D are trained; the others stay as they begin. m and P are given.
    """

    def __init__(self, start: dict[str, Tensor], learned: str = "ABCdD") -> None:
        super().__init__()
        for name in ("A", "B", "C", "d", "D"):
            if name in learned:
                self.register_parameter(name, nn.Parameter(start[name].clone()))
            else:
                self.register_buffer(name, start[name].clone())
        self.register_buffer("initial_mean", start["m"].clone())
        self.register_buffer("initial_covariance", start["P"].clone())

    def linear_gaussian(self) -> dict[str, Tensor]:
        """The matrices: A (n, n), Q = BBᵀ, C (o, n), d (o,), R = DDᵀ, and mean and covariance of the first state."""
        a, b, c, d, noise = (getattr(self, name) for name in ("A", "B", "C", "d", "D"))
        return {
            "A": a, "Q": b @ b.T, "C": c, "d": d, "R": noise @ noise.T,
            "initial_mean": self.initial_mean, "initial_covariance": self.initial_covariance,
        }  # fmt: skip

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The Kalman filter: means (b, t, o) and covariances (t, o, o) of what is measured next, before it is seen."""
        model = self.linear_gaussian()
        a, c = model["A"], model["C"]
        mean, covariance = model["initial_mean"].expand(len(x), -1), model["initial_covariance"]
        unit, means, covariances = torch.eye(len(a), dtype=x.dtype, device=x.device), [], []
        for seen in x.unbind(1):
            expected, spread = mean @ c.T + model["d"], c @ covariance @ c.T + model["R"]
            means.append(expected)
            covariances.append(spread)
            gain = torch.linalg.solve(spread, c @ covariance).T
            kept = unit - gain @ c  # Joseph's form stays symmetric and positive
            updated = kept @ covariance @ kept.T + gain @ model["R"] @ gain.T
            mean = (mean + (seen - expected) @ gain.T) @ a.T
            covariance = a @ updated @ a.T + model["Q"]
        return torch.stack(means, 1), torch.stack(covariances)


class DeepStateSpace(nn.Module):
    """Non-linear: z_t ~ N(μ, σ²) of an LSTM over z_{<t}, x_t ~ N(μ, σ²) of a net of z_t, q(z_t | x_{≤t}) of an LSTM.

    x (b, t, o) → means (b, t, o) and standard deviations of x_t given the sampled z_t, and the divergences
    KL(q(z_t | x_{≤t}) ‖ p(z_t | z_{<t})) (b, t, n), each of one latent number.
    """

    def __init__(self, observed: int, latent: int, hidden: int, least: float) -> None:
        super().__init__()
        self.encoder = nn.LSTM(observed, hidden, batch_first=True)
        self.posterior = nn.Linear(hidden, 2 * latent)
        self.dynamics = nn.LSTM(latent, hidden, batch_first=True)
        self.prior = nn.Linear(hidden, 2 * latent)
        self.decoder = nn.Sequential(nn.Linear(latent, hidden), nn.Tanh(), nn.Linear(hidden, 2 * observed))
        self.least = least

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """One sample of the latent path, and what the bound is made of."""
        posterior = gaussian(self.posterior(self.encoder(x)[0]), 1e-3)
        z = posterior.rsample()
        before = torch.cat((torch.zeros_like(z[:, :1]), z[:, :-1]), dim=1)
        prior = gaussian(self.prior(self.dynamics(before)[0]), 1e-3)
        seen = gaussian(self.decoder(z), self.least)
        return seen.loc, seen.scale, kl_divergence(posterior, prior)


def gaussian(numbers: Tensor, least: float) -> Normal:
    """Means, and standard deviations above `least`, from twice as many free numbers."""
    mean, spread = numbers.chunk(2, -1)
    return Normal(mean, nn.functional.softplus(spread) + least)


def where_real(values: Tensor, batch: Batch) -> Tensor:
    """(b, t), NaN on padding; no gradient comes from there."""
    steps = torch.arange(values.shape[1], device=values.device)
    real = torch.nonzero(steps[None] < batch.lengths[:, None], as_tuple=True)
    return torch.full_like(values, torch.nan).index_put(real, values[real])


def filter_loss(output: tuple[Tensor, Tensor], batch: Batch) -> Tensor:
    """(b, t): −ln p(x_t | x_{<t}) in nats, of one measured number."""
    means, covariances = output
    variance = covariances[:, 0, 0]
    error = batch.inputs[..., 0] - means[..., 0]
    return where_real((error**2 / variance + variance.log() + math.log(2 * math.pi)) / 2, batch)


def bound_loss(output: tuple[Tensor, Tensor, Tensor], batch: Batch) -> Tensor:
    """(b, t): the negative terms of the evidence lower bound, −ln p(x_t | z_t) + KL_t, in nats."""
    mean, deviation, divergence = output
    reconstruction = -Normal(mean, deviation).log_prob(batch.inputs).sum(-1)
    return where_real(reconstruction + divergence.sum(-1), batch)
