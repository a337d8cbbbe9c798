"""Running from Python, in the caller's own process: what `inspector.run` does."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
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
from inspector.engine.registries import request_of
from inspector.engine.session.data_set_runs import ManySequences
from inspector.engine.session.spike import SPIKE, SpikeRun, is_spike
from inspector.records import Decode, Edit, InputSpec, Load, RunStart, parse_edit, requests_in
from inspector.records.report import misfit

Asked = str | Sequence[str] | Mapping[str, Mapping[str, Any]]
"""Quantities: keys, or {key: {option: value}}."""


def run_here(
    subject: Any,
    sequence: Any = None,
    *,
    out: Path | str | None = None,
    overwrite: bool = False,
    checkpoint: str = "",
    arguments: Mapping[str, Any] | None = None,
    also: Asked = (),
    only: Asked = (),
    quantities: Asked = (),
    seed: int = 0,
    partial: bool = False,
    look_at: int = 0,
    device: str = "cpu",
    edits: Sequence[Edit | str] = (),
    data: Any = None,
    lines: bool = False,
    most: int | None = None,
    spike: Path | str | None = None,
    decode: Decode | None = None,
) -> Capture:
    """See `inspector.run`. Raises InputError, ModelError or CaptureError; naming a file runs its code.

    A capture at `out` is replaced only with `overwrite`, and only once the run has ended and something was captured.
    The default quantities are computed and those in `also`; with `only` these instead of the default ones
    (`quantities` is its former name). Each is a key, or several, with options after "@" or as a mapping:
    `also=["bptt", "gradient/vectors@0:5"]` or `also={"gradient/vectors": {"steps": (0, 5)}}`.

    `edits` ("rnn.l0:gate/forget[3]=0@10:20") make a second frame, the run with these changes.

    `data` runs many sequences instead of `sequence`, with `lines` and `most` as on the command line: a path,
    "examples", "subject" (its own data), or the sequences themselves, written as examples are.

    `spike` is a file that a watched training kept ("run.inspect/spikes/0001.safetensors"): its iteration is run again
    in a copy of the model, with the parameters, batch, random state and gradient at the output that it had.

    `decode` searches for an answer (see `inspector.decode`): a frame for the right one, where that is known, and for
    each hypothesis shown.

    `device` is for a subject given by name; a model object stays on its device and in its mode.
    """
    _check_together(sequence, data, edits, spike, decode)
    if spike is not None:
        sequence = InputSpec(kind=SPIKE, value=str(spike))
    subject = str(subject) if isinstance(subject, Path) else subject
    folder = Path(out).absolute() if out is not None else temporary_capture()
    check_target(folder, overwrite)
    opened = _opened(subject, checkpoint, arguments or {}, seed, partial, device)
    options = RunOptions(also=requests(also), only=(*requests(only), *requests(quantities)), seed=seed)
    chosen_quantities(options)
    run = _Run(opened, _named(subject, opened), folder, options, overwrite)
    if data is not None:
        run.many(ManySequences.of(opened.subject, data, run.where, lines=lines, most=most), edits)
    elif isinstance(sequence, InputSpec) and is_spike(sequence):
        run.spike(SpikeRun(opened.subject, sequence))
    else:
        batch = to_device(make_batch(opened.subject, sequence, seed, look_at), run.where)
        run.one(batch, edits) if decode is None else run.search(batch, decode)
    return open_capture(folder)


def _check_together(sequence: Any, data: Any, edits: Sequence[Any], spike: Any, decode: Decode | None) -> None:
    """Raises InputError for what one call cannot do at once."""
    if spike is not None and (sequence is not None or data is not None or edits):
        raise InputError("`spike` runs one iteration of a training; give no `sequence`, `data` or `edits` with it.")
    if data is not None and sequence is not None:
        raise InputError("Either `sequence` or `data` is run, not both.")
    if decode is not None and (data is not None or spike is not None or edits):
        raise InputError("An answer is searched for to one `sequence`; give no `data`, `spike` or `edits` with it.")


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


def requests(asked: Asked) -> tuple[str, ...]:
    """Quantities as they are requested in Python, as records. Raises InputError."""
    if isinstance(asked, Mapping):
        return tuple(request_of(key, given) for key, given in asked.items())
    return requests_in([asked] if isinstance(asked, str) else asked)


def _plan(subject: Subject, batch: Batch, edits: Sequence[Edit | str], options: RunOptions) -> EditPlan:
    try:
        parsed = [edit if isinstance(edit, Edit) else parse_edit(edit) for edit in edits]
    except ValueError as problem:
        raise InputError(str(problem)) from None
    return plan_edits(subject, batch, parsed, options)


def _opened(
    subject: Any, checkpoint: str, arguments: Mapping[str, Any], seed: int, partial: bool, device: str
) -> Opened:
    if not isinstance(subject, str):
        found = adopt(subject)
        return Opened(found, found.name)
    opened = open_subject(
        Load(
            subject=subject,
            checkpoint=checkpoint,
            arguments=arguments,
            seed=seed,
            partial=partial,
            trusted=True,
            device=device,
        )
    )
    if opened.pending:
        assert opened.report is not None
        raise InputError(misfit(opened.report))
    return opened


def temporary_capture() -> Path:
    """The path of a capture in a temporary folder that is removed at exit."""
    folder = Path(tempfile.mkdtemp(prefix="inspector-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder / f"run{SUFFIX}"
