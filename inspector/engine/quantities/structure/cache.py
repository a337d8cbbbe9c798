"""Does generation step by step, with a cache or a state that is handed on, give what one call on the whole gives?"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from inspector.engine.analyses.structure.calls import Answer, Calls, as_primary
from inspector.engine.analyses.structure.changes import alone
from inspector.engine.analyses.structure.findings import PLACE, Found, write
from inspector.engine.errors import NotApplicable, Unsupported, model_error
from inspector.engine.model.batch import Batch
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.spoken import spoken
from inspector.engine.trace.trace import Trace
from inspector.records import ANSWER_DOMAIN

ABOUT = Describe(
    kind="structure", compare="separate", scale="log", title="generation with a cache against without",
    formula="max_f |y'_t[f] − y_t[f]| / max |y|, the second half of the sequence given one step at a time",
    source="finite differences",
)  # fmt: skip
CACHES = ("past_key_values", "past_key_value", "layer_past", "kv_cache", "cache_params", "cache")
STATES = ("state", "states", "hidden", "hidden_state", "hiddens", "hx", "h0", "h", "h_0", "memory", "mems")
"""Names of a forward's parameters for what an earlier call returned."""
WORDS = frozenset(("past", "cache", "caches", "kv", "kvs", "presents", "prev", "previous", "carry"))
"""Words of which one makes an optional parameter such a name. Counter-example: `prev_tokens` of a decoder, to which is
given what the call before returned beside its outputs."""
FURTHER = 16
"""Steps that are given one at a time."""
ROUNDING = 256.0
"""Products of other shapes are summed in another order: so many times the rounding of a call of one shape."""
OWN_CALL = (
    "The subject calls its model in a way of its own, which gives other outputs than the inputs alone: what it would "
    "give beside a cache is not known, so generation with a cache is not compared."
)
NOT_SPOKEN = (
    "The model has several inputs, of which none holds what it is to say, so none can be given one step at a time."
)
Step = Callable[[Tensor, Any], tuple[Any, Any]]
"""(ids or vectors (1, t, …), what was handed on or None) → (output, what is to be handed on)."""


@QUANTITIES.register("structure/cache")
@per_run(
    summary="whether generation with a cache gives what one call gives", order=90, default=False,
    cost="some twenty runs of the model on one step", work=lambda run: run.call * 8,
)  # fmt: skip
def cache(trace: Trace, emit: Emitter) -> None:
    """Write (step,) changes at the steps that were given one at a time, NaN at the steps before them.

    Only where the model's forward has a parameter for a cache or a state, and returns one; of a subject that calls its
    model in a way of its own (masks, types of tokens), where the model gives the same for the inputs alone. Of a model
    with several inputs the steps are those of what its decoder is given to say, and forward takes each by its name.
    """
    try:
        read = _reading(trace)
        if read is None:
            return
        calls, one = Calls(trace), read.batch
        first = calls.settled(one)
        if not first.steps:
            raise Unsupported("The model's output has no step axis, so steps given one at a time cannot be compared.")
        begin = max(1, one.length // 2, one.length - FURTHER)
        with calls.ready():
            own = trace.subject.forward is not None or len(trace.batch.named) > 1
            if own and not _of_inputs_alone(calls, read.step, one, first):
                raise Unsupported(OWN_CALL)
            values = _one_at_a_time(calls, read.step, one, begin, first)
    except NotApplicable:
        return
    except Unsupported as reason:
        emit.refuse(f"{PLACE}:structure/cache", str(reason))
        return
    write(Found("cache", ABOUT, ("step",), values.numpy(), ROUNDING * first.rounding, domains=read.domains), emit)


@dataclass(frozen=True, slots=True)
class Reading:
    """One sequence, whose primary input is given one step at a time, and how."""

    batch: Batch
    step: Step
    domains: Mapping[str, str] = field(default_factory=dict)


def _reading(trace: Trace) -> Reading | None:
    """None where the model's forward takes no cache or state. Raises NotApplicable without steps, and Unsupported."""
    model = trace.subject.model
    if len(trace.batch.named) == 1:
        step = _step_of(model)
        return None if step is None else Reading(alone(trace.batch), step)
    cached = _cached(parameters := _parameters(model))
    if cached is None:
        return None
    said = spoken(trace)
    if said is None:
        raise Unsupported(NOT_SPOKEN)
    batch = alone(as_primary(trace.batch, said.name))
    fixed = {
        name: one.tensor[:, : int(one.lengths[0])] if one.axis else one.tensor
        for name, one in batch.named.items()
        if name != said.name and one.tensor is not None
    }
    unknown = [name for name in (said.name, *fixed) if name not in parameters]
    if unknown:
        raise Unsupported(
            f"The model's forward takes a cache ({cached}), but has no parameter {unknown[0]}: how it is called with "
            "its inputs and a cache is not known."
        )
    step = _with_cache(model, cached, "use_cache" in parameters, said.name, fixed)
    return Reading(batch, step, {"step": ANSWER_DOMAIN})


def _of_inputs_alone(calls: Calls, step: Step, one: Batch, first: Answer) -> bool:
    """Whether the model, called with the inputs and nothing beside them, gives what the subject's own call gives."""
    try:
        output, _ = step(calls.subject.placed(one).inputs, None)
        found = calls.laid_out(output, one)
    except Exception:  # noqa: BLE001 - the user's code may raise anything
        return False
    if found.values.shape != first.values.shape:
        return False
    return bool((first.change(found)[0] <= ROUNDING * first.rounding).all())


def _one_at_a_time(calls: Calls, step: Step, one: Batch, begin: int, first: Answer) -> Tensor:
    """(t,) changes from the answer to the whole."""
    values = torch.full((one.length,), torch.nan, dtype=torch.float64)
    inputs = calls.subject.placed(one).inputs
    handed = None
    for at in [slice(0, begin), *(slice(t, t + 1) for t in range(begin, one.length))]:
        given = inputs[:, at]
        try:
            output, handed = step(given, handed)
        except (Exception, SystemExit) as fault:  # noqa: BLE001 - the user's code may raise anything
            said = model_error(fault, "The model, given a part of the sequence and what it had returned before,")
            raise Unsupported(str(said)) from None
        if handed is None:
            raise NotApplicable("Nothing is handed on.")
        part = Batch(given, torch.tensor([given.shape[1]]))
        found = calls.laid_out(output, part)
        whole = Answer(first.values[:, at], steps=True)
        if found.values.shape != whole.values.shape:
            raise Unsupported(
                f"For {given.shape[1]} steps the model returns outputs of shape {tuple(found.values.shape)}."
            )
        if at.start:
            values[at] = whole.change(found)[0] * (whole.scale / (first.scale or 1.0))
    return values


def _parameters(model: nn.Module) -> dict[str, inspect.Parameter]:
    """Of its forward; none where they cannot be read."""
    try:
        return dict(inspect.signature(model.forward).parameters)
    except (TypeError, ValueError):
        return {}


def _cached(parameters: Mapping[str, inspect.Parameter]) -> str | None:
    """The parameter for a cache."""
    own = (name for name, one in list(parameters.items())[1:] if one.default is None and WORDS & {*name.split("_")})
    return next((name for name in CACHES if name in parameters), next(own, None))


def _step_of(model: nn.Module) -> Step | None:
    """How to call a model with what it returned before; None where its forward has no such parameter."""
    cached = _cached(parameters := _parameters(model))
    if cached is not None:
        return _with_cache(model, cached, "use_cache" in parameters)
    state = next((name for name in list(parameters)[1:2] if name in STATES), None)
    return None if state is None else _with_state(model, state)


def _with_cache(
    model: nn.Module, name: str, flag: bool, primary: str | None = None, fixed: Mapping[str, Any] | None = None
) -> Step:
    """`primary`: the parameter of what is given one step at a time, the first where none is named; `fixed`: others."""

    def step(given: Tensor, handed: Any) -> tuple[Any, Any]:
        more: dict[str, Any] = {**(fixed or {}), **({"use_cache": True} if flag else {})}
        if handed is not None:
            more[name] = handed
        output = model(given, **more) if primary is None else model(**{primary: given}, **more)
        return output, _field(output, name)

    return step


def _field(output: Any, name: str) -> Any:
    if isinstance(output, (tuple, list)):
        return output[1] if len(output) > 1 else None
    found = getattr(output, name, None)
    return found if found is not None or not isinstance(output, dict) else output.get(name)


def _with_state(model: nn.Module, name: str) -> Step:
    def step(given: Tensor, handed: Any) -> tuple[Any, Any]:
        output = model(given) if handed is None else model(given, **{name: handed})
        pair = isinstance(output, (tuple, list)) and len(output) > 1
        return output, output[1] if pair else None

    return step
