"""Spectral norm of the step Jacobian: how far one step can stretch the state."""

from __future__ import annotations

import torch
from torch import Tensor

from inspector.engine.cells.base import StepBlock
from inspector.engine.cells.spectral import ACCEPTED, SMALL, spectral_norms, together
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.quantity import Describe, per_step
from inspector.engine.trace.work import Size, Work


@QUANTITIES.register("jacobian/spectral_norm")
@per_step(
    Describe(
        kind="jacobian", compare="ratio",
        title="spectral norm σ₁", formula="σ₁(∂s_t/∂s_{t−1}); above 1 the step expands",
        source="Pascanu, Mikolov & Bengio 2013", scale="log",
        method="full SVD up to 48 entries; else 20 to 60 steps of Golub–Kahan–Lanczos, residual ≤ 1e-3 (or NaN)",
    ),
    signal="jacobian/spectral_norm", summary="spectral norm of the step Jacobian", order=50, closed_steps=together,
    work=lambda size: counted(size), jacobians=True,
)  # fmt: skip
def spectral_norm(block: StepBlock) -> Tensor:
    """σ₁(J[t, b]), largest singular value of J[t, b, s, r] = ∂s_t[b, s]/∂s_{t−1}[b, r]. → (t, b).

    A step whose iteration has not converged (relative residual above 1e-3) is NaN rather than inexact.
    """
    value, residual = spectral_norms(block)
    return torch.where(residual <= ACCEPTED, value, value.new_full((), torch.nan))


def counted(size: Size) -> Work:
    """Full SVDs of small states; of others 20 iterations, with small matrices of 20 rows, and more at some steps."""
    if size.diagonal:
        return size.entrywise
    if size.state <= SMALL:
        return size.matrices("singular", size.steps)
    numbers = 650 * size.state + (52 * size.entries if size.built else 0)
    return Work(
        0 if size.built else 52 * size.steps * size.push, numbers=size.steps * numbers,
        calls=4500.0 * size.blocks(*() if size.built else (together(size.state),)),
        factors={("symmetric", 20): 2.5 * size.steps, ("singular", 20): 0.2 * size.steps},
    )  # fmt: skip
