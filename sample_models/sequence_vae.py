"""Variational autoencoder of texts, S21: an LSTM reads a text, one vector z is drawn, an LSTM writes the text from it.

The decoder is told the right characters before (teacher forcing), so it may do without z: its divergence from the
prior then falls to 0, posterior collapse. Two cures: the divergence is counted more and more (annealing), or not below
so many nats of each hidden number (free bits). Bowman et al. 2016; Kingma & Welling 2014; Kingma et al. 2016.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from sample_models.base import Batch, Plain, Sample, Training, seeded
from sample_models.numerals import ALPHABET, END, batch_of, draw, encode, in_words
from sample_models.readers import with_lengths


class Bound(NamedTuple):
    """What the evidence lower bound is made of: scores (b, t, v), and the divergence of each hidden number (b, n).

    `weight`: how much the divergence counts, less than 1 while it is annealed.
    """

    scores: Tensor
    divergence: Tensor
    weight: float = 1.0


class SequenceVae(nn.Module):
    """ids (b, t) that end with END → scores (b, t, v) of every character given z and the characters before it."""

    def __init__(self, embedded: int, hidden: int, latent: int, dropped: float = 0.0) -> None:
        super().__init__()
        self.dropped = dropped
        self.embedding = nn.Embedding(len(ALPHABET), embedded)
        self.encoder = nn.LSTM(embedded, hidden, batch_first=True)
        self.mean = nn.Linear(hidden, latent)
        self.log_variance = nn.Linear(hidden, latent)
        self.begin = nn.Linear(latent, hidden)
        self.decoder = nn.LSTM(embedded + latent, hidden, batch_first=True)
        self.head = nn.Linear(hidden, len(ALPHABET))

    def encode(self, ids: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and logarithm of the variance of q(z | x), both (b, n)."""
        packed = nn.utils.rnn.pack_padded_sequence(
            self.embedding(ids), lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        last = self.encoder(packed)[1][0][-1]
        return self.mean(last), self.log_variance(last)

    def decode(self, z: Tensor, before: Tensor) -> Tensor:
        """Scores (b, t, v) of what follows the characters (b, t) before; z (b, n) begins it and is beside each.

        In training a share `dropped` of the characters is not told.
        """
        told = self.embedding(before)
        if self.training and self.dropped:
            told = told * (torch.rand_like(told[..., :1]) >= self.dropped)
        first = self.begin(z)[None]
        read = torch.cat((told, z[:, None].expand(-1, before.shape[1], -1)), dim=2)
        states, _ = self.decoder(read, (torch.tanh(first), first))
        scores: Tensor = self.head(states)
        return scores

    def forward(self, ids: Tensor, lengths: Tensor) -> Bound:
        """One sample z of each text, the scores of its characters, and KL(q(z | x) ‖ N(0, 1)) of each hidden number."""
        mu, log_variance = self.encode(ids, lengths)
        std = torch.exp(0.5 * log_variance)
        z = mu + std * torch.randn_like(std)
        scores = self.decode(z, shifted(ids))
        return Bound(scores, (mu.square() + log_variance.exp() - 1 - log_variance) / 2)


def shifted(ids: Tensor) -> Tensor:
    """The characters (b, t) one step late, after the sign that a text begins."""
    return torch.cat((ids.new_full((len(ids), 1), END), ids[:, :-1]), dim=1)


def bound_of(free: float = 0.0) -> Callable[[Bound, Batch], Tensor]:
    """(b, t) in nats: −ln p(x_t | z, x_<t), and as much of the divergence at every step, so that their sum is −ELBO.

    `free`: nats of each hidden number that cost nothing more. NaN on padding.
    """

    def loss(output: Bound, batch: Batch) -> Tensor:
        steps = torch.arange(output.scores.shape[1], device=output.scores.device)
        real = steps[None] < batch.lengths.to(steps.device)[:, None]
        ids = batch.inputs.masked_fill(~real, END)
        missed = nn.functional.cross_entropy(output.scores.transpose(1, 2), ids, reduction="none")
        share = output.weight * output.divergence.clamp(min=free).sum(-1) / batch.lengths.to(missed)
        return (missed + share[:, None]).masked_fill(~real, torch.nan)

    return loss


def annealed(waits: int, rises: int) -> Callable[[nn.Module, Plain], Bound]:
    """How a model is called while it learns: its divergence is not counted at first, then more by every step."""
    step = 0

    def forward(model: nn.Module, batch: Plain) -> Bound:
        nonlocal step
        weight = min(1.0, max(0.0, (step - waits) / rises))
        step += 1
        output: Bound = model(batch.inputs, batch.lengths)
        return output._replace(weight=weight)

    return forward


@torch.no_grad()
def terms(model: SequenceVae, batch: Plain) -> Mapping[str, float]:
    """Of many texts, by name: mean −ln p(x | z), mean divergence, both in nats a text, and the active units.

    A unit is active where its mean varies over texts by more than 0.01 (Burda et al. 2016).
    """
    mean, log_variance = model.encode(batch.inputs, batch.lengths)
    scores = model.decode(mean, shifted(batch.inputs))
    divergence = (mean.square() + log_variance.exp() - 1 - log_variance).sum(-1) / 2
    missed = bound_of()(Bound(scores, torch.zeros_like(mean)), batch).nansum(-1)
    return {
        "nats of a text: reconstruction": float(missed.mean()),
        "nats of a text: KL": float(divergence.mean()),
        "active units": float((mean.var(0) > 0.01).sum()),
    }


def vae_sample(
    name: str, *, dropped: float = 0.0, free: float = 0.0, forward: Callable[[nn.Module, Plain], Bound] | None = None
) -> Sample:
    """36 units on each side, eight hidden numbers, untrained, on numbers in words."""
    with seeded():
        model = SequenceVae(embedded=16, hidden=36, latent=8, dropped=dropped)
    probe = batch_of(range(1, 1000, 7))
    return Sample(
        model=model, name=name, kind="tokens", vocabulary=ALPHABET, encode=encode, forward=with_lengths,
        logits=scores_of, loss=bound_of(free), end_token=END, data=numbers,
        examples={f"{number}": in_words(number) for number in (742, 19, 300, 401, 999, 88)},
        training=Training(draw, rate=5e-3, forward=forward, measure=lambda: terms(model, probe)),
    )  # fmt: skip


def scores_of(output: Any) -> Tensor:
    """The scores among what the model returns."""
    scores: Tensor = output.scores
    return scores


def numbers() -> dict[str, str]:
    """Numbers evenly from 1 to 999, in words."""
    return {str(number): in_words(number) for number in range(1, 1000, 8)}
