"""`inspector reproduce`: the script that shows what a rule finds, with the fault and without it."""

from __future__ import annotations

import os
from pathlib import Path

import click

from inspector.capture import CaptureError, write_atomically
from inspector.cli.fault import Fault, opened_any
from inspector.diagnosis import NoCaseError, diagnose, reproduce, rule_of
from inspector.records import Finding
from inspector.transport.terminal import say


@click.command("reproduce")
@click.argument("rule")
@click.option("--of", "capture", default=None, help="Write at its head what the rule found in this capture or log.")
@click.option("--run", help="The run, where a log has several.")
@click.option("--to", type=click.Path(dir_okay=False), default=None, help="Write a file; without it, it is printed.")
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
def reproduce_(rule: str, capture: str | None, run: str | None, to: str | None, overwrite: bool) -> None:
    """Give the script of a small training with the fault that RULE finds (IN205, contracting-weight), and without."""
    try:
        key, _ = rule_of(rule)
        text = reproduce(key, _found(key, capture, run))
    except NoCaseError as problem:
        raise Fault(str(problem)) from None
    if to is None:
        click.echo(text, nl=False)
        return
    if os.path.lexists(to) and not overwrite:
        raise Fault(f"{to} exists; --overwrite replaces it.")
    try:
        write_atomically(Path(to), text.encode())
    except CaptureError as problem:
        raise Fault(str(problem)) from None
    say(f"{to}: python {to} ill, then healthy, then cured.", err=True)


def _found(key: str, capture: str | None, run: str | None) -> list[Finding]:
    """What the rule found in a capture, none where no capture was named. Raises Fault where it found nothing there."""
    if capture is None:
        return []
    with opened_any(capture, run) as opened:
        found = [one for one in diagnose(opened, opened.frames).findings if one.rule == key]
    if not found:
        raise Fault(f"The rule {key} finds nothing in {capture}; without --of the script is given as it is.")
    return found
