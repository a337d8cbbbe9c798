"""The bidiagonalisation stopped after so many steps, for tests and benchmarks of how well it converges."""

from __future__ import annotations

from torch import Tensor

from inspector.engine.cells.base import StepBlock
from inspector.engine.cells.spectral import Krylov


def lanczos(block: StepBlock, iterations: int) -> tuple[Tensor, Tensor]:
    """(σ₁, relative residual) of every step of a block, both (t, b)."""
    space = Krylov(block, iterations)
    space.extend(iterations)
    return space.largest()
