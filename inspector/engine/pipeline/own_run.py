"""A run that the app makes itself: the model is called as its author would call it, with one backward pass.

The model is left exactly as it was: parameters, buffers, gradients, hooks, training flags and random state, also when
it raises half-way; what was recorded until then is still turned into channels.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor

from inspector.capture import CaptureError
from inspector.engine.analyses.attention.batch_axes import settle_axes
from inspector.engine.analyses.attention.keys_again import name_sources
from inspector.engine.analyses.attention.masks_again import settle_masks
from inspector.engine.errors import CancelledError, InputError, ModelError, model_error
from inspector.engine.hooks.isolation import unchanged
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.model.training_mode import said_first
from inspector.engine.pipeline.analyse import analyse, chosen_quantities
from inspector.engine.pipeline.frames import begin_frame
from inspector.engine.pipeline.kept_trace import KeptTrace
from inspector.engine.pipeline.observe import Observation, observe
from inspector.engine.pipeline.options import DEFAULTS, RunOptions
from inspector.engine.pipeline.results import keep_output, loss_of
from inspector.engine.registries import PROBES, quantity_of
from inspector.engine.trace.emitter import Emitter, Sink
from inspector.engine.trace.shares import NOTHING, telling
from inspector.engine.trace.trace import Trace
from inspector.records import Frame, Log, counted, split_request

PARAMETER_BYTES = 2 << 30
"""Most memory that the gradients of the parameters may take."""
NO_ROOM = (
    "This run is too large to be stored in memory, so all quantities are computed in it, not when they are looked at."
)
CLIPPING = "parameters:clipping"
STATES = "states"
"""The quantity that is written first: its panel is the one that a window opens with."""


def perform(
    subject: Subject, batch: Batch, sink: Sink, options: RunOptions = DEFAULTS, *, frame: Frame | None = None
) -> Trace:
    """Run the subject on the batch and write one frame to the sink.

    The model runs in the mode it is in (`opening` puts it into eval mode). Raises InputError for unknown
    quantities, ModelError when the model raised (after writing what was recorded), CancelledError.
    """
    keys = chosen_quantities(options)
    moment = frame if frame is not None else Frame(index=0, label=batch.title)
    emit = begin_frame(subject, batch, sink, options, moment)
    if moment.index == 0:  # the frames after it are of the same model
        for said in said_first(subject):
            sink.write(said)
    trace = Trace(
        subject, batch, only_looked_at=options.only_selected, places=dict(options.places or {}), editor=options.editor,
        states=options.states, editing=options.places is not None, seed=options.seed,
        chosen=frozenset(split_request(key)[0] for key in keys),
    )  # fmt: skip
    trace.parameter_gradients.wanted = any(quantity_of(key)[0].parameter_gradients for key in keys)
    for told in filter(None, (quantity_of(key)[0].before(subject, batch) for key in keys)):
        sink.write(Log(told, "info", "engine"))
    options.progress(0.0, 0.0, "the model runs")
    with unchanged(subject.model, options.seed):
        first = _at_once(keys, options)
        soon = [key for key in first if split_request(key)[0] == STATES]
        failure = _run(trace, emit, options, lambda: _quietly(trace, emit, soon))
    later = [key for key in first if key not in soon]
    begins = moment.index == 0 and failure is None
    analyse(trace, emit, later, options.announce(trace, later) if begins else NOTHING)
    rest = [key for key in keys if key not in first]
    if rest and (failure is not None or not options.room(trace)):  # nothing will be stored to compute them from
        if failure is None:
            sink.write(Log(NO_ROOM, "info", "engine"))
        analyse(trace, emit, rest)
        first = keys
    if failure is not None:
        raise failure
    options.keep(KeptTrace(trace, emit, frozenset(first)))
    return trace


def _quietly(trace: Trace, emit: Emitter, requests: list[str]) -> None:
    """Analyse while the model still runs: of how far that is nothing is known, whatever these quantities tell."""
    with telling(emit, lambda _done, _total, text: None):
        analyse(trace, emit, requests)


def _at_once(keys: list[str], options: RunOptions) -> list[str]:
    """Those of the chosen quantities that are computed in the run."""
    if options.now is None:
        return keys
    return [key for key in keys if key in options.now or split_request(key)[0] in options.now]


def _run(trace: Trace, emit: Emitter, options: RunOptions, early: Callable[[], None]) -> ModelError | None:
    """Run the model under the probes, and the one backward pass; returns the error of the model, if it raised.

    `early`: see `Observation.finish`.
    """
    failure: ModelError | None = None
    probes = [PROBES[key]() for key in options.probes or PROBES]
    watched = observe(trace.subject.model, trace, emit, probes)
    # Before the probes begin, which note where the model itself turns autograd off: a watched training probes without.
    with torch.set_grad_enabled(trace.subject.may_give_loss(trace.batch)), watched:
        try:
            _forward(trace, emit, watched)
        except (CancelledError, CaptureError, InputError):
            trace.forget_requests()  # `finish` will not be called
            raise
        except ModelError as fault:
            failure = fault
        except (Exception, SystemExit) as fault:  # noqa: BLE001 - the user's model may raise anything
            failure = _with_hint(model_error(fault), trace)

    def between() -> None:
        settle_axes(trace, emit)
        settle_masks(trace, emit)
        name_sources(trace)

    watched.between = between
    watched.finish(early)
    return failure


def _forward(trace: Trace, emit: Emitter, watched: Observation) -> None:
    started = time.perf_counter()
    output = trace.subject.run(trace.batch)
    emit.scalar("run:forward_seconds", time.perf_counter() - started)
    watched.returned()
    keep_output(trace, output, emit)
    loss = loss_of(trace, output, emit)
    trace.loss_given = loss is not None
    if loss is not None and loss.requires_grad:
        assert trace.loss_carried is not None
        trace.backward_ran = True
        _backward(trace, torch.where(trace.loss_carried.to(loss.device), loss, 0.0).sum(), emit)


def _backward(trace: Trace, total: Tensor, emit: Emitter) -> None:
    """One backward pass for all gradients that probes and quantities requested; no tensor's own .grad is touched.

    Gradients that probes requested arrive by their hooks; naming the edges makes autograd go there.
    """
    asked = bool(trace.gradient_requests)
    ask_parameters(trace, emit)
    edges = [request.edge for request in trace.gradient_requests if request.edge is not None]
    if not edges:
        return
    try:
        torch.autograd.grad(total, edges, allow_unused=True, retain_graph=trace.keep_graph)
    except RuntimeError as fault:
        if asked:
            raise
        emit.refuse(CLIPPING, f"The gradient of the parameters could not be computed: {fault}.")
        trace.parameter_gradients.give_up()


def ask_parameters(trace: Trace, emit: Emitter) -> None:
    """Request the gradients of all trainable parameters, where a quantity needs them and they fit into memory."""
    if not trace.parameter_gradients.wanted:
        return
    named = trace.subject.model.named_parameters()
    found: dict[str, Tensor] = {name: value for name, value in named if value.requires_grad}
    size = sum(value.nbytes for value in found.values())
    if size > PARAMETER_BYTES:
        reason = f"The gradient of all parameters takes {size / 2**30:.3g} GiB; the limit is {PARAMETER_BYTES >> 30}."
        emit.refuse(CLIPPING, reason)
        return
    trace.parameter_gradients.ask_all(trace.want_gradient, found)


def _with_hint(error: ModelError, trace: Trace) -> ModelError:
    """The same error with a hint at the likely cause, where the width of the input is only a guess."""
    if not trace.subject.guessed or trace.batch.inputs.dim() != 3:
        return error
    width, first = trace.batch.inputs.shape[-1], trace.subject.width
    many, layer = counted(width, "number"), trace.subject.guessed_from
    hint = f"The sequence has {many} a step; {layer}, the first layer that states a width, takes {first}."
    if width == first:
        hint = f"The input has {many} a step because {layer}, the first layer that states a width, takes as many"
        hint += "; if another one reads the sequence, give the subject a `width`, or give a sequence."
    return ModelError(f"{error} {hint}", error.details)


def set_threads() -> int:
    """Leave one core to the window: torch's default of all cores made small models 10 to 70 times slower.

    INSPECTOR_THREADS says another number, at most that of the cores.
    """
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 2
    chosen = os.environ.get("INSPECTOR_THREADS", "")
    count = min(int(chosen), cores) if chosen.isdecimal() and int(chosen) else max(1, cores - 1)
    torch.set_num_threads(count)
    return count
