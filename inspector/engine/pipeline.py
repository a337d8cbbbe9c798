"""One run: attach the probes, call the model as its author would, one backward pass, then every quantity by order.

The model is left exactly as it was: parameters, buffers, gradients, hooks, training flags and random state, also
when it raises half-way; what was seen until then is still turned into channels.
"""

from __future__ import annotations

import gc
import os
import random
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from inspector.capture import CaptureError
from inspector.engine.errors import CancelledError, InputError, ModelError, Unsupported
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.probes import Probe
from inspector.engine.registries import PROBES, QUANTITIES
from inspector.engine.session.wording import class_name, text_of, told
from inspector.engine.trace.emitter import Emitter, Sink
from inspector.engine.trace.target_steps import read_answer, settle
from inspector.engine.trace.trace import Trace
from inspector.records import VOCABULARY_DOMAIN, Frame, Log

Told = Callable[[float, float, str], None]
PARAMETER_BYTES = 2 << 30
"""Most memory that the gradients of the parameters may take."""
CLIPPING = "parameters:clipping"


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
    shelf (empty: all); `places` and `editor` are for edited runs, `states` corrects what was taken for a state.
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
        emit.labels("step", batch.names[batch.look_at])
    if subject.vocabulary is not None:
        emit.labels(VOCABULARY_DOMAIN, list(subject.vocabulary), every_frame=True)
    if subject.labels is not None:
        emit.labels("class", list(subject.labels), every_frame=True)


@contextmanager
def unchanged(model: nn.Module, seed: int) -> Iterator[None]:
    """Seeded random state inside, the old one afterwards; buffers and training flags put back if the run moved them."""
    states = (random.getstate(), np.random.get_state(), torch.get_rng_state())
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    modes = [(module, module.training) for module in model.modules()]
    buffers = [
        (module, name, buffer, None if buffer is None else buffer.detach().clone())
        for module in model.modules()
        for name, buffer in module._buffers.items()
    ]
    collecting = gc.isenabled()
    gc.disable()  # probes keep what the model makes; the collector would walk over all of it, again and again
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
        torch.set_rng_state(states[2])
        if cuda:
            torch.cuda.set_rng_state_all(cuda)
        if collecting:
            gc.enable()
        for module, mode in modes:
            module.training = mode
        with torch.no_grad():
            for module, name, buffer, value in buffers:
                module._buffers[name] = buffer  # a model may have put another tensor in its place
                if buffer is not None and value is not None and not torch.equal(buffer, value):
                    buffer.copy_(value)


def _observe(trace: Trace, emit: Emitter, probes: list[Probe]) -> ModelError | None:
    """Run the model under the probes, and the one backward pass; what went wrong in the model, if anything did."""
    failure: ModelError | None = None
    wants = trace.subject.loss is not None
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
    if subject.loss is None:
        return
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
    """The subject's loss; kept by step only where it has one value a step, refused with the reason elsewhere."""
    subject, batch = trace.subject, trace.batch
    assert subject.loss is not None
    call: Callable[..., object] = subject.loss
    try:
        loss = call(output, batch)
    except (Exception, SystemExit) as fault:
        raise model_error(fault, f"The loss of {subject.name}") from fault
    answer = trace.answer
    expected = tuple(batch.inputs.shape[:2]) if answer is None else (len(batch.lengths), answer.steps)
    if not isinstance(loss, Tensor):
        emit.refuse("output:loss", f"The loss is a {type(loss).__name__}; expected a tensor of shape {expected}.")
        return None
    if tuple(loss.shape) == expected:
        trace.loss = loss.detach()
    else:
        emit.refuse(
            "output:loss",
            f"The loss has shape {tuple(loss.shape)}; expected one value a step, {expected}: reduction='none', and NaN "
            "where a step carries none. Gradients are those of its sum.",
        )
        if loss.numel():
            emit.scalar("output:loss/mean", float(loss.detach().double().nanmean()))
    return loss


def model_error(fault: BaseException, who: str = "The model") -> ModelError:
    """One sentence about what the user's code (`who`) raised, with the user's own frames as details."""
    own = str(Path(__file__).parent.parent)
    frames = [f for f in traceback.extract_tb(fault.__traceback__) if not f.filename.startswith(own)]
    user = [f for f in frames if f"{Path(torch.__file__).parent}" not in f.filename] or frames
    where = f" ({Path(user[-1].filename).name}, line {user[-1].lineno})" if user else ""
    said = text_of(fault)
    text = " ".join(said.split())[:200]
    if isinstance(fault, SystemExit):
        text = f"it asked Python to exit with {text or 0}"
    details = "".join(traceback.format_list(frames)) + f"{class_name(fault)}: {said}"
    sentence = f"{who} raised {class_name(fault)}{where}: {text or 'no message'}"
    return ModelError(sentence.rstrip(".") + ".", details)


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
    emit.refuse(channel, f"{what} failed with {told(fault)} ({place}).")


def set_threads() -> int:
    """Leave one core to the window: torch's default of all cores made small models 10 to 70 times slower."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 2
    count = max(1, cores - 1)
    torch.set_num_threads(count)
    return count
