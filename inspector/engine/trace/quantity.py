"""How a file of the registry of quantities describes itself: one decorator for each kind of function.

A quantity is a pure function of a block of steps (`per_step`), of a whole recurrence (`per_recurrence`), of a
block of attention rows (see engine/attention/rows.py) or of the whole trace (`per_run`). The decorator makes it a
`Quantity`: it runs the function over a Trace and writes the channels. `order` gives the sequence: small results first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from torch import Tensor

from inspector.engine.cells.base import ACROSS, StepBlock
from inspector.engine.errors import NotApplicable, Unsupported
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.shares import part_of, telling
from inspector.engine.trace.trace import KEPT_STEPS, Recurrence, Trace
from inspector.engine.trace.work import CHEAP_ORDER, OfRecurrence, OfRun, over_each
from inspector.records import Channel, Comparison, Option
from inspector.records.catalogue import RECURRENCE

Limit = Callable[[Recurrence, int], object]
BLOCK_STEPS = KEPT_STEPS
"""Steps of a page of per-step quantities: small enough to be shown while they are computed, large enough for batched
products."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """An entry of the registry: what computes it, and its description for window, command line and Python.

    Attributes:
        summary: one sentence.
        run: `run(trace, emit, **options)` computes and writes; it gets a value of every option.
        order: position among the quantities: small results first.
        default: whether it is computed by default.
        needs: what it needs of a model, keys of `records.NEEDS`.
        cost: for one computed on request, its cost as a short text.
        options: what can be set.
        function: the decorated function.
        parameter_gradients: whether the one backward pass also gives the gradients of all parameters.
        work: its work, counted before it is done (see work.py); None where it is not known.
        jacobians: whether it needs all step Jacobians, which are built row by row where there is no closed form.
        found_with: the key of a quantity that finds it too: the work of both is done once.
        before: what is said before the model runs, from the subject and the batch; "" for nothing.
        limit: why the quantity can only be refused for a trace, known from sizes before anything is computed; "" where
            it may be given, for one recurrence at least.
    """

    summary: str
    run: Callable[..., None]
    order: int = 50
    default: bool = True
    needs: tuple[str, ...] = ()
    cost: str = ""
    options: tuple[Option, ...] = ()
    function: Callable[..., Any] | None = None
    parameter_gradients: bool = False
    work: OfRun | None = None
    jacobians: bool = False
    found_with: str = ""
    limit: Callable[[Trace], str] = lambda _trace: ""
    before: Callable[[Subject, Batch], str] = lambda _subject, _batch: ""

    @property
    def cheap(self) -> bool:
        """Whether it is a few passes over what was recorded: small results come first, and larger ones declare work."""
        return self.work is None and self.default and self.order < CHEAP_ORDER


@dataclass(frozen=True, slots=True, kw_only=True)
class Describe:
    """The channel fields that a quantity declares once; see records.Channel for their meaning."""

    kind: str
    unit: str = "1"
    title: str = ""
    formula: str = ""
    source: str = ""
    method: str = "exact"
    scale: Literal["sequential", "diverging", "log"] = "sequential"
    compare: Comparison = "difference"
    limits: tuple[float, float] | None = None
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def channel(
        self, name: str, dims: tuple[str, ...], shape: tuple[int | None, ...], dtype: str, **more: Any
    ) -> Channel:
        """The Channel of this description under a name; `more` overrides fields."""
        own = {key: getattr(self, key) for key in self.__dataclass_fields__}
        return Channel(name=name, dims=dims, shape=shape, dtype=dtype, **{**own, **more})


def dtype_name(tensor: Tensor) -> str:
    """The capture's name of a tensor's dtype; bfloat16 is stored as float32."""
    return "float32" if tensor.dtype == torch.bfloat16 else str(tensor.dtype).removeprefix("torch.")


def per_step(
    describe: Describe,
    *,
    signal: str,
    summary: str,
    order: int = 50,
    default: bool = True,
    block_steps: int = BLOCK_STEPS,
    closed_steps: Callable[[int], int] | None = None,
    needs: tuple[str, ...] = (),
    cost: str = "",
    options: tuple[Option, ...] = (),
    work: OfRecurrence | None = None,
    jacobians: bool = False,
) -> Callable[[Callable[..., Tensor]], Quantity]:
    """A quantity `f(block, **options) -> (t, b)`: one number a step, of every recurrence, for the selected sample.

    Blocks have `block_steps`; where derivatives are closed forms, which are cheap to compute again, `closed_steps` of
    the number of state entries.
    """

    def wrap(function: Callable[..., Tensor]) -> Quantity:
        def one(recurrence: Recurrence, emit: Emitter, sample: int, **values: Any) -> None:
            name = f"{recurrence.place}:{signal}"
            closed = None if recurrence.cell.method else closed_steps
            size = block_steps if closed is None else closed(recurrence.cell.state_size)
            for start, block in recurrence.blocks(sample, size):
                numbers = recurrence.in_order(function(block, **values)[:, 0], sample)
                about = how(describe, recurrence)
                length = recurrence.length(sample)
                emit.channel(about.channel(name, ("step",), (length,), dtype_name(numbers), module=recurrence.module))
                emit.page(name, (recurrence.sequence_offset(start, len(numbers), sample),), numbers)
                emit.tell(start + len(numbers), length)

        return Quantity(
            summary=summary, order=order, default=default, needs=(RECURRENCE, *needs), cost=cost, options=options,
            function=function, work=over_each(work), jacobians=jacobians, run=_each_recurrence(signal, one),
        )  # fmt: skip

    return wrap


def how(describe: Describe, recurrence: Recurrence) -> Describe:
    """The description with the method by which derivatives are found, where that is not the closed form."""
    exact = describe.method == "exact" and recurrence.cell.method
    return replace(describe, method=recurrence.cell.method) if exact else describe


def per_recurrence(
    *,
    signal: str,
    summary: str,
    order: int = 50,
    default: bool = True,
    needs: tuple[str, ...] = (),
    cost: str = "",
    options: tuple[Option, ...] = (),
    parameter_gradients: bool = False,
    work: OfRecurrence | None = None,
    jacobians: bool = False,
    found_with: str = "",
    limit: Limit | None = None,
) -> Callable[[Callable[..., None]], Quantity]:
    """A quantity `f(recurrence, emit, sample, **options)` that declares and writes its own channels.

    `limit(recurrence, sample)` raises Unsupported where sizes alone say that it cannot be given.
    """

    def wrap(function: Callable[..., None]) -> Quantity:
        def checked(recurrence: Recurrence, emit: Emitter, sample: int, **values: Any) -> None:
            if limit is not None:
                limit(recurrence, sample)
            function(recurrence, emit, sample, **values)

        return Quantity(
            summary=summary, order=order, default=default, needs=(RECURRENCE, *needs), cost=cost, options=options,
            function=function, parameter_gradients=parameter_gradients, work=over_each(work), jacobians=jacobians,
            found_with=found_with, run=_each_recurrence(signal, checked), limit=limit_of(limit),
        )  # fmt: skip

    return wrap


def per_run(
    *,
    summary: str,
    order: int = 50,
    default: bool = True,
    needs: tuple[str, ...] = (),
    cost: str = "",
    options: tuple[Option, ...] = (),
    parameter_gradients: bool = False,
    work: OfRun | None = None,
    limit: Callable[[Trace], str] = lambda _trace: "",
    before: Callable[[Subject, Batch], str] = lambda _subject, _batch: "",
) -> Callable[[Callable[..., None]], Quantity]:
    """A quantity `f(trace, emit, **options)` of the whole run."""

    def wrap(function: Callable[..., None]) -> Quantity:
        return Quantity(
            summary=summary, order=order, default=default, needs=needs, cost=cost, options=options, function=function,
            run=function, parameter_gradients=parameter_gradients, work=work, limit=limit, before=before,
        )  # fmt: skip

    return wrap


def limit_of(limit: Limit | None) -> Callable[[Trace], str]:
    """Why none of the recurrences of a trace can be given; "" where one may be, where nothing limits them or none is
    there. One that is not applicable decides nothing."""

    def refused(trace: Trace) -> str:
        reasons: list[str] = []
        for recurrence in trace.recurrences:
            if limit is None or not recurrence.length(trace.look_at):
                continue
            if lacking := _lacking(recurrence):
                reasons.append(lacking)
                continue
            try:
                limit(recurrence, trace.look_at)
            except NotApplicable:
                continue
            except Unsupported as reason:
                reasons.append(str(reason))
                continue
            return ""
        return " ".join(dict.fromkeys(reasons))

    return refused


def all_samples(recurrence: Recurrence, budget: int = 64 << 20) -> Iterator[tuple[StepBlock, Tensor]]:
    """Blocks over every sample, within a memory budget, each with (t, b) True at real steps."""
    t, b, s = recurrence.states.shape
    size = max(1, budget // max(1, b * s * recurrence.states.element_size() * 8))
    for start in range(0, t - 1, size):
        stop = min(start + size, t - 1)
        yield recurrence.all_samples(start, stop), torch.arange(start, stop)[:, None] < recurrence.lengths


def rows_per_page(length: int, row_bytes: int) -> int:
    """Steps of a page: about 512 KB where there is that much, at least eight pages where there is less."""
    return max(1, min(-(-length // 8), max(1, (512 << 10) // max(1, row_bytes))))


def _each_recurrence(signal: str, one: Callable[..., None]) -> Callable[..., None]:
    def run(trace: Trace, emit: Emitter, **values: Any) -> None:
        over_recurrences(trace, emit, signal, lambda recurrence: one(recurrence, emit, trace.look_at, **values))

    return run


def over_recurrences(trace: Trace, emit: Emitter, signal: str, one: Callable[[Recurrence], None]) -> None:
    """Call `one` for every recurrence whose steps were reproduced;
    the reason why it raised Unsupported is written under `signal`."""
    for number, recurrence in enumerate(trace.recurrences):
        if not recurrence.length(trace.look_at):
            continue  # of an output without steps
        name = f"{recurrence.place}:{signal}"
        if lacking := _lacking(recurrence):
            emit.refuse(name, lacking)
            continue
        if recurrence.partly_cut:
            emit.across[recurrence.place] = ACROSS
        try:
            with torch.no_grad(), telling(emit, part_of(emit.progress, number, 1, len(trace.recurrences))):
                one(recurrence)
        except NotApplicable:
            continue
        except Unsupported as reason:
            emit.refuse(name, str(reason))


def _lacking(recurrence: Recurrence) -> str:
    """Why nothing is derived from a recurrence; "" where all can be."""
    if not recurrence.states.shape[-1]:
        return f"The state of {recurrence.place} has no numbers."
    return refusal(recurrence) if recurrence.check is not None and not recurrence.check.passed else ""


def refusal(recurrence: Recurrence) -> str:
    """The reason why nothing derived from this recurrence's gates is shown."""
    check = recurrence.check
    assert check is not None
    return (
        f"The recomputed steps of {recurrence.place} differ from what the {recurrence.module} produced by "
        f"{check.error:.3g} (allowed {check.allowed:.3g}), so nothing derived from them is shown."
    )
