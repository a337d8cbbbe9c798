"""The base of cells that are defined by a recording: they have no step on inputs that were not recorded."""

from __future__ import annotations

from torch import Tensor

from inspector.engine.cells.base import Cell, StepBlock
from inspector.engine.errors import Unsupported


class RecordedStep(Cell):
    """The cell of a recurrence that was recorded; its blocks are made by the recurrence, which has the steps."""

    family = "handwritten"
    depth = False
    """True where the steps are the layers of a stack."""

    def step(self, x: Tensor, state: Tensor) -> Tensor:
        """A recording is not defined for other inputs. Raises Unsupported."""
        raise Unsupported("A recorded step cannot be run on inputs that were not recorded.")

    def gates(self, x: Tensor, previous: Tensor) -> dict[str, Tensor]:
        """They are stored, not computed. Raises Unsupported."""
        raise Unsupported("The gates of a recorded step are those that were recorded.")

    def block(self, x: Tensor, previous: Tensor, following: Tensor, known: tuple[Tensor, ...] = ()) -> StepBlock:
        """Blocks are made by the recurrence. Raises Unsupported."""
        raise Unsupported("A recorded step cannot be run on states that were not recorded.")
