"""Which steps of an input the steps of a recurrence read, as they were recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Reads:
    """For every step of a recurrence, in the order of its axis, the steps of one input that it read.

    Of a loop that is the order of its iterations; of a backward direction of a module, that of the module's input.

    Attributes:
        input: name of the input; "" where no step read any.
        low, high: (t,) the first and the last step of the input that each step read; -1 where it read none.
    """

    input: str
    low: Positions
    high: Positions

    def __len__(self) -> int:
        return len(self.low)

    @property
    def nothing(self) -> bool:
        """True where no step of the recurrence is known to have read a step of an input."""
        return not self.input or not bool((self.high >= 0).any())

    @property
    def single(self) -> bool:
        """True where every step read exactly one step of the input."""
        return not self.nothing and bool((self.low >= 0).all()) and bool((self.low == self.high).all())

    def in_order(self, steps: int) -> bool:
        """Whether step i of the recurrence is step i of an input of so many steps.

        That is so where every step read its own step alone; or its own among others (a window), where there are as many
        steps. Counter-example: of a loop over `x[:, t], x[:, t + 1]` that leaves the last step out it is not known
        which of the two a step belongs to, so it is not.
        """
        own = np.arange(len(self))
        if self.nothing or len(self) > steps:
            return False
        if self.single and bool((self.low == own).all()):
            return True
        return len(self) == steps and bool(((self.low <= own) & (own <= self.high) & (self.low >= 0)).all())

    def backward(self) -> Reads:
        """The same in the opposite order: from iterations of a backward direction to steps of the module's input."""
        return Reads(self.input, self.low[::-1].copy(), self.high[::-1].copy())

    def one_late(self, steps: int) -> bool:
        """Whether step i read step i − 1 of an input of as many steps, and the first one none.

        A decoder that is given its target shifted by one does, and its step i makes the output's step i.
        """
        late = np.arange(len(self)) - 1
        return len(self) == steps > 1 and bool((self.low == late).all() and (self.high == late).all())

    def labels(self, names: Sequence[str]) -> tuple[str, ...]:
        """For every step what it read: the names of the input's steps, their numbers where they have none."""
        return tuple(_label(int(a), int(b), names) for a, b in zip(self.low, self.high, strict=True))

    def key(self) -> tuple[str, bytes, bytes]:
        """Equal for recurrences that read the same steps in the same order."""
        return self.input, self.low.tobytes(), self.high.tobytes()


MOST_NAMES = 4
"""Steps whose names are written beside each other in one label; of more, the first and the last number are written."""


def _label(low: int, high: int, names: Sequence[str]) -> str:
    if high < 0:
        return ""
    if high < len(names) and high - low < MOST_NAMES:
        return "".join(names[low : high + 1]) if all(len(n) == 1 for n in names[low : high + 1]) else " ".join(
            names[low : high + 1]
        )  # fmt: skip
    return str(low) if low == high else f"{low}–{high}"
