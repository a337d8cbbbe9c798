"""A run in a worker process for the command line: progress on a terminal, printed output, and the result."""

from __future__ import annotations

from pathlib import Path

from inspector.analysis.sequence_table import SequenceTable, table_of
from inspector.analysis.spike_origin import check_sentence, origin_verdict, read_origin
from inspector.analysis.warnings_of_shown import REMARKS, is_remark, is_shown
from inspector.capture import CaptureError, left_of, open_capture
from inspector.cli.fault import Fault
from inspector.cli.progress import Told
from inspector.records import SECONDS, Load, Run, counted, report
from inspector.transport.run_client import INTERRUPTED, Outcome, run_and_wait
from inspector.transport.terminal import pass_on, say, say_details

SEEN = ("h", "c", *REMARKS, "gradient/state_norm")
"""Signals under which it is reported that a whole recurrence, or its gradients, are not shown."""
MOST_UNSHOWN = 8
MOST_FAILED = 10
"""Sequences that could not be run, of which the reason is given."""


def run_and_report(load: Load, request: Run, debug: bool, python: str | None = None) -> Outcome:
    """Run in a worker, in the given Python, with progress on stderr. Raises Fault, on Ctrl-C with what was captured."""
    with Told() as told:
        outcome = run_and_wait(load, request, told.tell, lambda stream, text: echo(stream, text, debug), python)
    if outcome.interrupted:
        raise Fault(interrupted(outcome, Path(request.path)), INTERRUPTED)
    if outcome.code:
        if debug:
            tell_checkpoint(outcome, whole=True)
        if debug and outcome.details:
            say_details(outcome.details)
        raise Fault(outcome.sentence, outcome.code)
    return outcome


def interrupted(outcome: Outcome, target: Path) -> str:
    """What an interrupted run has captured, and where; the folder may still hold the run before it, which has ended."""
    try:
        with open_capture(target) as capture:
            mine = capture.stop is None or (outcome.finished and capture.status == "cancelled")
        return f"Interrupted. {target}: {summary_of(target)}." if mine else "Interrupted; nothing was captured."
    except CaptureError:
        return "Interrupted; nothing was captured."


def echo(stream: str, text: str, debug: bool) -> None:
    """The model's own prints go to stdout as they would without inspector; the worker's stderr with --debug."""
    if stream == "stdout" or debug:
        pass_on(text, err=stream != "stdout")


def tell_checkpoint(outcome: Outcome, whole: bool) -> None:
    """Report how the checkpoint matched the model: a few lines, or every name."""
    if outcome.loaded is not None and outcome.loaded.report is not None:
        for told in report.lines(outcome.loaded.report, whole=whole):
            say(told, err=True)


def costs_of(target: Path) -> list[str]:
    """What each quantity took, or each part of a run of many sequences, the slowest first; frames together."""
    taken: dict[str, float] = {}
    with open_capture(target) as capture:
        for scalar in capture.scalars:
            if scalar.name.startswith(SECONDS):
                key = scalar.name.removeprefix(SECONDS)
                taken[key] = taken.get(key, 0.0) + scalar.value
    return [f"{seconds:9.3f} s  {key}" for key, seconds in sorted(taken.items(), key=lambda item: -item[1])]


def summary_of(target: Path) -> str:
    """The contents of a capture as a short text."""
    with open_capture(target) as capture:
        remarks = sum(map(is_remark, capture.refusals))
        count = len(capture.refusals) - remarks
        refused = (f", {count} refused" if count else "") + (f", {counted(remarks, 'remark')}" if remarks else "")
        left = f", {len(left_of(capture))} not computed" if left_of(capture) else ""
        took = f" in {capture.stop.seconds:.1f} s" if capture.stop is not None else ""
        return f"{counted(len(capture.channels), 'channel')}{refused}{left}, {capture.status}{took}"


def spike_lines(target: Path) -> list[str]:
    """What made the gradient of an iteration that was run again, and what moved first; nothing of other runs."""
    with open_capture(target) as capture:
        about = capture.start.meta.get("spike")
        if not isinstance(about, dict):
            return []
        origin = read_origin(capture)
        lines = [f"Gradient: {origin_verdict(origin).sentence}; {check_sentence(origin.check)}."]
        told = about.get("chronology")
        return [*lines, f"Chronology: {told}. {about.get('wrong')}."] if told else lines


def not_run(table: SequenceTable) -> list[str]:
    """Which of many sequences could not be read or run, with the reason: a line each, the first ones."""
    first = table.failed[:MOST_FAILED]
    lines = [f"  not run: {table.names[number]} ({number}): {table.problems[number]}" for number in first]
    if len(table.failed) > MOST_FAILED:
        lines.append(f"  not run: {len(table.failed) - MOST_FAILED:,} more; export --sequences lists all of them")
    return lines


def tell_not_run(target: Path) -> None:
    """Of a run of many sequences those that have no numbers; nothing of other runs."""
    with open_capture(target) as capture:
        table = table_of(capture)
        if table is not None and table.failed:
            say(f"{len(table.failed):,} of {counted(len(table), 'sequence', ',')} could not be run:", err=True)
            for line in not_run(table):
                say(line, err=True)


def tell_unshown(target: Path) -> None:
    """What was seen in the model and is not shown, a line for each reason."""
    with open_capture(target) as capture:
        places: dict[str, list[str]] = {}
        remarked = {refusal.reason for refusal in capture.refusals if is_remark(refusal)}
        warned = {refusal.reason for refusal in capture.refusals if is_shown(capture, refusal)}
        for refusal in capture.refusals:
            if refusal.channel.rpartition(":")[2] in SEEN:
                places.setdefault(refusal.reason, []).append(refusal.channel.rpartition(":")[0])
    for reason, own in list(places.items())[:MOST_UNSHOWN]:
        how = "remark" if reason in remarked else "shown" if reason in warned else "not shown"
        say(f"  {how} ({', '.join(dict.fromkeys(own))}): {reason}", err=True)
    if len(places) > MOST_UNSHOWN:
        say(f"  … and {len(places) - MOST_UNSHOWN} more; inspector list {target} has all.", err=True)
