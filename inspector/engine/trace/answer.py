"""The step axis of an output that has one of its own."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(slots=True)
class Answer:
    """The step axis of the outputs ("answers") of a batch.

    Attributes:
        steps: how many there are with padding; lengths: (b,) how many are real.
        ids: (b, t) the targets, negative at padding; None where only labels or the model's own outputs are known.
        names: labels of the steps of the selected sequence.
        source: the named input that has these steps; "" where the subject's `answer` gives them.
        vocabulary_of: the named input whose vocabulary the output's tokens have; "" for the subject's own.
    """

    steps: int
    lengths: Tensor
    ids: Tensor | None
    names: tuple[str, ...]
    source: str = ""
    vocabulary_of: str = ""

    def length(self, sample: int) -> int:
        """Real steps of one sample's output."""
        return int(self.lengths[sample])
