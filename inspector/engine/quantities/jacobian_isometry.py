"""The isometry number of the step Jacobian: the mean of its squared singular values."""

from __future__ import annotations

from torch import Tensor

from inspector.engine.quantity import Describe, per_step
from inspector.engine.shelves import QUANTITIES
from inspector.engine.steps.cell import StepBlock


@QUANTITIES.register("jacobian/isometry")
@per_step(
    Describe(
        kind="spectrum", title="mean squared singular value", scale="log",
        formula="‖∂s_t/∂s_{t−1}‖²_F / S = mean of σ_i²; 1: lengths are kept on average",
        source="Pennington, Schoenholz & Ganguli 2017; Chen, Pennington & Schoenholz 2018",
    ),
    signal="jacobian/isometry", summary="mean squared singular value of the step Jacobian (target 1)", order=42,
)  # fmt: skip
def isometry(block: StepBlock) -> Tensor:
    """‖J[t, b]‖²_F / S, S the number of state entries. → (t, b)."""
    return block.frobenius().square() / block.shape[2]
