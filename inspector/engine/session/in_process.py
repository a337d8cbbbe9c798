"""Running from Python, in the caller's own process: what `inspector.run` does."""

from __future__ import annotations

import atexit
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from inspector.capture import SUFFIX, Capture, Writer, check_target, open_capture
from inspector.engine.errors import InputError, ModelError
from inspector.engine.interventions.runs import Plan, perform_with_edits, plan_edits
from inspector.engine.model.subject import Batch, Subject, adopt, to_device
from inspector.engine.opening.open_subject import Opened, open_subject
from inspector.engine.pipeline import RunOptions, chosen_quantities, perform
from inspector.engine.session.batches import make_batch
from inspector.engine.session.starting import run_start
from inspector.records import Edit, Frame, Load, RunStop, parse_edit
from inspector.records.report import misfit


def run_here(
    subject: Any,
    sequence: Any = None,
    *,
    out: Path | str | None = None,
    overwrite: bool = False,
    checkpoint: str = "",
    arguments: Mapping[str, Any] | None = None,
    quantities: Sequence[str] = (),
    seed: int = 0,
    partial: bool = False,
    look_at: int = 0,
    device: str = "cpu",
    edits: Sequence[Edit | str] = (),
) -> Capture:
    """See `inspector.run`. Raises InputError, ModelError or CaptureError; naming a file runs its code.

    A capture at `out` is replaced only with `overwrite`, and only once the run has something to put in its place.
    `edits` ("rnn.l0:gate/forget[3]=0@10:20") make a second frame, the run with these changes.

    `device` is for a subject that is named; a model that is handed over stays where it is, and in the mode it is in.
    """
    folder = Path(out).absolute() if out is not None else _temporary()
    check_target(folder, overwrite)
    opened = _opened(subject, checkpoint, arguments or {}, seed, partial, device)
    options = RunOptions(only=tuple(quantities), seed=seed)
    chosen_quantities(options)
    where = next((str(p.device) for p in opened.subject.model.parameters()), "cpu")
    batch = to_device(make_batch(opened.subject, sequence, seed, look_at), where)
    plan = _plan(opened.subject, batch, edits, options) if edits else None
    frame = Frame(index=0, label=batch.title)
    named = subject if isinstance(subject, str) else opened.title
    start = run_start(opened, batch, subject=named, seed=seed, device=where)
    began = time.monotonic()
    with Writer(folder, start, overwrite=overwrite) as writer:
        try:
            if plan is not None:
                perform_with_edits(opened.subject, batch, writer, plan, options, frame)
            else:
                perform(opened.subject, batch, writer, options, frame=frame)
        except ModelError as problem:
            writer.write(RunStop("failed", str(problem), time.monotonic() - began))
            raise
        writer.write(RunStop("done", seconds=time.monotonic() - began))
    return open_capture(folder)


def _plan(subject: Subject, batch: Batch, edits: Sequence[Edit | str], options: RunOptions) -> Plan:
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


def _temporary() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="inspector-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder / f"run{SUFFIX}"
