"""Diagonal state-space model on text, S4D-Lin (Gu et al. 2022): no loop over the steps, one long convolution a channel.

Each channel has four complex states, h_t = e^{ΔA} h_{t−1} + u_t with A = −½ + iπn at first, and gives 2 Re Σ C h: a
kernel that is laid over the whole sequence by Fourier transforms. Look at the map from token to token that a channel
stands for, at its time constants, and at the lag curves: channels with small Δ remember more than others.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from sample_models.base import Sample, Training, seeded
from sample_models.text import character_sample, draw, vocabulary

SAMPLE = {
    "name": "char-s4d",
    "row": "S22",
    "title": "Diagonal state space (S4D), characters",
    "task": "next character of Alice's Adventures in Wonderland",
    "shows": "states behind a long convolution, time constants, and the token-to-token maps it stands for",
}
WIDTH, STATES, LAYERS = 24, 4, 2
WINDOW, ROWS = 128, 16
SHORTEST, LONGEST = 0.01, 0.5
"""Range of the step sizes Δ at first, spread evenly in logarithms."""


class DiagonalStateSpace(nn.Module):
    """x (b, t, d) → (b, t, d): of every channel u the causal convolution with a kernel, and D u beside it.

    k_l = 2 Re Σ_n C_n (e^{ΔA_n} − 1) / A_n e^{lΔA_n}: zero-order hold of ż = A z + u, y = 2 Re C z.
    """

    def __init__(self) -> None:
        super().__init__()
        steps = torch.linspace(math.log(SHORTEST), math.log(LONGEST), WIDTH)
        self.log_step = nn.Parameter(steps[torch.randperm(WIDTH)])
        self.log_decay = nn.Parameter(torch.full((WIDTH, STATES), math.log(0.5)))
        self.frequency = nn.Parameter(math.pi * torch.arange(STATES).float().repeat(WIDTH, 1))
        self.c = nn.Parameter(torch.randn(WIDTH, STATES, 2) / math.sqrt(2))
        self.d = nn.Parameter(torch.randn(WIDTH))

    def kernel(self, length: int) -> Tensor:
        """k, (d, l)."""
        a = torch.complex(-self.log_decay.exp(), self.frequency)
        scaled = a * self.log_step.exp()[:, None]
        c = torch.view_as_complex(self.c) * (scaled.exp() - 1) / a
        powers = torch.exp(scaled[..., None] * torch.arange(length, device=a.device))
        return 2 * torch.einsum("dn,dnl->dl", c, powers).real

    def forward(self, x: Tensor) -> Tensor:
        """The convolution, by Fourier transforms of twice the length so that it is not circular."""
        length, u = x.shape[1], x.transpose(1, 2)
        spectrum = torch.fft.rfft(u, n=2 * length) * torch.fft.rfft(self.kernel(length), n=2 * length)
        y = torch.fft.irfft(spectrum, n=2 * length)[..., :length]
        out: Tensor = (y + self.d[:, None] * u).transpose(1, 2)
        return out


class Layer(nn.Module):
    """Normalise, convolve along time, mix the channels at each step; the input is added."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.space = DiagonalStateSpace()
        self.mix = nn.Linear(WIDTH, 2 * WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """(b, t, d) → (b, t, d)."""
        mixed = self.mix(nn.functional.gelu(self.space(self.norm(x))))
        return x + nn.functional.glu(mixed, dim=-1)


class StateSpaceReader(nn.Module):
    """Embedding, layers, read-out: ids (b, t) → logits (b, t, v)."""

    def __init__(self) -> None:
        super().__init__()
        size = len(vocabulary())
        self.embedding = nn.Embedding(size, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, size)

    def forward(self, ids: Tensor) -> Tensor:
        """Scores of the next character at every position."""
        x = self.embedding(ids)
        for layer in self.layers:
            x = layer(x)
        logits: Tensor = self.head(self.norm(x))
        return logits


def build() -> Sample:
    """Two layers of 24 channels with four complex states each, untrained."""
    with seeded():
        model = StateSpaceReader()
    sample = character_sample("char-s4d", model)
    sample.training = Training(lambda generator: draw(generator, WINDOW, ROWS), rate=5e-3)
    return sample
