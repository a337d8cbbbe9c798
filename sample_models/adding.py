"""The adding problem with any recurrence: the sample, its ready sequences."""

from __future__ import annotations

from typing import Any

import torch

from sample_models import tasks
from sample_models.base import Sample, Training
from sample_models.readers import Acceptor, Recurrent, with_lengths


def examples(longest: int) -> dict[str, Any]:
    """A sequence as long as any that is trained on, one of half and one of twice that length."""
    lengths = {f"{n} steps": n for n in (longest, longest // 2)} | {
        f"{2 * longest} steps, longer than trained": 2 * longest
    }
    drawn = {name: tasks.adding(torch.Generator().manual_seed(n), n, n) for name, n in lengths.items()}
    return {name: batch.inputs[0].numpy() for name, batch in drawn.items()}


def adding_sample(name: str, rnn: Recurrent, *, longest: int = 40, rate: float = 3e-3, steps: int = 3200) -> Sample:
    """A recurrence that reads (value, mark) and says the sum after the last step."""
    return Sample(
        model=Acceptor(rnn, 1), name=name, kind="vectors", width=2, forward=with_lengths, loss=tasks.adding_loss,
        examples=examples(longest),
        training=Training(lambda generator: tasks.adding(generator, longest // 2, longest), rate=rate, steps=steps),
    )  # fmt: skip
