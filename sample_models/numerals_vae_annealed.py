"""Variational autoencoder of numbers in words, S21: its divergence is counted little at first, then more (annealing).

For 800 steps z may say all it likes, and it does, 62 nats; once the divergence is counted, that is given up again,
down to 2.6 nats of the 6.9 that tell 999 numbers apart. Annealing alone (Bowman et al. 2016) keeps the decoder from
ignoring z; it does not keep z from saying less and less.
"""

from __future__ import annotations

from sample_models.base import Sample
from sample_models.sequence_vae import annealed, vae_sample

SAMPLE = {
    "name": "numerals-vae-annealed",
    "row": "S21",
    "title": "Sequence VAE, KL annealed",
    "task": "numbers from 1 to 999 in words, through eight hidden numbers",
    "shows": "what annealing keeps: the KL over training, which rises and falls again, and the units that stay active",
}


def build() -> Sample:
    """36 units on each side, untrained."""
    return vae_sample("numerals-vae-annealed", forward=annealed(waits=800, rises=1200))
