"""∂ℓ_t/∂h_s: the gradient of each loss of an answer at every state of the encoder that read the question.

Autograd gives the gradient where the encoder's states leave it (its output, its last state); inside the encoder it is
taken back from state to state in closed form, for all losses at once, by the cells' own products.

Letters: n losses, t steps of the encoder, b batch, s entries of its state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence

from inspector.engine.analyses.attention.attended import following
from inspector.engine.analyses.input_gradients import spaced
from inspector.engine.analyses.rerun import undisturbed
from inspector.engine.cells.family import sequence_family
from inspector.engine.errors import Unsupported, model_error
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Recurrence, Trace

BLOCK = 64
"""Steps whose coefficients are computed at once."""
AGAIN = "The model, called again,"
NO_ANSWER = "The loss has the steps of the input, so {} is no encoder of another sequence; see gradient/lag_map."
NO_LOSS = "There is no loss at every step of the output, so no step of the answer has a gradient of its own."
SEVERAL = "{} was called {} times; the states of an encoder are followed where it reads its input in one call."
NOT_FUSED = "{} is no module that runs whole sequences, and inside others the states are not followed for each loss."


@dataclass(slots=True)
class Returned:
    """What a module that runs whole sequences returned at each call, with its graph."""

    module: nn.Module
    calls: list[Any] = field(default_factory=list)


@dataclass(slots=True)
class AnswerGradients:
    """One more call of the model: the losses of the answer's steps, and what its encoders returned."""

    trace: Trace
    steps: list[int]
    losses: list[Tensor]
    returned: dict[str, Returned]

    def at(self, recurrence: Recurrence, emit: Emitter) -> Tensor:
        """(n, t) ‖∂ℓ_n/∂h_t‖ at the states of one layer in one direction, the last layer of its module.

        Raises Unsupported.
        """
        name, layer, direction = _layer_of(recurrence)
        seen = self.returned.get(name)
        family = None if seen is None else sequence_family(seen.module)
        if seen is None or family is None:
            raise Unsupported(NOT_FUSED.format(recurrence.place))
        if len(seen.calls) != 1:
            raise Unsupported(SEVERAL.format(name, len(seen.calls)))
        stack = family.stack(seen.module)
        if layer != stack.layers - 1:
            raise Unsupported(f"{recurrence.place} is not the last layer of {name}, off which the answer reads.")
        results = family.results(seen.module, seen.calls[0])
        if results is None:
            raise Unsupported(f"{name} returned something else than its output and its last state.")
        output, finals = results
        arriving = self._arriving(recurrence, output, finals, stack.batch_first, stack.directions, direction)
        return _taken_back(recurrence, self.trace.look_at, arriving, emit)

    def _arriving(
        self, recurrence: Recurrence, output: Any, finals: tuple[Tensor, ...], batch_first: bool, count: int, which: int
    ) -> Tensor:
        """(n, t, s) what reaches the states of the selected sequence from outside, in processing order."""
        sample, length = self.trace.look_at, recurrence.length(self.trace.look_at)
        packed = isinstance(output, PackedSequence)
        asked = [output.data if packed else output, *finals]
        cell, index = recurrence.cell, sample - recurrence.base
        x, states = recurrence.x[:length, index : index + 1], recurrence.states[1 : length + 1, index : index + 1]
        found = []
        for loss in self.losses:
            slopes = torch.autograd.grad(loss, asked, retain_graph=True, allow_unused=True)
            total = states.new_zeros(states[:, 0].shape)
            if slopes[0] is not None:
                whole = _padded(output, slopes[0]) if packed else slopes[0]
                rows = whole if whole.dim() == 2 else whole[sample] if batch_first and not packed else whole[:, sample]
                own = rows[:length].chunk(count, dim=-1)[which].to("cpu")
                own = own.flip(0) if recurrence.reverse else own
                total = total + cell.emitted_vjp(x, states, own[:, None])[0][:, 0]
            for part, slope in zip(cell.parts.values(), slopes[1:], strict=False):
                if slope is not None:
                    last = slope.unflatten(0, (-1, count))[-1, which]
                    total[-1, part] += (last if last.dim() == 1 else last[sample]).to(total)
            found.append(total)
        return torch.stack(found)


def _padded(output: PackedSequence, slope: Tensor) -> Tensor:
    """(t, b, o) the gradient at a packed output."""
    given = PackedSequence(slope, output.batch_sizes, output.sorted_indices, output.unsorted_indices)
    return pad_packed_sequence(given)[0]


def _taken_back(recurrence: Recurrence, sample: int, arriving: Tensor, emit: Emitter) -> Tensor:
    """(n, t) norms of the total gradients, in sequence order."""
    length, main = recurrence.length(sample), recurrence.cell.parts[recurrence.cell.main]
    carried, norms = torch.zeros_like(arriving[:, 0]), torch.zeros(arriving.shape[:2], dtype=torch.float64)
    for begin, block in reversed(list(recurrence.blocks(sample, BLOCK))):
        emit.check()
        for step in range(begin + block.shape[0] - 1, begin - 1, -1):
            carried += arriving[:, step]
            norms[:, step] = carried[:, main].double().norm(dim=1)
            block.back_(carried, step - begin)
    assert length == norms.shape[1]
    return norms.flip(1) if recurrence.reverse else norms


def _layer_of(recurrence: Recurrence) -> tuple[str, int, int]:
    """(module, number of the layer, direction) of a place like "encoder.l0.reverse"."""
    place = recurrence.place.removesuffix(".reverse")
    name, _, layer = place.rpartition(".l")
    return name, int(layer) if layer.isdigit() else -1, int(recurrence.reverse)


def answer_gradients(trace: Trace, most: int) -> AnswerGradients:
    """Call the model again. Raises Unsupported where the loss has no steps of its own."""
    if trace.loss is None or trace.answer is None:
        raise Unsupported(NO_LOSS)
    subject = trace.subject
    with undisturbed(subject.model, trace.seed), following(subject.model), _returned(subject.model) as returned:
        batch = subject.placed(trace.batch)
        try:
            output = subject.run(batch)
            loss = subject.loss_of(output, batch)
        except (Exception, SystemExit) as fault:  # noqa: BLE001 - the user's code may raise anything
            raise Unsupported(str(model_error(fault, AGAIN))) from None
    if not isinstance(loss, Tensor) or not loss.requires_grad or loss.shape != trace.loss.shape:
        raise Unsupported(NO_LOSS)
    steps = spaced(trace.answer.length(trace.look_at), most)
    return AnswerGradients(trace, steps, [loss[trace.look_at, step] for step in steps], returned)


@contextmanager
def _returned(model: nn.Module) -> Iterator[dict[str, Returned]]:
    """What the modules that run whole sequences return while the context is open, by name."""
    found: dict[str, Returned] = {}

    def hook(name: str) -> Callable[..., None]:
        def called(module: nn.Module, _args: Any, result: Any) -> None:
            found.setdefault(name, Returned(module)).calls.append(result)

        return called

    handles = [
        module.register_forward_hook(hook(name or type(module).__name__.lower()))
        for name, module in model.named_modules()
        if sequence_family(module) is not None
    ]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()
