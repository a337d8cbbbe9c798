"""`inspector demo`: the window on a run of a trained model, or without a display its capture and figures."""

from __future__ import annotations

import importlib
import os
from pathlib import Path

import click

from inspector.capture import SUFFIX
from inspector.cli.fault import Fault
from inspector.cli.reporting import run_and_report, summary_of
from inspector.records import Load, Run
from inspector.transport.terminal import say
from inspector.workspace.demo import DEMO, check_demo


@click.command()
@click.option("--debug", is_flag=True, help="Show tracebacks and the worker's output.")
@click.pass_obj
def demo(python: str | None, debug: bool) -> None:
    """Open the window on a run of a trained LSTM; without a display write the capture and every panel as PNG."""
    from inspector.gui.runtime.display import has_display

    if has_display() and _qt_loads():
        from inspector.gui.window.first_frame import import_behind_it

        import_behind_it(demo=True)
        from inspector.gui.app import run as run_window

        raise SystemExit(run_window([], demo=True, python=python))
    folder = Path.cwd()
    target, panels = folder / f"demo{SUFFIX}", folder / "demo-panels"
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    overwrite = check_demo(target, panels)
    request = Run(path=str(target), overwrite=overwrite, made_by=DEMO)
    run_and_report(Load(subject="char-lstm"), request, debug, python)
    from inspector.gui.export.many import export_all

    try:
        pictures = export_all(target, panels)
    except ImportError as problem:
        raise Fault(f"The run is in {target}, but no figure could be drawn: {no_qt(problem)}", 1) from None
    say(f"No display was found, so the run was made without a window: {summary_of(target)}")
    for path in (target, *pictures):
        say(f"  {path}")
    say(f"Open it on a machine with a display: inspector {target.name}")


def _qt_loads() -> bool:
    """Whether Qt can be loaded; whether it can open the display is seen when it does (gui/runtime/again_without.py)."""
    try:
        importlib.import_module("PySide6.QtWidgets")
    except ImportError:
        return False
    return True


def no_qt(problem: ImportError) -> str:
    text = " ".join(str(problem).split())[:200].rstrip(".")
    return f"Qt cannot be loaded ({text}); docs/install.md names the system packages that it needs."
