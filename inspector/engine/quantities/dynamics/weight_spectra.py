"""Singular values and eigenvalues of every recurrent weight matrix, and how far it is from orthogonal and normal."""

from __future__ import annotations

import torch

from inspector.engine.analyses.matrix_spectra import spectra, write_spectra
from inspector.engine.cells.gate_info import RecurrentWeight
from inspector.engine.errors import NotApplicable, Unsupported
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import per_recurrence
from inspector.engine.trace.trace import Recurrence
from inspector.engine.trace.work import Work, total

LARGEST = 1024
"""Units up to which spectra are computed: eigenvalues of 1,024 × 1,024 take about two seconds."""
BUDGET = 4 * LARGEST**3
"""Weights × units³ that are spent on one recurrence or stack, about eight seconds."""


def check_size(recurrence: Recurrence, _sample: int) -> None:
    """Raises Unsupported where the weights are too large, NotApplicable where they are not known."""
    weights = recurrence.cell.recurrent_weights()
    if not weights:
        raise NotApplicable("The recurrent weights of this step are not known separately.")
    units = weights[0].matrix.shape[0]
    if units > LARGEST:
        raise Unsupported(f"Spectra of {units} × {units} weights cost too much; the limit is {LARGEST} units.")
    if len(weights) * units**3 > BUDGET:
        raise Unsupported(
            f"Spectra of {len(weights)} weights of {units} × {units} cost too much; the limit is {BUDGET // units**3}."
        )


def counted(units: tuple[int, ...]) -> Work:
    """Both spectra of matrices of so many units."""
    return total(
        Work(wide=n**3, numbers=10 * n**2, calls=40, factors={("singular", n): 1, ("eigenvalues", n): 1}) for n in units
    )


@QUANTITIES.register("weight/spectrum")
@per_recurrence(
    signal="weight", summary="singular values and eigenvalues of every recurrent weight, ‖WᵀW − I‖, non-normality",
    order=30, work=lambda size: counted(size.weights), limit=check_size,
)  # fmt: skip
def weight_spectra(recurrence: Recurrence, emit: Emitter, sample: int) -> None:
    """Write, for every matrix, `weight/NAME/singular_values` (rank,) and `weight/NAME/eigenvalues` (eigenvalue, part).

    NAME is "hidden" (plain RNN), the gate's, or the parameter's in a stack of layers. Its scalars: `spectral_radius`
    ρ = max |λ|, `spectral_norm` σ₁, `non_normality` √(‖W‖²_F − Σ|λ|²) (Henrici), `orthogonality_defect` ‖WᵀW − I‖_F,
    and for a plain RNN `bound` γσ₁: below 1 gradients must vanish, above 1 they may explode.
    """
    weights = recurrence.cell.recurrent_weights()
    for weight in weights:
        emit.check()
        if not bool(torch.isfinite(weight.matrix).all()):
            emit.refuse(
                f"{recurrence.place}:weight/{weight.signal}",
                f"{weight.symbol} holds a NaN or infinity, so it has no spectrum.",
            )
            continue
        _write(recurrence, weight, emit)


def _write(recurrence: Recurrence, weight: RecurrentWeight, emit: Emitter) -> None:
    singular, eigen, numbers = spectra(weight.matrix)
    place = f"{recurrence.place}:weight/{weight.signal}"
    if weight.gain is not None and weight.step is None:
        numbers["bound"] = weight.gain * numbers["spectral_norm"]
    for name, value in numbers.items():
        emit.scalar(f"{place}/{name}", value)
    write_spectra(place, weight.symbol, recurrence.module, singular, eigen, emit)
