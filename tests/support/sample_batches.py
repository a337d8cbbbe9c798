"""Samples as they were trained, and batches of theirs."""

from __future__ import annotations

import importlib

import pytest
import torch
from torch import Tensor

from sample_models.base import Plain, Sample, checkpoints, load, run
from sample_models.train import cards

STEMS = cards()

MOST_BITS = {
    "char-elman": 2.7,
    "char-elman-exploding": 4.75,
    "char-elman-unclipped": 4.3,
    "char-elman-vanishing": 2.7,
    "char-gru": 2.7,
    "char-hmm": 4.3,
    "char-lstm": 2.7,
    "char-s4d": 2.7,
    "char-transformer": 2.9,
    "elman-hardtanh": 2.9,
    "elman-linear": 3.2,
    "elman-relu": 2.9,
    "gru-textbook": 2.7,
    "highway-rnn": 2.9,
    "simplified-gate": 2.9,
}
"""Held-out bits per character that the last checkpoint of every character model must stay below."""

CHARACTERS = list(MOST_BITS)

every_character_model = pytest.mark.parametrize("name", CHARACTERS)


def build(name: str) -> Sample:
    sample: Sample = importlib.import_module(f"sample_models.{STEMS[name]}").build()
    sample.model.eval()
    return sample


def restored(name: str, position: int) -> Sample:
    """The sample with the weights of one of its checkpoints."""
    sample = build(name)
    load(sample.model, checkpoints(STEMS[name])[position])
    return sample


def losses(sample: Sample, batch: Plain) -> Tensor:
    assert sample.loss is not None
    return sample.loss(run(sample, batch), batch)


def some_batch(sample: Sample) -> Plain:
    """Two sequences of 7 and of 4 steps, the second padded with 0."""
    inputs = torch.arange(14).view(2, 7) if sample.kind == "tokens" else torch.rand(2, 7, sample.width or 0)
    inputs[1, 4:] = 0
    return Plain(inputs, torch.tensor([7, 4]), None if sample.kind == "tokens" else torch.tensor([3, 5]))


def drawn_batch(sample: Sample, seed: int = 999) -> Plain:
    """A batch as in training, from another seed."""
    assert sample.training is not None
    return sample.training.draw(torch.Generator().manual_seed(seed))
