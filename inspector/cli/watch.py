"""`inspector watch -- python train.py`: runs a script as it is and watches the models that it trains."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from inspector.capture import SUFFIX
from inspector.cli.fault import Fault
from inspector.records import parse_condition
from inspector.transport.same_command import SameCommand, end_like
from inspector.transport.terminal import say

VARIABLE = "INSPECTOR_WATCH"
STARTUP = Path(__file__).resolve().parents[1] / "engine" / "watch" / "scripts" / "startup"
LOOK_SECONDS = 0.3
COSTS = ("light", "normal", "full")


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--out", default=f"run{SUFFIX}", help="Folder of the capture; a number is added where it exists.")
@click.option("--every", default=None, type=click.IntRange(1), help="Record every N-th iteration.")
@click.option(
    "--share", default=0.02, type=click.FloatRange(0, 1, min_open=True), help="Without --every: most share of the time."
)
@click.option("--cost", default="normal", type=click.Choice(COSTS), help="How much is recorded.")
@click.option(
    "--break-on", default=None, help="Wait where this holds: 'non-finite, gradient norm > 10, iteration 500'."
)
@click.option(
    "--pause-timeout", default=3600.0, type=click.FloatRange(0, min_open=True), help="Seconds that it waits at most."
)
@click.option("--fingerprints", is_flag=True, help="Record what inspector diverge compares two trainings by.")
@click.option("--headless", is_flag=True, help="Open no window.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def watch(out: str, headless: bool, command: tuple[str, ...], **options: Any) -> None:
    """Run a script that trains a model, as it is, and watch it: inspector watch -- python train.py …"""
    if not command:
        raise Fault("watch was given no command; expected for example: inspector watch -- python train.py.")
    if options["break_on"] is not None:
        try:
            parse_condition(options["break_on"])
        except ValueError as problem:
            raise Fault(str(problem)) from None
    shown = not headless and _window_can_open(out)
    with tempfile.TemporaryDirectory(prefix="inspector-watch-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        told = {"out": str(Path(out).absolute()), "folder": name, "options": options}
        try:
            running = SameCommand(command, environment(os.environ, told))
        except OSError as problem:
            code = 127 if isinstance(problem, FileNotFoundError) else 126
            raise Fault(f"{command[0]} cannot be run: {problem.strerror or problem}.", code) from None
        with running:
            while running.wait(LOOK_SECONDS if shown else None) is None:
                if found := captures(folder):
                    _open_window(found[0])
                    shown = False
        _tell(folder, command[0])
    end_like(running.code)


def environment(own: Mapping[str, str], told: dict[str, Any]) -> dict[str, str]:
    """The script's environment: this one, and what makes every Python below notice its optimizers."""
    before = own.get("PYTHONPATH", "")
    path = f"{STARTUP}{os.pathsep}{before}" if before else str(STARTUP)
    return {**own, "PYTHONPATH": path, VARIABLE: json.dumps(told)}


def captures(folder: Path) -> list[Path]:
    """Captures that processes below the command write, in the order in which they began."""
    found = sorted(folder.glob("capture-*"), key=lambda file: file.stat().st_mtime_ns)
    paths = [Path(text) for file in found if (text := file.read_text("utf-8"))]
    return [path for path in paths if path.exists()]


def _tell(folder: Path, name: str) -> None:
    """After the end: where the captures are, or why there is none."""
    found = captures(folder)
    for path in found:
        say(f"inspector: the training is in {path}", err=True)
    if not found and not any(folder.glob("fault-*")):  # a fault has told itself
        said = "no optimizer of torch's was used in it, or it ran Python with -I, -E or -S"
        say(f"inspector: nothing was watched in {name}: {said}.", err=True)


def _window_can_open(out: str) -> bool:
    from inspector.gui.runtime.display import has_display

    if has_display():
        return True
    say(f"inspector: no display was found, so no window opens; look at it elsewhere with inspector {out}.", err=True)
    return False


def _open_window(path: Path) -> None:
    """The window as a process of its own, which stays when the script has ended and hears none of its signals."""
    quiet: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    apart: dict[str, Any] = {"start_new_session": True} if sys.platform != "win32" else {}
    time.sleep(LOOK_SECONDS)  # the capture has just begun
    with contextlib.suppress(OSError):
        subprocess.Popen([sys.executable, "-P", "-m", "inspector", str(path)], **quiet, **apart)
