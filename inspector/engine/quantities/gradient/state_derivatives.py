"""dh_t/dθ at chosen steps t, and its terms by source step: backpropagation through time before any loss weights it."""

from __future__ import annotations

from torch import Tensor

from inspector.engine.analyses.own_gradients import BESIDE, acting_elsewhere, as_ran
from inspector.engine.analyses.state_derivatives import check, check_cost, state_derivatives
from inspector.engine.errors import Unsupported
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_recurrence
from inspector.engine.trace.trace import Recurrence
from inspector.engine.trace.work import Work
from inspector.records import Option

MOST = 16
"""Steps t of one run."""
REFUSED = "∂{}_t/∂{} of {} is not shown: {}, and these paths are no part of its own steps."
STEPS = Option(
    name="steps",
    type="steps",
    default=(None, None),
    help="Which steps t, FROM:TO, 16 at most; without it the last one.",
)
Bounds = tuple[int | None, int | None]


def check_size(recurrence: Recurrence, sample: int) -> None:
    """Raises Unsupported where the derivatives of one state are too large, or take too long."""
    check_cost(as_ran(recurrence), sample, 1)


@QUANTITIES.register("gradient/state_derivatives")
@per_recurrence(
    signal="state_derivative",
    summary="dh_t/dθ at chosen steps, and its terms by source step, exact",
    order=86,
    default=False,
    cost="for each chosen step t as many gradients back through t steps as there are units",
    options=(STEPS,),
    work=lambda size: Work(2.0 * size.steps * size.state * size.row, calls=100.0 * size.steps),
    limit=check_size,
)
def derivatives(recurrence: Recurrence, emit: Emitter, sample: int, steps: Bounds = (None, None)) -> None:
    """Write `state_derivative/θ/T` (step,) for every chosen step T and parameter θ: ‖J_{T:k} ∂⁺s_k/∂θ‖_F at step k.

    NaN where k is after T. Scalars: `…/norm`, ‖dh_T/dθ‖_F = ‖Σ_k of the terms‖_F, which is less than the sum of their
    norms where terms cancel, and `…/check_error` against autograd. Source: Pascanu, Mikolov & Bengio 2013, eq. 4, 5.
    """
    elsewhere = acting_elsewhere(recurrence)
    place, beside = recurrence.place, sorted(recurrence.beside - recurrence.cell.parameters().keys())
    recurrence = as_ran(recurrence)
    length = recurrence.length(sample)
    chosen = _chosen(length, steps)
    check_cost(recurrence, sample, len(chosen))
    for number in chosen:
        at = length - 1 - number if recurrence.reverse else number
        found = state_derivatives(recurrence, sample, at, emit)
        found = {name: one for name, one in found.items() if name not in elsewhere}
        errors = check(recurrence, sample, at, found, emit)
        for name, one in found.items():
            base = f"{recurrence.place}:state_derivative/{name}/{number}"
            _write(recurrence, emit, base, name, number, one.terms, sample)
            emit.scalar(f"{base}/norm", float(one.total.double().norm()))
            emit.scalar(f"{base}/check_error", errors[name])
    for name, why in {**dict.fromkeys(beside, BESIDE), **elsewhere}.items():
        emit.refuse(f"{place}:state_derivative/{name}", REFUSED.format(recurrence.cell.main, name, place, why))


def _chosen(length: int, steps: Bounds) -> list[int]:
    """The steps t, in sequence order. Raises Unsupported for too many."""
    if steps == (None, None):
        return [length - 1]
    chosen = list(range(length))[slice(*steps)]
    if len(chosen) > MOST:
        raise Unsupported(f"{len(chosen)} steps were chosen; {MOST} at most are computed.")
    return chosen


def _write(
    recurrence: Recurrence, emit: Emitter, base: str, name: str, number: int, terms: Tensor, sample: int
) -> None:
    length, state = recurrence.length(sample), recurrence.cell.main
    whole = terms.new_full((length,), float("nan"))
    whole[: len(terms)] = terms
    about = Describe(
        kind="state_derivative", compare="ratio", scale="log", source="Pascanu, Mikolov & Bengio 2013",
        title=f"‖∂{state}[{number}]/∂{name} by source step‖",
        formula=f"‖(J_{{t:k}} ∂⁺s_k/∂θ)_{state}‖_F at source step k, t = {number}; dh_t/dθ is the sum over k ≤ t",
    )  # fmt: skip
    emit.array(
        about.channel(base, ("step",), (length,), "float64", module=recurrence.module),
        recurrence.in_order(whole, sample),
    )
