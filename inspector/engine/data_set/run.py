"""Goes through many sequences: equally long ones in batches where a batch changes nothing, others one by one."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace

import torch
from torch import Tensor

from inspector.engine.data_set.calls import Called, How, call
from inspector.engine.data_set.clock import CALLS, CHECK, NUMBERS, READ, WRITE, Clock
from inspector.engine.data_set.gradient_uses import LAYOUTS, FusedKernelError, Layout, UndecidedError
from inspector.engine.data_set.numbers import Numbers, numbers_of
from inspector.engine.data_set.pooled import Pooled
from inspector.engine.data_set.remaining import Remaining
from inspector.engine.data_set.table import SequenceTable
from inspector.engine.errors import CancelledError, InputError, ModelError, Unsupported
from inspector.engine.model.joining import joined, most_together, shape_key
from inspector.engine.model.subject import Batch, Subject, to_device
from inspector.engine.model.training_mode import said_first
from inspector.engine.pipeline import RunOptions
from inspector.engine.registries import PROBES
from inspector.engine.sources import Item, items, total_of
from inspector.engine.trace.emitter import Emitter, Sink
from inspector.records import SECONDS, Frame, InputSpec, Log, counted

CHECKED = 8
"""Sequences of the first batch, each of which is also run alone."""
AHEAD, AHEAD_NUMBERS = 4096, 1 << 24
"""Sequences, and numbers in them, that are read ahead to find equally long ones."""
CHECKED_METHOD = "sequences of one length in batches, a first batch of which was checked against {} sequences run alone"
LEAK = "is not what it is alone, so the sequences of one batch affect each other"
LOOPS, UNUSED = "handwritten", ("attention", "embedding")
"""The probe that records every operation, which is left out where it has found nothing; and those that record what no
number of a sequence is made of."""


def run_data_set(
    subject: Subject, spec: InputSpec, sink: Sink, options: RunOptions, frame: Frame, *, device: str = "cpu"
) -> int:
    """Run every sequence of a data set and write one frame; returns how many were run.

    Raises InputError where the source cannot be read, ModelError where no sequence could be run, CancelledError: what
    was done until then is written.
    """
    return _Runner(subject, spec, sink, options, frame, device).run()


class _Runner:
    def __init__(
        self, subject: Subject, spec: InputSpec, sink: Sink, options: RunOptions, frame: Frame, device: str
    ) -> None:
        self.subject, self.spec, self.options, self.device = subject, spec, options, device
        sink.write(frame)
        for said in said_first(subject):
            sink.write(said)
        self.sink = sink
        self.emit = Emitter(sink, frame.index)
        self.table = SequenceTable(sink, self.emit)
        self.clock = Clock()
        self.pooled = Pooled()
        self.how = How(
            seed=options.seed, states=options.states, probes=tuple(key for key in PROBES if key not in UNUSED)
        )
        self.together: bool | None = None
        """Whether sequences are run in batches; None until a first batch was checked."""
        self.total = total_of(subject, spec)
        self.remaining = Remaining(self.total)

    def run(self) -> int:
        try:
            for numbers, batches in self._groups():
                self._check_cancelled()
                decided, before = self.together, self._done()
                self._run_group(numbers, batches)
                alike = decided == self.together and (decided is not None or before >= CHECKED)
                self.remaining.ran(self._done(), alike=alike)
                self._tell()
                self._flush()
                done = self._done()
                self.options.progress(done, self.total or 0, f"{counted(done, 'sequence', ',')}")
        finally:
            with self.clock.of(WRITE):
                self.table.finish(self.pooled)
            for part, seconds in self.clock.seconds.items():
                self.emit.scalar(f"{SECONDS}{part}", seconds)
        if not self.table.done:
            if not self.table.names:
                raise InputError(f"{self.spec.value} holds no sequences.")
            first = next(iter(self.table.problems.values()))
            raise ModelError(f"None of {counted(len(self.table.names), 'sequence')} could be run. The first: {first}")
        return self.table.done

    def _done(self) -> int:
        return self.table.done + len(self.table.problems)

    def _tell(self) -> None:
        words = self.remaining.words()
        if words:
            self.options.note(words)

    def _flush(self) -> None:
        with self.clock.of(WRITE):
            self.table.flush()

    def _call(self, batch: Batch, how: How) -> Called:
        with self.clock.of(CALLS):
            return call(self.subject, batch, how)

    def _check_cancelled(self) -> None:
        if self.options.cancelled():
            raise CancelledError

    # -- reading and grouping

    def _groups(self) -> Iterator[tuple[list[int], list[Batch]]]:
        """Equally long sequences, as soon as there are enough for a batch, and the rest when much is read ahead."""
        waiting: dict[Hashable, list[tuple[int, Batch]]] = {}
        ahead = numbers = 0
        for item in self._read():
            batch = item[1]
            group = waiting.setdefault(shape_key(batch), [])
            group.append(item)
            ahead, numbers = ahead + 1, numbers + batch.inputs.numel()
            enough = self._enough(batch)
            if len(group) >= enough:
                del waiting[shape_key(batch)]
                ahead, numbers = ahead - len(group), numbers - sum(one.inputs.numel() for _, one in group)
                yield _split(group)
            elif ahead >= AHEAD or numbers >= AHEAD_NUMBERS:
                for left in waiting.values():
                    yield _split(left)
                waiting, ahead, numbers = {}, 0, 0
        for left in sorted(waiting.values(), key=lambda group: -len(group)):
            yield _split(left)

    def _enough(self, batch: Batch) -> int:
        if self.together is False:
            return 1
        return min(CHECKED, most_together(batch)) if self.together is None else most_together(batch)

    def _read(self) -> Iterator[tuple[int, Batch]]:
        source = items(self.subject, self.spec, self.options.seed)
        while True:
            with self.clock.of(READ):
                item = next(source, None)
            if item is None:
                return
            self._check_cancelled()
            number = self.table.add(item.name)
            batch = self._taken(number, item)
            if batch is not None:
                yield number, batch

    def _taken(self, number: int, item: Item) -> Batch | None:
        if item.batch is None:
            self.table.fail(number, item.problem)
            self._flush()
            return None
        return to_device(item.batch, self.device)

    # -- running

    def _run_group(self, numbers: list[int], batches: list[Batch]) -> None:
        if len(batches) == 1 or self.together is False:
            self._one_by_one(numbers, batches)
        elif self.together is None:
            self._checked(numbers, batches)
        else:
            for start in range(0, len(batches), size := most_together(batches[0])):
                self._as_batch(numbers[start : start + size], batches[start : start + size])

    def _one_by_one(self, numbers: list[int], batches: list[Batch]) -> list[tuple[Called, Numbers]]:
        found = []
        for number, batch in zip(numbers, batches, strict=True):
            self._check_cancelled()
            try:
                called = self._call(batch, self.how)
            except (ModelError, InputError) as problem:
                self.table.fail(number, str(problem))
            else:
                found.append((called, self._keep([number], called)))
            self._flush()
        return found

    def _keep(self, numbers: list[int], called: Called) -> Numbers:
        with self.clock.of(NUMBERS):
            found = numbers_of(called, self.pooled.visit)
        self.pooled.count({recurrence.place for recurrence in called.trace.recurrences}, len(numbers))
        self.table.loss_unit = called.loss_unit
        self.table.fill(numbers, found.values, found.refused)
        return found

    def _as_batch(self, numbers: list[int], batches: list[Batch]) -> None:
        """Where the model raises on a batch, its sequences are run one by one, to find those on which it does."""
        try:
            called = self._call(joined(batches), self.how)
        except UndecidedError:  # the first batch had steps, or gradients, of which this one has others
            self._checked(numbers, batches)
            return
        except (ModelError, InputError):
            self._one_by_one(numbers, batches)
            return
        if called.reason or (called.squares is None and called.trace.loss is not None and called.uses is not None):
            self._alone_from_now_on(called.reason)
            self._one_by_one(numbers, batches)
            return
        self._keep(numbers, called)

    # -- whether a batch changes nothing

    def _checked(self, numbers: list[int], batches: list[Batch]) -> None:
        """The first batch: each of its sequences alone, which counts, and all together, which must give the same."""
        alone = [called for called, _ in self._one_by_one(numbers[:CHECKED], batches[:CHECKED])]
        numbers, batches = numbers[CHECKED:], batches[CHECKED:]
        if len(alone) > 1:
            with self.clock.of(CHECK):
                reason = self._compare(alone, [called.trace.batch for called in alone])
            if reason:
                self._alone_from_now_on(reason)
            else:
                self.together = True
                self.table.method = CHECKED_METHOD.format(len(alone))
        if numbers:
            self._run_group(numbers, batches)

    def _alone_from_now_on(self, reason: str) -> None:
        self.together = False
        self.table.method = f"one sequence after the other: {reason}"
        self.sink.write(Log(f"The sequences are run one by one: {reason}.", "warning", "engine"))

    def _compare(self, alone: list[Called], batches: list[Batch]) -> str:
        """Why the sequences cannot be run in batches; "" where they can."""
        batch = joined(batches)
        try:
            together = self._plainly(batch)
        except (ModelError, InputError) as problem:
            return f"a batch of several raised ({problem})".replace(".)", ")")
        if together.reason:
            return together.reason
        reason = self._same_values(alone, together)
        if not reason and together.uses is not None:
            try:
                reason = self._find_layouts(alone, together)
            except Unsupported as problem:
                reason = str(problem)
        if not reason:
            self._fewer_probes(together, batch)
        return reason

    def _plainly(self, batch: Batch) -> Called:
        """The call of a batch, without oneDNN where its fused kernels hide the steps."""
        try:
            return self._call(batch, self.how)
        except FusedKernelError:
            self.how = replace(self.how, plain=True)
            return self._call(batch, self.how)

    def _same_values(self, alone: list[Called], together: Called) -> str:
        """Losses and states of each sequence, alone and in the batch."""
        every = together.trace
        losses = [called.trace.loss for called in alone]
        if every.loss is not None and all(loss is not None for loss in losses):
            if {loss.shape[1:] for loss in losses if loss is not None} != {every.loss.shape[1:]}:
                return f"in a batch the loss has {every.loss.shape[1]} steps, which not every sequence alone has"
            own = torch.cat([loss for loss in losses if loss is not None])
            if not _alike(own, every.loss, self._unit()):
                return f"in a batch the loss of a sequence {LEAK}"
        places = [recurrence.place for recurrence in every.recurrences]
        if any([recurrence.place for recurrence in called.trace.recurrences] != places for called in alone):
            return "in a batch other layers are found than in a sequence alone"
        for number, recurrence in enumerate(every.recurrences):
            parts = [called.trace.recurrences[number].states for called in alone]
            if {len(part) for part in parts} != {len(recurrence.states)}:
                return f"in a batch {recurrence.place} runs over other steps than in a sequence alone"
            states = torch.cat(parts, 1)
            if states.shape != recurrence.states.shape or not _alike(states, recurrence.states, self._unit()):
                return f"in a batch the state of {recurrence.place} in a sequence {LEAK}"
        return ""

    def _find_layouts(self, alone: list[Called], together: Called) -> str:
        """How the rows of each parameter's uses belong to the sequences: as gives the gradients found alone."""
        assert together.uses is not None
        layouts: dict[str, Layout] = dict(self.how.layouts or {})
        found = {layout: together.uses.squares(len(alone), _Always(layout)) for layout in LAYOUTS}
        names = [name for called in alone for name in called.squares or {}]
        for name in dict.fromkeys([*names, *found["major"]]):
            none = torch.zeros(1, dtype=torch.float64)
            known = torch.cat([(called.squares or {}).get(name, none).cpu() for called in alone]).sqrt()
            made = {layout: found[layout].get(name, none.expand(len(alone))).cpu().sqrt() for layout in LAYOUTS}
            fitting = [layout for layout in LAYOUTS if _alike(known, made[layout], self._unit())]
            if not fitting:
                return f"in a batch the gradient of {name} of each sequence is not found as it is alone"
            if len(fitting) == 1:
                layouts[name] = fitting[0]
        self.how = replace(self.how, layouts=layouts)
        return ""

    def _unit(self) -> float:
        dtypes = [p.dtype for p in self.subject.model.parameters() if p.is_floating_point()]
        return max((torch.finfo(dtype).eps for dtype in dtypes), default=torch.finfo(torch.float32).eps)

    def _fewer_probes(self, together: Called, batch: Batch) -> None:
        """Without the recorder of loops, which costs most, where the same layers are found without it.

        The closed forms of fused layers have been compared with autograd by now, and are not compared again.
        """
        self.how = replace(self.how, compared=True)
        fewer = tuple(key for key in self.how.probes if key != LOOPS)
        less = self._call(batch, replace(self.how, probes=fewer))
        if [r.place for r in less.trace.recurrences] == [r.place for r in together.trace.recurrences]:
            self.how = replace(self.how, probes=fewer)


class _Always(dict[str, Layout]):
    """One layout for every parameter."""

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        self.layout = layout

    def get(self, _name: str, _default: object = None) -> Layout:
        return self.layout


def _split(group: list[tuple[int, Batch]]) -> tuple[list[int], list[Batch]]:
    return [number for number, _ in group], [batch for _, batch in group]


def _alike(a: Tensor, b: Tensor, unit: float) -> bool:
    """Equal up to rounding: within √unit of the largest value, NaN where the other is NaN; unit is the model's ε.

    Kernels round differently for a batch, and a recurrence amplifies that: √ε leaves room for a factor of some
    thousands. Counter-example: a chaotic network over many steps amplifies more, and is then run one by one.
    """
    if a.shape != b.shape:
        return False
    a, b = a.detach().cpu(), b.detach().cpu()
    if not torch.equal(a.isnan(), b.isnan()) or not torch.equal(a.isinf(), b.isinf()):
        return False
    there = a.isfinite()
    if not bool(there.any()):
        return True
    size = max(1e-30, float(a[there].abs().max()))
    return bool((a[there] - b[there]).abs().max() <= unit**0.5 * size)
