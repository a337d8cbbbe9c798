"""Singular values of the step Jacobian at every step: how evenly a step stretches its directions."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from inspector.engine.analyses.closed_products import is_diagonal
from inspector.engine.analyses.spaced_steps import singular_stride, spaced_blocks, write_spaced
from inspector.engine.cells.base import StepBlock
from inspector.engine.cells.spectral import ACCEPTED, largest
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import BLOCK_STEPS, Describe, dtype_name, per_recurrence
from inspector.engine.trace.trace import Recurrence
from inspector.engine.trace.work import Size, Work

FULL = 1024
"""State entries up to which all singular values are computed, of evenly spaced steps where they are large; beyond, only
the largest ones."""
BUDGET = 5e7
"""Steps × (state entries)² for those: about half a second a layer."""
RANKS, LARGEST = 33, 8
SOURCE = "Pennington, Schoenholz & Ganguli 2017; Chen, Pennington & Schoenholz 2018"


@QUANTITIES.register("jacobian/singular_values")
@per_recurrence(
    signal="jacobian/singular_values", summary="singular values of the step Jacobian, largest to smallest", order=62,
    work=lambda size: counted(size), jacobians=True,
)  # fmt: skip
def singular_values(recurrence: Recurrence, emit: Emitter, sample: int) -> None:
    """Write `jacobian/singular_values`, (step, rank): σ₁ first. Labels of `rank` are the ranks that are written.

    All ranks of small states, 33 evenly spaced ones (first and last included) of larger ones; of very large ones the
    8 largest by Golub–Kahan–Lanczos, NaN where one has not converged. Beyond a budget every n-th step is computed, the
    others stay NaN; the scalar `jacobian/singular_values_every` is n.
    """
    length, s = recurrence.length(sample), recurrence.cell.state_size
    diagonal = is_diagonal(recurrence)
    full = s <= FULL or diagonal
    every = singular_stride(length, s) if full else max(1, math.ceil(length * float(s) ** 2 / BUDGET))
    every = 1 if diagonal else every
    ranks = written_ranks(s) if full else list(range(min(LARGEST, s)))
    about = Describe(
        kind="spectrum", compare="separate", title="singular values of Jₜ", scale="log", source=SOURCE,
        formula="σ_i(∂s_t/∂s_{t−1}), i by size; all 1: the step is an isometry",
        method=method_of(full, len(ranks), s, diagonal) + (f"; every {every} steps" if every > 1 else ""),
        labels={"rank": tuple(str(rank + 1) for rank in ranks)},
    )  # fmt: skip
    name = f"{recurrence.place}:jacobian/singular_values"
    emit.scalar(f"{name}_every", every)
    for steps, block in spaced_blocks(recurrence, sample, every, BLOCK_STEPS):
        values = (exact(block)[..., ranks] if full else few(block, len(ranks)))[:, 0]
        emit.channel(
            about.channel(name, ("step", "rank"), (length, len(ranks)), dtype_name(values), module=recurrence.module)
        )
        write_spaced(recurrence, emit, sample, name, steps, values)


def counted(size: Size) -> Work:
    """All singular values of the steps that fit the budget; of large states 60 iterations of evenly spaced steps."""
    if size.diagonal:
        return size.entrywise
    if size.state <= FULL:
        return size.matrices("singular", size.steps / singular_stride(size.steps, size.state))
    count = size.steps / max(1, math.ceil(size.steps * size.entries / BUDGET))
    return Work(130 * count * size.push, numbers=9000 * count * size.state, calls=4000.0 * size.blocks())


def written_ranks(s: int) -> list[int]:
    """The ranks (from 0) that are written of s singular values: all, or evenly spaced ones with both ends."""
    if s <= RANKS:
        return list(range(s))
    return [round(i * (s - 1) / (RANKS - 1)) for i in range(RANKS)]


def method_of(full: bool, kept: int, s: int, diagonal: bool = False) -> str:
    """How the values were found, as text."""
    if full:
        how = "exact: moduli of the decays" if diagonal else "full SVD"
        return how + (f"; {kept} of {s} ranks, evenly spaced" if kept < s else "")
    return f"{kept} largest of {s} by Golub–Kahan–Lanczos, residual ≤ 1e-3 (or NaN); equal values are found once"


def exact(block: StepBlock) -> Tensor:
    """All singular values of every step, descending: (t, b, s); NaN where J holds a NaN or infinity.

    The SVD is computed in float64; values that are zero up to rounding (σ ≤ s ε σ₁) become 0.
    """
    known = block.eigenvalues()
    if known is not None:
        return known.abs().sort(dim=-1, descending=True).values.to(block.following.dtype)
    matrices = block.jacobian().double()
    broken = ~torch.isfinite(matrices).flatten(2).all(-1)
    values = torch.linalg.svdvals(torch.where(broken[..., None, None], matrices.new_zeros(()), matrices))
    floor = values[..., :1] * matrices.shape[-1] * torch.finfo(torch.float64).eps
    values = torch.where(values <= floor, torch.zeros_like(values), values)
    values = torch.where(broken[..., None], values.new_full((), torch.nan), values)
    return values.to(block.following.dtype)


def few(block: StepBlock, count: int) -> Tensor:
    """The largest singular values, NaN where the iteration has not converged: (t, b, count)."""
    values, residuals = largest(block, count)
    return torch.where(residuals <= ACCEPTED, values, values.new_full((), torch.nan))
