"""What every recurrent step offers: gates of all steps at once, and derivatives of a block of steps.

Index letters: t step, b sample, h hidden unit, i input, s state entry (all parts side by side), p vector.
The state of a plain RNN or GRU is h; of an LSTM it is (h, c), h first: s = (h entries, then c entries).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor


class Cell(ABC):
    """Weights of one recurrent layer in one direction, detached, with the equations of its step.

    Attributes:
        family: "rnn", "gru", "lstm" or "generic".
        parts: which entries of the state are what, for example {"h": slice(0, 64), "c": slice(64, 128)}.
        gate_names: signals that `gates` returns, as channel signals ("gate/input", "candidate", …).
    """

    family: str
    parts: Mapping[str, slice]
    gate_names: tuple[str, ...]

    @property
    def state_size(self) -> int:
        """Number of entries of the whole state."""
        return max(int(part.stop) for part in self.parts.values())

    @abstractmethod
    def step(self, x: Tensor, state: Tensor) -> Tensor:
        """The next state of ONE step as a pure function: x (b, i), state (b, s) → (b, s). The slow, plain way."""

    @abstractmethod
    def gates(self, x: Tensor, previous: Tensor) -> dict[str, Tensor]:
        """All gates of all steps in one batched product: x (t, b, i), previous (t, b, s) → {signal: (t, b, h)}.

        Only the entries of `previous` that the gates depend on are read (an LSTM's gates need h, not c).
        """

    @abstractmethod
    def block(self, x: Tensor, previous: Tensor, following: Tensor, known: tuple[Tensor, ...] = ()) -> StepBlock:
        """The steps from `previous` (t, b, s) to `following` (t, b, s) under inputs x (t, b, i).

        `known` are intermediate values of these steps, (t, b, h) each, where somebody has computed them already;
        what they are is the cell's own business (the four gates of an LSTM, r, z, n, q of a GRU).
        """


class StepBlock(ABC):
    """Some consecutive steps of a recurrence, with their derivatives ∂s_t/∂s_{t-1} (other things held fixed).

    Attributes:
        cell: where it comes from.
        gates: {signal: (t, b, h)}.
        x: inputs of each step, (t, b, i).
        previous, following: states before and after each step, (t, b, s).
    """

    cell: Cell
    gates: Mapping[str, Tensor]
    x: Tensor
    previous: Tensor
    following: Tensor

    @property
    def shape(self) -> tuple[int, int, int]:
        """(steps, samples, state entries)."""
        t, b, s = self.following.shape
        return t, b, s

    @abstractmethod
    def jvp(self, v: Tensor) -> Tensor:
        """J v for v (t, b, s, p): how a change of the state before moves the state after; same shape."""

    @abstractmethod
    def vjp(self, u: Tensor, at: slice = slice(None)) -> Tensor:
        """Jᵀ u for u (t, b, s, p): the gradient before the step from the gradient after it; same shape.

        `at` chooses some of the block's steps; u then has only those.
        """

    @abstractmethod
    def jacobian(self) -> Tensor:
        """J[t, b, s, r] = ∂s_t[b, s] / ∂s_{t-1}[b, r], the whole matrix of every step: (t, b, s, s)."""

    @abstractmethod
    def frobenius(self) -> Tensor:
        """‖J_t‖_F without building J where a closed form exists: (t, b)."""

    @abstractmethod
    def input_vjp(self, u: Tensor) -> Tensor:
        """(∂s_t/∂x_t)ᵀ u for u (t, b, s, p) → (t, b, i, p): the gradient that reaches the step's input."""

    def part(self, name: str, state: Tensor) -> Tensor:
        """The entries of one part ("h", "c") of a state-like tensor whose last axis is s."""
        return state[..., self.cell.parts[name]]


@dataclass(frozen=True, slots=True)
class Check:
    """How well recomputed values reproduce what the model produced: largest absolute error, and what is allowed."""

    error: float
    allowed: float

    @property
    def passed(self) -> bool:
        """False also when the error is NaN."""
        return self.error <= self.allowed
