"""What `inspector list --panels` tells: which figures can be drawn of a capture or a log, and from which channels."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from inspector.capture import Capture, LogView
from inspector.cli.columns import width_of
from inspector.cli.demo import no_qt
from inspector.cli.fault import Fault
from inspector.records import counted
from inspector.transport.terminal import say

SCHEMA = "inspector-panels-1"
MOST_NAMED = 4


def say_panels(opened: Capture | LogView, *, as_json: bool) -> None:
    """Print them, of the newest frame. Raises Fault where Qt, which draws them, cannot be loaded."""
    try:
        from inspector.gui.export.headless import panels_in

        found = panels_in(opened)
    except ImportError as problem:
        raise Fault(no_qt(problem), 1) from None
    if as_json:
        click.echo(json.dumps({"schema": SCHEMA, "panels": [asdict(one) for one in found]}, indent=1))
        return
    if not found:
        say("No panel has anything to show.")
    width = width_of([one.key for one in found])
    for one in found:
        some = ", ".join(one.channels[:MOST_NAMED]) + (", …" if len(one.channels) > MOST_NAMED else "")
        say(f"{one.key:<{width}}  {one.title}: {counted(len(one.channels), 'channel')} ({some})")
