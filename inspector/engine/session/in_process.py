"""Running from Python, in the caller's own process: what `inspector.run` does."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inspector.capture import SUFFIX, Capture, check_target, open_capture
from inspector.engine.decoding import DecodingRun
from inspector.engine.errors import InputError, ModelError
from inspector.engine.interventions.runs import EditPlan, perform_with_edits, plan_edits
from inspector.engine.model.subject import Batch, Subject, adopt, to_device
from inspector.engine.opening.open_subject import Opened, open_subject
from inspector.engine.pipeline import Recording, RunOptions, chosen_quantities, record, run_start
from inspector.engine.pipeline.batches import make_batch
from inspector.engine.pipeline.room import say_room, told
from inspector.engine.session.data_set_runs import ManySequences
from inspector.engine.session.run_arguments import RunArguments
from inspector.engine.session.spike import SPIKE, SpikeRun, is_spike
from inspector.records import Decode, Edit, InputSpec, RunStart, parse_edit
from inspector.records.report import misfit


def run_here(subject: Any, sequence: Any = None, **given: Any) -> Capture:
    """See `inspector.run`; `given` are RunArguments. Naming a file runs its code.

    Raises TypeError for an argument that there is not, InputError, ModelError or CaptureError.
    """
    asked = RunArguments.of(given)
    asked.check_together(sequence)
    if asked.spike is not None:
        sequence = InputSpec(kind=SPIKE, value=str(asked.spike))
    subject = str(subject) if isinstance(subject, Path) else subject
    folder = Path(asked.out).absolute() if asked.out is not None else temporary_capture()
    check_target(folder, asked.overwrite)
    opened = _opened(subject, asked)
    options = asked.options()
    chosen_quantities(options)
    run = _Run(opened, _named(subject, opened), folder, options, asked.overwrite)
    if asked.data is not None:
        found = ManySequences.of(opened.subject, asked.data, run.where, lines=asked.lines, most=asked.most)
        run.many(found, asked.edits)
    elif isinstance(sequence, InputSpec) and is_spike(sequence):
        run.spike(SpikeRun(opened.subject, sequence))
    else:
        batch = to_device(make_batch(opened.subject, sequence, asked.seed, asked.look_at), run.where)
        run.one(batch, asked.edits) if asked.decode is None else run.search(batch, asked.decode)
    return open_capture(folder)


@dataclass(frozen=True)
class _Run:
    """An opened model, what is asked of it, and where the capture goes."""

    opened: Opened
    named: str
    folder: Path
    options: RunOptions
    overwrite: bool

    @property
    def where(self) -> str:
        """The device of the model's inputs: that of its first parameter. Raises InputError."""
        name, first = next(self.opened.subject.model.named_parameters(), ("", None))
        if first is not None and first.is_meta:
            raise InputError(
                f"{self.opened.title}: {name} has no values (device 'meta'); make the model on the CPU, or load its "
                "weights first."
            )
        return "cpu" if first is None else str(first.device)

    def one(self, batch: Batch, edits: Sequence[Edit | str]) -> None:
        """One sequence; the edited run beside it."""
        subject = self.opened.subject
        plan = _plan(subject, batch, edits, self.options) if edits else None
        room = told(subject, batch)
        recording = self._recording(self._start(batch.title))
        recording.expect(chosen_quantities(self.options), 2 if plan is not None else 1)
        say_room(recording, room)
        _to_the_end(recording, lambda: perform_with_edits(subject, batch, recording, plan, self.options))

    def many(self, sequences: ManySequences, edits: Sequence[Edit | str]) -> None:
        """Many sequences."""
        sequences.check(edits)
        recording = self._recording(sequences.noted(self._start(sequences.title)))
        _to_the_end(recording, lambda: sequences.run(recording, self.options, ""))

    def spike(self, kept: SpikeRun) -> None:
        """An iteration that a watched training kept."""
        recording = self._recording(kept.noted(self._start(kept.title)))
        recording.expect(kept.chosen(self.options).only)
        _to_the_end(recording, lambda: kept.run(recording, self.options))

    def search(self, batch: Batch, decode: Decode) -> None:
        """The answer to one sequence, token by token."""
        search = DecodingRun(self.opened.subject, batch, decode, self.options.seed)
        recording = self._recording(search.noted(self._start(batch.title)))
        _to_the_end(recording, lambda: search.run(recording, self.options))

    def _start(self, title: str) -> RunStart:
        return run_start(self.opened, title, subject=self.named, seed=self.options.seed, device=self.where)

    def _recording(self, start: RunStart) -> Recording:
        return record(self.folder, start, overwrite=self.overwrite, whole=True)


def _named(subject: Any, opened: Opened) -> str:
    return subject if isinstance(subject, str) else opened.title


def _to_the_end(recording: Recording, run: Callable[[], object]) -> None:
    """Run; the error of a model also says where its capture is."""
    try:
        with recording:
            run()
    except ModelError as problem:
        said = recording.stop.message if recording.stop is not None else str(problem)
        raise ModelError(said, problem.details) from problem


def _plan(subject: Subject, batch: Batch, edits: Sequence[Edit | str], options: RunOptions) -> EditPlan:
    try:
        parsed = [edit if isinstance(edit, Edit) else parse_edit(edit) for edit in edits]
    except ValueError as problem:
        raise InputError(str(problem)) from None
    return plan_edits(subject, batch, parsed, options)


def _opened(subject: Any, asked: RunArguments) -> Opened:
    """The model, with its checkpoint. Raises InputError where that does not fit."""
    if not isinstance(subject, str):
        found = adopt(subject)
        return Opened(found, found.name)
    opened = open_subject(asked.load(subject))
    if opened.pending:
        assert opened.report is not None
        raise InputError(misfit(opened.report))
    return opened


def temporary_capture() -> Path:
    """The path of a capture in a temporary folder that is removed at exit."""
    folder = Path(tempfile.mkdtemp(prefix="inspector-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder / f"run{SUFFIX}"
