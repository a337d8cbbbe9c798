"""Somebody at a real window: looks at it in its own thread, and uses it with the mouse and the keys of a screen.

The person is a thread of the window's process, so that dialogs that wait for an answer are no obstacle: what is looked
at is read by the thread of the window, whatever loop of events it is in; every action is an event of the X server
(xdotool). Nothing waits for a time: an action is followed by `until` something is seen.
"""

from __future__ import annotations

import os
import queue
import subprocess
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any, TypeVar

from PySide6.QtCore import QObject, QPoint, QPointF, Qt, Signal
from PySide6.QtWidgets import QApplication, QCheckBox, QTabBar, QWidget

T = TypeVar("T")
PATIENCE = float(os.environ.get("PATIENCE", "120"))
"""Seconds after which what is waited for will not come: a window that hangs, on a machine that is busy with others."""
LOOK, STEADY, AGAIN, HAND = 0.03, 6, 4.0, 0.05
"""Seconds between two looks; looks in which a place is the same; seconds after which what may be done again is;
seconds between two places of a hand that drags."""


class NeverCame(AssertionError):
    """What was waited for was not seen."""


class Eyes(QObject):
    """Calls what is asked of it in the thread of the window."""

    asked = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.asked.connect(lambda look: look(), Qt.ConnectionType.QueuedConnection)


class Person:
    """`window`: the one that is used; every method is called from the person's thread."""

    def __init__(self, window: Any) -> None:
        self.window = window
        self._eyes = Eyes()

    def begin(self, tasks: Callable[[Person], None], done: Callable[[], None]) -> threading.Thread:
        """Do tasks in a thread; `done` is called in it at the end, whatever happened."""

        def work() -> None:
            try:
                tasks(self)
            finally:
                done()

        thread = threading.Thread(target=work, name="person", daemon=True)
        thread.start()
        return thread

    # -- eyes

    def ask(self, look: Callable[[], T]) -> T:
        """What `look()` returns, called in the thread of the window."""
        answers: queue.Queue[tuple[bool, Any]] = queue.Queue()

        def answer() -> None:
            try:
                answers.put((True, look()))
            except BaseException as problem:  # noqa: BLE001 - raised again, in the thread that asked
                answers.put((False, problem))

        self._eyes.asked.emit(answer)
        try:
            fine, found = answers.get(timeout=PATIENCE)
        except queue.Empty:
            raise NeverCame("the window does not answer any more") from None
        if not fine:
            raise found
        return found  # type: ignore[no-any-return]

    def until(self, look: Callable[[], T], what: str, patience: float = PATIENCE) -> T:
        """The first true thing that `look()` returns; what is not there yet may raise."""
        end, problem = time.monotonic() + patience, ""
        while time.monotonic() < end:
            try:
                if found := self.ask(look):
                    return found
                problem = ""
            except (AttributeError, KeyError, IndexError, StopIteration, LookupError):
                problem = traceback.format_exc()
            time.sleep(LOOK)
        raise NeverCame(f"{what}; the window says {self.ask(self._sentence)!r}\n{problem}")

    def _sentence(self) -> str:
        return str(self.window.session.sentence)

    def dialog(self, kind: str) -> Any:
        """The dialog of a class that has the keyboard."""

        def there() -> Any:
            top = QApplication.activeWindow()
            return top if top is not None and type(top).__name__ == kind and top.isActiveWindow() else None

        return self.until(there, f"a {kind}")

    def alone(self) -> None:
        """No dialog is open any more, and the window has the keyboard."""
        self.until(
            lambda: QApplication.activeModalWidget() is None and QApplication.activeWindow() is self.window,
            "the window without a dialog",
        )

    # -- hands

    def tell(self, *words: object) -> None:
        """An event of the screen."""
        subprocess.run(["xdotool", *map(str, words)], check=True, timeout=PATIENCE)

    def keys(self, *names: str) -> None:
        """Keys, one after the other."""
        self.tell("key", "--delay", 25, *names)

    def write(self, text: str) -> None:
        """Letters, one after the other."""
        self.tell("type", "--delay", 15, "--", text)

    def still(self, look: Callable[[], T], what: str) -> T:
        """What `look()` returns once it has returned the same for a while."""
        seen: list[T] = []

        def steady() -> tuple[T] | None:
            seen.append(look())
            return (seen[-1],) if seen[-STEADY:] == [seen[-1]] * STEADY else None

        return self.until(steady, what)[0]

    def place(self, look: Callable[[], QPoint]) -> tuple[int, int]:
        """Pixels of the screen, once they stay: a dialog that opens is put somewhere else, and grows."""
        ratio = self.ask(self.window.devicePixelRatio)
        point = self.still(look, "a place that stays")
        return round(point.x() * ratio), round(point.y() * ratio)

    def point(self, look: Callable[[], QPoint]) -> None:
        """Move the mouse."""
        x, y = self.place(look)
        self.tell("mousemove", x - 3, y - 2)
        self.tell("mousemove", x, y)

    def click(self, look: Callable[[], QPoint], *, button: int = 1, hold: str = "") -> None:
        """Move the mouse, and click with a key held down or none."""
        self.point(look)
        if hold:
            self.tell("keydown", hold)
        self.tell("click", button)
        if hold:
            self.tell("keyup", hold)

    def again_until(self, action: Callable[[], object], look: Callable[[], T], what: str) -> T:
        """Do something that may be done twice, and once more each time that nothing comes of it for a while: what is
        below the mouse may have moved just then."""
        for patience in (AGAIN, AGAIN, 2 * AGAIN):
            action()
            try:
                return self.until(look, what, patience)
            except NeverCame:
                pass
        action()
        return self.until(look, what)

    def press(self, widget: Callable[[], QWidget]) -> None:
        """Click in the middle of a widget that can be used, once the mouse is over it."""
        self.until(lambda: widget().isVisible() and widget().isEnabled(), "a widget that can be used")
        move = lambda: self.point(lambda: middle(widget()))  # noqa: E731
        self.again_until(move, lambda: widget().underMouse(), "the mouse over a widget")
        self.tell("click", 1)

    def enter(self, field: Callable[[], QWidget], text: str) -> None:
        """Put a text into a field, in the place of what it has."""
        self.again_until(lambda: self.press(field), lambda: field().hasFocus(), "the keyboard in the field")
        self.keys("ctrl+a")
        self.write(text)

    def drag(self, first: Callable[[], QPoint], last: Callable[[], QPoint], ready: Callable[[], bool]) -> None:
        """Press at a place once it is `ready` for it, move to another as a hand does, let go there."""
        end = self.place(last)
        self.again_until(lambda: self.point(first), ready, "something to be dragged")
        start = self.place(first)
        self.tell("mousedown", 1)
        for part in (0.1, 0.3, 0.6, 0.9, 1.0):
            self.tell("mousemove", *(round(a + part * (b - a)) for a, b in zip(start, end, strict=True)))
            time.sleep(HAND)
        self.tell("mouseup", 1)


def middle(widget: QWidget) -> QPoint:
    """Of a widget, on the screen; of a box to be ticked, whose words end somewhere, the box."""
    centre = widget.rect().center()
    return widget.mapToGlobal(QPoint(10, centre.y()) if isinstance(widget, QCheckBox) else centre)


def of_tab(bar: QTabBar, text: str) -> QPoint:
    """The middle of a tab, on the screen."""
    at = next(n for n in range(bar.count()) if bar.tabText(n) == text)
    return bar.mapToGlobal(bar.tabRect(at).center())


def of_row(view: Any, row: int, column: int = 0) -> QPoint:
    """A cell of a list or table, near its left end, on the screen."""
    rect = view.visualRect(view.model().index(row, column))
    return view.viewport().mapToGlobal(QPoint(rect.left() + min(20, rect.width() // 2), rect.center().y()))  # type: ignore[no-any-return]


def of_plot(figure: Any, plot: Any, x: float, y: float) -> QPoint:
    """A place in a plot's own numbers, on the screen."""
    at = figure.mapFromScene(plot.vb.mapViewToScene(QPointF(x, y)))
    return figure.viewport().mapToGlobal(at)  # type: ignore[no-any-return]
