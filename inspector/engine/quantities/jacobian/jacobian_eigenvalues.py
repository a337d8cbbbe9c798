"""Eigenvalues of the step Jacobian in the complex plane, at every step or at evenly spaced ones."""

from __future__ import annotations

import torch
from torch import Tensor

from inspector.engine.analyses.closed_products import is_diagonal
from inspector.engine.analyses.spaced_steps import eigenvalue_stride, spaced_blocks, write_spaced
from inspector.engine.errors import Unsupported
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import BLOCK_STEPS, Describe, per_recurrence
from inspector.engine.trace.trace import Recurrence

LARGEST = 1024


def check_size(recurrence: Recurrence, _sample: int) -> None:
    """Raises Unsupported where a Jacobian is too large."""
    s = recurrence.cell.state_size
    if s > LARGEST and not is_diagonal(recurrence):
        raise Unsupported(f"Eigenvalues of {s} × {s} Jacobians cost too much; the limit is {LARGEST} state entries.")


@QUANTITIES.register("jacobian/eigenvalues")
@per_recurrence(
    signal="jacobian/eigenvalues", summary="eigenvalues of the step Jacobian, complex", order=64,
    work=lambda size: size.entrywise if size.diagonal else size.matrices(
        "eigenvalues", size.steps / eigenvalue_stride(size.steps, size.state), calls=120.0
    ),
    jacobians=True,
    limit=check_size,
)  # fmt: skip
def eigenvalues(recurrence: Recurrence, emit: Emitter, sample: int) -> None:
    """Write `jacobian/eigenvalues`, (step, eigenvalue, part), largest modulus first, and their stride in steps.

    Beyond the budget every n-th step is computed, the others stay NaN; the scalar `jacobian/eigenvalues_every` is n.
    """
    length, s = recurrence.length(sample), recurrence.cell.state_size
    every = 1 if is_diagonal(recurrence) else eigenvalue_stride(length, s)
    about = Describe(
        kind="spectrum", compare="separate", title="eigenvalues of Jₜ", formula="det(∂s_t/∂s_{t−1} − λI) = 0, by |λ|",
        source="Pascanu, Mikolov & Bengio 2013", method="exact" + (f"; every {every} steps" if every > 1 else ""),
        labels={"part": ("re", "im")},
    )  # fmt: skip
    name = f"{recurrence.place}:jacobian/eigenvalues"
    emit.scalar(f"{name}_every", every)
    emit.channel(
        about.channel(name, ("step", "eigenvalue", "part"), (length, s, 2), "float64", module=recurrence.module)
    )
    for steps, block in spaced_blocks(recurrence, sample, every, BLOCK_STEPS):
        known = block.eigenvalues()
        rows = complex_parts(block.jacobian()[:, 0]) if known is None else by_modulus(known[:, 0])
        write_spaced(recurrence, emit, sample, name, steps, rows)


def complex_parts(matrices: Tensor) -> Tensor:
    """Eigenvalues of (n, s, s) by modulus, descending: (n, s, 2) real and imaginary parts; NaN where J holds one."""
    matrices = matrices.double()
    broken = ~torch.isfinite(matrices).flatten(1).all(-1)
    values = torch.linalg.eigvals(torch.where(broken[:, None, None], matrices.new_zeros(()), matrices))
    parts = by_modulus(values)
    return torch.where(broken[:, None, None], parts.new_full((), torch.nan), parts)


def by_modulus(values: Tensor) -> Tensor:
    """Complex eigenvalues (n, s) by modulus, descending: (n, s, 2) real and imaginary parts, float64."""
    values = values.to(torch.complex128)
    order = values.abs().argsort(dim=-1, descending=True)
    return torch.view_as_real(values.gather(-1, order))
