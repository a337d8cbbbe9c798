"""Every quantity that was chosen, small ones first, from the trace of a run."""

from __future__ import annotations

import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from inspector.capture import CaptureError
from inspector.engine.errors import CancelledError, whole_texts
from inspector.engine.pipeline.kept_trace import KeptTrace
from inspector.engine.pipeline.options import RunOptions
from inspector.engine.registries import QUANTITIES, quantity_of
from inspector.engine.trace.emitter import Emitter, Sink
from inspector.engine.trace.shares import LEAST_SECONDS, NOTHING, part_of, telling
from inspector.engine.trace.trace import Trace
from inspector.engine.wording import error_text
from inspector.records import SECONDS, Log, split_request


def chosen_quantities(options: RunOptions) -> list[str]:
    """The requests to compute, small first: `only`, or the default ones; and `also`.

    A quantity that is requested twice is computed once, with the options of the last request. Raises InputError for
    quantities that do not exist and options that they cannot take.
    """
    asked = options.only or [key for key, entry in QUANTITIES.items() if entry.default]
    last = {split_request(request)[0]: request for request in (*asked, *options.also)}
    return sorted(last.values(), key=lambda request: (quantity_of(request)[0].order, request))


def analyse(trace: Trace, emit: Emitter, requests: Sequence[str], expected: Mapping[str, float] = NOTHING) -> None:
    """Compute the quantities of these requests and write them, with the seconds that each took, as its last record.

    Progress is told in seconds of work: `expected` has about what each quantity takes, by key; one that is not in it
    counts as little. What a quantity tells of itself while it computes is a part of its own share.
    Raises CancelledError between two of them.
    """
    shares = [max(LEAST_SECONDS, expected.get(split_request(request)[0], 0.0)) for request in requests]
    done, total = 0.0, sum(shares)
    for number, (request, share) in enumerate(zip(requests, shares, strict=True)):
        emit.check()
        summary = quantity_of(request)[0].summary
        text = f"{summary} ({number + 1} of {len(requests)})" if len(requests) > 1 else summary
        emit.progress(done, total, text)
        began = time.perf_counter()
        with telling(emit, part_of(emit.progress, done, share, total, text)):
            _compute(request, trace, emit)
        emit.scalar(f"{SECONDS}{split_request(request)[0]}", time.perf_counter() - began)
        done += share
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


def _compute(request: str, trace: Trace, emit: Emitter) -> None:
    quantity, values = quantity_of(request)
    with whole_texts() as whole:
        try:
            quantity.run(trace, emit, **values)
        except (CancelledError, CaptureError):
            raise
        except Exception as fault:  # noqa: BLE001 - a failure of one quantity must not affect the others
            refuse_failed(f"run:{split_request(request)[0]}", "Computing it", fault, emit)
    for text in whole:
        emit.sink.write(Log(f"{request}, the whole message: {text}", "warning", "engine"))


def refuse_failed(channel: str, what: str, fault: Exception, emit: Emitter) -> None:
    """Report an internal error: the log gets the traceback, the channel one line with its place in the code."""
    where = traceback.extract_tb(fault.__traceback__)[-1]
    emit.sink.write(Log(traceback.format_exc(), "error", "engine"))
    place = f"{Path(where.filename).name}, line {where.lineno}"
    emit.refuse(channel, f"{what} failed with {error_text(fault)} ({place}).")
