"""Pausing the training that writes the shown capture: what can be asked of it, what was, and signs of life to it."""

from __future__ import annotations

import time
from pathlib import Path

from inspector.capture import Capture
from inspector.capture.control import BEAT_SECONDS, GONE_SECONDS, Controller
from inspector.records import BREAK_ON, CONTINUED, PAUSED, Event

LOOK_SECONDS = 0.5
"""Whether the process of a training lives is looked at so often."""
NOTHING = "No training is followed: nothing is shown."
OTHER = "No training is followed: what is shown is not written by inspector.watch."
ENDED = "The training has ended."
AWAITED = "There is no connection to the training now: it is waited for."
CANNOT = "This training cannot wait: how long its other processes wait for one of them is not known."


class Steering:
    """Of one window. `follow` is called at every tick with the capture that is shown."""

    def __init__(self) -> None:
        self._capture: Capture | None = None
        self._controller: Controller | None = None
        self._beaten = self._asked = 0.0
        self._grew = False
        self._seen = 0
        self.paused: Event | None = None
        """The event that says where the training waits; None while it does not."""
        self.condition = ""
        """When it is to wait, as the training has told."""
        self.problem = ""
        self._reason = NOTHING
        self._looked_for: Capture | None = None
        self._looked = 0.0

    @property
    def reason(self) -> str:
        """Why nothing can be asked of a training; "" where that is possible."""
        return self._reason

    @property
    def said(self) -> str:
        """Where the training waits and why, or that it was asked to; "" where neither."""
        if self._reason:
            return ""
        if self.paused is not None:
            return f"The training waits at iteration {self.paused.iteration:,.10g}: {self.paused.text}"
        return "The training was asked to wait" if self._waited_for else ""

    @property
    def _waited_for(self) -> bool:
        """Whether it was asked to wait and has not answered; not for ever."""
        return bool(self._asked) and time.monotonic() - self._asked < 10 * GONE_SECONDS

    def follow(self, capture: Capture | None, *, grown: bool) -> bool:
        """Take what is shown now; returns whether anything here has changed."""
        before = (self._reason, self.paused, self.condition, self.said)
        if capture is not self._capture:
            self.close()
            self._capture, self._seen, self._grew = capture, 0, False
            self.paused, self.condition, self._asked = None, "", 0.0
        self._grew = self._grew or grown
        if self._looked_for is not capture or grown or time.monotonic() - self._looked > LOOK_SECONDS:
            self._looked_for, self._looked = capture, time.monotonic()
            self._reason = self._why_not()
        if capture is not None and not self._reason:
            self._read(capture)
            self._show_life()
        return before != (self._reason, self.paused, self.condition, self.said)

    def _why_not(self) -> str:
        capture = self._capture
        if capture is None:
            return NOTHING
        told = capture.start.meta.get("training") if isinstance(capture, Capture) else None
        if not isinstance(told, dict) or "can_pause" not in told:
            return OTHER
        if capture.status != "running" and not (
            capture.stop is None and capture.written_elsewhere and Path(capture.path).is_dir() and self._grew
        ):
            return ENDED if capture.awaited is None else AWAITED
        return "" if told["can_pause"] is True else CANNOT

    def _read(self, capture: Capture) -> None:
        """Events that are new."""
        events = capture.events
        for event in events[self._seen :]:
            if event.kind in (PAUSED, CONTINUED):
                self.paused, self._asked = (event if event.kind == PAUSED else None), 0.0
            elif event.kind == BREAK_ON:
                self.condition = event.text
        self._seen = len(events)

    def _show_life(self) -> None:
        """While a training waits, or is about to, it is told now and then that somebody looks."""
        now = time.monotonic()
        if (self.paused is None and not self._waited_for) or now - self._beaten < BEAT_SECONDS:
            return
        self._beaten = now
        try:
            self._own().beat()
        except OSError as problem:
            self.problem = _cannot(problem)

    # -- what a user asks for

    def ask(self, action: str, condition: str = "") -> str:
        """Ask the training for something; returns why that is not possible, "" where it was asked."""
        if self._reason:
            return self._reason
        try:
            self._own().send(action, condition)
        except ValueError as problem:
            return str(problem)
        except OSError as problem:
            return _cannot(problem)
        self._asked = time.monotonic() if action in ("pause", "step") else 0.0
        self._beaten = time.monotonic()
        return ""

    def _own(self) -> Controller:
        assert self._capture is not None
        if self._controller is None:
            self._controller = Controller(Path(self._capture.path))
        return self._controller

    def close(self) -> None:
        """Nothing is followed any more: a training that waits for this window goes on after a while."""
        if self._controller is not None:
            self._controller.close()
            self._controller = None


def _cannot(problem: OSError) -> str:
    return f"Nothing can be asked of the training, whose folder cannot be written ({problem.strerror or problem})."
