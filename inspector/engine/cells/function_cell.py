"""Steps whose derivatives are left to torch.func: exact, and slower than closed forms."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.func import jacrev, vjp, vmap

from inspector.engine.cells.base import Cell
from inspector.engine.cells.matrix_block import MatrixBlock

CHUNK = 64
"""Steps whose Jacobians are computed together."""


class GenericStep(Cell):
    """A cell that defines its step and leaves the derivatives to torch.func; samples must not mix.

    A family of your own derives from it and defines `eager_step`, which edited runs use too, and, where it has gates,
    `gates`.
    """

    family = "generic"
    method = "exact: the step's function under torch.func"

    def step(self, x: Tensor, state: Tensor) -> Tensor:
        """The parts that `eager_step` gives, side by side."""
        return torch.cat(self.eager_step(x, *(state[..., part] for part in self.parts.values())), -1)

    def gates(self, x: Tensor, previous: Tensor) -> dict[str, Tensor]:
        """None."""
        return {}

    def block(self, x: Tensor, previous: Tensor, following: Tensor, known: tuple[Tensor, ...] = ()) -> FunctionBlock:
        """The steps from `previous` to `following`."""
        return FunctionBlock(self, x, previous, following)


class FunctionStep(GenericStep):
    """A recurrence given by a pure function (x (b, i), state (b, s)) → state (b, s); samples must not mix.

    `gates_of(x, state)` may name intermediate values of a step; without it the step has no gates. `parameters` are
    given to the function by name, function(x, state, **parameters); without them its gradient cannot be itemised.
    """

    def __init__(
        self,
        function: Callable[..., Tensor],
        parts: Mapping[str, slice],
        gates_of: Callable[[Tensor, Tensor], dict[str, Tensor]] | None = None,
        gate_names: tuple[str, ...] = (),
        parameters: Mapping[str, Tensor] | None = None,
    ) -> None:
        self.function, self.parts, self.gates_of, self.gate_names = function, parts, gates_of, gate_names
        self.given = {name: value.detach() for name, value in (parameters or {}).items()}

    def parameters(self) -> dict[str, Tensor]:
        """Those that the function takes by name."""
        return dict(self.given)

    def with_parameters(self, values: Mapping[str, Tensor]) -> FunctionStep:
        """The same function with other parameters."""
        other = copy.copy(self)
        other.given = dict(values)
        return other

    def in_float64(self) -> FunctionStep:
        """Itself: a function of the user's keeps its own dtype."""
        return self

    def step(self, x: Tensor, state: Tensor) -> Tensor:
        """The function itself."""
        return self.function(x, state, **self.given)

    def gates(self, x: Tensor, previous: Tensor) -> dict[str, Tensor]:
        """The named intermediate values of all steps."""
        if self.gates_of is None:
            return {}
        t, b = x.shape[:2]
        found = self.gates_of(x.flatten(0, 1), previous.flatten(0, 1))
        return {name: value.view(t, b, -1) for name, value in found.items()}


class FunctionBlock(MatrixBlock):
    """Derivatives of a step by torch.func, batched over steps and samples."""

    cell: GenericStep

    def __init__(self, cell: GenericStep, x: Tensor, previous: Tensor, following: Tensor) -> None:
        self.cell, self.x, self.previous, self.following = cell, x, previous, following

    @cached_property
    def gates(self) -> Mapping[str, Tensor]:  # type: ignore[override]
        """The named intermediate values, (t, b, h) each."""
        return self.cell.gates(self.x, self.previous)

    def one(self, x: Tensor, state: Tensor) -> Tensor:
        """One step of one sample: x (i,), state (s,) → (s,)."""
        return self.cell.step(x[None], state[None])[0]

    @cached_property
    def matrices(self) -> Tensor:
        """J, (t, b, s, s), by reverse mode over every state entry, vectorised."""
        t, b, s = self.shape
        x, state = self.x.flatten(0, 1), self.previous.flatten(0, 1)
        with torch.enable_grad():
            found: Tensor = vmap(jacrev(self.one, argnums=1), chunk_size=CHUNK)(x, state)
        return found.detach().view(t, b, s, s)

    def input_vjp(self, u: Tensor) -> Tensor:
        """(∂s'/∂x)ᵀ u by one reverse pass a vector."""
        t, b, _, p = u.shape

        def one(x: Tensor, state: Tensor, cotangent: Tensor) -> Tensor:
            back: Any = vjp(lambda value: self.one(value, state), x)[1]
            gradient: Tensor = back(cotangent)[0]
            return gradient

        x, state = self.x.flatten(0, 1), self.previous.flatten(0, 1)
        with torch.enable_grad():
            rows = [vmap(one, chunk_size=CHUNK)(x, state, u[..., j].flatten(0, 1)) for j in range(p)]
        return torch.stack(rows, -1).detach().view(t, b, -1, p)

    def pull_(self, rows: Tensor, at: int) -> dict[str, Tensor]:
        """The whole gradient of every parameter, flat (n, p), by one reverse pass a row; its factor is 1."""
        given = self.cell.parameters()
        if not given:
            return super().pull_(rows, at)

        def step(state: Tensor, values: dict[str, Tensor]) -> Tensor:
            return self.cell.with_parameters(values).step(self.x[at, :1], state[None])[0]

        with torch.enable_grad():
            back: Any = vjp(step, self.previous[at, 0], given)[1]
            before, found = vmap(back, chunk_size=CHUNK)(rows)
        rows.copy_(before.detach())
        return {name: value.detach().reshape(len(rows), -1) for name, value in found.items()}

    def factors(self) -> dict[str, tuple[str, Tensor]]:
        """1 for every parameter: what `pull_` returns is the gradient itself."""
        one = self.x.new_ones(*self.x.shape[:2], 1)
        return {name: (name, one) for name in self.cell.parameters()}
