"""Runs another command as if it had been started in this one's place: streams, signals and exit code are its own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from types import FrameType, TracebackType
from typing import Any, Self

_PASSED = (
    "SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGCONT", "SIGWINCH", "SIGBREAK",
)  # fmt: skip
_OF_A_TERMINAL = ("SIGINT", "SIGQUIT", "SIGWINCH", "SIGBREAK")


class SameCommand:
    """A child with this process's streams and working directory, to which signals are passed on; a context manager.

    Signals that a terminal sends to everything in front of it reach the child by themselves. What is ignored here, as
    below nohup, stays ignored. `code` is as in subprocess: negative where a signal ended it. Raises OSError where the
    command cannot be run.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._before: dict[int, Any] = {}
        self.child: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []
        try:
            self._listen()  # first: a handler does not reach the child, and no signal is missed
            self.child = subprocess.Popen(list(command), env=dict(environment))
        except BaseException:
            self._put_back()
            raise
        for number in self._early:
            self.child.send_signal(number)

    def _listen(self) -> None:
        for name in _PASSED:
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) not in (signal.SIG_IGN, None):
                self._before[number] = signal.signal(number, self._pass_on)

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        if signal.Signals(number).name in _OF_A_TERMINAL and _in_front():
            return
        if self.child is None:
            self._early.append(number)
            return
        with contextlib.suppress(OSError):
            self.child.send_signal(number)

    def wait(self, seconds: float | None = None) -> int | None:
        """Its exit code; None where it still runs after so many seconds."""
        assert self.child is not None
        try:
            return self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    @property
    def code(self) -> int:
        """How it ended."""
        assert self.child is not None and self.child.returncode is not None
        return self.child.returncode

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, where: TracebackType | None
    ) -> None:
        self.wait()
        self._put_back()

    def _put_back(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()


def _in_front() -> bool:
    """Whether a terminal sends its signals to this process, and so to the child too."""
    try:
        return os.tcgetpgrp(sys.__stdin__.fileno() if sys.__stdin__ else 0) == os.getpgrp()
    except (OSError, ValueError, AttributeError):
        return sys.platform == "win32"


def end_like(code: int) -> None:
    """End this process as a child ended: with its code, or by the same signal. Raises SystemExit."""
    if code < 0 and sys.platform != "win32":
        with contextlib.suppress(OSError, ValueError):
            import resource

            resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
            if -code not in (signal.SIGKILL, signal.SIGSTOP):
                signal.signal(-code, signal.SIG_DFL)
            sys.stdout.flush()
            os.kill(os.getpid(), -code)
        raise SystemExit(128 - code)
    raise SystemExit(code)
