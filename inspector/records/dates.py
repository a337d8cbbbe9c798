"""A moment in words, for reading: what a clock that was wrong, or a file that was forged, says is a moment too."""

from __future__ import annotations

import time
from collections.abc import Callable


def at_local(seconds: float, form: str = "%Y-%m-%d %H:%M") -> str:
    """A moment, in seconds since 1970, by the local clock; "" where no calendar has it (a year of eleven digits)."""
    return _written(form, time.localtime, seconds)


def at_utc(seconds: float) -> str:
    """The same in UTC, and saying so."""
    return _written("%Y-%m-%d %H:%M UTC", time.gmtime, seconds)


def _written(form: str, clock: Callable[[float], time.struct_time], seconds: float) -> str:
    try:
        return time.strftime(form, clock(seconds))
    except (OSError, OverflowError, ValueError):
        return ""
