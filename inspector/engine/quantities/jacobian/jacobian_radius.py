"""Spectral radius of the step Jacobian: the asymptotic rate, if the same step were repeated."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from inspector.engine.analyses.closed_products import is_diagonal
from inspector.engine.analyses.spaced_steps import spaced_blocks
from inspector.engine.cells.arnoldi import ACCEPTED, CHECKS, leading_moduli
from inspector.engine.cells.spectral import together
from inspector.engine.errors import Unsupported
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import BLOCK_STEPS, Describe, dtype_name, per_recurrence
from inspector.engine.trace.trace import Recurrence
from inspector.engine.trace.work import Size, Work

SMALL, LARGEST = 64, 2048
"""State entries up to which all eigenvalues cost no more than Arnoldi's method; and the limit."""
FULL_BUDGET, BUDGET = 4e9, 2e6
"""Steps × (state entries)³ by all eigenvalues, steps × state entries by Arnoldi's method, that are spent on one layer:
about ten seconds; beyond, only every n-th step is computed."""
AGAIN_BUDGET = 4e8
"""Steps × (state entries)³ for all eigenvalues of steps that have not converged: less than a second."""
TOGETHER_BUILT = 16
"""Steps of one iteration where J is built: all of them should stay in the cache."""


def check_size(recurrence: Recurrence, _sample: int) -> None:
    """Raises Unsupported where a Jacobian is too large."""
    s = recurrence.cell.state_size
    if s > LARGEST and not is_diagonal(recurrence):
        raise Unsupported(f"Spectral radii of {s} × {s} Jacobians cost too much; the limit is {LARGEST} state entries.")


@QUANTITIES.register("jacobian/spectral_radius")
@per_recurrence(
    signal="jacobian/spectral_radius", summary="largest eigenvalue modulus of the step Jacobian", order=60,
    work=lambda size: counted(size), limit=check_size, jacobians=True,
)  # fmt: skip
def spectral_radius(recurrence: Recurrence, emit: Emitter, sample: int) -> None:
    """Write `jacobian/spectral_radius` (step,), max |λ(J_t)|; NaN where J holds a NaN or infinity.

    All eigenvalues of small states; of larger ones Arnoldi's method. A step that has not converged after its last
    product is computed in full within a budget, evenly spaced; the others are NaN, and the method says how many, with
    their residuals. The scalar `jacobian/spectral_radius_every` is n where only every n-th step is computed, else 1.
    Raises Unsupported where the state is too large or no step has converged.
    """
    length, s = recurrence.length(sample), recurrence.cell.state_size
    diagonal = is_diagonal(recurrence)
    every = 1 if diagonal else stride(length, s)
    way = _known if diagonal else _full if s <= SMALL else _iterated
    found = way(recurrence, emit, sample, every)
    about = Describe(
        kind="jacobian", compare="ratio", title="spectral radius ρ", formula="ρ(∂s_t/∂s_{t−1}) = max |λ|", scale="log",
        source="Pascanu, Mikolov & Bengio 2013",
        method=found.method + (f"; every {every} steps" if every > 1 else ""),
    )  # fmt: skip
    values = recurrence.in_order(found.values.to(recurrence.states.dtype), sample)
    name = f"{recurrence.place}:jacobian/spectral_radius"
    emit.scalar(f"{name}_every", every)
    emit.array(about.channel(name, ("step",), (length,), dtype_name(values), module=recurrence.module), values)


def stride(length: int, s: int) -> int:
    """n: the spectral radii of every n-th of `length` Jacobians (s, s) fit their budget."""
    cost = length * float(s) ** 3 / FULL_BUDGET if s <= SMALL else length * float(s) / BUDGET
    return max(1, math.ceil(cost))


def counted(size: Size) -> Work:
    """All eigenvalues of small Jacobians; of larger ones some 60 products of Arnoldi's method, and what is done with
    its small matrices of about 37 rows. Where few steps converge at once it takes twice as long."""
    count = size.steps / stride(size.steps, size.state)
    if size.diagonal:
        return size.entrywise
    if size.state <= SMALL:
        return size.matrices("eigenvalues", count, calls=40.0)
    many = TOGETHER_BUILT if size.built else together(size.state)
    numbers = 760 * size.state + (70 * size.entries if size.built else 0)
    return Work(
        0 if size.built else 64 * count * size.push, numbers=count * numbers, calls=4500.0 * math.ceil(count / many),
        factors={("eigenvalues", 37): 1.6 * count, ("solved", 37): 6 * count},
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Found:
    """ρ of every step (t,), float64, NaN where there is none, and how it was found, as text."""

    values: Tensor
    method: str


def _full(recurrence: Recurrence, emit: Emitter, sample: int, every: int) -> Found:
    values = torch.full((recurrence.length(sample),), torch.nan, dtype=torch.float64)
    for steps, block in spaced_blocks(recurrence, sample, every, BLOCK_STEPS):
        emit.check()
        values[steps] = largest_moduli(block.jacobian()[:, 0])
        emit.tell(int(steps[-1]) + 1, len(values))
    return Found(values, how_found(recurrence))


def _known(recurrence: Recurrence, emit: Emitter, sample: int, _every: int) -> Found:
    """Of Jacobians whose eigenvalues are known in closed form."""
    found = [block.eigenvalues() for _, block in recurrence.blocks(sample, BLOCK_STEPS)]
    return Found(torch.cat([one[:, 0].abs().amax(-1).double() for one in found if one is not None]), "exact")


def _iterated(recurrence: Recurrence, emit: Emitter, sample: int, every: int) -> Found:
    length, taken = recurrence.length(sample), []
    values, residuals, errors = torch.full((3, length), torch.nan, dtype=torch.float64)
    built = bool(recurrence.cell.method)
    many = TOGETHER_BUILT if built else together(recurrence.cell.state_size)
    for steps, block in spaced_blocks(recurrence, sample, every, BLOCK_STEPS if built else many * every):
        for part in torch.arange(len(steps)).split(many):
            emit.check()
            radii = leading_moduli(block if len(part) == len(steps) else block.only(part))
            at = steps[part]
            values[at], residuals[at], errors[at] = radii.value, radii.residual, radii.error
            emit.tell(int(at[-1]) + 1, length)
        taken.append(steps)
    chosen = torch.cat(taken)
    missing = chosen[~(errors[chosen] <= ACCEPTED)]
    values[missing] = torch.nan
    again = _again(recurrence, emit, sample, missing)
    for step, radius in again.items():
        values[step] = radius
    left = torch.tensor([step for step in missing.tolist() if step not in again], dtype=torch.long)
    return Found(values, _told(recurrence, chosen, errors, residuals[left], again))


def _told(recurrence: Recurrence, chosen: Tensor, errors: Tensor, residuals: Tensor, again: dict[int, float]) -> str:
    """How the values were found; the residuals are those of the steps without a value. Raises Unsupported if all."""
    told = [f"Arnoldi, at most {CHECKS[-1]} products a step"]
    good = errors[chosen][errors[chosen] <= ACCEPTED]
    if len(good):
        told.append(f"estimated relative error ≤ {max(float(good.max()), 1e-7):.0e}")
    full = sum(not math.isnan(radius) for radius in again.values())
    if full:
        told.append(f"{full} of {len(chosen)} steps by all eigenvalues")
    if len(residuals):
        low, high = (f"{float(end):.1g}" for end in torch.aminmax(residuals.nan_to_num(nan=torch.inf)))
        reason = (
            f"{len(residuals)} of {len(chosen)} steps had not converged by then, ‖Jx − λx‖/|λ| "
            f"{low if low == high else f'{low} to {high}'}"
        )
        if len(residuals) == len(chosen):
            raise Unsupported(f"{told[0]}: {reason}, so no spectral radius is shown.")
        told.append(f"{reason}: they are NaN")
    return "; ".join([how_found(recurrence), *told] if recurrence.cell.method else told)


def _again(recurrence: Recurrence, emit: Emitter, sample: int, missing: Tensor) -> dict[int, float]:
    """ρ of some of the missing steps by all eigenvalues: evenly spaced ones, and those with the very Jacobian of such
    a step before them (a linear recurrence has one for all steps). NaN at steps whose Jacobian is not finite."""
    index, affordable = sample - recurrence.base, int(AGAIN_BUDGET / float(recurrence.cell.state_size) ** 3)
    stride = math.ceil(len(missing) / affordable) if affordable else 0
    found: dict[int, float] = {}
    last, radius = None, math.nan
    for number, step in enumerate(missing.tolist()):
        emit.check()
        matrix = recurrence.block(step, step + 1, slice(index, index + 1)).jacobian()[0, 0]
        if not bool(torch.isfinite(matrix).all()):
            found[step] = math.nan
            continue
        if last is None or not torch.equal(matrix, last):
            if not stride or number % stride:
                continue
            last, radius = matrix, float(largest_moduli(matrix[None])[0])
        found[step] = radius
    return found


def how_found(recurrence: Recurrence) -> str:
    """How the Jacobians are found, as text."""
    return recurrence.cell.method or "exact"


def largest_moduli(matrices: Tensor) -> Tensor:
    """max |λ| of (n, s, s) from all eigenvalues, in float64: (n,); NaN where a matrix is not finite."""
    matrices = matrices.double()
    broken = ~torch.isfinite(matrices).flatten(1).all(-1)
    values = torch.linalg.eigvals(torch.where(broken[:, None, None], matrices.new_zeros(()), matrices))
    largest = values.abs().amax(-1)
    return torch.where(broken, largest.new_full((), torch.nan), largest)
