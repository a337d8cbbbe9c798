"""What every recurrent step offers: gates of all steps at once, and derivatives of a block of steps.

Index letters: t step, b sample, h hidden unit, i input, s state entry (all parts side by side), p vector.
The state of a plain RNN or GRU is h; of an LSTM it is (h, c), h first: s = (h entries, then c entries).
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import torch
from torch import Tensor

from inspector.engine.cells.gate_info import GateInfo, MemoryGate, RecurrentWeight
from inspector.engine.cells.linear_maps import LinearMaps
from inspector.engine.errors import Unsupported

ACROSS = "; through values that the model detaches, where autograd's gradient stops"
"""The end of the method of derivatives of a step that detaches a part of what its new state is made of."""


@dataclass(frozen=True, slots=True)
class Recomputed:
    """All steps of a layer worked out again from its inputs and from what its module returned.

    Attributes:
        states: (t + 1, b, s) the initial state, then the state after each step.
        known: intermediate values as `Cell.block` takes them, (t, b, h) each; () where there are none.
        made: (t, b, o) the layer's output at each step, recomputed from the state before it; the check compares it.
    """

    states: Tensor
    known: tuple[Tensor, ...]
    made: Tensor


class Cell(ABC):
    """Weights of one recurrent layer in one direction, detached, with the equations of its step.

    Attributes:
        family: the key of its family ("rnn", "gru", "lstm", …), "generic" or "handwritten".
        parts: which entries of the state are what, for example {"h": slice(0, 64), "c": slice(64, 128)}.
        gate_names: signals that `gates` returns, as channel signals ("gate/input", "candidate", …).
        gate_info: name, formula and source of each gate; those without an entry are described by their name.
        memory_gate: the gate that carries the state over, where the family declares it; else the states tell it.
        inner_gates: those of `gate_names` that are of one of torch's own cells inside the step.
        bounded: signal of a hard gate → the function that keeps it between 0 and 1 (clamp, hardtanh, relu6).
        spelt: signal of a gate → what it is in the user's code, where the signal's name does not say it.
        output_gates: those of `gate_names` that no state reads: they scale the state on its way to the output.
        idle: signal of a gate → (t,) True at the steps, in processing order, that do not compute it: its values there
            are NaN and not the model's. Without an entry every step computes it.
        tanh_parts: parts of the state that are a tanh, of which saturation is shown.
        method: how derivatives of a step are found, as a short text; "" where they are closed forms.
        diagonal: whether its blocks know the eigenvalues of every Jacobian (see `StepBlock.eigenvalues`).
        trained: {name of a parameter: the attribute that has it}.
    """

    method: str = ""
    diagonal: bool = False

    family: str
    parts: Mapping[str, slice]
    gate_names: tuple[str, ...] = ()
    gate_info: ClassVar[tuple[GateInfo, ...]] = ()
    memory_gate: ClassVar[MemoryGate | None] = None
    inner_gates: tuple[str, ...] = ()
    bounded: Mapping[str, str] = {}
    spelt: Mapping[str, str] = {}
    output_gates: tuple[str, ...] = ()
    idle: Mapping[str, Tensor] = {}
    tanh_parts: tuple[str, ...] = ()
    trained: ClassVar[Mapping[str, str]] = {}

    @property
    def main(self) -> str:
        """The part of the state that the rest of the model sees: "h", or the first one where a user's code has none."""
        return "h" if "h" in self.parts else next(iter(self.parts))

    def carry(self, x: Tensor, *state: Tensor) -> tuple[Tensor | None, ...]:
        """The factor of the direct path on each part of the state, (b, h), in a step from x (b, i); None: none."""
        return (None,) * len(state)

    def replaced(self, count: int) -> Tensor:
        """(t,) of the first `count` steps, those in which an edit replaced a value."""
        return torch.zeros(count, dtype=torch.bool)

    @property
    def state_size(self) -> int:
        """Number of entries of the whole state."""
        return max(int(part.stop) for part in self.parts.values())

    @property
    def dtype(self) -> torch.dtype:
        """The dtype in which the cell computes, that of its tensors."""
        held = [*self.parameters().values(), *(value for value in vars(self).values() if isinstance(value, Tensor))]
        return next((value.dtype for value in held if value.is_floating_point()), torch.get_default_dtype())

    def parameters(self) -> dict[str, Tensor]:
        """The parameters that exist, detached, by name; a bias that is the sum of two is one, "bias"."""
        held = {name: getattr(self, attribute) for name, attribute in self.trained.items()}
        return {name: value for name, value in held.items() if value is not None}

    def with_parameters(self, values: Mapping[str, Tensor]) -> Self:
        """The same step with other tensors as its parameters (autograd leaves, for example), for `step` only."""
        other = copy.copy(self)
        for name, value in values.items():
            setattr(other, self.trained[name], value)
        return other

    def in_float64(self) -> Cell:
        """The same step with all its tensors in float64."""
        twin = copy.copy(self)
        for name, value in vars(self).items():
            if isinstance(value, Tensor):
                setattr(twin, name, value.double())
        return twin

    def in_main_memory(self) -> Self:
        """The same step with all its tensors in main memory."""
        held = {name: value for name, value in vars(self).items() if isinstance(value, Tensor)}
        if all(value.device.type == "cpu" for value in held.values()):
            return self
        twin = copy.copy(self)
        for name, value in held.items():
            setattr(twin, name, value.cpu())
        return twin

    def row_cost(self) -> int:
        """About how many multiplications it takes to pull one gradient back through one step."""
        recurrent = sum(value.numel() for name, value in self.parameters().items() if name != "weight_ih")
        return max(recurrent, self.state_size)

    def check_items(self, length: int) -> None:
        """Raises Unsupported, with the cost, where the gradient of `length` steps is too large to be itemised."""
        return

    def recurrent_weights(self) -> list[RecurrentWeight]:
        """The square matrices through which the state is fed back, one for each gate; [] where they are not known."""
        return []

    def slope_outside(self) -> float | None:
        """φ′ of closed units where the state is a piecewise linear function φ of something (ReLU: 0); else None."""
        return None

    @abstractmethod
    def step(self, x: Tensor, state: Tensor) -> Tensor:
        """The next state of ONE step as a pure function: x (b, i), state (b, s) → (b, s). The slow, plain method."""

    def eager_step(self, x: Tensor, *state: Tensor) -> tuple[Tensor, ...]:
        """One step for edited runs: x (b, i) and the parts of the state (b, ·) → the parts after it.

        Plain operations on the module's own weights (see `CellFamily.live`), under `as_written`; the names of its local
        variables are those of the gates. Cells that no family makes have no eager step.
        """
        raise NotImplementedError(f"{type(self).__name__} has no eager step.")

    def unroll(self, x: Tensor, start: Sequence[Tensor]) -> Tensor:
        """The state after each step (t, b, s) by `step`, from x (t, b, i) and the parts of the initial state (b, ·)."""
        state, states = torch.cat(tuple(start), -1), []
        for row in x:
            state = self.step(row, state)
            states.append(state)
        return torch.stack(states)

    @property
    def gives_state(self) -> bool:
        """Whether the layer's output is the main part of its state, unchanged."""
        return type(self).emit is Cell.emit

    def emit(self, x: Tensor, state: Tensor) -> Tensor:
        """The layer's output at a step: x (…, i), the state after the step (…, s) → (…, o). The state's main part.

        A layer with a read-out of its own (y = C s + D x) overrides it with a differentiable function.
        """
        return state[..., self.parts[self.main]]

    def emitted_vjp(self, x: Tensor, states: Tensor, u: Tensor) -> tuple[Tensor, Tensor | None]:
        """Gradients u (t, b, o) at the layer's output, taken back to the states after each step (t, b, s) and to the
        inputs (t, b, i).

        The second is None where the layer gives a part of its state as it is.
        """
        if self.gives_state:
            found = states.new_zeros(states.shape)
            found[..., self.parts[self.main]] = u.to(states.dtype)
            return found, None
        with torch.enable_grad():
            given = [states.detach().requires_grad_(), x.detach().requires_grad_()]
            out = self.emit(given[1], given[0])
            options = {"allow_unused": True, "materialize_grads": True}
            to_state, to_input = torch.autograd.grad(out, given, u.to(out.dtype), **options)
        return to_state, to_input

    @abstractmethod
    def gates(self, x: Tensor, previous: Tensor) -> dict[str, Tensor]:
        """All gates of all steps in one batched product: x (t, b, i), previous (t, b, s) → {signal: (t, b, h)}.

        Only the entries of `previous` that the gates depend on are read (an LSTM's gates need h, not c).
        """

    def recompute(
        self, x: Tensor, start: Mapping[str, Tensor], output: Tensor, known: tuple[Tensor, ...] = ()
    ) -> Recomputed:
        """Every step again: x (t, b, i), the parts of the initial state (b, ·), the module's output (t, b, o).

        Where the module returns its whole state, every step is taken from the state that it returned before; parts that
        it does not return are carried. `known`: what the module's kernel kept, where the family reads that.
        """
        t, b, _ = output.shape
        states = output.new_empty(t + 1, b, self.state_size)
        for name, part in self.parts.items():
            states[0, :, part] = start[name]
        if self.gives_state and len(self.parts) == 1:
            states[1:] = output
            return Recomputed(states, (), self.step(x.flatten(0, 1), states[:-1].flatten(0, 1)).view(output.shape))
        made = torch.empty_like(output)
        for n in range(t):
            states[n + 1] = self.step(x[n], states[n])
            made[n] = self.emit(x[n], states[n + 1])
            if self.gives_state:
                states[n + 1, :, self.parts[self.main]] = output[n]
        return Recomputed(states, (), made)

    def rounding_bound(
        self, x: Tensor, states: Tensor, known: tuple[Tensor, ...], unit: float
    ) -> Mapping[str, Tensor] | None:
        """The error that rounding may cause in each part of the state at each step, (t, b, ·) by name; None: not known.

        Shapes: x (t, b, i), states (t + 1, b, s), known as `recompute` gives it. `unit` is the error of one sum,
        relative to the sum of the absolute values of its terms (steps/rounding.py).
        """
        return None

    def shown(self, x: Tensor, memory: Tensor, *state: Tensor) -> tuple[Tensor, ...]:
        """The new state from x and the state before, with the new memory given instead of computed from them.

        Only for cells that compute one new part from another (an LSTM h' from c'). Raises Unsupported for others.
        """
        raise Unsupported(f"no part of a new {self.family} state is computed from another")

    def feeds_parts(self) -> bool | None:
        """Whether autograd sees a part of the new state computed from another one that the module returns.

        Then the path through it has to be removed from the gradient of that other part: see `StepBlock.hold_fixed_`.
        None: a cell of several parts that does not declare it; its gradients by autograd are then not shown.
        """
        return False if len(self.parts) == 1 else None

    @abstractmethod
    def block(self, x: Tensor, previous: Tensor, following: Tensor, known: tuple[Tensor, ...] = ()) -> StepBlock:
        """The steps from `previous` (t, b, s) to `following` (t, b, s) under inputs x (t, b, i).

        `known` are intermediate values of these steps, (t, b, h) each, where they are computed already; which they are
        is defined by the cell (the four gates of an LSTM, r, z, n, q of a GRU).
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
        """J v for v (t, b, s, p): how a change of the state before the step changes the state after it; same shape."""

    @abstractmethod
    def vjp(self, u: Tensor, at: slice = slice(None)) -> Tensor:
        """Jᵀ u for u (t, b, s, p): the gradient before the step from the gradient after it; same shape.

        `at` chooses some of the block's steps; u then has only those.
        """

    @abstractmethod
    def jacobian(self) -> Tensor:
        """J[t, b, s, r] = ∂s_t[b, s] / ∂s_{t-1}[b, r], the whole matrix of every step: (t, b, s, s)."""

    def maps(self) -> LinearMaps:
        """The Jacobians of the block's only sample as linear maps, with the zeros that the equations give them."""
        return LinearMaps.of(self.jacobian()[:, 0])

    @abstractmethod
    def frobenius(self) -> Tensor:
        """‖J_t‖_F without building J where a closed form exists: (t, b)."""

    @cached_property
    def norms(self) -> Tensor:
        """What `frobenius` gives, once for all quantities that are made of it: (t, b)."""
        return self.frobenius()

    def add_vjp_(self, before: Tensor, u: Tensor, at: int) -> None:
        """Add Jᵀ u of one step to the gradients at the state before it: both (b, s), of all samples."""
        before += self.vjp(u[None, :, :, None], slice(at, at + 1))[0, :, :, 0]

    @abstractmethod
    def input_vjp(self, u: Tensor) -> Tensor:
        """(∂s_t/∂x_t)ᵀ u for u (t, b, s, p) → (t, b, i, p): the gradient that reaches the step's input."""

    def only(self, steps: Tensor) -> StepBlock:
        """Some of the block's steps (their numbers, (n,)) as a block of their own."""
        return self.cell.block(self.x[steps], self.previous[steps], self.following[steps])

    def eigenvalues(self) -> Tensor | None:
        """All eigenvalues of every J, complex (t, b, s), where they are known in closed form and every J is normal.

        Their moduli are then the singular values too, and of products they are products: J of all steps commute.
        """
        return None

    def direct(self) -> Tensor | None:
        """Diagonal of the direct path ∂s_t/∂s_{t-1}, the gates and nonlinearities held fixed: (t, b, s).

        An LSTM's is f on c and 0 on h (the carousel), a GRU's z; None where a step has no path past φ.
        """
        return None

    def slopes(self) -> Tensor | None:
        """φ′ of every step and unit, (t, b, h), where the state is φ of something, unit by unit; None elsewhere."""
        return None

    def hold_fixed_(self, delta: Tensor) -> None:
        """Total gradients (t, b, s) of autograd become in place those of each part with the others held fixed.

        Where `Cell.feeds_parts`: in an LSTM's step h is computed from the new c, so c's gradient includes the path
        through h as well.
        """
        return

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
        """Many gradients back through step `at` of sample 0, in place:
        `pull_` without the gradients that reach the parameters."""
        rows.copy_(self.vjp(rows.T[None, None], slice(at, at + 1))[0, 0].T)

    def pushed(self, rows: Tensor, at: int) -> Tensor | None:
        """Many changes of the state forward through step `at` of sample 0, (n, s) to a new (n, s), without building J.

        None where there is no closed form that is cheaper than the product with J.
        """
        return None

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
