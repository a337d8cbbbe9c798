"""Which digit came first? One layer of self-attention whose positions, choice and mask differ from sample to sample.

Without positions nothing distinguishes 3 1 4 from 4 3 1: attention is permutation equivariant and the mean over its
outputs invariant, so that no weights can answer better than by the frequency of each digit.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn

from sample_models.base import Batch, Plain, Sample, Training, seeded
from sample_models.positions import sinusoidal
from sample_models.readers import with_lengths
from sample_models.tasks import IGNORED, lengths_between, real_steps, step_loss

DIGITS = tuple("0123456789")
WIDTH, LONGEST, PLACED = 24, 64, 8
"""Numbers of a step, the longest sequence, and how many of the numbers say where a step is if these are put beside."""
STEPS = 1600
Positions = Literal["none", "sinusoidal", "learned", "concatenated"]


class FirstDigit(nn.Module):
    """ids (b, t) → scores (b, 1, 10), or (b, t, 10), one answer a step, where attention is causal.

    Weights are softmax(QKᵀ/√d), or one-hot at its largest (`hard`): forwards 1 at the argmax, backwards the softmax's
    gradient (straight-through; Bengio, Léonard & Courville 2013).
    """

    def __init__(self, positions: Positions = "learned", *, hard: bool = False, causal: bool = False) -> None:
        super().__init__()
        self.how, self.hard, self.causal = positions, hard, causal
        beside = PLACED if positions == "concatenated" else 0
        self.embedding = nn.Embedding(len(DIGITS), WIDTH - beside)
        if positions == "learned":
            self.positions = nn.Parameter(0.1 * torch.randn(LONGEST, WIDTH))
        elif positions != "none":
            self.register_buffer("encoding", sinusoidal(LONGEST, beside or WIDTH), persistent=False)
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.head = nn.Linear(WIDTH, len(DIGITS))

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """Scores of the digits."""
        x = self.placed(self.embedding(ids))
        real = torch.arange(ids.shape[1], device=ids.device)[None] < lengths.to(ids.device)[:, None]
        scores = self.query(x) @ self.key(x).transpose(1, 2) / math.sqrt(WIDTH)
        scores = scores.masked_fill(~real[:, None], -torch.inf)
        if self.causal:
            later = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool, device=ids.device).triu(1)
            scores = scores.masked_fill(later, -torch.inf)
        seen = self.chosen(scores) @ self.value(x)
        if not self.causal:
            seen = (seen * real[..., None]).sum(1, keepdim=True) / real.sum(1)[:, None, None]
        answer: Tensor = self.head(seen)
        return answer

    def placed(self, x: Tensor) -> Tensor:
        """Embeddings (b, t, e) with what says where they stand, (b, t, WIDTH)."""
        t = x.shape[1]
        if t > LONGEST:
            raise ValueError(f"There are positions for {LONGEST} digits; given were {t}.")
        if self.how == "learned":
            return x + self.positions[:t]
        if self.how == "none":
            return x
        encoding = self.get_buffer("encoding")[:t]
        return x + encoding if self.how == "sinusoidal" else torch.cat((x, encoding.expand(len(x), -1, -1)), dim=-1)

    def chosen(self, scores: Tensor) -> Tensor:
        """Weights (b, t, t)."""
        soft = torch.softmax(scores, dim=-1)
        if not self.hard:
            return soft
        hard = torch.zeros_like(soft).scatter(-1, soft.argmax(-1, keepdim=True), 1.0)
        return hard + (soft - soft.detach())


def draw(generator: torch.Generator) -> Plain:
    """Three to ten random digits."""
    lengths = lengths_between(3, 10, generator)
    batch = Plain(torch.randint(0, 10, (len(lengths), 10), generator=generator), lengths)
    batch.inputs[~real_steps(batch)] = 0
    return batch


def loss(scores: Tensor, batch: Batch) -> Tensor:
    """(b, t): −ln p(the first digit) at the last step, or at every step where there is an answer at each; else NaN."""
    targets = batch.inputs[:, :1].expand_as(batch.inputs).masked_fill(~real_steps(batch), IGNORED)
    if scores.shape[1] == targets.shape[1] and scores.shape[1] > 1:
        return step_loss(scores, targets)
    last = batch.lengths.to(targets.device)[:, None] - 1 == torch.arange(targets.shape[1], device=targets.device)
    every = scores.expand(-1, targets.shape[1], -1)
    return step_loss(every, targets.masked_fill(~last, IGNORED))


def first_digit_sample(
    name: str, positions: Positions = "learned", *, hard: bool = False, causal: bool = False
) -> Sample:
    """The model with what digits need, untrained."""
    with seeded():
        model = FirstDigit(positions, hard=hard, causal=causal)
    return Sample(
        model=model, name=name, kind="tokens", vocabulary=DIGITS, labels=DIGITS, forward=with_lengths, loss=loss,
        training=Training(draw, rate=5e-3, steps=STEPS),
        examples={"four digits": "3141", "ten digits": "2718281828", "one of each": "9876543210", "the same": "7777"},
    )  # fmt: skip
