"""What every recurrent step offers: gates of all steps at once, and derivatives of a block of steps.

Index letters: t step, b sample, h hidden unit, i input, s state entry (all parts side by side), p vector.
The state of a plain RNN or GRU is h; of an LSTM it is (h, c), h first: s = (h entries, then c entries).
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

from torch import Tensor


class Cell(ABC):
    """Weights of one recurrent layer in one direction, detached, with the equations of its step.

    Attributes:
        family: "rnn", "gru", "lstm" or "generic".
        parts: which entries of the state are what, for example {"h": slice(0, 64), "c": slice(64, 128)}.
        gate_names: signals that `gates` returns, as channel signals ("gate/input", "candidate", …).
        method: how derivatives of a step are found, in a few words; "" where they are closed forms.
        trained: {name of a parameter: the attribute that holds it}.
    """

    method: str = ""

    family: str
    parts: Mapping[str, slice]
    gate_names: tuple[str, ...]
    trained: ClassVar[Mapping[str, str]] = {}

    @property
    def main(self) -> str:
        """The part of the state that the rest of the model sees: "h", or the first one where a user's code has none."""
        return "h" if "h" in self.parts else next(iter(self.parts))

    @property
    def state_size(self) -> int:
        """Number of entries of the whole state."""
        return max(int(part.stop) for part in self.parts.values())

    def parameters(self) -> dict[str, Tensor]:
        """The parameters that there are, detached, by name; a bias that is the sum of two is one, "bias"."""
        held = {name: getattr(self, attribute) for name, attribute in self.trained.items()}
        return {name: value for name, value in held.items() if value is not None}

    def with_parameters(self, values: Mapping[str, Tensor]) -> Self:
        """The same step with other tensors as its parameters (autograd leaves, for example), for `step` only."""
        other = copy.copy(self)
        for name, value in values.items():
            setattr(other, self.trained[name], value)
        return other

    def row_cost(self) -> int:
        """About how many multiplications it takes to pull one gradient back through one step."""
        recurrent = sum(value.numel() for name, value in self.parameters().items() if name != "weight_ih")
        return max(recurrent, self.state_size)

    def check_items(self, length: int) -> None:
        """Raises Unsupported, with the cost, where the gradient of `length` steps is too large to be itemised."""
        return

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

    def only(self, steps: Tensor) -> StepBlock:
        """Some of the block's steps (their numbers, (n,)) as a block of their own."""
        return self.cell.block(self.x[steps], self.previous[steps], self.following[steps])

    def direct(self) -> Tensor | None:
        """Diagonal of the direct path ∂s_t/∂s_{t-1}, the gates and nonlinearities held fixed: (t, b, s).

        An LSTM's is f on c and 0 on h (the carousel), a GRU's z; None where a step carries nothing past φ.
        """
        return None

    def through_frobenius(self) -> Tensor:
        """‖J_t − diag(direct)‖_F, the path through the nonlinearities alone: (t, b)."""
        direct, matrix = self.direct(), self.jacobian()
        if direct is not None:
            matrix.diagonal(dim1=2, dim2=3).sub_(direct)
        norms: Tensor = matrix.flatten(2).norm(dim=2)
        return norms

    def pull_(self, rows: Tensor, at: int) -> dict[str, Tensor]:
        """Many gradients back through step `at` of sample 0, in place: rows (n, s) after it become those before it.

        Returns the gradients that reach the step's parameters, {signal: (n, g)}: those at the pre-activations.
        With `factors` they give the immediate derivatives ∂⁺s_t/∂θ, every other state held fixed (Pascanu 2013); a step
        that names no parameters has none.
        """
        self.back_(rows, at)
        return {}

    def back_(self, rows: Tensor, at: int) -> None:
        """Many gradients back through step `at` of sample 0, in place: `pull_` without what reaches the parameters."""
        rows.copy_(self.vjp(rows.T[None, None], slice(at, at + 1))[0, 0].T)

    def factors(self) -> dict[str, tuple[str, Tensor]]:
        """{parameter: (signal of `pull_`, factor (t, b, r))}: uᵀ ∂⁺s_t/∂θ is the outer product of the two."""
        return {}

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
