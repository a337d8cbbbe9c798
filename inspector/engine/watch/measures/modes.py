"""Whether the model is in evaluation mode while it is trained: as its flags are when a backward pass has ended."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from inspector.engine.watch.backward_calls import Scaled
from inspector.engine.watch.measure import Measure, Moment
from inspector.engine.watch.parameters import Parameters
from inspector.engine.watch.tables import PLACE, About

EVALUATING = f"{PLACE}:evaluation_mode"


class Modes(Measure):
    """Reads flags only: a loop that evaluates in between and calls train() afterwards has none of them in it."""

    tables = (
        About(
            name=EVALUATING, title="evaluation mode", limits=(0, 1), dtype="float64",
            formula="1 where no module of the model is in training mode when a backward pass has ended",
        ),
    )  # fmt: skip

    def __init__(self, parameters: Parameters, model: nn.Module) -> None:
        super().__init__(parameters)
        self._model = model

    def backward_ended(self, moment: Moment, roots: Sequence[Tensor], scaled: Scaled | None) -> None:
        """The first pass of an iteration decides."""
        if EVALUATING not in moment.cells:
            moment.put(EVALUATING, 0, float(is_evaluating(self._model)))


def is_evaluating(model: nn.Module) -> bool:
    """Whether none of its parts is in training mode; of a module without parts, its own flag. The flag of a module
    that only holds others, as of several models that are watched together, is not asked."""
    parts = [one for one in model.modules() if next(one.children(), None) is None]
    return not any(one.training for one in parts)
