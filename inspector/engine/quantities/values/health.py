"""Health of every captured tensor: how many values are −∞, negative, zero, positive, +∞, NaN, and where the first
non-finite one is."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from inspector.engine.analyses.idle_steps import computed
from inspector.engine.analyses.real_numbers import real_numbers
from inspector.engine.model.batch import INPUT
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Attention, Recurrence, Trace

COUNTS = ("-inf", "<0", "0", ">0", "+inf", "nan", "first_bad_step")
BLOCK_STEPS = 64
HEALTH = Describe(
    kind="health", compare="separate",
    title="health", formula="counts of −∞, <0, 0, >0, +∞, NaN; first step that is not finite, or −1",
    source="TensorBoard debugger V2", labels={"count": COUNTS},
)  # fmt: skip

Part = tuple[Tensor, Tensor]
"""Values (n, …) and the sequence step of each of the n rows."""


@QUANTITIES.register("health")
@per_run(summary="non-finite and zero values of every captured tensor", order=15)
def health(trace: Trace, emit: Emitter) -> None:
    """Write `X:health/SIGNAL`, (count,) int64, over the real steps of whatever was captured.

    States, gradients, inputs, scores and losses of every sample that was recorded; gates, queries and keys of the
    selected sample; gradients of the parameters. −∞, +∞ and NaN are counted separately and not among the rest.
    """
    for name, module, parts, what in _everything(trace):
        emit.check()
        total = torch.zeros(len(COUNTS), dtype=torch.int64)
        total[-1] = -1
        for values, steps in parts:
            total = merge(total, count(values, steps))
        emit.array(HEALTH.channel(name, ("count",), (len(COUNTS),), "int64", module=module, method=what), total)


def count(values: Tensor, steps: Tensor) -> Tensor:
    """(7,) int64: counts of values (n, …) as in COUNTS; `steps` (n,) is the sequence step of each row.

    The two parts of a complex number count as two.
    """
    values = real_numbers(values)
    below, above, zero = ((values < 0), (values > 0), (values == 0))
    result = torch.zeros(len(COUNTS), dtype=torch.int64)
    result[-1] = -1
    numbers = [int(part.sum()) for part in (below, zero, above)]
    nan = values.numel() - sum(numbers)
    infinite = [0, 0]
    if values.is_floating_point() and values.numel():
        low, high = (values.nan_to_num(0.0, torch.inf, -torch.inf) if nan else values).aminmax()
        if bool(low == -torch.inf) or bool(high == torch.inf):
            infinite = [int((values == -torch.inf).sum()), int((values == torch.inf).sum())]
    counted = (infinite[0], numbers[0] - infinite[0], numbers[1], numbers[2] - infinite[1], infinite[1], nan)
    result[:6] = torch.tensor(counted)
    if nan or any(infinite):
        bad = ~values.flatten(1).isfinite().all(dim=1) if values.dim() > 1 else ~values.isfinite()
        result[-1] = int(steps.to(bad.device)[bad].min())
    return result


def merge(a: Tensor, b: Tensor) -> Tensor:
    """Counts of two parts together: sums, and the earlier of the first bad steps."""
    total = a + b
    first = [int(part[-1]) for part in (a, b) if int(part[-1]) >= 0]
    total[-1] = min(first, default=-1)
    return total


def _everything(trace: Trace) -> Iterator[tuple[str, str, Iterator[Part], str]]:
    """(channel name, module, parts, over what) of each captured tensor."""
    own = "over all real steps of the selected sample"
    every = "over all real steps of all samples"
    yield from _inputs(trace, every)
    if isinstance(trace.output, Tensor) and trace.output is not trace.logits and trace.output.is_floating_point():
        yield "output:health/output", "", _batch_first(trace, trace.output.detach()), every
    if trace.logits is not None:
        yield "output:health/scores", "", _batch_first(trace, trace.logits), every
    yield from _losses(trace, every)
    yield from _parameters(trace)
    for recurrence in trace.recurrences:
        kept = own if recurrence.states.shape[1] < trace.batch.size else every
        place, module = recurrence.place, recurrence.module
        yield f"{place}:health/input", module, _steps(recurrence, recurrence.x), kept
        for name, part in recurrence.cell.parts.items():
            yield f"{place}:health/{name}", module, _steps(recurrence, recurrence.states[1:, :, part]), kept
        for name, gradient in (("arriving", recurrence.arriving), ("state", recurrence.followed)):
            if gradient is not None:
                yield f"{place}:health/gradient/{name}", module, _steps(recurrence, gradient), kept
        if recurrence.check is None or recurrence.check.passed:
            for signal in recurrence.cell.gate_names:
                yield f"{place}:health/{signal}", module, _gate(recurrence, signal, trace.look_at), own
    for attention in trace.attentions:
        for name, values in _tensors(attention, trace.look_at):
            rows = values.transpose(0, 1)
            yield f"{attention.place}:health/attention/{name}", attention.module, iter([(rows, _range(rows))]), own


def _losses(trace: Trace, what: str) -> Iterator[tuple[str, str, Iterator[Part], str]]:
    """The loss at the steps that carry one, so that NaN among them is the model's."""
    if trace.loss is not None and trace.loss_carried is not None:
        rows = [
            (loss[there], _range(loss)[there.cpu()]) for loss, there in zip(trace.loss, trace.loss_carried, strict=True)
        ]
        yield "output:health/loss", "", iter(rows), f"{what} that carry a loss"


def _parameters(trace: Trace) -> Iterator[tuple[str, str, Iterator[Part], str]]:
    """The gradients of all parameters together, and each by itself that is not finite. They have no steps."""
    found = trace.parameter_gradients.every
    broken = [name for name, value in found.items() if not bool(value.isfinite().all())]
    if found:
        every = (_without_steps(value) for value in found.values())
        yield "parameters:health/gradient", "", every, "of the sum of the loss, over all parameters that get one"
    for name in broken:
        yield f"parameters:health/gradient/{name}", "", iter([_without_steps(found[name])]), "of the sum of the loss"


def _without_steps(values: Tensor) -> Part:
    return values.reshape(1, -1), torch.full((1,), -1)


def _inputs(trace: Trace, what: str) -> Iterator[tuple[str, str, Iterator[Part], str]]:
    for name, one in trace.batch.named.items():
        if one.tensor is not None and one.tensor.is_floating_point():
            place = INPUT if name == trace.batch.primary else f"{INPUT}.{name}"
            yield f"{place}:health/value", "", _real_steps(one.tensor, one.steps, one.lengths), what


def _tensors(attention: Attention, sample: int) -> Iterator[tuple[str, Tensor]]:
    at = 0 if attention.kept is not None else sample
    if attention.weights is not None:
        yield "weights", attention.weights[at]
    else:
        yield "query", attention.query[at]
        yield "key", attention.key[at]


def _range(values: Tensor) -> Tensor:
    return torch.arange(values.shape[0])


def _batch_first(trace: Trace, values: Tensor) -> Iterator[Part]:
    """Real steps of (b, t, …); of anything else all of it, with the first axis after the batch as step."""
    steps, lengths = trace.batch.steps, trace.batch.lengths
    if trace.answer is not None:
        steps, lengths = trace.answer.steps, trace.answer.lengths
    return _real_steps(values, steps, lengths)


def _real_steps(values: Tensor, steps: int, lengths: Tensor) -> Iterator[Part]:
    for sample, length in enumerate(lengths.tolist()):
        if values.dim() < 2 or values.shape[0] != len(lengths):
            yield values.reshape(1, -1), torch.zeros(1, dtype=torch.int64)
            return
        own = values[sample, :length] if values.shape[1] == steps else values[sample]
        yield own, _range(own)


def _steps(recurrence: Recurrence, values: Tensor) -> Iterator[Part]:
    """Real steps of (t, b, …) in processing order, with their sequence steps."""
    for column, length in enumerate(recurrence.lengths.tolist()):
        own = values[:length, column]
        yield own, recurrence.in_order(_range(own), column)


def _gate(recurrence: Recurrence, signal: str, sample: int) -> Iterator[Part]:
    for start, block in recurrence.blocks(sample, BLOCK_STEPS):
        values = block.gates[signal][:, 0]
        first = recurrence.sequence_offset(start, len(values), sample)
        steps = recurrence.in_order(torch.arange(first, first + len(values)), sample)
        own = computed(recurrence, signal, torch.ones(len(values), 1, dtype=torch.bool), start)[:, 0]
        yield values[own], steps[own]
