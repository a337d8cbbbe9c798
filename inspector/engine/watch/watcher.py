"""`inspector.watch`: what a user attaches to a training loop."""

from __future__ import annotations

import atexit
import sys
import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch.distributed as dist
from torch import nn
from torch.optim import Optimizer

from inspector.capture import ResumingWriter
from inspector.engine.pipeline import Recording
from inspector.engine.pipeline.starting import start_of
from inspector.engine.watch.as_drawn import as_drawn
from inspector.engine.watch.attachment import Attachment
from inspector.engine.watch.core import Core
from inspector.engine.watch.dropout import strong_dropout
from inspector.engine.watch.frame_limit import DEFAULT
from inspector.engine.watch.free_path import free_path, own_path
from inspector.engine.watch.kept.kept_files import AtListener, InFolder, KeptFiles
from inspector.engine.watch.kept.ring import Ring
from inspector.engine.watch.kept.spikes import Spikes
from inspector.engine.watch.measure import Found, Moment
from inspector.engine.watch.measures.pairs import Pairs
from inspector.engine.watch.optimizers.given_optimizers import optimizers_of
from inspector.engine.watch.optimizers.new_optimizers import NewOptimizers
from inspector.engine.watch.optimizers.optimizer_settings import described
from inspector.engine.watch.orders import Orders, Reading, Test
from inspector.engine.watch.pace import Pace
from inspector.engine.watch.parameters import Parameters, inner
from inspector.engine.watch.pausing import Pausing
from inspector.engine.watch.presets import Settings, measures_of
from inspector.engine.watch.probing import Prober, Wanted, wanted
from inspector.engine.watch.processes.ranks import longest_wait, ranks_of, several
from inspector.engine.watch.targets import Elsewhere, LateSink
from inspector.engine.watch.unregistered import unregistered
from inspector.records import Frame, Log, parse_condition
from inspector.records.break_condition import FORM
from inspector.records.plain_text import shortened
from inspector.transport.network.address import SCHEME, address_of, secret_of
from inspector.transport.network.sender import Sender

START = "iteration 0"


class Watcher:
    """Watches a training until it is closed; also a context manager, and closed when the program ends.

    Attributes:
        path: the folder of the capture; None in a process whose numbers another one writes, and where a listener on
            another machine writes it (`address`).
        error: why watching has ended before the training did, one line; None while it goes well.
    """

    def __init__(
        self, model: nn.Module, optimizers: list[Optimizer], target: Path | Elsewhere, settings: Settings
    ) -> None:  # fmt: skip
        self._target: Path | Elsewhere | None = target
        self._settings, self._model = settings, model
        self._closed = False
        self._sink = LateSink(self._start)
        self._parameters = Parameters(model)
        self._parameters.take(optimizers)
        measures = measures_of(settings, self._parameters, inner(model))
        summed = [table for one in measures for table in one.summed]
        ranks = ranks_of(model, self._parameters, summed)
        if ranks.rank:  # the first process writes, and this one measures what the first cannot see
            self._target = None
            measures = [one for one in measures if one.summed] if ranks.sharded else []
        pace = Pace(settings.every, settings.share)
        self._core = Core(self._parameters, optimizers, measures, pace, ranks, self._sink if self._target else None)
        self._ring = next((one for one in measures if isinstance(one, Ring)), None)
        self._spikes = Spikes()
        self._prober: Prober | None = None
        self._core.after_row.append(self._judge)
        self._orders = Orders()
        self._reading: Reading | None = None
        if self._target is not None:
            self._may_pause()
        if optimizers and self._target is not None:
            self._sink.begin()
            self._core.guarded(self._first_frame)
        self._core.when_ended = self._leave_model
        self._attachment = Attachment(self._core, model)
        self._attachment.optimizers(optimizers)
        if not optimizers:
            self._attachment.any_optimizer(self._adopt)
        self._attachment.new_optimizers(NewOptimizers(self._parameters, self._core.knows, self._core.say), self._follow)
        this = weakref.ref(self)
        self._at_exit = lambda: _close(this)
        atexit.register(self._at_exit)

    def _may_pause(self) -> None:
        """This process writes, so it is the one that waits; others wait for it. Raises ValueError."""
        core, asked = self._core, self._settings.break_on
        self._pausing = Pausing(core, self._orders, self._settings.pause_timeout, self._frame_now, self._commit)
        if asked is not None:
            self._break_when(asked)

    def _frame_now(self, iteration: int, text: str) -> int:
        """A frame of the model as it is now, without a probe on the newest sequence; -1 where there is none."""
        if self._prober is not None:
            return self._prober.at_pause(iteration, text)
        newest = None if self._ring is None or self._core.ranks.sharded else self._ring.newest_sequence()
        if newest is None:
            return -1
        recording = self._sink.begin()
        prober = Prober(inner(self._model), Wanted(newest), self._settings.cost, self._core.pace, recording)
        prober.frames = recording.frames
        return prober.at_pause(iteration, text)

    def _commit(self) -> None:
        self._sink.begin().writer.flush()

    def _adopt(self, optimizer: Optimizer) -> None:
        """An optimizer steps, and none was given: the first that has parameters of the model is ours."""
        if self._core.optimizers or not self._has_ours(optimizer):
            return
        self._add(optimizer)
        if self._target is not None:
            self._first_frame()

    def _follow(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        """An optimizer has made its first step, and was not given: from here on it is as if it had been."""
        self._core.guarded(self._add, optimizer)
        self._core.after_step(optimizer, args, kwargs)

    def also(self, optimizer: Optimizer) -> bool:
        """Watch the steps of another optimizer from its first, if it has parameters of this model; returns whether it
        does. Without this call it is followed from its second step on.

        One that has parameters of the first one takes its place in counting iterations: a loop that makes a new
        optimizer for the same model goes on with it.
        """
        if self._closed or self._core.ended or self._core.knows(optimizer):
            return self._core.knows(optimizer) and not self._closed
        if not self._has_ours(optimizer):
            return False
        self._core.guarded(self._add, optimizer)
        return True

    def _has_ours(self, optimizer: Optimizer) -> bool:
        return any(id(one) in self._parameters.column for group in optimizer.param_groups for one in group["params"])

    def _add(self, optimizer: Optimizer) -> None:
        self._core.add(optimizer)
        self._attachment.optimizers([optimizer])

    def after_each(self, action: Callable[[int], None]) -> None:
        """Call `action(iteration)` after each iteration."""
        self._core.after_iteration.append(action)

    def _first_frame(self) -> None:
        """The model before its first step."""
        if self._settings.probe is None or self._core.ranks.sharded:
            if self._settings.probe is not None:
                self._core.say("No probe: a model whose parameters are sharded cannot be run by one process.")
            self._sink.write(Frame(index=0, label=START, step=0))
            return
        core = self._core
        self._prober = Prober(
            inner(self._model), self._settings.probe, self._settings.cost, core.pace, self._sink.begin(),
            lambda: core.optimizers,
        )  # fmt: skip
        self._prober.after(0)
        self._core.after_iteration.append(self._prober.after)

    def _judge(self, moment: Moment, found: Found) -> None:
        """Keep an iteration in which something happened, and probe at once."""
        told = self._spikes.judge(found)
        if told is None or self._target is None:
            return
        kind, text = told
        self._pausing.happened(kind)
        frame = -1 if self._prober is None else self._prober.at_event(self._core.iteration, kind)
        kept = "" if self._ring is None else self._ring.keep(self._kept_files(), moment.iteration, text)
        self._core.event(kind, f"{text}; {kept}" if kept else text, frame, moment.iteration)

    def _kept_files(self) -> KeptFiles:
        writer = self._sink.begin().writer
        return AtListener(writer) if isinstance(writer, Sender) else InFolder(writer.path)

    def _start(self) -> Recording:
        """Begin the capture. Raises CaptureError where nothing can be written there."""
        assert self._target is not None
        known, model = self._parameters, inner(self._model)
        start = start_of(model)
        about = described(self._core.optimizers, known.names, known.column, known.of_model)
        about["ties"] = known.ties
        about["pairs"] = [pair for one in self._core.measures if isinstance(one, Pairs) for pair in one.described()]
        about["training"] = model.training
        still = {name: type(part).__name__ for name, part in model.named_modules() if name and not part.training}
        about["in_evaluation_mode"], about["classes"] = list(still), still
        about["dropout"] = strong_dropout(model)
        about["frozen"] = [n for n, one in zip(known.names, known.tensors, strict=True) if not one.requires_grad]
        about["frozen_as_drawn"] = as_drawn(model, about["frozen"])
        about["unregistered"] = unregistered(model, self._core.optimizers)
        about["dtypes"] = sorted({str(one.dtype).removeprefix("torch.") for one in known.tensors})
        about["watch"] = self._settings.described()
        about["can_pause"] = (longest_wait() or 1.0) > 0 if several() else True
        about["processes"] = dist.get_world_size() if several() else 1
        start = replace(start, title=f"{start.title}: training", meta={**start.meta, "training": about})
        if isinstance(self._target, Elsewhere):
            return Recording(self._target.sender(start, self._orders.take))
        recording = Recording(ResumingWriter(self._target, start, overwrite=False, say=_say))
        self._reading = Reading(self._target, self._orders, self._core.say)
        return recording

    @property
    def path(self) -> Path | None:
        """The folder of the capture, where this process writes one."""
        return self._target if isinstance(self._target, Path) else None

    @property
    def address(self) -> str:
        """Of the listener that writes the capture; empty where there is none."""
        return str(self._target.address) if isinstance(self._target, Elsewhere) else ""

    # -- what a user calls

    @property
    def iteration(self) -> int:
        """Steps that the first optimizer has made since watching began."""
        return self._core.iteration

    @property
    def error(self) -> str | None:
        """Why watching ended early; None while it goes well."""
        return self._core.error

    def log(self, loss: Any = None, **numbers: Any) -> None:
        """Record numbers of the iteration that is under way, or of the one that has just ended.

        Tensors of one entry are taken without waiting for them. `tokens` and `epoch` become axes that curves can be
        drawn against.
        """
        self._core.guarded(self._core.log, {"loss": loss, **numbers})

    def step(self, loss: Any = None, **numbers: Any) -> None:
        """One iteration has ended: only for loops without an optimizer of torch's. With one, the same as `log`."""
        self.log(loss, **numbers)
        if not self._core.optimizers:
            self._core.guarded(self._core.iteration_ended)

    def note(self, text: str) -> None:
        """A note at this iteration, shown as a mark on the time line."""
        self._core.guarded(self._core.event, "note", str(text))

    def pause(self, why: str = "") -> None:
        """Wait at the end of this iteration, when its step has been made, recorded, probed and written.

        Returns at once; the loop waits inside `optimizer.step()`, until `go_on` is called in another thread, a window
        says so, or `pause_timeout` is over. In a process whose numbers another one writes this does nothing: it waits
        for that one at their next collective.
        """
        if self._target is not None:
            self._orders.pause(shortened(" ".join(str(why).split()), 200) or "the program")

    def go_on(self) -> None:
        """Wait no more; from any thread."""
        self._orders.go_on()

    def break_when(self, condition: str | Test | None) -> None:
        """Wait whenever a condition begins to hold, in place of the one before; None: never.

        A text ("non-finite, gradient norm > 10, iteration 500": one of them is enough), or a function that is given
        what is known of each recorded iteration, {"iteration": …, "loss": …, "gradient norm": …}, and says whether to
        wait. Without an `every` all iterations are recorded while there is a condition on numbers. Raises ValueError
        for a text that cannot be read.
        """
        if self._target is not None:
            self._break_when(condition)

    def _break_when(self, condition: str | Test | None) -> None:
        if condition is None or not isinstance(condition, str):
            self._orders.break_when(None, condition)
            return
        parsed = parse_condition(condition)
        if unknown := parsed.unknown(self._pausing.knows):
            raise ValueError(f"Nothing is recorded under {', '.join(unknown)} to break on; expected one of {FORM}.")
        self._orders.break_when(parsed)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, where: TracebackType | None
    ) -> None:
        self._end(fault)

    def close(self) -> None:
        """Stop watching and finish the capture. Never raises; `error` has what went wrong."""
        self._end(None)

    def __deepcopy__(self, memo: dict[int, Any]) -> None:
        """A copy of an object that has a watcher has none."""
        return

    def __reduce__(self) -> tuple[Any, ...]:
        return _nothing, ()

    # -- the end

    def _end(self, fault: BaseException | None) -> None:
        if self._closed or not self._core.is_own_process:
            return
        self._closed = True
        atexit.unregister(self._at_exit)
        self._core.guarded(self._core.finish)
        self._core.leave()
        self._attachment.remove()
        try:
            if self._reading is not None:
                self._reading.close()
            if self._target is not None:
                self._sink.begin().__exit__(None if fault is None else type(fault), fault, None)
        except Exception as problem:  # noqa: BLE001 - also where the program has replaced what this needs
            self._core.fail(problem)

    def _leave_model(self) -> None:
        attachment = getattr(self, "_attachment", None)  # the very first record may fail
        if attachment is not None:
            attachment.remove_from_model()


def _say(text: str) -> None:
    """A line for who watches the terminal; training goes on."""
    with suppress(OSError, ValueError):
        sys.stderr.write(f"inspector: {text.rstrip('.')}; training goes on.\n")


def _nothing() -> None:
    """What a watcher is in a copy or a file."""


def _close(this: weakref.ref[Watcher]) -> None:
    """At the end of the program; an error that ended it is in the record of the end."""
    watcher = this()
    if watcher is not None:
        last = getattr(sys, "last_value", None)
        watcher._end(last if isinstance(last, BaseException) else None)


def watch(
    model: nn.Module, optimizer: Any = None, path: Path | str = "run.inspect", *, every: int | None = None,
    share: float = 0.02, cost: str = "normal", modules: Iterable[str] = (), probe: Any = None,
    probe_subject: Any = None, probe_loss: Any = None, probe_every: int | None = None, probe_training: bool = False,
    quantities: Iterable[str] = (),
    break_on: str | Test | None = None, pause_timeout: float = 3600.0, secret: str | bytes | Path | None = None,
    fingerprints: bool = False, frames_gb: float = DEFAULT,
) -> Watcher:  # fmt: skip
    """Attach to a training loop: see `inspector.watch`. Raises ValueError, TypeError or CaptureError."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"watch was given {type(model).__name__} as the model; expected a torch.nn.Module.")
    asked = wanted(
        inner(model), probe, probe_subject, probe_loss, probe_training, probe_every, tuple(quantities), frames_gb
    )  # fmt: skip
    settings = Settings(
        every=every, share=share, cost=cost, modules=tuple(modules), probe=asked, break_on=break_on,
        pause_timeout=pause_timeout, fingerprints=fingerprints,
    )  # fmt: skip
    if str(path).startswith(SCHEME):
        elsewhere = Elsewhere(address_of(str(path)), secret_of(secret))
        return Watcher(model, optimizers_of(optimizer), elsewhere, settings)
    given = own_path(Path(path))
    found = free_path(given)
    watcher = Watcher(model, optimizers_of(optimizer), found, settings)
    if found != given and watcher.path is not None:
        said = f"inspector: {given} exists already, so this run is written to {found}."
        sys.stderr.write(f"{said}\n")
        watcher._core.guarded(watcher._sink.write, Log(said, "info", "watch"))
    return watcher
