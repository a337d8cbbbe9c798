"""The position at which a capture is opened from a command line: panel, frame, place, step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from inspector.capture import CaptureError
from inspector.gui.panel.colours import colours_of
from inspector.gui.state.followed_log import as_log
from inspector.records import ViewAt

if TYPE_CHECKING:
    from inspector.gui.window.showing import Showing

WHOLE = ViewAt()


class OpenAt:
    """Goes to a position once, as soon as there is a capture to be shown."""

    def __init__(self, window: Showing, show_run: Callable[[str], None]) -> None:
        """`show_run(name)` shows one of the runs of a log."""
        self._window, self._show_run, self._at = window, show_run, WHOLE
        self._after: Any = None
        self._waits = False

    def ask(self, at: ViewAt, after: Any = None) -> None:
        """Go there with the next capture that is shown; the panel is named by its key or its title.

        `after`: a capture that is shown now and is not meant.
        """
        self._at, self._after, self._waits = at, after, False

    def ask_run(self, at: ViewAt, after: Any) -> None:
        """The same for a run that is about to begin: its steps are there when it has ended."""
        self.ask(at, after)
        self.wait()

    def wait(self) -> None:
        """What is asked for belongs to a run that is about to begin."""
        self._waits = True

    @property
    def done(self) -> bool:
        """Whether nothing is asked for that was not done."""
        return self._at == WHOLE

    def waiting(self, capture: Any) -> ViewAt | None:
        """Where a capture is to be looked at, as long as that was not done."""
        return None if self.done or capture is self._after else self._at

    def go(self) -> None:
        """Called at the end of a tick; nothing where nothing was asked for or there is no capture yet."""
        capture, at = self._window.session.capture, self._at
        if capture is None or at == WHOLE or capture is self._after or (self._waits and capture.stop is None):
            return
        self._after = None
        if at.run and as_log(capture) is not None:
            self._at = replace(at, run="")
            self._show_run(at.run)
            return
        self._at = WHOLE
        try:
            self._show(at)
        except CaptureError as problem:
            self._window.fail(str(problem))

    def _show(self, at: ViewAt) -> None:
        from inspector.gui.export.headless import check_frame, key_of
        from inspector.gui.export.what_is_there import check_view, known_part

        capture = self._window.session.capture
        assert capture is not None
        check_frame(capture.frames, at.frame)
        key, grows = key_of(at.panel) if at.panel else "", capture.stop is None
        self._go_to(at if grows else known_part(capture, at), key)
        if not grows:  # what is asked for may still come
            check_view(capture, at)  # what is not there is said, and the rest is shown

    def _go_to(self, at: ViewAt, key: str) -> None:
        window = self._window
        if at.colours:
            colours_of(window.looking).take_text(at.colours)
        if at.frame >= 0 or at.frame in window.frames.places:
            window.frames.choose(at.frame)
        changes = {name: getattr(at, name) for name in ("step", "unit", "head") if getattr(at, name) is not None}
        window.looking.move(**({"place": at.place} if at.place else {}), **changes)
        if at.steps is not None:
            window.steps.set(at.steps[0] - 0.5, at.steps[1] + 0.5)
        if key:
            window.docking.show_panel(key)
            panel = window.panels.get(key)
            if at.curves and panel is not None and hasattr(panel, "prefer"):
                panel.redraw()  # which lists the curves
                panel.prefer(at.curves)
            if at.iterations is not None and panel is not None and hasattr(panel, "show_range"):
                panel.show_range(*at.iterations)
