"""The backward passes of an iteration: which gradients they changed, and whether these were dropped before any step.

A loop that skips a step (a GradScaler after an overflow, a batch that is left out) sets gradients to zero, and goes on;
so does each call of a closure. What was computed before belongs to no iteration then.
"""

from __future__ import annotations

from torch import Tensor

from inspector.engine.watch.measure import Moment
from inspector.engine.watch.parameters import Parameters, local

State = tuple[int, int]
"""(id, version) of a gradient, (id of None, -1) where there is none."""


class Passes:
    """Told of the backward passes and steps of the iterations that are recorded.

    `together`: several processes train, and all must judge alike. Whether there is a gradient is the same in all; the
    entries that one of them holds may be zero in it alone, so they are not looked at.
    """

    def __init__(self, parameters: Parameters, together: bool) -> None:
        self._parameters, self._together = parameters, together
        self._first: list[State] = []
        self._before: list[State] = []
        self._after: list[State] = []
        self._taken = False
        """Whether an optimizer has made a step since the first pass: then what was dropped had been of use."""

    def begins(self, moment: Moment) -> None:
        """A backward pass begins."""
        self._before = self._states()
        if not moment.passes:
            self._first, self._taken = self._before, False

    def ended(self, moment: Moment) -> bool:
        """It ended; whether it changed a gradient, and so counts."""
        self._after = self._states()
        if self._after == self._before:
            return False
        moment.passes += 1
        return True

    def stepped(self) -> None:
        """An optimizer has made a step."""
        self._taken = True

    def reached(self) -> set[int]:
        """The parameters whose gradient the passes so far have changed."""
        return {n for n, one in enumerate(self._states()) if n >= len(self._first) or one != self._first[n]}

    def dropped(self, moment: Moment) -> bool:
        """Whether everything that the passes so far have computed is gone, and no step was made with it.

        A gradient that is there, and has changed since, is looked at, which waits for its device: not in loops that
        leave gradients as they are between two passes.
        """
        if not moment.passes or self._taken or not self._after:
            return False
        tensors, now = self._parameters.tensors, self._states()
        changed = [n for n, one in enumerate(self._after) if n >= len(self._first) or one != self._first[n]]
        return all(_is_gone(tensors[n].grad, self._together or now[n] == self._after[n]) for n in changed)

    def _states(self) -> list[State]:
        found = (one.grad for one in self._parameters.tensors)
        return [(id(one), -1 if one is None else one._version) for one in found]


def _is_gone(gradient: Tensor | None, unchanged: bool) -> bool:
    return gradient is None or (not unchanged and not bool(local(gradient).any()))
