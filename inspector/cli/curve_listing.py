"""What `inspector list --curves` tells of a training: a line for each curve."""

from __future__ import annotations

import json
import math
from dataclasses import asdict

import click

from inspector.analysis.curve_table import Line, lines
from inspector.capture import Capture, CaptureError, LogView, summary
from inspector.cli.columns import width_of
from inspector.cli.fault import Fault
from inspector.transport.terminal import complain, say

HEAD = ("points", "first", "last", "smallest", "largest")


def say_curves(opened: Capture | LogView, match: tuple[str, ...], *, as_json: bool) -> None:
    """Print them. Raises Fault where there are none."""
    try:
        found = lines(opened, match)
    except CaptureError as problem:
        raise Fault(f"{problem} {_lacking(opened)}".rstrip()) from None
    lacking = _lacking(opened)  # pages that are damaged are known once they were read
    if as_json:
        click.echo(json.dumps([_strict(one) for one in found], indent=1))
        return
    if lacking:
        complain(lacking)
    width = width_of(["curve", *(one.name for one in found)])
    say(f"{'curve':<{width}}  " + "  ".join(f"{word:>10}" for word in HEAD))
    for one in found:
        numbers = (f"{one.points:,}", *map(_short, (one.first, one.last, one.smallest, one.largest)))
        bad = f"  {one.not_finite:,} not finite" if one.not_finite else ""
        say(f"{one.name:<{width}}  " + "  ".join(f"{text:>10}" for text in numbers) + bad)


def _lacking(opened: Capture | LogView) -> str:
    return f"Curves may lack points: {summary(opened.damage)}" if opened.damage else ""


def _short(value: float) -> str:
    return f"{value:.4g}"


def _strict(line: Line) -> dict[str, object]:
    """NaN and infinities as text: JSON has no other way."""
    told = asdict(line)
    return {k: str(v) if isinstance(v, float) and not math.isfinite(v) else v for k, v in told.items()}
