"""Amounts of memory in words."""

from __future__ import annotations


def bytes_text(value: float) -> str:
    """A number of bytes with three digits and a unit: 1536 → "1.54 kB"."""
    for size, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.0f} bytes"
