"""How numbers are written on screen. Zero has no sign: what rounds to zero reads "0", never "-0"."""

from __future__ import annotations

from typing import Any

import numpy as np


def number(value: Any) -> str:
    """A number with all digits of its type."""
    if isinstance(value, (np.floating, float)):
        if np.isnan(value):
            return "NaN"
        if np.isinf(value):
            return "∞" if value > 0 else "−∞"
        digits = {2: 4, 4: 7, 8: 10}.get(getattr(np.asarray(value).dtype, "itemsize", 8), 7)
        return short(value, digits)
    return str(value)


def measured(value: Any, unit: str) -> str:
    """A number with its unit, where it has one."""
    return number(value) if unit in ("", "1") else f"{number(value)} {unit}"


def short(value: float | np.floating[Any], digits: int = 3) -> str:
    """A number in at most so many digits."""
    return _unsigned(f"{float(value):.{digits}g}")


def fixed(value: float | np.floating[Any], decimals: int = 2) -> str:
    """A number with so many decimals: a share, a correlation."""
    return _unsigned(f"{float(value):.{decimals}f}")


def _unsigned(text: str) -> str:
    """Without the sign where no digit but 0 is left."""
    return text.removeprefix("-") if not text.strip("-0.") else text
