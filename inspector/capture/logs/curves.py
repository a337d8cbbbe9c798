"""Curves by iteration, packed, and the axes that they share.

Curves that were logged at the same iterations share one axis, so that a point takes eight bytes. A curve lies along an
axis whose first positions are its own iterations; where it goes on elsewhere it moves to another axis.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from inspector.capture.logs.growing import Floats, Growing

MOST_TRIED = 64
"""Axes, the newest first, with which the iterations of a curve are compared. Counter-example: where more rhythms of
logging begin in turn some are stored twice, which costs memory and nothing else."""


@dataclass(slots=True)
class Block:
    """Points in the order in which they were logged: iterations, values, and further coordinates where they are known
    (NaN where not)."""

    iterations: Floats
    values: Floats
    others: Mapping[str, Floats] = field(default_factory=dict)

    def __getitem__(self, cut: slice) -> Block:
        return Block(
            self.iterations[cut], self.values[cut], {name: own[cut] for name, own in self.others.items()}
        )  # fmt: skip


class IterationAxis:
    """Iterations in order, and what else is known of each position: time, epoch, tokens."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.curves = 1
        """How many curves lie along it."""
        self.numbers = Growing()
        self.others: dict[str, Growing] = {}

    def goes_on(self, count: int, block: Floats) -> bool:
        """Whether the iterations after the first `count` are those of a block, as far as there are any."""
        numbers = self.numbers.now
        common = min(len(numbers) - count, len(block))
        return common >= 0 and np.array_equal(numbers[count : count + common], block[:common])

    def is_of(self, numbers: Floats) -> bool:
        """Whether its iterations are these."""
        own = self.numbers.now
        return len(own) == len(numbers) > 0 and own[-1] == numbers[-1] and np.array_equal(own, numbers)

    def take(self, count: int, block: Block) -> None:
        """Append what of a block, whose first position is `count`, is not there yet."""
        new = block[len(self.numbers) - count :]
        before = len(self.numbers)
        self.numbers.extend(new.iterations)
        for name, values in new.others.items():
            if name not in self.others and np.isfinite(values).any():
                self.others[name] = Growing()
            if name in self.others:
                self.others[name].pad(before)
                self.others[name].extend(values)

    def cut(self, count: int) -> None:
        """Keep the first positions."""
        for own in (self.numbers, *self.others.values()):
            own.cut(count)

    def copy(self, name: str, count: int) -> IterationAxis:
        """The first positions as an axis of its own."""
        made = IterationAxis(name)
        made.numbers = Growing(self.numbers.now[:count])
        made.others = {word: Growing(own.now[:count]) for word, own in self.others.items()}
        return made


class Curve:
    """One series: its values, and the axis whose first positions are its own.

    Attributes:
        revision: how often it changed.
        file: the number of the file that has it now; points of earlier files are not taken any more.
        session: how many restarts of its run it has followed.
        histogram: whether a value is the place of a histogram, and then `bins` is the largest number of bins.
    """

    def __init__(self, name: str, *, histogram: bool = False) -> None:
        self.name, self.histogram = name, histogram
        self.values = Growing()
        self.axis: IterationAxis | None = None
        self.revision = self.session = self.bins = 0
        self.file = -1

    def __len__(self) -> int:
        return len(self.values)

    @property
    def iterations(self) -> Floats:
        """(n,) of its own points."""
        return np.zeros(0) if self.axis is None else self.axis.numbers.now[: len(self)]


class Curves:
    """All curves of a run by name, and their axes."""

    def __init__(self) -> None:
        self.by_name: dict[str, Curve] = {}
        self.axes: list[IterationAxis] = []
        self._made = 0
        self._was_cut = False

    def append(self, curve: Curve, block: Block) -> None:
        """Points whose iterations do not decrease, after those that the curve has."""
        if not len(block.iterations):
            return
        axis = curve.axis
        if axis is None or not axis.goes_on(len(curve), block.iterations):
            curve.axis = self._new_axis(curve)
            if axis is not None:
                axis.curves -= 1
        assert curve.axis is not None
        curve.axis.take(len(curve), block)
        curve.values.extend(block.values)
        curve.revision += 1
        if curve.axis.curves == 1:
            self._join(curve, curve.axis)

    def cut(self, curve: Curve, count: int) -> None:
        """Forget all points of a curve from one on."""
        if curve.axis is None or count >= len(curve):
            return
        curve.values.cut(count)
        curve.revision += 1
        self._was_cut = True
        if curve.axis.curves == 1:
            curve.axis.cut(count)

    def trim(self) -> None:
        """Forget positions that no curve has any more, once all curves that went back have gone on."""
        if self._was_cut:
            self._was_cut = False
            longest: dict[int, int] = {}
            for curve in self.by_name.values():
                longest[id(curve.axis)] = max(longest.get(id(curve.axis), 0), len(curve))
            for axis in self.axes:
                axis.cut(longest.get(id(axis), 0))

    def _new_axis(self, curve: Curve) -> IterationAxis:
        self._made += 1
        name = curve.name if self._made > 1 else ""
        if name in {axis.name for axis in self.axes}:
            name = f"{curve.name} {self._made}"
        made = IterationAxis(name) if curve.axis is None else curve.axis.copy(name, len(curve))
        self.axes.append(made)
        return made

    def _join(self, curve: Curve, own: IterationAxis) -> None:
        """Where another axis has the same iterations, the curve lies along that one from now on."""
        numbers = own.numbers.now
        others = (axis for axis in reversed(self.axes[-MOST_TRIED:]) if axis is not own and axis.is_of(numbers))
        other = next(others, None)
        if other is not None:
            curve.axis = other
            other.curves += 1
            other.name = other.name and own.name  # "" stays the name of one of them
            self.axes.remove(own)
