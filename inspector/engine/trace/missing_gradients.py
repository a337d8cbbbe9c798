"""Why gradients are missing or end somewhere: no part of a run whose gradient is not shown goes without a reason."""

from __future__ import annotations

from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Recurrence, Trace

FROZEN = (
    "All weights of {} are frozen (requires_grad=False) and nothing before it needs a gradient, so the loss has none "
    "at its states."
)
WITHOUT = (
    "No gradient of the loss reaches the states of {}: it ran without gradients (torch.no_grad, inference_mode), its "
    "weights and inputs need none (requires_grad=False), what it returned was detached, or the loss does not depend on "
    "it."
)
NO_LOSS_GRADIENT = (
    "The loss needs no gradient: all parameters are frozen, or the model ran without gradients or detached its output."
)
CUT = (
    "The model cuts the gradient of {0} before {1} (detach, .data or no_grad): nothing of a later loss reaches the "
    "steps before. Their gradients are those of the losses up to there, and are not drawn where there is none."
)
PARTLY = (
    "The steps of {} detach a part of what their new state is made of. Gradients, their map, items and truncation are "
    "autograd's, which stops there; Jacobians and what is made of them (lags, spectra, Lyapunov exponents) are "
    "derivatives of the step as a function, through what is detached, and do not say how the gradient flows."
)
PARTS = (
    "The model cuts the gradient of {0} of {1} before {2} (detach, .data or no_grad): of a later loss only what flows "
    "through the rest of the state reaches the steps before. Jacobians and their products are derivatives of the step "
    "as a function, across the cut."
)
NOT_ITEMISED = "The model cuts the gradient of {} (detach), so it is not split by the step of the loss."
SPLIT = ("gradient/lag_map", "bptt", "truncation")
MOST = 6


def say_why(trace: Trace, emit: Emitter) -> None:
    """Refuse what a loss would have given and did not, for every recurrence; nothing without a loss."""
    if not trace.loss_given or trace.observed:
        return
    if not trace.backward_ran:
        for recurrence in trace.recurrences:
            for signal in ("gradient/state_norm", *SPLIT):
                emit.refuse(f"{recurrence.place}:{signal}", NO_LOSS_GRADIENT)
        return
    for recurrence in trace.recurrences:
        if recurrence.check is None or recurrence.check.passed:
            _say(trace, recurrence, emit)


def _say(trace: Trace, recurrence: Recurrence, emit: Emitter) -> None:
    place = recurrence.place
    if recurrence.delta is None:
        told = dict(emit.refused)
        if f"{place}:gradient" in told:
            return
        own = list(_weights(trace, place))
        reason = (FROZEN if own and not any(own) else WITHOUT).format(place)
        reason = told.get(f"{place}:gradient/state_norm", reason)  # they were there, and did not agree, say
        for signal in ("gradient/state_norm", *SPLIT):
            emit.refuse(f"{place}:{signal}", reason)
        return
    if recurrence.partly_cut:
        emit.refuse(f"{place}:gradient/detached_parts", PARTLY.format(place))
    for part, steps in _parts_cut(recurrence).items():
        emit.refuse(f"{place}:gradient/detached_parts", PARTS.format(part, place, _steps(steps)))
    if recurrence.cut_before:
        emit.refuse(f"{place}:gradient/past_cuts", CUT.format(place, _steps(recurrence.cut_before)))
        emit.scalar(f"{place}:gradient/past_cuts", float(len(recurrence.cut_before)))
        emit.scalar(f"{place}:gradient/past_cuts/most", float(recurrence.steps - 1))
        if (recurrence.ran or recurrence).arriving is None:
            for signal in SPLIT:
                emit.refuse(f"{place}:{signal}", NOT_ITEMISED.format(place))


def _parts_cut(recurrence: Recurrence) -> dict[str, tuple[int, ...]]:
    """The steps before which one part of the state is cut, and not all of it, by the part's name."""
    found: dict[str, list[int]] = {}
    for step, joined in recurrence.cuts.items():
        for name, entries in recurrence.cell.parts.items() if bool(joined.any()) else ():
            if not bool(joined[entries].any()):
                found.setdefault(name, []).append(step)
    return {name: tuple(sorted(steps)) for name, steps in found.items()}


def _weights(trace: Trace, place: str) -> list[bool]:
    """Whether each parameter of a place's module is trained."""
    module = place.partition("#")[0].removesuffix(".reverse")
    names = dict(trace.subject.model.named_parameters())
    for outer in (module, module.rpartition(".l")[0]):
        own = [value.requires_grad for name, value in names.items() if outer and name.startswith(f"{outer}.")]
        if own:
            return own
    return [value.requires_grad for value in names.values()] if module == "model" else []


def _steps(numbers: tuple[int, ...]) -> str:
    """ "step 6", "steps 4, 8 and 12", "each of 99 steps from 1 to 99"."""
    if len(numbers) > MOST:
        return f"each of {len(numbers)} steps from {numbers[0]} to {numbers[-1]}"
    words = list(map(str, numbers))
    return f"step {words[0]}" if len(words) == 1 else f"steps {', '.join(words[:-1])} and {words[-1]}"
