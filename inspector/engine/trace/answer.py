"""An answer that has steps of its own."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(slots=True)
class Answer:
    """The steps of the answers of a batch.

    Attributes:
        steps: how many there are with padding; lengths: (b,) how many are real.
        ids: (b, t) the right answer, negative at padding; None where only labels or the model's own are known.
        names: labels of the steps of the sequence looked at.
        source: the named input that these are the steps of; "" where the subject's `answer` says them.
        vocabulary_of: the named input whose vocabulary the answer's tokens are of; "" for the subject's own.
    """

    steps: int
    lengths: Tensor
    ids: Tensor | None
    names: tuple[str, ...]
    source: str = ""
    vocabulary_of: str = ""

    def length(self, sample: int) -> int:
        """Real steps of one sample's answer."""
        return int(self.lengths[sample])
