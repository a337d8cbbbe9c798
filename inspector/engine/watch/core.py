"""The course of a watched training: which iterations are recorded, what is measured then, and what is written. Entries
from the user's program go through `guarded`: an error ends watching with one line, never training."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any
from weakref import WeakSet

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from inspector.engine.hooks.module_stack import in_backward
from inspector.engine.watch.backward_calls import Scaled
from inspector.engine.watch.gradients import closure_of
from inspector.engine.watch.logged import Logged
from inspector.engine.watch.loss import Losses
from inspector.engine.watch.measure import Found, Measure, Moment, looked_apart
from inspector.engine.watch.optimizers.optimizer_settings import ABOUT as SETTINGS_ABOUT
from inspector.engine.watch.optimizers.optimizer_settings import NAMES, SETTINGS, RateChanges, by_name
from inspector.engine.watch.pace import Pace
from inspector.engine.watch.parameters import Parameters, first_of
from inspector.engine.watch.passes import Passes
from inspector.engine.watch.processes.ranks import Ranks
from inspector.engine.watch.tables import PLACE, About, Tables
from inspector.engine.wording import error_text, in_short
from inspector.records import TRAINED, Event, Log, Scalar

COST = f"{PLACE}:cost"
COST_ABOUT = About(
    name=COST, title="time taken by watching", dtype="float64", limits=(0, 1),
    formula="seconds that the watcher took / seconds since it began", method="wall time of the training's thread",
)  # fmt: skip
FLUSH_SECONDS = (0.5, 10.0)
"""A page of each table is written at least so many seconds after the one before: at first often, later a hundredth of
the time since the beginning, so that a long run has thousands of pages and not millions."""


class Core:
    """What is watched, between the hooks of the user's program and the records that are written.

    `sink` takes records; None in processes that only measure their share for another one.
    """

    def __init__(
        self, parameters: Parameters, optimizers: Sequence[Optimizer], measures: Sequence[Measure], pace: Pace,
        ranks: Ranks, sink: Any,
    ) -> None:  # fmt: skip
        self.parameters, self.optimizers, self.measures = parameters, list(optimizers), list(measures)
        self.pace, self.ranks, self.sink = pace, ranks, sink
        self.iteration = 0
        self.error: str | None = None
        self.ended = False
        self.when_ended: Callable[[], None] = lambda: None
        self.after_row: list[Callable[[Moment, Found], None]] = []
        self.after_iteration: list[Callable[[int], None]] = []
        self.at_end: list[Callable[[bool], None]] = []
        """Called last in each iteration, with whether it was recorded."""
        self.choose_next: Callable[[int, int], int] = lambda iteration, proposed: proposed
        self.at_once: Callable[[], bool] = lambda: False
        """Whether numbers are read when the iteration ends, though the device may not have them ready."""
        self.tables = Tables(sink)
        self.losses, self.logged = Losses(), Logged()
        self.moment: Moment | None = None
        self._next = 1
        self._arriving: list[Moment] = []
        self._row: tuple[Moment, Found] | None = None
        self._rates = RateChanges()
        self._busy = False
        self._pid = os.getpid()
        self._flushed = time.monotonic()
        self._passes = Passes(parameters, together=ranks.bound)
        self._leaders: WeakSet[Optimizer] = WeakSet(self.optimizers[:1])
        self._steps = 0
        self.after_iteration += [one.each for one in measures if type(one).each is not Measure.each]
        self._declare(self.tables)
        for measure in measures:
            measure.guard, measure.say, measure.column = self.guarded, self.say, self.tables.column
            measure.counted, measure.deciding = self.counted, lambda: self.at_once()
        self._arm()

    def _declare(self, tables: Tables) -> None:
        tables.columns("parameter", self.parameters.names)
        tables.columns("gradient norm", ("before clipping", "after clipping"))
        own = (*self.losses.tables, SETTINGS_ABOUT, COST_ABOUT, *self.logged.tables)
        for about in (*own, *(one for measure in self.measures for one in measure.tables)):
            tables.declare(about)

    @property
    def is_own_process(self) -> bool:
        """False in a process that was forked from the one that is watched."""
        return os.getpid() == self._pid

    def guarded(self, action: Callable[..., None], *arguments: Any) -> None:
        """Do something for the watcher inside the user's program: nothing that goes wrong in it gets out."""
        if self.ended or self._busy or os.getpid() != self._pid:
            return
        began = time.perf_counter()
        self._busy = True
        try:
            with torch.no_grad():
                action(*arguments)
        except Exception as fault:  # noqa: BLE001 - whatever happens here must not end the user's training
            self.fail(fault)
        finally:
            self._busy = False
            self.pace.spent += time.perf_counter() - began

    def fail(self, fault: BaseException) -> None:
        """End watching and say why, in one line."""
        if self.error is not None:
            return
        text = str(fault) if type(fault).__name__.endswith("CaptureError") else error_text(fault)
        self.error = f"inspector: watching ended at iteration {self.iteration} ({in_short(text, 300)})"
        with suppress(Exception):
            sys.stderr.write(f"{self.error}; training goes on.\n")
        with suppress(Exception):
            if self.sink is not None:
                self.sink.write(Log(self.error, "error", "watch"))
        with suppress(Exception):
            self._settle_row()
            self.flush()
        self.moment = None
        with suppress(Exception):
            self.leave()
        self.ended = True

    def leave(self) -> None:
        """Watching has ended, well or not: nothing is left in the user's program."""
        self.ended = True
        for measure in self.measures:
            measure.over()
        self.when_ended()

    # -- moments of an iteration

    def _arm(self) -> None:
        """Record the iteration that begins now, if it is its turn."""
        self.moment = Moment(self.iteration + 1) if self.iteration + 1 >= self._next else None

    def forward_begins(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        """The model is called; in evaluation mode, and inside a backward pass, that is no part of an iteration."""
        if not module.training or in_backward():
            return
        self.logged.pending = True
        if self.moment is not None and self._passes.dropped(self.moment):
            self.moment = Moment(self.moment.iteration)
        if self.moment is not None:
            for measure in self.measures:
                measure.forward_begins(self.moment, module, args, kwargs)

    def forward_ended(self, module: nn.Module, output: Any) -> None:
        """It returned, or raised (None)."""
        if self.moment is not None and not in_backward():
            for measure in self.measures:
                measure.forward_ended(self.moment, module, output)

    def backward_begins(self, roots: Sequence[Tensor]) -> None:
        """Note which gradients there are: a backward pass of something else changes none of them."""
        self.logged.pending = True
        if self.moment is not None:
            if self._passes.dropped(self.moment):
                self.losses.forget(self.moment)
            self._follow()
            self._passes.begins(self.moment)
            for measure in self.measures:
                measure.backward_begins(self.moment, roots)
            return
        self._apart(looked_apart(self.measures, self.iteration + 1, roots))

    def _apart(self, moment: Moment) -> None:
        """Write at once what was found outside of a recorded iteration."""
        if moment.cells and self.sink is not None:
            self.settle()
            self.tables.rows(moment.iteration, self.pace.seconds, moment.cells, main=False)

    def _follow(self) -> None:
        """Watch parameters, too, that an optimizer was given since; not in processes that exchange their numbers."""
        for optimizer in () if self.ranks.bound or self.parameters.full else self.optimizers:
            known = self.parameters.column
            if all(id(one) in known for group in optimizer.param_groups for one in group["params"]):
                continue
            new = self.parameters.again(self.optimizers)
            for name in new:
                self.tables.column("parameter", name)
            if new:
                self.say(f"Parameters are new from iteration {self.iteration + 1:,} on: {first_of(new)}.")

    def counted(self) -> list[int]:
        """The parameters whose gradients count: those that an optimizer has or a pass of this iteration reached."""
        if not self.optimizers:
            return list(range(len(self.parameters.tensors)))
        own = {column for optimizer in self.optimizers for column in self.columns(optimizer)}
        reached = self._passes.reached()
        return [n for n in range(len(self.parameters.tensors)) if n in own or n in reached]

    def backward_ended(self, roots: Sequence[Tensor], scaled: Scaled | None) -> None:
        """The loss, and what is measured on complete gradients."""
        if self.moment is None or not self._passes.ended(self.moment):
            return
        self.losses.found(self.moment, roots, scaled)
        for measure in self.measures:
            measure.backward_ended(self.moment, roots, scaled)

    def backward_failed(self, roots: Sequence[Tensor], fault: Exception) -> None:
        """A pass raised, and training may end here: what says why is written at once."""
        moment = Moment(self.iteration + 1)
        for measure in self.measures:
            measure.backward_failed(moment, roots, fault)
        self._apart(moment)

    def columns(self, optimizer: Optimizer) -> list[int]:
        """The parameters of an optimizer; others may take their place while it runs."""
        return self.parameters.of_optimizer(optimizer)

    def add(self, optimizer: Optimizer) -> None:
        """Another optimizer. One that has parameters of the first counts iterations until the first makes a step."""
        own = {id(one) for group in optimizer.param_groups for one in group["params"]}
        firsts = self.optimizers[:1]
        held = (one for first in firsts for group in first.param_groups for one in group["params"])
        replaced = any(self.parameters.was_in_model(first) for first in firsts)
        if not firsts or replaced or any(id(one) in own for one in held):
            self.optimizers[:1] = [optimizer]
            self._leaders.add(optimizer)
        else:
            self.optimizers.append(optimizer)

    def knows(self, optimizer: Optimizer) -> bool:
        """Whether its steps are recorded."""
        return optimizer in self._leaders or any(one is optimizer for one in self.optimizers)

    def leads(self, optimizer: Optimizer) -> bool:
        """Whether its steps end iterations; the settings are those of the one that made the last."""
        if optimizer not in self._leaders:
            return False
        self.optimizers[0] = optimizer
        return True

    def step_begins(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        """An optimizer's step begins."""
        if self.moment is None:
            return
        if not self.moment.passes:
            self._follow()
        later = closure_of(args, kwargs)
        for measure in self.measures:
            if not (later and measure.reads_gradients):
                measure.step_begins(self.moment, optimizer, self.columns(optimizer))
        self.moment.stepped.add(id(optimizer))

    def after_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        """An optimizer's step ended; other processes that wait for this one are told where watching has ended."""
        first = self.leads(optimizer)
        due, before = first and self._steps + 1 == self._next, self.ranks.collectives
        self._steps += first
        self.guarded(self.step_ended, optimizer, args, kwargs)
        if self.ended and self.ranks.bound and due and self.ranks.collectives == before:
            with suppress(Exception):
                self.ranks.goodbye()

    def step_ended(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        """It ended. With the first optimizer's step an iteration is complete."""
        first = self.leads(optimizer)
        moment = self.moment
        self._passes.stepped()
        if moment is not None and id(optimizer) in moment.stepped:
            columns = self.columns(optimizer)
            if closure_of(args, kwargs):
                for measure in self.measures:
                    if measure.reads_gradients:
                        measure.step_begins(moment, optimizer, columns)
            for measure in self.measures:
                measure.step_ended(moment, optimizer, columns)
        if first:
            self.iteration_ended()

    def iteration_ended(self) -> None:
        """One more iteration: close its row, and decide which one is recorded next."""
        self.iteration += 1
        self.logged.iteration_ended(self.iteration, self.pace.seconds)
        moment, self.moment = self.moment, None
        self._settle_row()
        if moment is not None:
            self._close(moment)
        for action in self.after_iteration:
            action(self.iteration)
        for last in self.at_end:
            last(moment is not None)
        self._arm()
        self._flush_in_time()

    def _close(self, moment: Moment) -> None:
        moment.iteration, moment.seconds = self.iteration, self.pace.seconds
        for measure in self.measures:
            measure.ends(moment)
        for column, value in self._settings().items():
            moment.put(SETTINGS, column, value)
        moment.put(COST, 0, self.pace.cost)
        following = self.choose_next(self.iteration, self.pace.after(self.iteration))
        self._next = self.ranks.share(moment, following, self.measures)
        moment.pack.send()
        self._arriving.append(moment)
        at_once = self.at_once()
        while self._arriving and (at_once or moment.pack.immediate or len(self._arriving) > 1):
            self._arrived(self._arriving.pop(0))
            if not at_once:
                break

    @property
    def next(self) -> int:
        """The iteration that is recorded next."""
        return self._next

    def hasten(self, iteration: int) -> None:
        """Record this one too, if it comes before the next."""
        self._next = min(self._next, iteration)

    def _settings(self) -> dict[int, float]:
        found = by_name(self.optimizers)
        for text in self._rates.seen(found):
            self.event("learning rate", text)
        return {self.tables.column(NAMES, name): value for name, value in found.items()}

    def _arrived(self, moment: Moment) -> None:
        """The numbers of a recorded iteration are on the host."""
        found: Found = moment.pack.read()
        for measure in self.measures:
            measure.derive(moment, found)
        self.losses.derive(moment, found)
        self._settle_row()
        self._row = moment, found
        for action in self.after_row:
            action(moment, found)

    def _settle_row(self) -> None:
        """The last row gets no more numbers."""
        if self._row is None:
            return
        (moment, found), self._row = self._row, None
        more = {name: {**found.get(name, {}), **own} for name, own in moment.cells.items()}
        if self.sink is not None:
            self.tables.rows(moment.iteration, moment.seconds, {**found, **more})

    # -- what the user says

    def log(self, values: Mapping[str, Any]) -> None:
        """Numbers of the user's, of the iteration that is under way, or of the last one where none is."""
        if self.sink is None:
            return
        values = self.logged.numbers(values, self.say)
        loss = values.get("loss")
        if loss is not None:
            later = None if self.logged.pending else self._row
            moment = self.moment if later is None else later[0]
            if moment is not None:
                self.losses.given(moment, loss)
                if later is not None:
                    self.losses.derive(moment, later[1])
        self.logged.take(values, self.iteration + (1 if self.logged.pending else 0), self.pace.seconds)

    def event(self, kind: str, text: str, frame: int = -1, iteration: float | None = None) -> None:
        """Write an event."""
        if self.sink is not None:
            self.sink.write(Event(self.iteration if iteration is None else iteration, kind, text, frame))

    def say(self, text: str) -> None:
        """A warning in the log."""
        if self.sink is not None:
            self.sink.write(Log(text, "warning", "watch"))

    def _flush_in_time(self) -> None:
        least, most = FLUSH_SECONDS
        if time.monotonic() - self._flushed >= min(most, max(least, self.pace.seconds / 100)):
            self.flush()

    def flush(self) -> None:
        """Write what is buffered, but for the row that may still get numbers. Raises CaptureError."""
        self._flushed = time.monotonic()
        if self.sink is not None:
            self.logged.settle(self.tables)
            self.tables.flush()

    def finish(self) -> None:
        """Write everything, and how many iterations there were."""
        self.settle()
        if self.sink is not None:
            self.sink.write(Scalar(TRAINED, -1, float(self.iteration)))

    def settle(self) -> None:
        """Write everything of the iterations that have ended."""
        while self._arriving:
            self._arrived(self._arriving.pop(0))
        self._settle_row()
        self.logged.iteration_ended(self.iteration + 1, self.pace.seconds)
        self.flush()
