"""Every quantity that was chosen, small ones first, from the trace of a run."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from inspector.capture import CaptureError
from inspector.engine.errors import CancelledError, InputError
from inspector.engine.pipeline.kept_trace import KeptTrace
from inspector.engine.pipeline.options import RunOptions
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter, Sink
from inspector.engine.trace.trace import Trace
from inspector.engine.wording import told
from inspector.records import Log


def chosen_quantities(options: RunOptions) -> list[str]:
    """The keys to compute, small first: `only`, or the default ones; and `also`. Raises InputError for unknown ones."""
    for key in (*options.also, *options.only):
        if key not in QUANTITIES:
            raise InputError(f"There is no quantity {key!r}; there are {', '.join(QUANTITIES)}.")
    wanted = set(options.only)
    keys = [
        key for key, entry in QUANTITIES.items()
        if (key in wanted if wanted else entry.default) or key in options.also
    ]  # fmt: skip
    return sorted(keys, key=lambda key: (QUANTITIES[key].order, key))


def analyse(trace: Trace, emit: Emitter, keys: Sequence[str]) -> None:
    """Compute the quantities of these keys and write them. Raises CancelledError between two of them."""
    total = len(keys) + 1.0
    for done, key in enumerate(keys):
        emit.check()
        emit.progress(done + 1.0, total, QUANTITIES[key].summary)
        _compute(key, trace, emit)
    emit.progress(total, total, "done")


def analyse_later(kept: KeptTrace, sink: Sink, options: RunOptions) -> KeptTrace:
    """Compute `options.only` on the trace of a run that has ended, into its frame; what was computed then is left out.

    The numbers are those that the run itself would have given. Raises CancelledError.
    """
    keys = [key for key in chosen_quantities(options) if key not in kept.keys]
    emit = replace(kept.emit, sink=sink, cancelled=options.cancelled, progress=options.progress)
    with kept.around():
        analyse(kept.trace, emit, keys)
    return replace(kept, keys=kept.keys | frozenset(keys))


def _compute(key: str, trace: Trace, emit: Emitter) -> None:
    try:
        QUANTITIES[key].run(trace, emit)
    except (CancelledError, CaptureError):
        raise
    except Exception as fault:  # noqa: BLE001 - one quantity may not take the others along
        refuse_failed(f"run:{key}", "Computing it", fault, emit)


def refuse_failed(channel: str, what: str, fault: Exception, emit: Emitter) -> None:
    """A fault of our own: the log has the traceback, the channel one sentence with its place."""
    where = traceback.extract_tb(fault.__traceback__)[-1]
    emit.sink.write(Log(traceback.format_exc(), "error", "engine"))
    place = f"{Path(where.filename).name}, line {where.lineno}"
    emit.refuse(channel, f"{what} failed with {told(fault)} ({place}).")
