"""`inspector list`: the contents of a capture, and its damage."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import click

from inspector.analysis.sequence_table import as_records, table_of, unit_sentences
from inspector.analysis.warnings_of_shown import is_remark
from inspector.capture import Capture, LogView, left_of, listed
from inspector.cli.columns import width_of
from inspector.cli.curve_listing import say_curves
from inspector.cli.fault import opened_any
from inspector.cli.log_listing import as_data, say_log
from inspector.cli.panel_listing import say_panels
from inspector.cli.reporting import not_run
from inspector.records import Frame, counted, report
from inspector.transport.terminal import say

SCHEMA = "inspector-contents-1"
CHECKED_BYTES = 1 << 30
"""Bytes of pages that `list` checks by default: about a second."""
MOST_NAMED = 8
"""Frames that a line names."""
MOST_DAMAGE = 20
"""Lines about damage that `list` prints."""


@click.command("list")
@click.argument("capture")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.option(
    "--check", is_flag=True, help=f"Check all pages for damage, not only the first {CHECKED_BYTES >> 30} GiB."
)
@click.option("--run", default=None, metavar="NAME", help="One of the runs of a log.")
@click.option(
    "--curves", is_flag=True, help="Curves over training, a line each: points, first, last, smallest, largest."
)
@click.option("--panels", is_flag=True, help="Panels that have something to show, and the channels that they draw.")
@click.option("--match", multiple=True, metavar="PATTERN", help="With --curves: those whose names match (repeatable).")
def list_(
    capture: str, as_json: bool, check: bool, run: str | None, curves: bool, panels: bool, match: tuple[str, ...]
) -> None:  # fmt: skip
    """List the frames and channels of a capture, and its damage; or the runs and curves of a log."""
    with opened_any(capture, run) as opened:
        if curves:
            say_curves(opened, match, as_json=as_json)
            return
        if panels:
            say_panels(opened, as_json=as_json)
            return
        if isinstance(opened, LogView):
            if as_json:
                click.echo(json.dumps(as_data(opened), indent=1))
            else:
                say_log(opened)
            return
        opened.verify(None if check else CHECKED_BYTES)
        if as_json:
            click.echo(json.dumps(_as_data(opened), indent=1))
        else:
            _say(opened)


def _as_data(opened: Capture) -> dict[str, Any]:
    """What `--json` prints."""
    channels = [
        {
            "name": c.name, "kind": c.kind, "dims": list(c.dims), "shape": list(opened.extent(c.name)),
            "dtype": c.dtype, "unit": c.unit, "title": c.title, "axes": [c.domain(dim) for dim in c.dims],
            "statistics": list(c.labels.get("statistic", ())),
        }
        for c in opened.channels.values()
    ]  # fmt: skip
    return {
        "schema": SCHEMA,
        "title": opened.start.title,
        "status": opened.status,
        "frames": [{"index": f.index, "label": f.label, "step": f.step} for f in opened.frames],
        "channels": channels,
        "sequences": as_records(table_of(opened)),
        "axes": [asdict(axis) for axis in opened.axes.values()],
        "left": list(left_of(opened)),
        "refused": [
            {"channel": r.channel, "reason": r.reason, "frame": r.frame} for r in opened.refusals if not is_remark(r)
        ],
        "remarks": [
            {"place": r.channel.rpartition(":")[0], "text": r.reason, "frame": r.frame}
            for r in opened.refusals
            if is_remark(r)
        ],
        "damaged": [asdict(one) for one in opened.damage],
        "unchecked_bytes": opened.unchecked,
        "checkpoint": opened.start.meta.get(report.KEY),
    }


def _say(opened: Capture) -> None:
    """The same for people, a line each."""
    say(f"{opened.start.title} ({opened.status})")
    checkpoint = report.from_meta(opened.start.meta)
    if checkpoint is not None:
        say(f"checkpoint: {report.line(checkpoint)}")
        if checkpoint.sha256:
            say(f"SHA-256 of the checkpoint: {checkpoint.sha256}")
    for frame in opened.frames:
        say(f"frame {frame.index}: {frame.label}" + _step_of(frame))
    width = width_of([str(name) for name in opened.channels])
    for channel in opened.channels.values():
        words = map(channel.axis_word, channel.dims)
        shape = " × ".join(f"{word} {n}" for word, n in zip(words, opened.extent(channel.name), strict=True))
        rows = ", ".join(channel.labels.get("statistic", ()))
        told = f"  ({rows})" if rows else ""
        say(f"  {channel.name:<{width}}  {shape}  {channel.dtype}  [{channel.unit}]{told}")
    _say_sequences(opened)
    if left_of(opened):
        say(f"  not computed: {', '.join(left_of(opened))}")
    for line in _refusals(opened):
        say(f"  {line}")
    for sentence in listed(opened.damage, MOST_DAMAGE):
        say(f"  damaged: {sentence}")
    if opened.unchecked:
        say(f"  {opened.unchecked / 2**30:.1f} GiB of pages were not checked for damage; --check does.")


def _step_of(frame: Frame) -> str:
    """The step behind the label, unless the label ends with it."""
    step = f"step {frame.step}"
    return f", {step}" if frame.step is not None and not frame.label.endswith(step) else ""


def _refusals(opened: Capture) -> list[str]:
    """A line for each refusal and remark: of many frames together, and which, where there are several."""
    frames: dict[tuple[str, str], list[int]] = {}
    for refusal in opened.refusals:
        where = refusal.channel.rpartition(":")[0] if is_remark(refusal) else refusal.channel
        what = f"remark: {where}" if is_remark(refusal) else f"refused: {where}"
        frames.setdefault((what, refusal.reason), []).append(refusal.frame)
    several = len(opened.frames) > 1
    return [
        f"{what}{_frames_of(numbers, len(opened.frames)) if several else ''}: {reason}"
        for (what, reason), numbers in frames.items()
    ]


def _frames_of(numbers: list[int], total: int) -> str:
    own = sorted({number for number in numbers if number >= 0})
    if not own or len(own) == total:
        return ""
    named = ", ".join(map(str, own[:MOST_NAMED])) + (" …" if len(own) > MOST_NAMED else "")
    return f" (frame {named})" if len(own) == 1 else f" (frames {named})"


def _say_sequences(opened: Capture) -> None:
    """Mean, spread and the worst of every number of a data set; what is said of units; what could not be run."""
    table = table_of(opened)
    if table is None:
        return
    say(f"{counted(len(table), 'sequence', ',')}, {len(table.failed):,} of them could not be run")
    for channel in table.channels:
        worst = table.worst(channel.name)
        told = f"; worst: {table.names[worst[0]]} ({worst[0]})" if worst else ""
        say(f"  {channel.title}: {table.spread(channel.name)}{told}")
    for sentence in unit_sentences(opened):
        say(f"  {sentence}")
    for line in not_run(table):
        say(line)
