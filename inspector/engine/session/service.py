"""What the worker does with each request: Load, Run, Analyse. Answers go out as records."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from inspector.capture import CaptureError
from inspector.engine.decoding import DecodingRun
from inspector.engine.errors import CancelledError, InputError, ModelError, of_the_models_code
from inspector.engine.interventions.runs import perform_with_edits, plan_edits
from inspector.engine.model.subject import to_device
from inspector.engine.opening.open_subject import Opened, open_subject
from inspector.engine.opening.user_code import NotAgreedError, UserCode
from inspector.engine.pipeline import DEFAULTS, KeptTrace, Recording, RunOptions, chosen_quantities, record, run_start
from inspector.engine.pipeline.batches import batch_of_spec
from inspector.engine.pipeline.room import say_room, told
from inspector.engine.process_state import fresh
from inspector.engine.session.costs import Costs, announcement, refused
from inspector.engine.session.data_set_runs import ManySequences, is_data_set
from inspector.engine.session.described import describe
from inspector.engine.session.later import KeptRun, NeedsRunError
from inspector.engine.session.parameter_changes import parameter_changes
from inspector.engine.session.seldom import Seldom
from inspector.engine.session.spike import SpikeRun, is_spike
from inspector.engine.session.sweep.conduct import Conductor, Listener
from inspector.engine.session.sweep.listing import listing
from inspector.engine.session.sweep.one_frame import Maker, compute
from inspector.engine.session.sweep.spool import Spool
from inspector.engine.session.weights import KeptWeights, WeightsRun, is_weights
from inspector.engine.trace.trace import Trace
from inspector.records import (
    Analyse,
    CompareCheckpoints,
    Failure,
    Finished,
    Frame,
    ListCheckpoints,
    Load,
    NeedsTrust,
    Progress,
    Run,
    RunStart,
    RunStop,
    Sweep,
    SweepFrame,
    split_request,
)


class CaptureLostError(Exception):
    """The capture could not be written to its end; what was committed before stays readable (exit code 1)."""


class _NeedsConfirmation(Exception):
    """A checkpoint does not fit the model that was opened, which waits for the user's confirmation."""

    def __init__(self, opened: Opened) -> None:
        super().__init__()
        self.opened = opened


class Service:
    """Has the open model and serves requests for it. `send` takes the answers; any thread may call `cancel`.

    `code` is checked before the user's code runs; without it only a trusted Load opens any.
    """

    def __init__(self, send: Callable[[Any], None], code: UserCode | None = None) -> None:
        self.send = send
        self.code = code
        self.opened: Opened | None = None
        self._load: Load | None = None
        self._kept = KeptRun()
        self._weights: KeptWeights | None = None
        self._costs = Costs()
        self._received = self._served = self._cancelled = 0
        """Numbers of requests received and begun, and the one up to which all are cancelled."""
        self._seldom = Seldom()

    def received(self) -> None:
        """One more request waits to be served: a cancel that arrives before its turn applies to it too."""
        self._received += 1

    def cancel(self) -> None:
        """Stop the run in progress at its next page, forget the model that is being opened, and whatever waits."""
        self._cancelled = max(self._received, self._served)

    def cancelled(self) -> bool:
        """Whether the request that is served was cancelled."""
        return self._served <= self._cancelled

    def close(self) -> None:
        """Release the model and its last run."""
        self._let_go()
        self.opened = None

    def _let_go(self) -> None:
        """Nothing more can be asked of the last run."""
        self._kept.let_go()
        self._weights = None

    def serve(self, request: Any) -> None:
        """Carry out a request; bad input and raising models are answered with a Failure."""
        name, generation = type(request).__name__, int(getattr(request, "generation", 0))
        failed = partial(Failure, request=name, generation=generation)
        self._served += 1
        try:
            self._carry_out(request)
        except NotAgreedError as problem:
            self.send(NeedsTrust(files=problem.files, message=str(problem), request=name, generation=generation))
        except (InputError, CaptureError) as problem:
            self.send(failed(message=str(problem), kind="needs run" if isinstance(problem, NeedsRunError) else "input"))
        except CancelledError:
            said = "Opening the model was cancelled." if isinstance(request, Load) else "Cancelled."
            self.send(failed(message=said, kind="cancelled"))
        except CaptureLostError as problem:
            self.send(failed(message=str(problem), kind="capture"))
        except Exception as fault:
            if (raised := of_the_models_code(fault)) is None:
                raise
            self.send(failed(message=str(raised), details=raised.details, kind="model"))

    def _carry_out(self, request: Any) -> None:
        """Raises InputError where there is no such request."""
        known: dict[type[Any], Callable[[Any], object]] = {
            Load: self._open, Run: self._run, Analyse: self._analyse, Sweep: self._sweep,
            SweepFrame: self._sweep_frame, CompareCheckpoints: self._compare_checkpoints,
            ListCheckpoints: self._list_checkpoints,
        }  # fmt: skip
        if type(request) not in known:
            raise InputError(f"The worker does not know the request {type(request).__name__}.")
        known[type(request)](request)

    def _list_checkpoints(self, request: ListCheckpoints) -> None:
        self.send(listing(request.paths, request.generation))

    def _open(self, load: Load) -> bool:
        """Open another model; returns whether it is open: until it is open and confirmed, the one before stays."""
        try:
            with fresh(), self.code.opening(load) if self.code is not None else nullcontext():
                opened = open_subject(load, self.code)
                if self.cancelled():
                    raise CancelledError
                if opened.pending:
                    raise _NeedsConfirmation(opened)  # so that the code of the model before stays loaded too
        except _NeedsConfirmation as waiting:
            self.send(describe(waiting.opened, load))
            return False
        self._let_go()
        self.opened, self._load = opened, load
        self.send(describe(opened, load))
        return True

    def _run(self, request: Run) -> None:
        if not self._is_up_to_date(request.generation):
            return  # its checkpoint does not fit the edited model, which was reported to the window
        if self.opened is None or self._load is None:
            raise InputError("No model is open yet; open one first.")
        self._let_go()
        frames = list[KeptTrace]()
        options = self._options(request, frames)
        if is_weights(request.input):
            self._run_weights(request, options)
            return
        if self.opened.tensors is not None:
            raise InputError(self.opened.why_tensors or f"{self.opened.title} is open as tensors, which nothing runs.")
        special = (is_data_set(request.input), is_spike(request.input), request.decode is not None)
        for asked, serve in zip(special, (self._run_many, self._run_spike, self._run_decoding), strict=True):
            if asked:
                serve(request, options)
                return
        self._run_sequence(request, options, frames)

    def _run_sequence(self, request: Run, options: RunOptions, frames: list[KeptTrace]) -> None:
        """Run one sequence, with changes where there are some; `frames` takes what later analysis needs."""
        assert self.opened is not None and self._load is not None
        subject, chosen = self.opened.subject, chosen_quantities(options)
        batch = to_device(batch_of_spec(subject, request.input, request.seed), self._load.device)
        start = run_start(
            self.opened, batch.title, subject=self._load.subject, seed=request.seed, device=self._load.device,
            made_by=request.made_by,
        )  # fmt: skip
        step = self.opened.report.step if self.opened.report is not None else None
        frame = Frame(index=0, label=request.frame_label or batch.title, step=step)
        dry = replace(options, keep=DEFAULTS.keep)
        plan = plan_edits(subject, batch, request.edits, dry) if request.edits else None
        room = told(subject, batch)
        if room:
            self._note(request, room)
        recording = self._record(request, start)  # what cannot be used is bad input
        recording.expect(chosen, 2 if plan is not None else 1)
        say_room(recording, room)
        self._perform(recording, lambda: perform_with_edits(subject, batch, recording, plan, options, frame))
        assert recording.stop is not None
        whole = recording.stop.status == "done"
        if whole and recording.left:
            self._kept.keep(recording, start, frames)
        self._costs.learn(recording.seconds, [kept.trace for kept in frames])
        self._report_end(request, recording)
        if whole and not recording.left:  # goes through everything that was recorded: nobody waits for it
            self._kept.keep(recording, start, frames)

    def _record(self, request: Run, start: RunStart) -> Recording:
        """Begin a capture; one that it replaces stays until it has ended."""
        return record(
            request.path, start, overwrite=request.overwrite, whole=True, say=lambda text: self._note(request, text)
        )

    def _options(self, request: Run, frames: list[KeptTrace]) -> RunOptions:
        return RunOptions(
            also=request.also, only=request.only, now=request.now, seed=request.seed, states=request.states,
            cancelled=self.cancelled, progress=self._reporter(request.generation), room=self._kept.room,
            keep=frames.append, announce=lambda trace, keys: self._announce(request, trace, keys),
            note=lambda text: self._note(request, text),
        )  # fmt: skip

    def _announce(self, request: Run, trace: Trace, keys: Sequence[str]) -> Mapping[str, float]:
        """Say what the quantities of a run will take, and which of those asked for cannot be computed; returns about
        how many seconds each takes."""
        keys, asked = [split_request(key)[0] for key in keys], (*request.also, *request.only)
        wanted = {split_request(key)[0] for key in asked}
        costs = self._costs.estimate(keys, [trace])
        for text in announcement(costs, refused([key for key in keys if key in wanted], [trace])):
            self._note(request, text)
        return costs

    def _note(self, request: Run, text: str) -> None:
        """A line about a run that stays."""
        self.send(Progress(done=0.0, total=0.0, text=text, note=True, generation=request.generation))

    def _run_many(self, request: Run, options: RunOptions) -> None:
        """Run every sequence of a data set. Raises InputError where the source cannot be read."""
        assert self.opened is not None and self._load is not None
        many = ManySequences(self.opened.subject, request.input, self._load.device)
        many.check(request.edits)
        start = run_start(
            self.opened, many.title, subject=self._load.subject, seed=request.seed, device=self._load.device,
            made_by=request.made_by,
        )  # fmt: skip
        recording = self._record(request, many.noted(start))
        self._perform(recording, lambda: many.run(recording, options, request.frame_label))
        self._report_end(request, recording)

    def _run_spike(self, request: Run, options: RunOptions) -> None:
        """Run an iteration that a watched training kept. Raises InputError where it is not one of this model."""
        assert self.opened is not None and self._load is not None
        if request.edits:
            raise InputError("Changes apply to the run of a sequence, not to an iteration of a training.")
        spike = SpikeRun(self.opened.subject, request.input)
        start = run_start(
            self.opened, spike.title, subject=self._load.subject, seed=request.seed, device=self._load.device,
            made_by=request.made_by,
        )  # fmt: skip
        recording = self._record(request, spike.noted(start))
        recording.expect(spike.chosen(options).only)
        self._perform(recording, lambda: spike.run(recording, options))
        self._report_end(request, recording)

    def _run_weights(self, request: Run, options: RunOptions) -> None:
        """List every tensor. Raises InputError where the file to compare with cannot be read."""
        assert self.opened is not None and self._load is not None
        run = WeightsRun(self.opened, request.input)
        start = run.noted(run_start(
            self.opened, run.title, subject=self._load.subject, device=self._load.device, made_by=request.made_by,
        ))  # fmt: skip
        recording = record(request.path, start, overwrite=request.overwrite)
        self._perform(recording, lambda: run.write(recording, options))
        if recording.stop is not None and recording.stop.status == "done":
            self._weights = KeptWeights(run, recording.path, start, recording.stop)
        self._report_end(request, recording)

    def _run_decoding(self, request: Run, options: RunOptions) -> None:
        """Search for an answer. Raises InputError where the subject offers none."""
        assert self.opened is not None and self._load is not None and request.decode is not None
        if request.edits:
            raise InputError("Changes apply to the run of a sequence, not to a search for its answer.")
        batch = to_device(batch_of_spec(self.opened.subject, request.input, request.seed), self._load.device)
        search = DecodingRun(self.opened.subject, batch, request.decode, request.seed)
        start = run_start(
            self.opened, batch.title, subject=self._load.subject, seed=request.seed, device=self._load.device,
            made_by=request.made_by,
        )  # fmt: skip
        recording = self._record(request, search.noted(start))
        self._perform(recording, lambda: search.run(recording, replace(options, now=None)))
        self._report_end(request, recording)

    def _sweep(self, request: Sweep) -> None:
        """Run every checkpoint of a folder; the model that was open is closed."""
        self.close()
        listener = Listener(self.cancelled, self._reporter(request.generation), self.send)
        began = time.monotonic()
        outcome = Conductor(request, Maker(self.code), listener).run()
        stop = RunStop("cancelled" if outcome.cancelled else "done", outcome.sentence, time.monotonic() - began)
        self.send(Finished(path=request.run.path, stop=stop, generation=request.generation))

    def _sweep_frame(self, request: SweepFrame) -> None:
        """Compute one frame of a sweep, of which another process has the capture."""
        self.close()
        with Path(request.run.path).open("wb") as file:
            failed = compute(request, Spool(file), Maker(self.code), self.cancelled, self._reporter(request.generation))
        if failed:
            raise InputError(failed)
        self.send(Finished(path=request.run.path, stop=RunStop("done"), generation=request.generation))

    def _compare_checkpoints(self, request: CompareCheckpoints) -> None:
        """How the tensors of two checkpoint files differ; the model that is open stays."""
        found = parameter_changes(Path(request.first), Path(request.second), self.cancelled)
        self.send(replace(found, first=request.first, second=request.second, generation=request.generation))

    def _perform(self, recording: Recording, run: Callable[[], object]) -> None:
        """Run; where the model raises or the run is cancelled, the capture ends properly with what was recorded.

        Where a model raised because of code that was not agreed to, that is given as the reason.
        """
        try:
            with recording:
                try:
                    run()
                except (ModelError, InputError) as problem:
                    refusal = self.code.refusal() if self.code is not None else None
                    if refusal is None:
                        raise
                    raise ModelError(str(refusal), getattr(problem, "details", "")) from None
        except CaptureError as problem:  # a disk that fills meanwhile is not bad input
            raise CaptureLostError(str(problem)) from None
        except (ModelError, InputError, CancelledError):
            pass  # the recording reports it

    def _report_end(self, request: Run | Analyse, recording: Recording) -> None:
        assert recording.stop is not None
        refusal = self.code.refusal() if self.code is not None else None
        if refusal is None or recording.stop.status == "done":
            missing, traces = self._kept.missing(), self._kept.traces
            finished = Finished(
                path=request.path, stop=recording.stop, costs=self._costs.estimate(missing, traces),
                refused=refused(missing, traces), details=recording.details, generation=request.generation,
            )  # fmt: skip
            self.send(finished)
        if refusal is not None:
            raise refusal

    def _analyse(self, request: Analyse) -> None:
        """Compute more quantities on the trace of the last run. Raises NeedsRunError where that cannot be."""
        if self._weights is not None and Path(request.path).absolute() == self._weights.path.absolute():
            self._more_weights(self._weights, request)
            return
        keys = self._kept.asked(Path(request.path), request.quantities)
        if not keys:
            left = self._kept.stop.left if self._kept.stop is not None else ()
            stop = RunStop("done", f"{', '.join(request.quantities)}: computed in this run already.", left=left)
            self.send(Finished(path=request.path, stop=stop, generation=request.generation))
            return
        expected = self._costs.estimate([split_request(key)[0] for key in keys], self._kept.traces)
        told = self._reporter(request.generation)
        recording, compute = self._kept.question(keys, self.cancelled, told, expected)
        try:
            self._perform(recording, compute)
        except CaptureLostError:
            self._kept.let_go()  # the capture takes nothing more
            raise
        self._kept.stop = recording.ended
        self._costs.learn(recording.seconds, self._kept.traces)
        self._report_end(request, recording)

    def _more_weights(self, kept: KeptWeights, request: Analyse) -> None:
        """Write all values of a tensor of which there is a picture only. Raises InputError."""
        told = RunOptions(cancelled=self.cancelled, progress=self._reporter(request.generation))
        recording, compute = kept.question(request.quantities, told)
        self._perform(recording, compute)
        self._report_end(request, recording)

    def _is_up_to_date(self, generation: int) -> bool:
        """Make sure that a run uses the code as it is now: an edited model is opened again, with confirmation where
        needed.

        Not for the command line, whose code has only just been loaded. False where the edited model waits for an
        answer; where it cannot be opened, the model before stays, and the next run tries again.
        """
        if self.code is None or self._load is None or self.opened is None:
            return True
        self.code.refused = {}
        if self._load.trusted or not self.code.changed():
            return True
        return self._open(replace(self._load, generation=generation))

    def _reporter(self, generation: int) -> Callable[[float, float, str], None]:
        return lambda done, total, text: self._report(done, total, text, generation)

    def _report(self, done: float, total: float, text: str, generation: int) -> None:
        if self._seldom.passes(done, total, text):
            self.send(Progress(done=done, total=total, text=text, generation=generation))
