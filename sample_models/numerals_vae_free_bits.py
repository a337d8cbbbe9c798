"""Variational autoencoder of numbers in words, S21, which uses z: free bits, and characters that the decoder is not
told.

1.5 nats of each hidden number cost nothing (Kingma et al. 2016), and in training half of the characters before are
not told (Bowman et al. 2016). It writes nine of ten numbers again from z, and of z between two numbers, or drawn from
the prior, other numbers.
"""

from __future__ import annotations

from sample_models.base import Sample
from sample_models.sequence_vae import vae_sample

SAMPLE = {
    "name": "numerals-vae-free-bits",
    "row": "S21",
    "title": "Sequence VAE, free bits",
    "task": "numbers from 1 to 999 in words, through eight hidden numbers",
    "shows": "a posterior that is used: active units, losses with z and with others' z, texts between two texts",
}


def build() -> Sample:
    """36 units on each side, untrained."""
    return vae_sample("numerals-vae-free-bits", dropped=0.5, free=1.5)
