"""A kept iteration run again as one frame: what made its gradient, and every quantity of the sample that made most."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from inspector.analysis.chronology import chronology_at
from inspector.analysis.spike_origin import CHECK, KIND, SAMPLE, SAMPLES, STATISTICS, STEPS, check_sentence
from inspector.capture import Capture, CaptureError, open_capture
from inspector.engine.errors import CancelledError, InputError, ModelError, model_error
from inspector.engine.hooks.isolation import unchanged
from inspector.engine.model.subject import Subject
from inspector.engine.pipeline import RunOptions, chosen_quantities, perform
from inspector.engine.pipeline.frames import begin_frame
from inspector.engine.session.spike.kept_step import KeptStep, read_step
from inspector.engine.session.spike.replay import NO_GRADIENT, Replay, restored
from inspector.engine.session.spike.shares import Parts, Whole, shares_of
from inspector.engine.trace.emitter import Emitter, Sink
from inspector.engine.watch.gradients import NORM, SCALE
from inspector.engine.watch.parameters import plain_name
from inspector.records import Channel, Frame, InputSpec, Log, RunStart

SPIKE = "spike"
"""The kind of such a sequence; its value is the path of the file."""
MORE = ("bptt", "clipping", "gradients/embedding")
LOSS = "output/loss"
NO_TARGETS = (
    "The loss of the iteration needs its targets, which are not kept; the gradient at the output is, and all gradients "
    "are those of the iteration."
)


def is_spike(spec: InputSpec) -> bool:
    """Whether a kept iteration is to be run again."""
    return spec.kind == SPIKE


class SpikeRun:
    """An iteration and the model that is to run it. Raises InputError where they do not fit each other."""

    def __init__(self, subject: Subject, spec: InputSpec) -> None:
        self.step: KeptStep = read_step(Path(spec.value))
        if all(call.gradient is None for call in self.step.calls):
            raise InputError(NO_GRADIENT.format(self.step.iteration))
        self._training = self._opened()
        try:
            self.subject = restored(subject, self.step)
            scale = self._recorded(SCALE) or 1.0
            calls = [call for call in self.step.calls if call.gradient is not None]
            self.replays = [Replay(self.subject, self.step, call, scale) for call in calls]
            self._chronology = self._told()
            self._norms = self._recorded_norms()
        finally:
            if self._training is not None:
                self._training.close()

    @property
    def title(self) -> str:
        """What is run, in a few words."""
        return f"iteration {self.step.iteration:,} of {self.step.path.parent.parent.name}"

    def noted(self, start: RunStart) -> RunStart:
        """The record of the run's beginning with the iteration and what moved first before it."""
        about = {"path": str(self.step.path), "iteration": self.step.iteration, "text": self.step.text,
                 "calls": len(self.step.calls), **self._chronology}  # fmt: skip
        return replace(start, meta={**start.meta, "spike": about})

    def chosen(self, options: RunOptions) -> RunOptions:
        """Which quantities are computed: also those that tell steps of the loss apart, and not the loss itself."""
        also = tuple(dict.fromkeys((*options.also, *(() if options.only else MORE))))
        keys = [key for key in chosen_quantities(replace(options, also=also)) if key != LOSS]
        return replace(options, only=tuple(keys), also=(), now=None)

    def run(self, sink: Sink, options: RunOptions) -> None:
        """Write the frame. Raises InputError, ModelError or CancelledError."""
        emit = Emitter(sink, 0, options.cancelled, options.progress)
        options.progress(0, 1, "what made the gradient")
        replay, whole, steps = self._parts(emit)
        look_at = whole.samples.largest if whole.samples is not None else 0
        batch = replay.batch(look_at)
        frame = Frame(index=0, label=self.title, step=self.step.iteration)
        begin_frame(replay.subject, batch, sink, options, frame)
        self._write(emit, whole, steps, look_at)
        perform(replay.subject, batch, Once(sink), self.chosen(options), frame=frame)

    def _parts(self, emit: Emitter) -> tuple[Replay, Whole, Parts | None]:
        """Of the call that has most of the gradient: the gradient of all calls, its samples, and the steps of one."""
        try:
            with unchanged(self.subject.model, 0):
                found = [(replay, *shares_of(replay, emit.check)) for replay in self.replays]
                total = _sum([whole.gradients for _, whole, _ in found])
                sizes = [_product(whole.gradients, total) for _, whole, _ in found]
                at = max(range(len(found)), key=lambda n: sizes[n] if math.isfinite(sizes[n]) else math.inf)
                replay, whole, of_sample = found[at]
                steps = of_sample(whole.samples.largest) if whole.samples is not None else None
        except (InputError, ModelError, CaptureError, CancelledError):
            raise
        except Exception as fault:
            raise model_error(fault, f"The iteration of {self.subject.name}") from fault
        self._total = total
        return replay, whole, steps

    def _write(self, emit: Emitter, whole: Whole, steps: Parts | None, look_at: int) -> None:
        emit.refuse("output:loss", NO_TARGETS)
        emit.scalar(SAMPLE, look_at)
        check = self._check()
        emit.scalar(CHECK, check)
        level = "info" if math.isnan(check) or check < 1e-3 else "warning"
        emit.sink.write(Log(f"Iteration {self.step.iteration:,} run again: {check_sentence(check)}.", level, "engine"))  # type: ignore[arg-type]
        if not self.step.exact:
            said = f"The parameters are those after iteration {self.step.snapshot}: the ones before this step were not"
            emit.sink.write(Log(f"{said} kept.", "warning", "engine"))
        if len(self.step.calls) > 1:
            said = f"The model was called {len(self.step.calls)} times in this iteration; the call with most of the"
            emit.sink.write(Log(f"{said} gradient is shown.", "info", "engine"))
        if whole.samples is not None:
            emit.array(_channel(SAMPLES, "sequence", len(whole.samples.norm), "samples"), _table(whole.samples))
        if steps is not None:
            emit.array(_channel(STEPS, "step", len(steps.norm), f"loss steps of sample {look_at}"), _table(steps))

    # -- the training that kept it

    def _opened(self) -> Capture | None:
        """Its capture, where the file still lies in it."""
        try:
            return open_capture(self.step.path.parent.parent)
        except CaptureError:
            return None

    def _told(self) -> dict[str, Any]:
        """What moved first, for the record of the beginning."""
        if self._training is None:
            return {}
        found = chronology_at(self._training, self.step.iteration)
        moves = [str(one) for one in found.moves[:50]]
        return {"chronology": found.verdict.sentence, "moves": moves, "wrong": found.wrong}

    def _row(self) -> int | None:
        """The position of the iteration among those that were recorded."""
        training = self._training
        name = "training:iteration"
        if training is None or name not in training.channels:
            return None
        found = np.flatnonzero(training.array(name) == self.step.iteration)
        return int(found[0]) if len(found) else None

    def _recorded(self, channel: str) -> float | None:
        row = self._row()
        if row is None or self._training is None or channel not in self._training.channels:
            return None
        values = np.ma.filled(self._training.array(channel), np.nan)
        return float(values[row]) if row < len(values) and values[row] > 0 else None

    def _recorded_norms(self) -> Mapping[str, float]:
        """The gradient norm of each parameter as it was recorded."""
        row = self._row()
        if row is None or self._training is None or NORM not in self._training.channels:
            return {}
        values = np.ma.filled(self._training.array(NORM), np.nan)
        names = self._training.labels("parameter")
        return dict(zip(names, values[row].tolist(), strict=False)) if row < len(values) else {}

    def _check(self) -> float:
        """The largest difference of a parameter's gradient norm from the recorded one, relative to the largest norm."""
        own = {plain_name(name): float(one.double().norm()) for name, one in self._total.items()}
        pairs = [(own[name], norm) for name, norm in self._norms.items() if name in own and math.isfinite(norm)]
        largest = max((norm for _, norm in pairs), default=0.0)
        return max(abs(a - b) for a, b in pairs) / largest if largest else math.nan


class Once:
    """A sink that leaves out the frame, which has begun already."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def write(self, record: Any) -> None:
        """Pass a record on."""
        if not isinstance(record, Frame):
            self._sink.write(record)


def _channel(name: str, dim: str, count: int, title: str) -> Channel:
    return Channel(
        name=name, kind=KIND, dims=("statistic", dim), shape=(len(STATISTICS), count), dtype="float64", title=title,
        labels={"statistic": STATISTICS}, compare="separate",
        formula="norm ‖G_n‖ of the parameters' gradient of this part; share ⟨G_n, G⟩ / ‖G‖²; norm of ∂L/∂y of the part",
        method="exact; one backward pass a part, those with the largest gradient at the output",
    )  # fmt: skip


def _table(parts: Parts) -> Any:
    return torch.stack((parts.norm, parts.share, parts.at_output.double())).numpy()


def _sum(many: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    total = dict(many[0])
    for one in many[1:]:
        total = {name: total[name] + one[name] for name in total}
    return total


def _product(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> float:
    return sum(float((one[name].double() * other[name].double()).sum()) for name in one)
