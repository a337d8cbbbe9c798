"""The error that ends a command with a one-line message, and opening a capture for a command."""

from __future__ import annotations

from typing import Any

import click

from inspector.capture import Capture, CaptureError, LogView, open_any, open_capture
from inspector.transport.terminal import complain
from inspector.workspace.trainings import path_or_training


class Fault(click.ClickException):
    """A one-line message on stderr and an exit code."""

    def __init__(self, sentence: str, code: int = 2) -> None:
        super().__init__(sentence)
        self.code = code

    def show(self, file: Any = None) -> None:
        """The message alone, without a prefix."""
        complain(self.format_message())


def opened(path: str) -> Capture:
    """The capture at a path, or the recorded training of that name. Raises Fault."""
    try:
        return open_capture(path_or_training(path))
    except CaptureError as problem:
        raise Fault(str(problem)) from None


def opened_any(path: str, run: str | None = None) -> Capture | LogView:
    """The capture or the log at a path, or the recorded training of that name. Raises Fault."""
    try:
        return open_any(path_or_training(path), run)
    except CaptureError as problem:
        raise Fault(str(problem)) from None
