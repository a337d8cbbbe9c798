"""What a cell declares about its gates: their names and formulas, which one keeps the state, and the recurrent
weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

ACTIVATION = "activation/"
"""Prefix of the signal of a value without bounds (ReLU and its like): no gate, and no candidate that saturates."""
LETTERS = {"forget": "f", "update": "z"}
"""Gates that have a letter in the literature, used in formulas; others are called by their name."""


@dataclass(frozen=True, slots=True)
class GateInfo:
    """One gate or candidate: the signal of its channel ("gate/forget", "candidate"), its title, formula and source."""

    signal: str
    title: str
    formula: str
    source: str = ""
    limits: tuple[float, float] = (0, 1)


@dataclass(frozen=True, slots=True)
class MemoryGate:
    """The gate that carries the state over from step to step.

    Attributes:
        signal: its channel signal, "gate/forget".
        high: True when 1 keeps the state, False when 0 does.
        writes: the gate that must be closed for memory ("gate/input"), or "" where the same gate does both.
        part: the part of the state that is kept, "c" or "h".
        method: "exact", or how the direction was judged.
    """

    signal: str
    high: bool
    writes: str = ""
    part: str = "h"
    method: str = "exact"

    def kept(self, gates: Mapping[str, Tensor]) -> Tensor:
        """The factor on the old state, g or 1 − g, from gates of any shape."""
        return gates[self.signal] if self.high else 1 - gates[self.signal]

    @property
    def letter(self) -> str:
        """The factor as formulas write it."""
        name = short(self.signal)
        letter = LETTERS.get(name, name)
        return letter if self.high else f"(1 − {letter})"


@dataclass(frozen=True, slots=True)
class RecurrentWeight:
    """One matrix: `signal` for the channel's name, `symbol` for its title, the matrix (h, h), and γ = max |φ′|.

    `gain` is γ where the condition γσ₁(W) of Pascanu et al. (2013) speaks of the whole step (a plain RNN), else None.
    `step` is the one step that uses it, a layer of a stack; None where every step does.
    """

    signal: str
    symbol: str
    matrix: Tensor
    gain: float | None = None
    step: int | None = None


def short(signal: str) -> str:
    """The bare name of a gate: "gate/forget" → "forget"."""
    return signal.rpartition("/")[2].lower()
