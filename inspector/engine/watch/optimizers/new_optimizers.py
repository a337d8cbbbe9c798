"""Optimizers that a loop makes while it is watched: those of the watched model are followed, of others it is said.

Seen by torch's hooks on the steps of all optimizers. One that only calls another one inside its step (Lookahead, a
wrapper that scales gradients) is not followed beside it: its step would count twice.
"""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakKeyDictionary, WeakSet

from torch.optim import Optimizer

from inspector.engine.watch.parameters import Parameters

FOREIGN = 20
"""Steps one after the other of optimizers that have no parameter of the model, and none of one that has, after which it
is said. Counter-example: a loop that trains another model for so long and then comes back."""
MOST_SAID = 20


class NewOptimizers:
    """Told of the steps of every optimizer of the process; `known(optimizer)` says whether one is followed already."""

    def __init__(
        self, parameters: Parameters, known: Callable[[Optimizer], bool], say: Callable[[str], None]
    ) -> None:  # fmt: skip
        self._parameters, self._known, self._say = parameters, known, say
        self._found = False
        self._began: WeakKeyDictionary[Optimizer, int] = WeakKeyDictionary()
        self._others: WeakSet[Optimizer] = WeakSet()
        """Those that had no parameter of the model at their first step: the model is looked through once for each."""
        self._steps = 0
        self._inside: Optimizer | None = None
        self._foreign = 0
        self._said = 0

    def begins(self, optimizer: Optimizer) -> None:
        """A step of any optimizer begins."""
        if self._known(optimizer):
            self._steps += 1
            self._inside = optimizer
        else:
            self._began[optimizer] = self._steps

    def found_one(self) -> bool:
        """Whether the step that has just ended was the first of an optimizer that is to be followed. Said once."""
        found, self._found = self._found, False
        return found

    def ended(self, optimizer: Optimizer) -> None:
        """It ended."""
        if self._known(optimizer):
            self._inside = None
            self._foreign = 0
            return
        began = self._began.pop(optimizer, None)
        if self._inside is not None or began != self._steps:
            return  # it was called by one that is followed, or called one
        if self._has_watched(optimizer):
            self._foreign = 0
            self._tell(f"An optimizer that was made later ({type(optimizer).__name__}) is followed from here on.")
            self._found = True
            return
        self._foreign += 1
        if self._foreign == FOREIGN and self._steps:
            self._tell(
                f"The last {FOREIGN} steps were of an optimizer ({type(optimizer).__name__}) that has no parameter of "
                "the watched model; nothing is recorded of what it trains: a model that was made anew is another one."
            )

    def _has_watched(self, optimizer: Optimizer) -> bool:
        column = self._parameters.column
        if any(id(one) in column for group in optimizer.param_groups for one in group["params"]):
            return True
        if optimizer in self._others:
            return False
        if self._parameters.in_model(optimizer):
            return True
        self._others.add(optimizer)
        return False

    def _tell(self, text: str) -> None:
        self._said += 1
        if self._said <= MOST_SAID:
            self._say(text)
