"""Starting the window. Importing this module imports neither torch nor the plotting library."""

from __future__ import annotations

import sys
from collections.abc import Callable

from PySide6.QtCore import QTimer

from inspector.gui.runtime.crash_file import NativeCrashes
from inspector.gui.runtime.display import has_display
from inspector.gui.runtime.icon import use_icon
from inspector.gui.runtime.one_window import TakesFiles, hand_over
from inspector.gui.runtime.signals import close_by_signals
from inspector.gui.state.preferred import python_of, runs_of, worker_of
from inspector.gui.state.session import Session
from inspector.gui.state.settings import Settings
from inspector.gui.window.first_frame import refused, take_away, the_application
from inspector.gui.window.main_window import Window
from inspector.gui.window.open_at import WHOLE
from inspector.gui.window.preferences import use_font_size
from inspector.gui.window.preparing import Preparing
from inspector.records import Log, ViewAt
from inspector.transport.early import early_worker
from inspector.transport.process import WorkerProcess
from inspector.transport.terminal import complain

Say = Callable[..., None]
NO_DISPLAY = "There is no display to show a window on; `inspector demo` and `inspector run` work without one."


def make_window(python: str | None = None) -> Window:
    """A window with a session of its own, not yet shown; `python` runs its models (transport/interpreter.py)."""
    settings = Settings()

    def worker(on_record: Say, on_output: Say, on_exit: Say) -> WorkerProcess:
        told, chosen = (on_record, on_output, on_exit), worker_of(settings, python)
        return early_worker(chosen, *told) or WorkerProcess(*told, *chosen)

    use_font_size(settings)
    window = Window(Session(worker, runs_of(settings)), settings)
    if problem := settings.problem():
        window.session.note(Log(problem, "warning", "window"))
        window.session.sentence = problem
    return window


def run(
    paths: list[str], demo: bool = False, python: str | None = None, at: ViewAt = WHOLE, *, new_window: bool = False
) -> int:
    """Show the window, with files open at a position or with the demo running, until it is closed. Returns the exit
    code. Files go to the window that is open already, if there is one and no `new_window` is asked for."""
    reason = refused() or ("" if has_display() else NO_DISPLAY)
    if reason:
        sys.stderr.write(reason + "\n")
        return 2
    application = the_application()
    if paths and not new_window and hand_over(paths, at, python_of(Settings(), python)):
        sys.stdout.write("Opened in the window that is there already; --new-window opens another.\n")
        return 0
    use_icon()
    crashes = NativeCrashes()
    crashed = crashes.begin()
    window = make_window(python)
    if not paths and not demo:
        window.welcome.open()
    if crashed is not None:
        window.say_crashed(crashed)
    window.show()
    application.processEvents()
    take_away()
    close_by_signals(window.close_unasked)
    window.session.start_worker()  # torch loads in its process while the panels do in this one
    preparing = Preparing(window, window.loading(), lambda: begin(window, paths, demo, at))
    window.closed.connect(preparing.stop)
    taking = TakesFiles(window, lambda paths, at: take(window, paths, at), python_of(window.settings, python))
    window.closed.connect(taking.close)
    window.closed.connect(lambda: application.exit(0))  # whatever else is seen: a dialog, a page of the documentation
    QTimer.singleShot(0, lambda: None if window.isVisible() else application.exit(0))  # closed before this loop began
    try:
        return int(application.exec())
    finally:
        taking.close()
        preparing.close()
        window.session.wait_for_end()
        keep_or_say(window.settings)
        crashes.end()


def keep_or_say(settings: Settings) -> None:
    """Write what is remembered, or say that it is not."""
    if why := settings.not_written():  # also where that was said at the start: a file that was opened spoke over it
        complain(settings.problem() or f"Layout and choices are not remembered: {why}")


def take(window: Window, paths: list[str], at: ViewAt = WHOLE) -> None:
    """Open the files of a later call, at a position in what is opened then."""
    window.open_at.ask(at, after=window.session.capture)
    window.open_paths(paths)


def begin(window: Window, paths: list[str], demo: bool, at: ViewAt = WHOLE) -> None:
    """What happens once the window is shown: panels, worker, the requested files or demo."""
    from inspector.gui.runtime.exception_hooks import install
    from inspector.gui.runtime.gc_timer import collect_here

    install(window.show_fault, window.session.note, window.close_unasked)
    collect_here(window)
    window.load_panels()
    window.tick()
    window.open_at.ask(at)
    window.open_paths(paths)
    if demo:
        window.tour.begin()
