"""A sweep from its beginning to its end: what is computed next, merging in order, progress, cancel."""

from __future__ import annotations

import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from inspector.engine.errors import CancelledError, InputError, ModelError
from inspector.engine.pipeline import RunOptions, chosen_quantities, run_start
from inspector.engine.pipeline.room import told as memory_told
from inspector.engine.session.sweep.candidates import checkpoints_in, nothing_in
from inspector.engine.session.sweep.cluster import Cluster
from inspector.engine.session.sweep.following import Settled
from inspector.engine.session.sweep.frames import KEY, SweepCapture, key_of, numbered
from inspector.engine.session.sweep.identity import settings
from inspector.engine.session.sweep.one_frame import Maker
from inspector.engine.session.sweep.ordering import Candidate, in_order, said_of_order
from inspector.engine.session.sweep.room import bytes_of_frame, processes
from inspector.engine.session.sweep.runners import Done, Here, Output, Processes, Runner, spool_of
from inspector.records import Frame, Log, RunStart, Sweep, SweepFrame, counted

LOOK_SECONDS = 1.0
"""How often a folder that is followed is looked at."""
WAIT_SECONDS = 0.2
MOST_AHEAD = 64
"""Frames that are done and wait on the disk for a slow one before them."""


def _print(stream: str, text: str) -> None:
    (sys.stdout if stream == "stdout" else sys.stderr).write(text)


@dataclass(frozen=True, slots=True)
class Listener:
    """Who is told: `cancelled` is asked, `progress` gets (done, total, text), `log` what happens, `output` what models
    print in other processes."""

    cancelled: Callable[[], bool] = lambda: False
    progress: Callable[[float, float, str], None] = lambda _done, _total, _text: None
    log: Callable[[Log], None] = lambda _log: None
    output: Output = _print


@dataclass(frozen=True, slots=True)
class Outcome:
    """How many frames were computed, were there already, and failed (now or before)."""

    computed: int
    before: int
    failed: int
    cancelled: bool = False

    @property
    def sentence(self) -> str:
        """The same in words."""
        parts = [f"{counted(self.computed, 'frame')} computed"]
        parts += [f"{self.before} there before"] if self.before else []
        parts += [f"{self.failed} failed"] if self.failed else []
        return ", ".join(parts) + "."


@dataclass(slots=True)
class Conductor:
    """Carries out one Sweep. `run` raises InputError, ModelError or CaptureError where nothing can be begun."""

    sweep: Sweep
    maker: Maker
    listener: Listener = field(default_factory=Listener)
    _settled: Settled = field(default_factory=Settled)
    _waiting: deque[SweepFrame] = field(default_factory=deque)
    _given: dict[int, SweepFrame] = field(default_factory=dict)
    _done: dict[int, Done] = field(default_factory=dict)
    _seen: set[Any] = field(default_factory=set)
    _computed: int = 0
    _failed_now: int = 0
    _failed_before: int = 0
    _before: int = 0
    _began: float = 0.0
    _looked: float = 0.0
    _part: float = 0.0
    """How far the frame is that is computed in this process, from 0 to 1."""
    _now_doing: str = ""

    def run(self) -> Outcome:
        """Compute what is missing; a cancel ends it with what is finished."""
        sweep = self.sweep
        chosen_quantities(RunOptions(also=sweep.run.also, only=sweep.run.only))  # unknown ones are told at once
        path = Path(sweep.run.path).absolute()
        capture = SweepCapture(path, sweep.run.overwrite, settings(sweep, self.maker.sequence), self.listener.log)
        capture.look()
        start, each = self._preflight()
        with tempfile.TemporaryDirectory(prefix="inspector-sweep-") as folder:
            self._look(capture, Path(folder), start, first=True)
            if not self._waiting and not sweep.follow:
                return self._outcome(cancelled=False)
            runner = self._runner(each)
            fault: BaseException | None = None
            try:
                self._compute(capture, runner, Path(folder), start)
            except BaseException as problem:
                fault = problem
                if not isinstance(problem, (CancelledError, KeyboardInterrupt)):
                    raise
            finally:
                self._end(capture, runner, fault)
            if isinstance(fault, KeyboardInterrupt):
                raise fault
            self._require_some(capture)
            return self._outcome(cancelled=fault is not None)

    def _preflight(self) -> tuple[RunStart, float]:
        """Make the model once without a checkpoint: what is wrong with it or the sequence would be wrong in each frame.

        Returns how the run begins, and about how many bytes a process takes.
        """
        sweep = self.sweep
        load = replace(sweep.load, checkpoint="")
        opened = self.maker.opened(load)
        task = SweepFrame(load=load, run=sweep.run, frame=Frame(index=0))
        batch = self.maker.batch(opened, task)
        start = run_start(
            opened, batch.title, subject=load.subject or opened.title, seed=sweep.run.seed, device=load.device
        )
        where = sweep.paths[0] if len(sweep.paths) == 1 else ""
        meta = {key: value for key, value in start.meta.items() if key != "checkpoint"}
        memory = memory_told(opened.subject, batch)
        if memory:
            self.listener.log(Log(memory))
        return replace(start, checkpoint=where, meta=meta), bytes_of_frame(opened.subject, batch)

    # -- which frames

    def _look(self, capture: SweepCapture, folder: Path, start: RunStart, *, first: bool) -> None:
        """Add the checkpoints that are new to those that wait. Raises InputError where there are none at first."""
        self._looked = time.monotonic()
        paths = checkpoints_in(self.sweep.paths)
        if first and not paths and not self.sweep.follow:
            raise InputError(nothing_in(self.sweep.paths))
        told = self._settled.identities(paths, wait=self.sweep.follow)
        new = {path: one for path, one in told.items() if key_of(one) not in self._seen}
        if not new:
            return
        found, order = in_order(list(told), capture.order)
        capture.begin(start, capture.order or order)
        numbers = numbered(found, {path: key_of(one) for path, one in told.items()}, capture.known)
        if first:
            self.listener.log(Log(said_of_order(found, order)))
            self._tell_what_is_there(capture, told)
        for one in found:
            if one.path in new:
                self._add(capture, one, numbers[one.path], new[one.path], folder)

    def _add(self, capture: SweepCapture, one: Candidate, number: int, told: dict[str, Any], folder: Path) -> None:
        """Queue a checkpoint, unless its frame is there."""
        self._seen.add(key_of(told))
        if key_of(told) in capture.known.finished:
            self._before += 1
            return
        if key_of(told) in capture.known.failed:
            self._failed_before += 1
            return
        meta = {KEY: {**told, "step_from": one.told_by}}
        label = one.name if one.step is None else f"{one.name}, step {one.step}"
        frame = Frame(index=number, label=label, step=one.step, meta=meta)
        capture.known.begun.setdefault(key_of(told), frame)
        spool = folder / f"{number}.spool"
        self._waiting.append(
            SweepFrame(
                load=replace(self.sweep.load, checkpoint=str(one.path)), run=replace(self.sweep.run, path=str(spool)),
                frame=frame, threads=self.sweep.threads,
            )
        )  # fmt: skip

    def _tell_what_is_there(self, capture: SweepCapture, told: dict[Path, dict[str, Any]]) -> None:
        known = capture.known
        if not capture.resumed:
            return
        there = len(known.finished)
        self.listener.log(Log(f"{counted(there, 'frame')} of {capture.path.name} computed before; the rest follows."))
        for key, frame in known.failed.items():
            if key in {key_of(one) for one in told.values()}:
                self.listener.log(Log(f"{frame.label} failed before, and has not changed since.", "warning"))
        paths = {held[0]: frame for held, frame in (*known.finished.items(), *known.failed.items())}
        for path, one in told.items():
            if known.of(key_of(one)) is None and str(path) in paths:
                frame = paths[str(path)]
                changed = _what_changed(frame.meta.get(KEY, {}), one)
                since = f"has changed since frame {frame.index} was computed ({changed})"
                self.listener.log(Log(f"{path.name} {since}; it gets another frame.", "warning"))

    # -- computing

    def _runner(self, each: float) -> Runner:
        sweep, listener = self.sweep, self.listener
        if self.maker.is_bound and (sweep.workers > 1 or sweep.scheduler):
            raise InputError(
                "A model object, and a sequence of numbers, stay in this process; for several workers give the model "
                "as file.py:callable, and the sequence as text or inspector.sequence(…)."
            )
        if sweep.scheduler:
            cluster = Cluster(sweep.scheduler)
            listener.log(Log(f"Computed by the workers of dask, {cluster.connect()}."))
            return cluster
        frames = len(self._waiting) if not sweep.follow else max(2, len(self._waiting))
        count, said = processes(sweep.workers, frames, each, sweep.load.device, sweep.threads)
        if count == 1 or self.maker.is_bound:
            return Here(self.maker, listener.cancelled, self._within)
        listener.log(Log(said))
        return Processes(count, listener.output, sys.executable)

    def _compute(self, capture: SweepCapture, runner: Runner, folder: Path, start: RunStart) -> None:
        """Until nothing is left; with `follow` until a cancel. Raises CancelledError."""
        self._began = time.monotonic()
        while True:
            if self.listener.cancelled():
                raise CancelledError
            while self._waiting and runner.has_room() and len(self._done) < MOST_AHEAD:
                task = self._waiting.popleft()
                self._given[task.frame.index] = task
                self._say(task.frame.label)
                runner.submit(task)
            if not self._given and not self.sweep.follow:
                return
            if self._given:
                self._take(runner.next(WAIT_SECONDS), capture)
            else:
                time.sleep(WAIT_SECONDS)
            if self.sweep.follow and time.monotonic() - self._looked >= LOOK_SECONDS:
                self._look(capture, folder, start, first=False)

    def _take(self, done: Done | None, capture: SweepCapture) -> None:
        """Merge what is done, as far as all frames before it are."""
        if done is None:
            return
        self._done[done.task.frame.index] = done
        self._merge(capture, in_order=True)
        self._say("")

    def _merge(self, capture: SweepCapture, *, in_order: bool) -> None:
        for number in sorted(self._done):
            if in_order and any(other < number for other in self._given if other not in self._done):
                return
            done = self._done.pop(number)
            self._given.pop(number, None)
            if done.failed:
                self._failed_now += 1
                capture.failed(done.task.frame, done.failed)
            else:
                capture.finished(done.task.frame, spool_of(done.task))
                self._computed += 1
            spool_of(done.task).unlink(missing_ok=True)

    def _end(self, capture: SweepCapture, runner: Runner, fault: BaseException | None) -> None:
        """Keep what is finished, end the processes, and close the capture, in which it is said how the sweep ended."""
        try:
            if isinstance(fault, (CancelledError, KeyboardInterrupt)):
                self._done |= {done.task.frame.index: done for done in runner.rest()}
                self._merge(capture, in_order=False)
        finally:
            with suppress(OSError):
                runner.close()
            ends_by_itself = self.sweep.follow and isinstance(fault, CancelledError)
            capture.close(None if ends_by_itself else fault)

    def _require_some(self, capture: SweepCapture) -> None:
        """Raises ModelError where every checkpoint failed: then there is no capture."""
        if not self._failed_now or capture.recording is not None or capture.resumed:
            return
        reasons = {frame.meta[KEY]["failed"] for frame in capture.known.failed.values()}
        said = f": {reasons.pop()}" if len(reasons) == 1 else f"; the first: {capture.first_failure()}"
        none = "The only checkpoint" if self._failed_now == 1 else f"None of {self._failed_now:,} checkpoints"
        raise ModelError(f"{none} could {'not ' * (self._failed_now == 1)}be run, so nothing was captured{said}")

    def _outcome(self, *, cancelled: bool) -> Outcome:
        return Outcome(self._computed, self._before, self._failed_now + self._failed_before, cancelled)

    # -- progress

    def _within(self, done: float, total: float, text: str) -> None:
        """How far the frame is that is computed in this process."""
        self._part = max(self._part, done / total if total else 0.0)  # a run counts anew behind its states
        self._tell(f"{self._now_doing}: {text}")

    def _say(self, label: str = "") -> None:
        """Tell that another frame begins, or that one has ended."""
        self._now_doing, self._part = label or self._now_doing, 0.0
        self._tell(self._now_doing)

    def _tell(self, text: str) -> None:
        ended = self._computed + self._failed_now + len(self._done)
        total = float(ended + len(self._given) - len(self._done) + len(self._waiting))
        at = min(ended + self._part, total)
        left = ""
        if ended and at < total:
            seconds = (
                (time.monotonic() - self._began) / at * (total - at)
            )  # if the rest takes as long as what was computed
            left = f", {_duration(seconds)} left"
        self.listener.progress(at, total, f"{ended} of {total:.0f}{left} · {text}")


def _what_changed(before: Any, now: dict[str, Any]) -> str:
    words = {"size": "size", "changed": "time of its last change", "hash": "content"}
    return ", ".join(word for key, word in words.items() if before.get(key) != now[key])


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
