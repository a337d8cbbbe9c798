"""The isometry number of the step Jacobian: the mean of its squared singular values."""

from __future__ import annotations

from torch import Tensor

from inspector.engine.cells.base import StepBlock
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.quantity import Describe, per_step


@QUANTITIES.register("jacobian/isometry")
@per_step(
    Describe(
        kind="spectrum", compare="separate", title="mean squared singular value", scale="log",
        formula="‖∂s_t/∂s_{t−1}‖²_F / S = mean of σ_i²; 1: lengths are preserved on average",
        source="Pennington, Schoenholz & Ganguli 2017; Chen, Pennington & Schoenholz 2018",
    ),
    signal="jacobian/isometry", summary="mean squared singular value of the step Jacobian (target 1)", order=42,
    jacobians=True,
)  # fmt: skip
def isometry(block: StepBlock) -> Tensor:
    """‖J[t, b]‖²_F / S, S the number of state entries. → (t, b)."""
    return block.norms.square() / block.shape[2]
