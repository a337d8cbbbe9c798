"""What was asked of a training: by windows, through files or over the network, and from Python, in any thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from inspector.capture import CaptureError
from inspector.capture.control import Command, Commands
from inspector.records import BreakCondition, parse_condition

Test = Callable[[Mapping[str, float]], object]
MOST_WINDOWS = 64
"""Windows that are remembered, so that none of their commands is obeyed twice: those heard of last."""
LOOK_SECONDS = 0.2
FROM_WINDOW = "the window"


@dataclass(slots=True)
class Wish:
    """What is wanted now.

    Attributes:
        paused: whether the loop is to wait; steps: iterations that it makes first. why: who asked, in a few words.
        by_window: whether a window asked, so that the training goes on when that is gone.
    """

    paused: bool = False
    steps: int = 0
    why: str = ""
    by_window: bool = False


class Orders:
    """Wishes and conditions. `changed` is notified whenever one arrives; `heard` is when a window last was alive."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.wish = Wish()
        self.condition: BreakCondition | None = None
        self.test: Test | None = None
        self.condition_by_window = False
        self.heard = 0.0
        self.news: list[str] = []
        """Conditions that were set since, as they are told in the capture."""
        self.active = False
        """Whether an end of an iteration has to look at anything here: read without a lock."""
        self._windows: dict[str, Command] = {}

    # -- from Python

    def pause(self, why: str, *, by_window: bool = False) -> None:
        """The loop is to wait at the end of a recorded iteration."""
        with self.changed:
            self.wish = Wish(True, 0, why, by_window)
            self._told()

    def step(self) -> None:
        """One more iteration, then wait."""
        with self.changed:
            self.wish = Wish(True, 1, "one iteration was asked for", True)
            self._told()

    def go_on(self, *, forget: bool = False) -> None:
        """The loop is to go on; with `forget` without conditions either."""
        with self.changed:
            self.wish = Wish()
            if forget and self.condition is not None:
                self._set(None, None, by_window=False)
            self._told()

    def break_when(
        self, condition: BreakCondition | None, test: Test | None = None, *, by_window: bool = False
    ) -> None:
        """Wait where a condition holds; None: nowhere."""
        with self.changed:
            self._set(condition, test, by_window=by_window)
            self._told()

    def _set(self, condition: BreakCondition | None, test: Test | None, *, by_window: bool) -> None:
        self.condition, self.test, self.condition_by_window = condition, test, by_window
        self.news.append("a function of the program" if test is not None else str(condition or ""))

    def _told(self) -> None:
        self.active = True
        self.changed.notify_all()

    def settle(self) -> None:
        """An iteration has ended: whether the next end has to look at anything."""
        with self.changed:
            self.active = bool(self.wish.paused or self.condition is not None or self.test is not None or self.news)

    # -- from windows

    def take(self, command: Command) -> None:
        """A command as it was read; one that was obeyed before is a sign of life only."""
        with self.changed:
            before = self._windows.pop(command.window, None)
            if before is None and len(self._windows) >= MOST_WINDOWS:
                self._windows.pop(next(iter(self._windows)))  # the one that was heard of longest ago
            self._windows[command.window] = command
            self.heard = time.monotonic()
            is_new = command.number > (0 if before is None else before.number)
        if not is_new:
            return
        if command.action == "pause":
            self.pause(f"{FROM_WINDOW} asked for it", by_window=True)
        elif command.action == "step":
            self.step()
        elif command.action == "continue":
            self.go_on()
        elif command.action == "break":
            self.break_when(parse_condition(command.condition) if command.condition else None, by_window=True)


class Reading:
    """A thread that reads what windows write into the capture's folder: a disk that hangs holds nothing else up."""

    def __init__(self, path: Path, orders: Orders, say: Callable[[str], None]) -> None:
        self._commands, self._orders, self._say = Commands(path), orders, say
        self._over = threading.Event()
        self._faults = 0
        self._thread = threading.Thread(target=self._read, name="watch-control", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            commands, faults = self._commands.new()
            for command in commands:
                self._orders.take(command)
            for fault in faults[: 5 - self._faults]:
                self._faults += 1
                with suppress(CaptureError):
                    self._say(f"A command in the capture's folder was not obeyed: {fault}.")

    def close(self) -> None:
        """Read no more."""
        self._over.set()
