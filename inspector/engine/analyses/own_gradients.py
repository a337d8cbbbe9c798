"""Sums over steps compared with the gradients that the model's own backward pass gave.

Σ_t Σ_b δ_tᵀ ∂⁺s_t/∂θ over the whole batch and over all recurrences that use a parameter must be the gradient that
autograd gave for it, which was taken from the run by hooks (trace/run_gradients.py). It is not where something else
reads the parameter (a tied weight), where the loss reads a value inside the step that was not found, or where a
derivative is wrong. The one-step sum is itself a backward pass over the plain step, not one of the sweeps.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from inspector.engine.errors import CancelledError
from inspector.engine.trace.run_gradients import RunGradients
from inspector.engine.trace.trace import Recurrence
from inspector.engine.wording import error_text

ROUNDINGS, ROUNDINGS_LOW = 256.0, 8.0
"""Roundings by which a sum of steps may differ from autograd's gradient before it is rejected; of a dtype with fewer
than 16 bits, whose sums are accumulated in float32, fewer."""
VANISHING = 64.0
"""Roundings of the largest sum of a recurrence below which a gradient is 0: what rounding leaves of terms that cancel
(of the bias of an attention score, which softmax does not see). Counter-example: in float32 a weight whose gradient
is really 130,000 times smaller than the largest one is not compared; both its sum and autograd's are as small."""
PARTIAL = "only the selected sequence was recorded, and the model's gradient is that of all {} sequences"
FROZEN = "the weight is frozen, so the model's backward pass gives no gradient of it to compare with"
LARGE = "its gradient did not fit into the memory for the comparison with the model's own backward pass"
HOOKED = "a hook (register_hook) changed the gradient of {}, and what single steps contribute does not have that change"
FAILED = "its gradient could not be compared with the model's own ({})"
BESIDE = "it also acts on this state through other values that the loop carries from step to step"
FED = "what it is given was computed with it"
EARLIER = "{} uses it too, and may act on this state"
DIFFERS = (
    "summed over all its steps it differs by {:.3g} of the gradient of {} that the model's own backward pass gave: the "
    "loss or another part of the model depends on this weight, or on a value inside a step, in a way that was not found"
)


@dataclass(slots=True)
class Compared:
    """What was found for one weight of one recurrence.

    Attributes:
        local: Σ_t δ_tᵀ ∂⁺s_t/∂θ of the selected sequence alone, in the weight's shape; None where it is not known.
        error: the difference from autograd, relative to autograd's gradient.
        reason: why the sum is not that gradient, or ""; size: the sum of the norms of all that was added up.
        floor: the norm up to which this gradient is what rounding leaves of 0.
    """

    local: Tensor | None = None
    error: float = 0.0
    reason: str = ""
    size: float = 0.0
    floor: float = 0.0


@dataclass(slots=True)
class _Sums:
    """The sums of one recurrence: of all sequences by parameter of the model, and for each weight its parameters."""

    leaves: dict[int, Tensor] = field(default_factory=dict)
    found: dict[int, Tensor] = field(default_factory=dict)
    sizes: dict[int, float] = field(default_factory=dict)
    reads: dict[str, set[int]] = field(default_factory=dict)
    local: dict[str, Tensor] = field(default_factory=dict)
    reason: str = ""


def compared(recurrence: Recurrence, sample: int) -> dict[str, Compared]:
    """{weight of the cell: how its sum over steps compares with the run}; computed once for a run."""
    run = recurrence.run
    assert run is not None
    if run.compared is None:
        run.compared = {}
    if not run.compared:
        run.compared |= {id(one): _sums(as_ran(one), sample) for one in run.recurrences}
    found = {id(one): run.compared[id(one)] for one in run.recurrences}
    own = next(one for one in run.recurrences if recurrence is one or recurrence is one.ran)
    return {name: _judge(run, found, found[id(own)], name, recurrence) for name in recurrence.cell.parameters()}


def as_ran(recurrence: Recurrence) -> Recurrence:
    """The recurrence as autograd's graph has it; the same one where the graph is that of the dynamics."""
    return recurrence if recurrence.ran is None else recurrence.ran


def acting_elsewhere(recurrence: Recurrence) -> dict[str, str]:
    """{parameter of the cell: why it also acts on the states by ways that are no part of their steps}.

    That is known where the loop carries other values beside the state, and where autograd's graph of what it is given
    could be searched. Else a recurrence before this one that uses the same parameter may feed it where what this one is
    given needs a gradient. Counter-example: two long loops over two embedded sequences are independent.
    """
    found = dict.fromkeys(recurrence.cell.parameters().keys() & recurrence.beside, BESIDE)
    run = recurrence.run
    if run is None or recurrence.weights is None or not recurrence.followed_input:
        return found
    own = _parameters_of(run, recurrence)
    for one in run.recurrences:
        if one is recurrence or one.ran is recurrence:
            break
        theirs = set().union(*_parameters_of(run, one).values())
        shared = [name for name, parameters in own.items() if parameters & theirs]
        found |= {name: EARLIER.format(one.place) for name in shared if name not in found}
    if recurrence.upstream is None:
        return found
    fed = {name: found.get(name, FED) for name, parameters in own.items() if parameters & recurrence.upstream}
    return {name: why for name, why in found.items() if why == BESIDE} | fed


def acts_before(lower: Recurrence, upper: Recurrence) -> bool | None:
    """Whether what one recurrence gives is among what another one is given, as autograd's graph has it; None where that
    does not say it: without gradients, or of weights that are not trained."""
    run = lower.run
    if run is None or lower.weights is None or upper.upstream is None or lower.delta is None or upper.delta is None:
        return None
    own = set().union(*_parameters_of(run, lower).values())
    return bool(own & upper.upstream) if own else None


def _parameters_of(run: RunGradients, recurrence: Recurrence) -> dict[str, set[int]]:
    """{weight of the cell: ids of the parameters of the model that it is, or is made of}."""
    live = recurrence.weights() if recurrence.weights is not None else {}
    made = run.made()
    return {
        name: {id(run.parameter_of(value))} if value.is_leaf else set(map(id, _leaves(value, made)))
        for name, value in live.items() if name in recurrence.cell.parameters()
    }  # fmt: skip


def differing(found: Tensor, expected: Tensor, floor: float = 0.0) -> float:
    """‖found − expected‖ / ‖expected‖; NaN where the expected one is not finite.

    0 where both norms are at most `floor`: that is rounding, of which a relative difference says nothing.
    """
    size = float(expected.double().norm())
    off = float((found.double() - expected.double()).norm())
    if size <= floor and float(found.double().norm()) <= floor:
        return 0.0
    if not math.isfinite(size):
        return math.nan
    return (off / size if math.isfinite(off) else math.inf) if size != 0 else 0.0 if off == 0 else math.inf


def floor_of(sizes: Iterable[float], dtype: torch.dtype) -> float:
    """The norm up to which a gradient is taken for 0, of the norms of all that is added up for the weights of a
    recurrence; 0 where one of these is not finite."""
    most = max(sizes, default=0.0)
    return VANISHING * float(torch.finfo(dtype).eps) * most if math.isfinite(most) else 0.0


def unit_of(recurrence: Recurrence, dtype: torch.dtype) -> float:
    """The relative error that rounding alone may cause in a sum over steps, per size of what is added up."""
    resolution = float(torch.finfo(dtype).eps)
    roundings = ROUNDINGS if resolution < 1e-5 else ROUNDINGS_LOW
    return float(roundings * resolution * recurrence.steps**0.5)


def _judge(run: RunGradients, all_sums: Mapping[int, _Sums], own: _Sums, name: str, recurrence: Recurrence) -> Compared:
    result = Compared(own.local.get(name))
    result.reason = own.reason
    for number in own.reads.get(name, ()):
        parameter = own.leaves[number]
        using = [sums for sums in all_sums.values() if number in sums.found]
        broken = next((sums.reason for sums in all_sums.values() if sums.reason), "")
        truth = run.of(parameter)
        if number in run.hooked:
            result.reason = HOOKED.format(run.name(parameter))
            continue
        if truth is None or broken:
            result.reason = broken or (LARGE if number in run.missing else FROZEN)
            continue
        total = torch.stack([sums.found[number].to(truth.dtype) for sums in using]).sum(0)
        size = sum(sums.sizes[number] for sums in using)
        result.floor = max(result.floor, floor_of(own.sizes.values(), truth.dtype))
        error = differing(total, truth, result.floor)
        result.error, result.size = max(result.error, error, key=_worse), max(result.size, size)
        if error * float(truth.double().norm()) > unit_of(recurrence, truth.dtype) * size or error == math.inf:
            partial = recurrence.states.shape[1] < run.samples
            result.reason = PARTIAL.format(run.samples) if partial else DIFFERS.format(error, run.name(parameter))
    if not own.reads.get(name) and not result.reason:
        result.reason = FROZEN
    return result


def _worse(error: float) -> float:
    return math.inf if math.isnan(error) else error


def _sums(recurrence: Recurrence, sample: int) -> _Sums:
    """Σ_t Σ_b δᵀ ∂⁺s_t/∂θ, by the parameters of the model that the cell's weights are made of."""
    sums = _Sums()
    if recurrence.delta is None or recurrence.weights is None or not recurrence.cell.parameters():
        return sums
    try:
        _fill(sums, recurrence, sample)
    except CancelledError:
        raise
    except Exception as fault:  # noqa: BLE001 - a cell of the user's own may raise anything; the reason is shown
        sums.reason = FAILED.format(error_text(fault))
    return sums


def _fill(sums: _Sums, recurrence: Recurrence, sample: int) -> None:
    delta, run = recurrence.followed, recurrence.run  # nothing reached the parameters through the others
    assert delta is not None and run is not None and recurrence.weights is not None
    only, others = torch.zeros_like(delta), delta.clone()
    column = sample - recurrence.base
    only[:, column], others[:, column] = delta[:, column], 0
    sums.local = recurrence.weight_gradients(only)
    rest = recurrence.weight_gradients(others) if delta.shape[1] > 1 else {}
    live = recurrence.weights()
    for name, own in sums.local.items():
        given = own + rest[name] if rest else own
        for leaf, gradient in _to_parameters(run, live[name], given):
            number = id(leaf)
            sums.leaves[number] = leaf
            sums.reads.setdefault(name, set()).add(number)
            sums.found[number] = sums.found[number] + gradient if number in sums.found else gradient
            mass = float(own.double().norm()) + (float(rest[name].double().norm()) if rest else 0.0)
            sums.sizes[number] = sums.sizes.get(number, 0.0) + mass


def _to_parameters(run: RunGradients, value: Tensor, gradient: Tensor) -> list[tuple[Tensor, Tensor]]:
    """(parameter of the model, its gradient) from the gradient of a weight that is made of parameters.

    A weight may be the parameter itself, the sum of two biases, or what a parametrisation computes. One that the model
    computed before the run used it (dropout of a weight) counts as a parameter.
    """
    made = run.made()
    if value.is_leaf or value.grad_fn in made:
        return [(run.parameter_of(value), gradient.reshape(value.shape))]
    leaves = _leaves(value, made)
    with torch.enable_grad():
        found = torch.autograd.grad(value, leaves, gradient.reshape(value.shape).to(value), allow_unused=True)
    return [(leaf, one.cpu()) for leaf, one in zip(leaves, found, strict=True) if one is not None]


def _leaves(value: Tensor, made: Mapping[Any, Tensor]) -> list[Tensor]:
    """The leaf tensors from which autograd's graph computes a value; weights that the model `made` count as such."""
    waiting, seen, found = [value.grad_fn], set(), []
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        leaf = made.get(node, getattr(node, "variable", None))
        found += [] if leaf is None else [leaf]
        waiting += [] if node in made else [before for before, _ in node.next_functions]
    return found
