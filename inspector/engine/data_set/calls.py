"""One call of the model on one batch, with its backward pass, and ‖∂L/∂θ‖² of each sequence of the batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import get_gradient_edge

from inspector.capture import CaptureError
from inspector.engine.analyses.real_numbers import real_numbers
from inspector.engine.data_set.gradient_uses import FusedKernelError, Layout, UndecidedError, Uses, uses_of
from inspector.engine.errors import CancelledError, InputError, ModelError, Unsupported, model_error
from inspector.engine.hooks.isolation import unchanged
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline.observe import Observation, observe
from inspector.engine.pipeline.results import keep_output, loss_of
from inspector.engine.registries import PROBES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Trace
from inspector.records import Refusal

NO_SINGLE_LOSS = "the loss is one number for the whole batch"


class Notes:
    """A sink that keeps the refusals of a call, and nothing else."""

    def __init__(self) -> None:
        self.refused: dict[str, str] = {}

    def write(self, record: Any) -> None:
        """Take one record."""
        if isinstance(record, Refusal):
            self.refused.setdefault(record.channel, record.reason)


@dataclass(slots=True, kw_only=True)
class How:
    """How calls are made.

    Attributes:
        seed: of everything random while the model runs.
        states: see RunOptions.
        probes: keys of the probes to attach; empty for all.
        compared: whether gradients inside fused layers have been compared with autograd's before.
        plain: whether oneDNN is off, so that autograd's graph has the steps of fused layers.
        layouts: of the rows of each parameter's use, as far as the check against sequences run alone has decided them;
            None before it.
    """

    seed: int = 0
    states: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    probes: tuple[str, ...] = ()
    compared: bool = False
    plain: bool = False
    layouts: Mapping[str, Layout] | None = None


@dataclass(slots=True)
class Called:
    """What a call gave.

    Attributes:
        loss_unit: of the loss.
        squares: ‖∂L/∂θ‖² by parameter, (b,) float64, L the sum of a sequence's own loss; None without a loss.
        uses: of a batch: the uses of the parameters, from which `squares` can be had in other layouts.
        reason: why the sequences of the batch have to be run one by one; "" where they need not.
    """

    trace: Trace
    refused: dict[str, str]
    loss_unit: str = "1"
    squares: dict[str, Tensor] | None = None
    uses: Uses | None = None
    reason: str = ""


def call(subject: Subject, batch: Batch, how: How) -> Called:
    """Run the model as its author would, with one backward pass. Raises ModelError, InputError, CancelledError.

    The model is left as it was (see hooks/isolation.py).
    """
    notes = Notes()
    trace = Trace(subject, subject.placed(batch), states=how.states, compared=how.compared)
    trace.parameter_gradients.wanted = False  # those of each sequence are found by the uses of the parameters
    found = Called(trace, notes.refused)
    emit = Emitter(notes)
    probes = [PROBES[key]() for key in how.probes or PROBES]
    watched = observe(subject.model, trace, emit, probes)
    with _kernels(how.plain), unchanged(subject.model, how.seed):
        try:
            with watched, torch.set_grad_enabled(subject.may_give_loss(batch)):
                _forward_and_backward(found, watched, emit, how)
        except (CancelledError, CaptureError, InputError, ModelError, FusedKernelError, UndecidedError):
            trace.forget_requests()
            raise
        except (Exception, SystemExit) as fault:
            trace.forget_requests()
            raise model_error(fault) from fault
        watched.finish()
    return found


@contextmanager
def _kernels(plain: bool) -> Iterator[None]:
    """Without oneDNN if `plain`."""
    before = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(before and not plain)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(before)


def _forward_and_backward(found: Called, watched: Observation, emit: Emitter, how: How) -> None:
    trace = found.trace
    output = trace.subject.run(trace.batch)
    watched.returned()
    keep_output(trace, output, emit)
    loss = loss_of(trace, output, emit)
    found.loss_unit = emit.loss_unit
    if loss is None or not loss.requires_grad:
        return
    if trace.loss is None and trace.batch.size > 1:
        found.reason = NO_SINGLE_LOSS
    named = trace.subject.model.named_parameters()
    parameters: dict[str, Tensor] = {name: value for name, value in named if value.requires_grad}
    assert trace.loss_carried is not None
    total = torch.where(trace.loss_carried.to(loss.device), loss, 0.0).sum()
    if trace.batch.size > 1 and not found.reason:
        try:
            found.uses = uses_of(total, parameters)
        except FusedKernelError:
            raise
        except Unsupported as reason:
            found.reason = f"{reason}, of which the gradient of each sequence of a batch is not known"
    try:
        gradients = _backward(trace, total, parameters if found.uses is None else found.uses)
    finally:
        if found.uses is not None:
            found.uses.release()
    if trace.batch.size == 1:
        found.squares = {name: _square(value) for name, value in gradients.items()}
    elif found.uses is not None and how.layouts is not None:
        found.squares = found.uses.squares(trace.batch.size, how.layouts)


def _square(gradient: Tensor) -> Tensor:
    """(1,) float64: ‖·‖² of a gradient."""
    return real_numbers(gradient.detach()).cpu().double().square().sum()[None]


def _backward(trace: Trace, total: Tensor, parameters: Mapping[str, Tensor] | Uses) -> dict[str, Tensor]:
    """The one backward pass; gradients of the parameters that a loss depends on. No tensor's own .grad is touched.

    Where the uses of the parameters are known, the gradients at these are requested, and none of a parameter: their
    sums over the batch would take a third of the pass, and nobody reads them.
    """
    edges = [request.edge for request in trace.gradient_requests if request.edge is not None]
    uses = parameters if isinstance(parameters, Uses) else None
    named = {} if isinstance(parameters, Uses) else parameters
    wanted = [*edges, *(uses.edges() if uses is not None else map(get_gradient_edge, named.values()))]
    if not wanted:
        return {}
    gradients = torch.autograd.grad(total, wanted, allow_unused=True, retain_graph=trace.keep_graph)
    if uses is not None:
        uses.take(gradients[len(edges) :])
        return {}
    return {name: value for name, value in zip(named, gradients[len(edges) :], strict=True) if value is not None}
