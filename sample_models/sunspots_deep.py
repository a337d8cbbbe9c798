"""Non-linear state-space model on the sunspot numbers of 1700 to 2008, S22, trained by its evidence lower bound.

An LSTM over the sampled past gives mean and variance of the next hidden state, p(z_t | z_{<t}); another over the
measurements gives the filtering posterior q(z_t | x_{≤t}). Look at both beside each other, at the KL between them by
step, which rises where a year surprises, and at the two terms of the bound. Source of the numbers: data/SOURCES.md.
"""

from __future__ import annotations

from sample_models.base import Sample, Training, seeded
from sample_models.state_space import DeepStateSpace, bound_loss
from sample_models.sunspots_kalman import draw, examples

SAMPLE = {
    "name": "sunspots-deep",
    "row": "S22",
    "title": "Deep state space, sunspots by year",
    "task": "the sunspot numbers by year, in tens, through two hidden numbers",
    "shows": "filtering posterior and prior of hidden states with bands, samples, KL and terms of the bound by step",
}


def build() -> Sample:
    """Two hidden numbers, LSTMs of 16 units, untrained."""
    with seeded():
        model = DeepStateSpace(observed=1, latent=2, hidden=16, least=0.5)
    return Sample(
        model=model, name="sunspots-deep", kind="vectors", width=1, loss=bound_loss,
        training=Training(draw, rate=5e-3, steps=1600),
        examples=examples(),
    )  # fmt: skip
