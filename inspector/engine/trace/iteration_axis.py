"""The axis of training iterations: series over training lie along it, and its coordinate has the iteration numbers."""

from __future__ import annotations

from torch import Tensor

from inspector.engine.trace.emitter import Emitter
from inspector.records import ITERATION_DOMAIN, Axis, Channel

PLACE = "parameters"


def describe_iterations(emit: Emitter, numbers: Tensor, table: str = "") -> dict[str, str]:
    """Describe the axis once; returns its dim's label domain. `numbers` (n,) float64: the iteration of every position.

    A `table` that was logged at iterations of its own has an axis of its own, so that tables of equal length are not
    mixed.
    """
    axis = f"{ITERATION_DOMAIN}/{table}" if table else ITERATION_DOMAIN
    if axis not in emit.axes:
        emit.axis(Axis(name=axis, title=ITERATION_DOMAIN, length=len(numbers), unit=ITERATION_DOMAIN))
        about = Channel(
            name=f"{PLACE}:{axis}", kind="coordinate", dims=("iteration",), shape=(len(numbers),), dtype="float64",
            unit=ITERATION_DOMAIN, title=ITERATION_DOMAIN, compare="separate", domains={"iteration": axis},
            formula="number of the training iteration at each position of the axis",
        )  # fmt: skip
        emit.array(about, numbers)
    return {"iteration": axis}
