"""How numbers are written on screen. Zero has no sign: what rounds to zero reads "0", never "-0"."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np


def number(value: Any) -> str:
    """A number with all digits of its type."""
    if isinstance(value, (np.floating, float)):
        if np.isnan(value):
            return "NaN"
        if np.isinf(value):
            return "∞" if value > 0 else "−∞"
        return short(value, digits_of(np.asarray(value)))
    return str(value)


def digits_of(values: Any) -> int:
    """How many digits numbers of an array's type have."""
    return {2: 3, 4: 7, 8: 10}.get(values.dtype.itemsize, 7)


def measured(value: Any, unit: str) -> str:
    """A number with its unit, where it has one; a word that stands for a number has none."""
    if unit in ("", "1") or isinstance(value, str):
        return number(value)
    written = number(value)
    return f"{written} {unit}s" if unit == "step" and written != "1" else f"{written} {unit}"


def short(value: float | np.floating[Any], digits: int = 3) -> str:
    """A number in at most so many digits."""
    return _unsigned(f"{float(value):.{digits}g}")


LONG = re.compile(r"(?<![\w.])-?\d+\.\d+(?:e[+-]\d+)?(?![\w.])")
SENSIBLE = 4
"""Digits that are read; more are for copying."""


def with_fewer_digits(text: str) -> str:
    """A text whose decimal fractions have four digits: more only tell two numbers apart that a person takes as one."""
    return LONG.sub(lambda found: _sensible(found[0]), text)


def _sensible(written: str) -> str:
    value = float(written)
    if "e" not in written and abs(value) >= 10**SENSIBLE:
        return _unsigned(f"{value:.0f}")
    new = short(value, SENSIBLE)
    return new if len(new) < len(written) else written


def fixed(value: float | np.floating[Any], decimals: int = 2) -> str:
    """A number with so many decimals: a share, a correlation."""
    return _unsigned(f"{float(value):.{decimals}f}")


def _unsigned(text: str) -> str:
    """Without the sign where no digit but 0 is left."""
    return text.removeprefix("-") if not text.strip("-0.") else text


def round_step(span: float, room: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that goes at most `room` times into a span."""
    if not (math.isfinite(span) and span > 0):
        return 1.0
    least = span / room
    power = 10.0 ** math.floor(math.log10(least))
    return next((part * power for part in (1, 2, 5) if part * power >= least * (1 - 1e-9)), 10 * power)


def round_numbers(low: float, high: float, room: float) -> list[float]:
    """Round numbers from one to another, at most about `room` of them."""
    step = round_step(high - low, room)
    return [n * step for n in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
