"""What the direct path of a step is, as a formula: that of torch's families, and of a step in the model's own code."""

from __future__ import annotations

from inspector.engine.cells.base import Cell

OWN = (
    "the factors by which the model's own code carries a state entry over through sums and elementwise products "
    "alone: forget gates together with zoneout, masks and leaks"
)


def direct_formula(cell: Cell) -> str:
    """The direct path of one step, D_t."""
    known = {"lstm": "diag(f_t) on c and 0 on h", "gru": "diag(z_t)"}
    return known.get(cell.family, f"diag(d_t), d_t {OWN}")


def factor(cell: Cell) -> str:
    """The factor d of one unit in one step."""
    known = {"lstm": "f", "gru": "z"}
    return known.get(cell.family, OWN)
