"""Frobenius norm of the step Jacobian, in closed form, without building a Jacobian."""

from __future__ import annotations

from torch import Tensor

from inspector.engine.cells.base import StepBlock
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.quantity import Describe, per_step

SOURCE = "Pennington, Schoenholz & Ganguli 2017; Chen et al. 2018"


@QUANTITIES.register("jacobian/frobenius_norm")
@per_step(
    Describe(kind="jacobian", compare="ratio",
    title="Frobenius norm", formula="‖∂s_t/∂s_{t−1}‖_F", source=SOURCE, scale="log"),
    signal="jacobian/frobenius_norm", summary="Frobenius norm of the step Jacobian", order=40, jacobians=True,
)  # fmt: skip
def frobenius_norm(block: StepBlock) -> Tensor:
    """‖J[t, b]‖_F of J[t, b, s, r] = ∂s_t[b, s]/∂s_{t−1}[b, r], the state (h, c) of an LSTM whole. → (t, b)."""
    return block.norms


@QUANTITIES.register("jacobian/frobenius_norm_scaled")
@per_step(
    Describe(
        kind="jacobian", compare="ratio",
        title="Frobenius norm / √S", formula="‖∂s_t/∂s_{t−1}‖_F / √S; 1 for an isometry",
        source=SOURCE, scale="log",
    ),
    signal="jacobian/frobenius_norm_scaled", summary="root mean square singular value of the step Jacobian", order=41,
    jacobians=True,
)  # fmt: skip
def frobenius_norm_scaled(block: StepBlock) -> Tensor:
    """‖J[t, b]‖_F / √S with S state entries: root mean square of the singular values, 1 for an isometry. → (t, b)."""
    scaled: Tensor = block.norms / block.shape[2] ** 0.5
    return scaled
