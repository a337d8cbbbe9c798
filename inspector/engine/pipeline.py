"""One run: attach the probes, call the model as its author would, one backward pass, then every quantity by order.

The model is left exactly as it was: parameters, buffers, gradients, hooks, training flags and random state, also
when it raises half-way; what was seen until then is still turned into channels.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from inspector.capture import CaptureError
from inspector.engine.contracts import Probe
from inspector.engine.errors import CancelledError, InputError, ModelError, Unsupported, model_error
from inspector.engine.hooks.isolation import unchanged
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.registries import PROBES, QUANTITIES
from inspector.engine.trace.emitter import Emitter, Sink
from inspector.engine.trace.target_steps import answer_of_input, output_steps, read_answer, settle
from inspector.engine.trace.trace import Trace
from inspector.records import CLASS_DOMAIN, STEP_DOMAIN, VOCABULARY_DOMAIN, Frame, Log

Told = Callable[[float, float, str], None]
PARAMETER_BYTES = 2 << 30
"""Most memory that the gradients of the parameters may take."""
CLIPPING = "parameters:clipping"
OWN_LOSS = "The loss and its gradients are the model's own: the subject gives none, and the output has `loss`."
WITHOUT_GRADIENTS = (
    "The output has a loss, but the model ran without gradients, since nothing in its code told of one. For gradients "
    "give the subject `loss=lambda output, batch: output.loss`."
)
SCALAR = (
    "The loss in the model's output is one number, so there is none of each step (a `loss` of the subject's gives one, "
    "with reduction='none'). Gradients are those of the one number."
)


def perform(
    subject: Subject,
    batch: Batch,
    sink: Sink,
    *,
    quantities: Sequence[str] = (),
    cancelled: Callable[[], bool] = lambda: False,
    progress: Told = lambda _done, _total, _text: None,
    seed: int = 0,
    frame: Frame | None = None,
    only_looked_at: bool = False,
    probes: Sequence[str] = (),
    places: dict[int, str] | None = None,
    editor: Any = None,
    states: Mapping[str, tuple[str, ...]] | None = None,
) -> Trace:
    """Run the subject on the batch and write one frame to the sink.

    The model runs in the mode it is in (`opening` puts it into eval mode). Raises InputError for unknown
    quantities, ModelError when the model raised (after writing what was seen), CancelledError. `probes` are keys of the
    registry (empty: all); `places` and `editor` are for edited runs, `states` corrects what was taken for a state.
    """
    chosen = chosen_quantities(quantities)
    moment = frame if frame is not None else Frame(index=0, label=batch.title)
    emit = Emitter(sink, moment.index, cancelled, progress)
    sink.write(moment)
    _write_labels(subject, batch, emit)
    trace = Trace(
        subject, batch, only_looked_at=only_looked_at, places=places or {}, editor=editor, states=states or {},
        editing=places is not None,
    )  # fmt: skip
    trace.parameter_gradients = {} if any(QUANTITIES[key].parameter_gradients for key in chosen) else None
    failure: ModelError | None = None
    total = len(chosen) + 1.0
    progress(0, total, "the model runs")
    with unchanged(subject.model, seed):
        failure = _observe(trace, emit, [PROBES[key]() for key in probes or PROBES])
    for done, key in enumerate(chosen):
        emit.check()
        progress(done + 1.0, total, QUANTITIES[key].summary)
        _compute(key, trace, emit)
    progress(total, total, "done")
    if failure is not None:
        raise failure
    return trace


def chosen_quantities(quantities: Sequence[str]) -> list[str]:
    """The keys to compute, small first; empty means the default set. Raises InputError for an unknown one."""
    for key in quantities:
        if key not in QUANTITIES:
            raise InputError(f"There is no quantity {key!r}; there are {', '.join(QUANTITIES)}.")
    keys = [key for key, entry in QUANTITIES.items() if (key in quantities if quantities else entry.default)]
    return sorted(keys, key=lambda key: (QUANTITIES[key].order, key))


def _write_labels(subject: Subject, batch: Batch, emit: Emitter) -> None:
    if batch.names and batch.names[batch.look_at]:
        emit.labels(STEP_DOMAIN, batch.names[batch.look_at])  # those of other inputs: trace/target_steps.py
    for name, one in subject.declared.items():
        domain = subject.vocabulary_domain(name)
        if one.vocabulary is not None and domain != VOCABULARY_DOMAIN:
            emit.labels(domain, list(map(str, one.vocabulary)), every_frame=True)
    if subject.vocabulary is not None:
        emit.labels(VOCABULARY_DOMAIN, list(map(str, subject.vocabulary)), every_frame=True)
    if subject.labels is not None:
        emit.labels(CLASS_DOMAIN, list(map(str, subject.labels)), every_frame=True)


def _observe(trace: Trace, emit: Emitter, probes: list[Probe]) -> ModelError | None:
    """Run the model under the probes, and the one backward pass; what went wrong in the model, if anything did."""
    failure: ModelError | None = None
    wants = trace.subject.may_give_loss(trace.batch)
    try:
        for probe in probes:
            probe.attach(trace.subject.model, trace, emit)
        with torch.set_grad_enabled(wants):
            try:
                _forward(trace, emit)
            except (CancelledError, CaptureError, InputError):
                raise
            except ModelError as fault:
                failure = fault
            except (Exception, SystemExit) as fault:  # noqa: BLE001 - the user's model may raise anything
                failure = _with_hint(model_error(fault), trace)
    finally:
        for probe in probes:
            probe.detach()
    for probe in probes:
        _finish(probe, trace, emit)
    settle(trace, emit)
    trace.wants_gradient.clear()
    trace.after_forward.clear()
    return failure


def _forward(trace: Trace, emit: Emitter) -> None:
    subject, batch = trace.subject, trace.batch
    started = time.perf_counter()
    output = subject.run(batch)
    emit.scalar("run:forward_seconds", time.perf_counter() - started)
    for look in trace.after_forward:
        look()
    trace.output = output
    scores = subject.scores(output)
    trace.logits = None if scores is None else scores.detach()
    if subject.answer is not None:
        _answer(trace, output, emit)
    else:
        steps = output_steps(output, scores, batch.size)
        trace.answer = None if steps is None else answer_of_input(trace, steps)
    loss = _loss(trace, output, emit)
    if loss is None:
        return
    trace.loss_terms = int((~loss.detach().isnan()).sum())
    if loss.requires_grad:
        _backward(trace, loss.nansum(), emit)


def _backward(trace: Trace, total: Tensor, emit: Emitter) -> None:
    """One backward pass for all that probes and quantities want; no tensor's own .grad is touched."""
    wanted = [(tensor, take) for tensor, take in trace.wants_gradient if tensor.requires_grad]
    parameters = wanted_parameters(trace, emit)
    tensors = [*(tensor for tensor, _ in wanted), *parameters.values()]
    if not tensors:
        return
    try:
        gradients = torch.autograd.grad(total, tensors, allow_unused=True, retain_graph=trace.keep_graph)
    except RuntimeError as fault:
        if wanted:
            raise
        emit.refuse(CLIPPING, f"The gradient of the parameters could not be computed: {fault}.")
        trace.parameter_gradients = None
        return
    for (_, take), gradient in zip(wanted, gradients, strict=False):
        take(gradient)
    if trace.parameter_gradients is not None:
        own = zip(parameters, gradients[len(wanted) :], strict=True)
        trace.parameter_gradients.update((name, gradient) for name, gradient in own if gradient is not None)


def wanted_parameters(trace: Trace, emit: Emitter) -> dict[str, Tensor]:
    """The trainable parameters by name, where a quantity asked for their gradients and they fit the memory."""
    if trace.parameter_gradients is None:
        return {}
    named = trace.subject.model.named_parameters()
    found: dict[str, Tensor] = {name: value for name, value in named if value.requires_grad}
    size = sum(value.nbytes for value in found.values())
    if size > PARAMETER_BYTES:
        trace.parameter_gradients = None
        reason = f"The gradient of all parameters takes {size / 2**30:.3g} GiB; up to {PARAMETER_BYTES >> 30} are kept."
        emit.refuse(CLIPPING, reason)
        return {}
    return found


def _answer(trace: Trace, output: object, emit: Emitter) -> None:
    """The steps of the answer, or the reason why they are not known."""
    try:
        trace.answer = read_answer(trace.subject, output, trace.batch, trace.logits)
    except Unsupported as reason:
        emit.refuse("output:answer", str(reason))
    except (Exception, SystemExit) as fault:
        raise model_error(fault, f"`answer` of {trace.subject.name}") from fault


def _loss(trace: Trace, output: object, emit: Emitter) -> Tensor | None:
    """The loss of the subject, or else of the output, or None where there is none.

    It is kept by step only where it has one value a step, and refused with the reason elsewhere.
    """
    subject, batch = trace.subject, trace.batch
    call: Callable[..., object] = subject.loss_of
    try:
        loss = call(output, batch)
    except (Exception, SystemExit) as fault:
        raise model_error(fault, f"The loss of {subject.name}") from fault
    if subject.loss is None:
        if loss is None:
            return None
        own = isinstance(loss, Tensor) and loss.requires_grad
        emit.sink.write(Log(OWN_LOSS if own else WITHOUT_GRADIENTS, "info" if own else "warning", "engine"))
    if trace.answer is None and subject.answer is None and isinstance(loss, Tensor) and loss.dim() == 2:
        trace.answer = answer_of_input(trace, loss.shape[1])
    answer = trace.answer
    expected = (batch.size, batch.steps if answer is None else answer.steps)
    if not isinstance(loss, Tensor):
        emit.refuse("output:loss", f"The loss is a {type(loss).__name__}; expected a tensor of shape {expected}.")
        return None
    if tuple(loss.shape) == expected:
        trace.loss = loss.detach()
    elif subject.loss is None and not loss.dim():
        emit.refuse("output:loss", SCALAR)
        emit.scalar("output:loss/mean", float(loss.detach()))
    else:
        emit.refuse(
            "output:loss",
            f"The loss has shape {tuple(loss.shape)}; expected one value a step, {expected}: reduction='none', and NaN "
            "where a step carries none. Gradients are those of its sum.",
        )
        if loss.numel():
            emit.scalar("output:loss/mean", float(loss.detach().double().nanmean()))
    return loss


def _with_hint(error: ModelError, trace: Trace) -> ModelError:
    """The same, with what may be wrong where the width of the input is only a guess."""
    if not trace.subject.guessed or trace.batch.inputs.dim() != 3:
        return error
    width, first = trace.batch.inputs.shape[-1], trace.subject.width
    hint = f"The sequence has {width} numbers a step; the first layer of the model reads {first}."
    if width == first:
        hint = f"The input has {width} numbers a step because the first layer has; give a sequence, or a `width`."
    return ModelError(f"{error} {hint}", error.details)


def _compute(key: str, trace: Trace, emit: Emitter) -> None:
    try:
        QUANTITIES[key].run(trace, emit)
    except (CancelledError, CaptureError):
        raise
    except Exception as fault:  # noqa: BLE001 - one quantity may not take the others along
        _failed(f"run:{key}", "Computing it", fault, emit)


def _finish(probe: Probe, trace: Trace, emit: Emitter) -> None:
    try:
        probe.finish(trace, emit)
    except (CancelledError, CaptureError):
        raise
    except Exception as fault:  # noqa: BLE001 - one probe may not take what the others saw along
        name = type(probe).__name__
        _failed(f"run:{name.lower()}", f"Laying out what the probe {name} saw", fault, emit)


def _failed(channel: str, what: str, fault: Exception, emit: Emitter) -> None:
    where = traceback.extract_tb(fault.__traceback__)[-1]
    emit.sink.write(Log(traceback.format_exc(), "error", "engine"))
    place = f"{Path(where.filename).name}, line {where.lineno}"
    emit.refuse(channel, f"{what} failed with {type(fault).__name__}: {fault} ({place}).")


def set_threads() -> int:
    """Leave one core to the window: torch's default of all cores made small models 10 to 70 times slower."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 2
    count = max(1, cores - 1)
    torch.set_num_threads(count)
    return count
