"""Spectral radius of the step Jacobian: the asymptotic rate, if the same step were repeated."""

from __future__ import annotations

import torch
from torch import Tensor

from inspector.engine.cells.base import StepBlock
from inspector.engine.errors import Unsupported
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.quantity import Describe, per_step

LARGEST = 512
"""State entries up to which eigenvalues are computed: beyond that, one step alone costs a second."""


@QUANTITIES.register("jacobian/spectral_radius")
@per_step(
    Describe(
        kind="jacobian", compare="ratio", title="spectral radius ρ", formula="ρ(∂s_t/∂s_{t−1}) = max |λ|", scale="log",
        source="Pascanu, Mikolov & Bengio 2013",
    ),
    signal="jacobian/spectral_radius", summary="largest eigenvalue modulus of the step Jacobian", order=60,
    block_steps=16,
)  # fmt: skip
def spectral_radius(block: StepBlock) -> Tensor:
    """max |λ(J[t, b])|, by full eigenvalues. → (t, b); NaN where J holds a NaN or infinity."""
    size = block.shape[2]
    if size > LARGEST:
        raise Unsupported(
            f"Eigenvalues of {size} × {size} Jacobians at every step cost too much; the limit is {LARGEST}."
        )
    matrices = block.jacobian()
    broken = ~torch.isfinite(matrices).flatten(2).all(-1)
    values = torch.linalg.eigvals(torch.where(broken[..., None, None], matrices.new_zeros(()), matrices))
    largest = values.abs().amax(-1)
    return torch.where(broken, largest.new_full((), torch.nan), largest)
