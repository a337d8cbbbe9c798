"""Variational autoencoder of numbers in words, S21, whose posterior collapsed: z says nothing.

It learns which words follow each other, 6.9 nats a number (there are ln 999 of them), and has a KL of 0.01 nats: its
decoder, told the right characters before, gets along without z, and so the encoder gets no gradient. Compare with
numerals-vae-free-bits.
"""

from __future__ import annotations

from sample_models.base import Sample
from sample_models.sequence_vae import vae_sample

SAMPLE = {
    "name": "numerals-vae",
    "row": "S21",
    "title": "Sequence VAE, collapsed",
    "task": "numbers from 1 to 999 in words, through eight hidden numbers",
    "shows": "posterior collapse: a KL of 0, no gradient through z, every z writes the same text",
}


def build() -> Sample:
    """36 units on each side, untrained."""
    return vae_sample("numerals-vae")
