"""`inspector pack`: a capture as one file, to mail."""

from __future__ import annotations

import click

from inspector.capture import CaptureError, not_computed, pack
from inspector.cli.fault import Fault, opened
from inspector.transport.terminal import say


@click.command("pack")
@click.argument("capture")
@click.option("--to", default=None, help="The file to write; default: NAME.inspect.zip beside the capture.")
@click.option("--overwrite", is_flag=True, help="Replace an existing packed capture.")
def pack_(capture: str, to: str | None, overwrite: bool) -> None:
    """Make one file of a capture, to mail; it opens like the folder."""
    try:
        packed = pack(capture, to, overwrite=overwrite)
    except CaptureError as problem:
        raise Fault(str(problem)) from None
    say(str(packed), err=True)
    with opened(str(packed)) as capture_there:
        lacking = not_computed(capture_there)
    if lacking:
        say(lacking, err=True)
