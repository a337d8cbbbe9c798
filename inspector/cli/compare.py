"""`inspector compare`: two frames of any captures, channel by channel."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from inspector.analysis.compared_channels import ComparedChannel, compared_channels, npz_of
from inspector.capture import CaptureError, Comparison, csv_bytes, export_channel, write_atomically
from inspector.capture.comparing.compare import compare as compare_references
from inspector.cli.columns import width_of
from inspector.cli.compare_parameters import cell, compare_parameters, may_be_checkpoint, strict
from inspector.cli.fault import Fault
from inspector.records import counted
from inspector.transport.terminal import say

TABLES = (".csv", ".json", ".npz")
MOST_NAMED = 12


@click.command("compare")
@click.argument("first", metavar="A[#FRAME]")
@click.argument("second", metavar="B[#FRAME]")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.option("--channel", default=None, help="This channel alone.")
@click.option(
    "--out", default=None,
    help="Write a file: .csv or .json the table, .npz every difference and ratio; with --channel its numbers (.npy …).",
)  # fmt: skip
@click.option("--no-align", is_flag=True, help="Refuse numbers of different tokens instead of aligning the steps.")
def compare(first: str, second: str, as_json: bool, channel: str | None, out: str | None, no_align: bool) -> None:
    """Compare two frames, of one run, two runs, two checkpoints or two models.

    Prints for each channel its largest difference (second minus first, or the ratio second by first where the channel
    declares one) with its place, and the norm of the whole difference by that of the first; or why it is not compared.

    Of two checkpoint files: the parameters that changed most.
    """
    checkpoints = [path for path in (first, second) if may_be_checkpoint(path)]
    if len(checkpoints) == 2:
        compare_parameters(first, second, as_json=as_json, out=out)
        return
    if checkpoints:
        raise Fault(
            f"{checkpoints[0]} is neither a capture nor a log; inspector run --checkpoint makes a capture of it."
        )
    try:
        with compare_references(first, second, align=not no_align) as both:
            found = [one for one in compared_channels(both) if channel in (None, one.name)]
            if channel is not None:
                both.channel(channel)  # raises with the reason where it is not compared
            if out is not None:
                say(str(_write(both, found, channel, Path(out))), err=True)
            if as_json:
                click.echo(json.dumps(as_data(both, found), indent=1))
            elif out is None:
                _say(both, found)
    except CaptureError as problem:
        raise Fault(str(problem)) from None


def as_data(both: Comparison, found: list[ComparedChannel]) -> dict[str, Any]:
    """What `--json` prints; numbers that are not finite as text, for JSON has no other way."""
    return {
        "first": _side(both, 0), "second": _side(both, 1),
        "aligned": {domain: {"common": one.common, "steps": len(one.names)} for domain, one in both.alignments.items()},
        "channels": [{key: strict(value) for key, value in asdict(one).items()} for one in found],
    }  # fmt: skip


def _side(both: Comparison, number: int) -> dict[str, Any]:
    side = (both.before, both.after)[number]
    frame = next((one for one in getattr(side.view, "frames", ()) if one.index == side.frame), None)
    label, step = (frame.label, frame.step) if frame is not None else ("", None)
    return {
        "name": side.name, "title": side.view.start.title, "subject": side.view.start.subject,
        "checkpoint": side.view.start.checkpoint, "frame": side.frame, "label": label, "step": step,
    }  # fmt: skip


# -- for people


def _say(both: Comparison, found: list[ComparedChannel]) -> None:
    for number, word in enumerate(("first", "second")):
        about = _side(both, number)
        label = (
            f" {about['label']}" if about["label"] not in ("", None) and about["label"] not in about["title"] else ""
        )
        step = f", step {about['step']}" if about["step"] is not None else ""
        step = "" if label.endswith(f"step {about['step']}") else step  # labels of checkpoints have it
        frame = f", frame {about['frame']}{label}{step}" if about["frame"] >= 0 else ""
        say(f"{word}: {about['name']} ({about['title']}{frame})")
    for domain, alignment in both.alignments.items():
        say(f"{alignment.sentence} [{domain}]")
    compared = [one for one in found if one.how in ("difference", "ratio")]
    width = width_of([one.name for one in compared])
    for one in compared:
        say(f"  {one.name:<{width}}  {told(one)}")
    refused = [one for one in found if not one.how]
    if refused:
        say(f"not compared: {counted(len(refused), 'channel')}")
    for reason in dict.fromkeys(one.reason for one in refused):
        own = [one.name for one in refused if one.reason == reason]
        say(f"  {_listed(own)}: {reason}")
    apart = [one.name for one in found if one.how == "separate"]
    if apart:
        say(f"read one run at a time: {_listed(apart)}")


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{', '.join(names[:MOST_NAMED])}{more}"


def told(one: ComparedChannel) -> str:
    """The comparison of a channel as a line."""
    left = []
    if one.unknown:
        left.append(f"{one.unknown:,} of {one.cells:,} not known on one side or the other")
    if one.nonfinite:
        left.append(f"{one.nonfinite:,} not finite")
    rest = f"; {', '.join(left)}" if left else ""
    if one.largest is None:
        return f"no number is finite on both sides{rest}"
    if not one.unequal:
        return f"equal in every one of {one.cells - one.unknown:,} numbers{rest}"
    unit = "" if one.unit in ("1", "") else f" {one.unit}" if one.how == "difference" else one.unit
    what = "largest difference" if one.how == "difference" else "ratio furthest from 1"
    sign = "+" if one.how == "difference" else ""
    pair = f"({one.first:.4g} → {one.second:.4g})"
    where = one.place or "its only number"
    return f"{what} {one.largest:{sign}.4g}{unit} at {where} {pair}; relative norm {one.relative:.3g}{rest}"


# -- files


def _write(both: Comparison, found: list[ComparedChannel], channel: str | None, target: Path) -> Path:
    """Write the table, the numbers of every comparison, or those of one channel. Raises CaptureError."""
    suffix = target.suffix.lower()
    if channel is not None:
        return export_channel(both, channel, -1, target)
    if suffix not in TABLES:
        raise CaptureError(
            f"A comparison cannot be written as {target.suffix or target.name!r}; there are {', '.join(TABLES)}."
        )
    if suffix == ".csv":
        data = csv_bytes(_rows(found))
    elif suffix == ".json":
        data = json.dumps(as_data(both, found), indent=1).encode()
    else:
        data = npz_of(both, found)
    write_atomically(target, data)
    return target


def _rows(found: list[ComparedChannel]) -> list[list[str]]:
    columns = (
        "name", "how", "reason", "unit", "largest", "place", "first", "second", "relative", "cells", "unknown",
        "nonfinite", "unequal",
    )  # fmt: skip
    return [list(columns), *([cell(getattr(one, column)) for column in columns] for one in found)]
