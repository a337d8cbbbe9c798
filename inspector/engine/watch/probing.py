"""Probe frames: the app's own quantities on one fixed batch, at moments of the training, with the model unchanged.

The model itself is run, in evaluation mode unless told otherwise: nothing has to be copied, and what is shown is what
is trained. Random state, buffers, training flags and gradients are as they were afterwards; gradients of the probe
never reach `.grad`, and what modules keep in attributes (a state that is carried from call to call) is put back.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from inspector.capture import CaptureError
from inspector.capture.placing import contradiction
from inspector.engine.errors import InputError
from inspector.engine.hooks.attributes import attributes_kept
from inspector.engine.hooks.isolation import unchanged
from inspector.engine.model.subject import Batch, Subject, adopt, to_device
from inspector.engine.opening.open_subject import open_subject
from inspector.engine.pipeline import RunOptions, perform
from inspector.engine.pipeline.batches import batch_of_spec
from inspector.engine.pipeline.watched_call import batch_of
from inspector.engine.registries import INPUTS
from inspector.engine.watch.frame_limit import DEFAULT, GIGABYTE, FrameLimit
from inspector.engine.watch.pace import Pace
from inspector.engine.wording import error_text
from inspector.records import Channel, Frame, InputSpec, Load, Log, Page
from inspector.records.plain_text import shortened

GROWTH = {"light": 1.25, "normal": 1.25, "full": 1.1}
"""Each frame is this many times as far from the beginning as the one before: a million iterations have about 65 frames
(145 with `full`), close together where most changes."""
SHARE = 0.1
"""Share of the wall time that frames may take where neither their distance nor a share of it was asked for."""
MOST_AT_EVENTS = 20
"""Frames of one run that spikes and other events may add."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a user wants probed.

    Attributes:
        batch: what the model is called on. loss: (output, batch) → (b, t), for gradients by step.
        subject: whose conventions hold (vocabulary, forward, loss), with the watched model; None for the model alone.
        training: the mode of the model while it is probed. every: iterations between frames, None for growing ones.
        quantities: keys of quantities instead of the default ones. frames_gb: gigabytes of all frames (frame_limit.py).
    """

    batch: Batch
    loss: Callable[[Any, Batch], Tensor] | None = None
    training: bool = False
    every: int | None = None
    quantities: tuple[str, ...] = ()
    subject: Subject | None = None
    frames_gb: float = DEFAULT


def wanted(
    model: nn.Module, probe: Any, subject: Any = None, loss: Any = None, training: bool = False,
    every: int | None = None, quantities: Sequence[str] = (), frames_gb: float = DEFAULT,
) -> Wanted | None:  # fmt: skip
    """The probe as a batch; None where none is wanted. Nothing random is drawn. Raises InputError, and ValueError for a
    limit that is none.

    `probe` is a batch, or an input of a subject: an InputSpec, or "KIND:VALUE" ("text:hello", "example:",
    "generated:noise"). `subject`: an object, or its name; of it all but the model is taken.
    """
    if not frames_gb > 0:
        raise ValueError(f"frames_gb is {frames_gb!r}; expected gigabytes that all frames may take, above 0.")
    if probe is None:
        if subject is not None:
            raise InputError("probe_subject was given without a probe; expected probe= too, for example 'example:'.")
        return None
    spec = probe if isinstance(probe, InputSpec) else _spec(probe) if isinstance(probe, str) else None
    if spec is None and subject is None:
        return Wanted(batch_of(probe), loss, training, every, tuple(quantities), frames_gb=frames_gb)
    with unchanged(nn.Module(), 0):
        found = _of_model(model, subject)
        batch = batch_of(probe) if spec is None else batch_of_spec(found, spec, 0)
    return Wanted(batch, loss, training, every, tuple(quantities), found, frames_gb)


def _spec(text: str) -> InputSpec:
    kind, colon, value = text.partition(":")
    if not colon or kind not in INPUTS:
        raise InputError(
            f"The probe {shortened(text, 60)!r} is no input; expected KIND:VALUE, KIND one of {', '.join(INPUTS)}."
        )
    return InputSpec(kind=kind, value=value)


def _of_model(model: nn.Module, subject: Any) -> Subject:
    """The subject with the model that is watched."""
    if subject is None:
        return adopt(model)
    made = open_subject(Load(subject=subject, trusted=True)).subject if isinstance(subject, str) else adopt(subject)
    return adopt(replace(made, model=model, set_to_eval=()))


class Prober:
    """Writes frames into the capture of a run; a probe that fails is the last one, and training and watching go on."""

    def __init__(
        self, model: nn.Module, asked: Wanted, cost: str, pace: Pace, sink: Any,
        optimizers: Callable[[], Sequence[Optimizer]] = tuple,
    ) -> None:  # fmt: skip
        """optimizers: those that train the model now."""
        subject = adopt(Subject(model=model)) if asked.subject is None else asked.subject
        subject = subject if asked.loss is None else replace(subject, loss=asked.loss)
        self._optimizers = optimizers
        self._subject, self._asked, self._pace, self._sink = subject, asked, pace, sink
        self._growth = GROWTH[cost]
        self._options = RunOptions(only=asked.quantities, only_selected=True)
        self._limit = FrameLimit(asked.frames_gb * GIGABYTE)
        self._next = 0
        self._described: dict[str, Channel] = {}
        self._events = 0
        self._seconds = self._spent = 0.0
        self._last = (-1, -1)
        self.frames = 0
        self.failed = False

    def after(self, iteration: int) -> None:
        """An iteration has ended: probe if it is time."""
        if iteration >= self._next and (not iteration or self._asked.every is not None or self._affordable()):
            self.now(iteration)

    def _affordable(self) -> bool:
        """Whether another frame as long as the last one keeps to the share."""
        if self._pace.every is None:
            return self._pace.allows(self._seconds)
        return self._spent + self._seconds <= SHARE * self._pace.seconds

    def at_event(self, iteration: int, text: str) -> int:
        """Probe because something happened; returns the frame, -1 where there is none."""
        self._events += 1
        return self.now(iteration, text) if self._events <= MOST_AT_EVENTS else -1

    def at_pause(self, iteration: int, text: str) -> int:
        """Probe because the loop is about to wait; returns the frame, that of this iteration where there is one."""
        return self._last[1] if self._last[0] == iteration else self.now(iteration, text)

    def now(self, iteration: int, text: str = "") -> int:
        """Write a frame; returns its number, -1 where the probe fails."""
        if self.failed or not self._limit.has_room:
            return -1
        label = f"iteration {iteration:,}" + (f": {text}" if text else "")
        frame = Frame(index=self.frames, label=label, step=iteration)
        if iteration >= self._next:  # what spikes and pauses add in between moves none of the others
            self._next = self._due_after(iteration)
        began = time.monotonic()
        self.frames += 1
        try:
            self._perform(frame)
        except CaptureError:
            raise
        except Exception as fault:  # noqa: BLE001 - a model of the user's may raise anything on a batch that it does not take
            self.failed = True
            self._sink.write(Log(f"The probe at {label} failed ({error_text(fault)}); there is no other.", "warning"))
            return -1
        finally:
            self._seconds = time.monotonic() - began
            self._spent += self._seconds
        self._last = iteration, frame.index
        return frame.index

    def _due_after(self, iteration: int) -> int:
        """When the next frame is due: at a multiple of the distance that was asked for, so that those of two trainings
        are at the same iterations."""
        if every := self._asked.every:
            return -(-(iteration + self._limit.distance(iteration, 1)) // every) * every
        distance = max(1, math.ceil(iteration * self._growth) - iteration)
        return iteration + self._limit.distance(iteration, distance)

    def _perform(self, frame: Frame) -> None:
        model, copies = self._subject.model, Copies(self._sink, self._described)
        modes = [(part, part.training) for part in model.modules()]
        device = next((one.device for one in model.parameters()), torch.device("cpu"))
        try:
            model.train(self._asked.training)
            with attributes_kept(model):
                self._subject.optimizer = list(self._optimizers()) or self._subject.optimizer
                perform(self._subject, to_device(self._asked.batch, str(device)), copies, self._options, frame=frame)
        finally:
            for part, mode in modes:
                part.training = mode
            self._count(copies.size)

    def _count(self, size: int) -> None:
        """A frame took so many bytes: later ones are further apart where the limit needs that, which is said."""
        if self._limit.wrote(size):
            said = f"Frames take half of {self._asked.frames_gb:g} GB (frames_gb): they become rarer from here on."
            self._sink.write(Log(said, "info", "watch"))
        if not self._limit.has_room:
            self._sink.write(
                Log(f"Frames have taken {self._asked.frames_gb:g} GB (frames_gb): there is no other.", source="watch")
            )


class Copies:
    """A sink that copies pages: they wait for the disk while training changes tensors that they may share.

    `described`: the channels of the frames before. A model that was cast in between has others of the same names, which
    one capture cannot hold.
    """

    def __init__(self, sink: Any, described: dict[str, Channel]) -> None:
        self._sink, self._described = sink, described
        self.size = 0

    def write(self, record: Any) -> None:
        """Pass a record on. Raises ValueError for a channel that contradicts an earlier frame."""
        if isinstance(record, Channel):
            if against := contradiction(self._described.get(record.name), record):
                raise ValueError(against)
            self._described[record.name] = record
        if isinstance(record, Page):
            self.size += record.array.nbytes
            record = Page(record.channel, record.frame, record.offset, record.array.copy())
        self._sink.write(record)
