"""How well values that were computed again reproduce those that the model produced."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Check:
    """How well recomputed values reproduce what the model produced: largest absolute error, and what is allowed."""

    error: float
    allowed: float

    @property
    def passed(self) -> bool:
        """False also when the error is NaN."""
        return self.error <= self.allowed
