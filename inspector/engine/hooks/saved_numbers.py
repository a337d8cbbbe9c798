"""Numbers that autograd's nodes have saved, as Python reads them."""

from __future__ import annotations


def signed(number: int) -> int:
    """Axes, positions and classes that are negative are given as numbers of 64 bits without a sign."""
    return number - (1 << 64) if number >= 1 << 63 else number
