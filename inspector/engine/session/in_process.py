"""Running from Python, in the caller's own process: what `inspector.run` does."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from inspector.capture import SUFFIX, Capture, check_target, open_capture
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
from inspector.records import Edit, InputSpec, Load, RunStart, parse_edit, requests_in
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
) -> Capture:
    """See `inspector.run`. Raises InputError, ModelError or CaptureError; naming a file runs its code.

    A capture at `out` is replaced only with `overwrite`, and only once the run has something to write.
    The default quantities are computed and those in `also`; with `only` these instead of the default ones
    (`quantities` is its former name). Each is a key, or several, with options after "@" or as a mapping:
    `also=["bptt", "gradient/vectors@0:5"]` or `also={"gradient/vectors": {"steps": (0, 5)}}`.

    `edits` ("rnn.l0:gate/forget[3]=0@10:20") make a second frame, the run with these changes.

    `data` runs many sequences instead of `sequence`, with `lines` and `most` as on the command line: a path,
    "examples", "subject" (its own data), or the sequences themselves, written as examples are.

    `spike` is a file that a watched training kept ("run.inspect/spikes/0001.safetensors"): its iteration is run again
    in a copy of the model, with the parameters, batch, random state and gradient at the output that it had.

    `device` is for a subject given by name; a model object stays on its device and in its mode.
    """
    if spike is not None:
        if sequence is not None or data is not None:
            raise InputError("Either `sequence`, `data` or `spike` is run.")
        sequence = InputSpec(kind=SPIKE, value=str(spike))
    subject = str(subject) if isinstance(subject, Path) else subject
    folder = Path(out).absolute() if out is not None else temporary_capture()
    check_target(folder, overwrite)
    opened = _opened(subject, checkpoint, arguments or {}, seed, partial, device)
    options = RunOptions(also=requests(also), only=(*requests(only), *requests(quantities)), seed=seed)
    chosen_quantities(options)
    where = next((str(p.device) for p in opened.subject.model.parameters()), "cpu")

    def begun(title: str) -> RunStart:
        return run_start(opened, title, subject=_named(subject, opened), seed=seed, device=where)

    if data is not None:
        if sequence is not None:
            raise InputError("Either `sequence` or `data` is run, not both.")
        many = ManySequences.of(opened.subject, data, where, lines=lines, most=most)
        many.check(edits)
        recording = record(folder, many.noted(begun(many.title)), overwrite=overwrite)
        _to_the_end(recording, lambda: many.run(recording, options, ""))
        return open_capture(folder)
    if isinstance(sequence, InputSpec) and is_spike(sequence):
        return _spike(SpikeRun(opened.subject, sequence), begun, folder, options, overwrite=overwrite)
    batch = to_device(make_batch(opened.subject, sequence, seed, look_at), where)
    plan = _plan(opened.subject, batch, edits, options) if edits else None
    room = told(opened.subject, batch)
    recording = record(folder, begun(batch.title), overwrite=overwrite)
    recording.expect(chosen_quantities(options), 2 if plan is not None else 1)
    say_room(recording, room)
    _to_the_end(recording, lambda: perform_with_edits(opened.subject, batch, recording, plan, options))
    return open_capture(folder)


def _spike(
    spike: SpikeRun, begun: Callable[[str], RunStart], folder: Path, options: RunOptions, *, overwrite: bool
) -> Capture:
    """An iteration that a watched training kept."""
    recording = record(folder, spike.noted(begun(spike.title)), overwrite=overwrite)
    recording.expect(spike.chosen(options).only)
    _to_the_end(recording, lambda: spike.run(recording, options))
    return open_capture(folder)


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
