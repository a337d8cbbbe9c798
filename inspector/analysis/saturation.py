"""The bounds near which a squashed value counts as saturated: of gates, and of what is a tanh."""

from __future__ import annotations

GATE_LOW, GATE_HIGH = 0.1, 0.9
"""Karpathy, Johnson & Fei-Fei 2015: a gate below the first is left-saturated, above the second right-saturated."""
FLAT = 0.97
"""|tanh| beyond which it passes less than 0.06 of a gradient (1 − 0.97²); the threshold of Karpathy's makemore."""
GATE = "gate/"
"""What the signals of gates begin with."""


def bounds_of(signal: str) -> tuple[float, float]:
    """(low, high): a value of this signal is saturated below the first or above the second."""
    return (GATE_LOW, GATE_HIGH) if signal.startswith(GATE) else (-FLAT, FLAT)
