"""A moment in words, for reading: what a clock that was wrong, or a file that was forged, says is a moment too."""

from __future__ import annotations

import time


def at_local(seconds: float, form: str = "%Y-%m-%d %H:%M") -> str:
    """A moment, in seconds since 1970, by the local clock; "" where no calendar has it (a year of eleven digits)."""
    try:
        return time.strftime(form, time.localtime(seconds))
    except (OSError, OverflowError, ValueError):
        return ""


def at_utc(seconds: float) -> str:
    """The same in UTC, and saying so."""
    try:
        return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))
    except (OSError, OverflowError, ValueError):
        return ""
