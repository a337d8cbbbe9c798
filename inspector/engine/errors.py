"""What the engine raises on purpose. Each message is one clear sentence: given, expected, what exists."""

from __future__ import annotations


class InputError(ValueError):
    """Bad arguments or unreadable input (exit code 2)."""


class ModelError(RuntimeError):
    """The user's model raised; `details` holds the traceback of the user's own frames (exit code 1)."""

    def __init__(self, message: str, details: str = "") -> None:
        super().__init__(message)
        self.details = details


class Unsupported(NotImplementedError):
    """A quantity does not exist for this recurrence or cannot be computed exactly; the reason is the message."""


class NotApplicable(Unsupported):
    """The quantity has no meaning here (the forget gate of a plain RNN): skipped in silence, nothing is missing."""


class CancelledError(Exception):
    """The user cancelled; raised between pages, never inside the user's model."""
