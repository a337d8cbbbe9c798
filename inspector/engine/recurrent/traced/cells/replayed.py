"""A recurrent step given by recorded operations: run again under torch.func, its derivatives are exact.

Steps that did the same operations are one program and are differentiated together (vmap over steps); a step that took
another branch has a program of its own.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import torch
from torch import Tensor
from torch.func import jacrev, vjp, vmap

from inspector.engine.cells.base import ACROSS, Cell, StepBlock
from inspector.engine.cells.gate_info import RecurrentWeight
from inspector.engine.cells.matrix_block import MatrixBlock
from inspector.engine.errors import Unsupported
from inspector.engine.recurrent.traced.cells.base import RecordedStep
from inspector.engine.recurrent.traced.cells.in_float64 import in_float64, runs_in_float64
from inspector.engine.recurrent.traced.program.instructions import Program
from inspector.engine.recurrent.traced.program.parameter_use import ParameterUse
from inspector.engine.recurrent.traced.program.state_layout import Layout, Part, Steps, grouped
from inspector.engine.recurrent.traced.program.state_matrices import Piecewise
from inspector.engine.recurrent.traced.record.recorder import CLAMPS
from inspector.engine.trace.trace import Recurrence

CHUNK, FEWEST, CHUNK_BYTES = 64, 8, 8 << 20
"""Steps that are differentiated together: at most, at least, and memory for their Jacobians. Intermediate values take
more, and several times as long where they do not fit the processor's cache."""
AGAIN = 256
"""Steps that are run again together: few enough that their values stay in the processor's cache."""
LARGEST = 4096
"""State entries up to which Jacobians are built: one takes 128 MB in float64. Counter-example: a ConvLSTM of 64
channels on 16 × 16 pixels has 32,768 entries; it is rejected with that number."""


class ReplayStep(RecordedStep):
    """The cell of a hand-written recurrence; it is defined by its recording, so it has no step on other inputs."""

    method = "exact: the recorded step run again under torch.func"

    def __init__(
        self, parts: Mapping[str, Part], groups: Sequence[Steps], steps: int, gate_names: tuple[str, ...]
    ) -> None:
        self.layout, self.groups, self.gate_names = dict(parts), list(groups), gate_names
        self.states = Layout(self.layout)
        self.parts = self.states.entries
        self.which, self.index = grouped(groups, steps)
        self.without = ""  # reason, where the step's parameters are not known
        self._use: ParameterUse | Callable[[], ParameterUse] | None = None
        self.fed_back: tuple[RecurrentWeight, ...] = ()
        self.decays: Tensor | None = None
        """(t, b, s) where every step multiplies each entry of the state by a number that no state is in: its J."""
        self.squashed: Piecewise | None = None

    @property
    def diagonal(self) -> bool:  # type: ignore[override]  # known once the recording was looked at
        """Whether every J is known to be diagonal."""
        return self.decays is not None

    def cut_apart(self, cuts: Container[int]) -> bool:
        """Whether steps detach some of what their new state is made of, and not all; the method then says so.

        `cuts`: the steps before which the whole state is detached, at their beginning or at the end of the step before.
        The first and the last step are not examined: what comes before and after them is not recorded.
        """
        own = [n for group in self.groups if group.program.cut for n in group.numbers.tolist()]
        last = max((n for group in self.groups for n in group.numbers.tolist()), default=0)
        if not any(0 < n < last and n not in cuts and n + 1 not in cuts for n in own):
            return False
        self.method = type(self).method + ACROSS
        return True

    def replaced(self, count: int) -> Tensor:
        """See `Cell.replaced`: what replaces values is a function of its own in the program of these steps.

        Where every step has it, it is the user's own, or cannot be told apart, and no step counts.
        """
        found = torch.zeros(count, dtype=torch.bool)
        for group in self.groups:
            if any(one.function in CLAMPS for one in group.program.instructions):
                found[group.numbers[group.numbers < count]] = True
        return torch.zeros_like(found) if bool(found.all()) else found

    def uses(self, find: Callable[[], ParameterUse]) -> None:
        """Set how the step's use of its parameters is found, on the first request; `find` may raise Unsupported."""
        self._use = find

    @property
    def use(self) -> ParameterUse | None:
        """How the step uses its parameters, or None where that is not known: `without` then has the reason."""
        if self._use is not None and not isinstance(self._use, ParameterUse):
            try:
                self._use = self._use()
            except Unsupported as reason:
                self._use, self.without = None, str(reason)
        return self._use

    def parameters(self) -> dict[str, Tensor]:
        """The model's parameters that the step uses, by the model's names for them."""
        return {} if self.use is None else dict(self.use.values)

    def with_parameters(self, values: Mapping[str, Tensor]) -> ReplayStep:
        """The same recording with other tensors as its parameters."""
        use = self.use
        other = copy.copy(self)
        other._use = None if use is None else use.with_values(values)
        return other

    def row_cost(self) -> int:
        """A product with the step's Jacobian, one with that of the linear results, and whole gradients of
        parameters."""
        return self.state_size**2 + (0 if self.use is None else self.use.row_cost(self.state_size))

    def check_items(self, length: int) -> None:
        """See `ParameterUse.check_items`. Raises Unsupported also where the parameters are not known."""
        use = self.use
        if self.without:
            raise Unsupported(self.without)
        if use is not None:
            use.check_items(length)

    def recurrent_weights(self) -> list[RecurrentWeight]:
        """Those that were found to multiply the state (engine/recurrent/traced/program/state_matrices.py)."""
        return list(self.fed_back)

    def slope_outside(self) -> float | None:
        """That of the function which makes the state, where it is piecewise linear."""
        return None if self.squashed is None else self.squashed.outside

    def again(self, group: Steps, states: Tensor) -> Tensor:
        """(n, b, s): every step of a group run again from the states before it."""
        axes = group.axes

        def step(rows: Tensor, *outside: Tensor) -> Tensor:
            return self._advance(group.program, rows, outside)

        if not group.program.writes:
            found: Tensor = vmap(step, in_dims=(0, *axes), chunk_size=AGAIN)(states, *group.outside)
            return found
        one = [
            step(states[n], *(t if axis is None else t[n] for t, axis in zip(group.outside, axes, strict=True)))
            for n in range(len(states))
        ]
        return torch.stack(one)

    def advance(self, program: Program, column: int, state: Tensor, whole: Tensor, outside: Sequence[Tensor]) -> Tensor:
        """(s,) from one sample's (s,), the others of the batch held fixed."""
        rows = torch.cat((whole[:column], state[None], whole[column + 1 :]))
        return self._advance(program, rows, outside)[column]

    def in_float64(self) -> ReplayStep:
        """The same recording with all numbers from outside in float64."""
        twin = copy.copy(self)
        twin.groups = in_float64(self.groups)
        twin.decays = None if self.decays is None else self.decays.double()
        return twin

    def _advance(self, program: Program, rows: Tensor, outside: Sequence[Tensor], *, direct: bool = False) -> Tensor:
        """(b, s) from (b, s), the whole batch at once; `direct`: see `Program.run`."""
        return self.states.advance(program, rows, outside, direct=direct)


@dataclass(slots=True)
class ReplayRecurrence(Recurrence):
    """A recurrence whose blocks have the numbers of their recorded steps."""

    def block(self, start: int, stop: int, samples: slice | Tensor = slice(None)) -> StepBlock:
        """Steps start … stop-1 of the given samples."""
        assert isinstance(self.cell, ReplayStep)
        columns = torch.arange(self.states.shape[1])[samples]
        known = tuple(values[start:stop, samples] for values in self.known)
        kind = ReplayBlock if self.cell.decays is None else EntrywiseBlock
        return kind(self.cell, start, columns, self.states[start : stop + 1], known, self.x[start:stop, samples])

    def in_float64(self) -> Recurrence | None:
        """Run again from the recorded states, where that gives the recorded ones to the precision that they have."""
        assert isinstance(self.cell, ReplayStep)
        twin = self.cell.in_float64()
        if not runs_in_float64(twin.again, self.cell.groups, twin.groups, self.states):
            return None
        x, states, known = self.x.double(), self.states.double(), tuple(values.double() for values in self.known)
        return dataclasses.replace(self, cell=twin, x=x, states=states, known=known, _blocks={})

    def weight_gradients(self, delta: Tensor) -> dict[str, Tensor]:
        """Over all recorded steps; {} where the parameters are not known."""
        assert isinstance(self.cell, ReplayStep)
        return {} if self.cell.use is None else self.cell.use.gradients(self.states, delta)

    def again(self, cell: Cell, t: int, state: Tensor, index: int) -> Tensor:
        """Step t of one sample as it was recorded, the other samples unchanged."""
        assert isinstance(cell, ReplayStep) and cell.use is not None
        return cell.use.step(t, self.states[t], state, index)


class ReplayBlock(MatrixBlock):
    """Consecutive recorded steps of some samples."""

    cell: ReplayStep

    def __init__(
        self, cell: ReplayStep, start: int, columns: Tensor, states: Tensor, known: tuple[Tensor, ...], x: Tensor
    ) -> None:
        self.cell, self.start, self.columns, self.whole, self.x = cell, start, columns, states[:-1], x
        self.previous, self.following = states[:-1, columns], states[1:, columns]
        self.gates = dict(zip(cell.gate_names, known, strict=True))
        self._pulling: dict[str, Tensor] | None = None

    def slopes(self) -> Tensor | None:
        """φ' of every step and unit, (t, b, h), where the state is a piecewise linear function of something."""
        if self.cell.squashed is None:
            return None
        return self.cell.squashed.derivative(self.following[..., next(iter(self.cell.parts.values()))])

    def pull_(self, rows: Tensor, at: int) -> dict[str, Tensor]:
        """Back through step `at`; at the results of F.linear as one product, other parameters by a pass a row."""
        use, column = self.cell.use, int(self.columns[0])
        matrix = self.matrices[at, 0]
        found: dict[str, Tensor] = {}
        if use is not None:
            if self._pulling is None:
                self._pulling = use.sensitivities(self.start, self.whole, column)
            found = {signal: rows @ to[at] for signal, to in self._pulling.items()}
            found |= use.pull(rows, self.start + at, self.whole[at], column)
        rows.copy_(rows @ matrix)
        if at == 0:  # a sweep goes backwards: this was the block's last step
            self._pulling = None
        return found

    def factors(self) -> dict[str, tuple[str, Tensor]]:
        """What F.linear multiplies a weight with, 1 for its bias; 1 for a parameter whose whole gradient is pulled."""
        return {} if self.cell.use is None else self.cell.use.factors(self.start, self.whole, self.columns)

    @cached_property
    def matrices(self) -> Tensor:
        """J, (t, b, s, s). Raises Unsupported."""
        t, b, s = self.shape
        if s > LARGEST:
            raise Unsupported(f"The state has {s} entries; Jacobians of recorded steps are built up to {LARGEST}.")
        found = self.following.new_empty(t, b, s, s)
        for n, column in enumerate(self.columns.tolist()):
            for which, rows in self._runs():
                found[rows, n] = self._derived(which, rows, column, _jacobian)
        return found

    def _runs(self) -> list[tuple[int, Tensor]]:
        which = self.cell.which[self.start : self.start + self.shape[0]]
        return [(int(n), torch.nonzero(which == n)[:, 0]) for n in which.unique()]

    def pulled(self, u: Tensor) -> Tensor:
        """Jᵀ u for one vector a step, (t, b, s) from (t, b, s), by a backward pass: J is not built for it."""
        found = torch.empty_like(self.following)
        for n, column in enumerate(self.columns.tolist()):
            for which, rows in self._runs():
                found[rows, n] = self._derived(which, rows, column, _pull, u[rows, n])
        return found

    def _derived(self, which: int, rows: Tensor, column: int, derive: Callable[..., Tensor], *along: Tensor) -> Tensor:
        """The results of `derive` for the block's steps `rows`, all of one program, for one sample: (n, …).

        It is called with the step (s,) → (s,), the state before it, and the step's row of `along` (n, …).
        """
        group = self.cell.groups[which]
        outside = group.at(self.cell.index[self.start + rows])

        def one(state: Tensor, whole: Tensor, more: Sequence[Tensor], given: Sequence[Tensor]) -> Tensor:
            def step(value: Tensor) -> Tensor:
                return self.cell.advance(group.program, column, value, whole, given)

            return derive(step, state, *more)

        state, whole, axes = self.whole[rows, column], self.whole[rows], list(group.axes)
        with torch.enable_grad():
            if not group.program.writes:
                batched = vmap(
                    one, in_dims=(0, 0, [0] * len(along), axes), chunk_size=chunk(0 if along else len(state[0]))
                )
                found: Tensor = batched(state, whole, list(along), outside)
                return found.detach()
            every = [
                one(
                    state[r], whole[r], [more[r] for more in along],
                    [t if a is None else t[r] for t, a in zip(outside, axes, strict=True)],
                )
                for r in range(len(rows))
            ]  # fmt: skip  # vmap cannot write batched values into an unbatched tensor
        return torch.stack([value.detach() for value in every])

    def direct(self) -> Tensor | None:
        """Derivative of each state entry by itself through sums and elementwise products alone: (t, b, s)."""
        t, b, s = self.shape
        found = self.following.new_zeros(t, b, s)
        for which, rows in self._runs():
            group = self.cell.groups[which]
            if group.program.writes:
                return None
            found[rows] = self._carried(group, rows)[:, self.columns].to(found.dtype)
        return found if bool(found.any()) else None

    def _carried(self, group: Steps, rows: Tensor) -> Tensor:
        """(n, b, s): the derivative of every entry with respect to its own part, part by part; 0 for older values, each
        of which becomes the next older one."""
        index = self.cell.index[self.start + rows]
        outside, axes = group.at(index), group.axes
        whole = self.whole[rows]
        carried = torch.zeros_like(whole)
        newest = [name for name, part in self.cell.layout.items() if not part.lag]
        for entries in map(self.cell.parts.__getitem__, newest):
            tangent = torch.zeros_like(whole[0])
            tangent[:, entries] = 1

            def one(state: Tensor, *given: Tensor, along: Tensor = tangent) -> Tensor:
                def step(value: Tensor) -> Tensor:
                    return self.cell._advance(group.program, value, given, direct=True)

                back: Any = vjp(step, state)[1]
                return cast(Tensor, back(along)[0])

            moved = vmap(one, in_dims=(0, *axes), chunk_size=16 * CHUNK)(whole, *outside)
            carried[..., entries] = moved[..., entries]
        return carried.detach()

    def input_vjp(self, u: Tensor) -> Tensor:
        """Not asked of recorded steps: autograd has followed their inputs already."""
        raise Unsupported("The gradient at a recorded step's inputs is autograd's own.")


class EntrywiseBlock(ReplayBlock):
    """Recorded steps that multiply each entry of the state by a number: J is that diagonal, and is never built."""

    @cached_property
    def decays(self) -> Tensor:
        """The diagonal of J, (t, b, s)."""
        assert self.cell.decays is not None
        return self.cell.decays[self.start : self.start + self.shape[0], self.columns]

    @cached_property
    def matrices(self) -> Tensor:
        """J, (t, b, s, s)."""
        return torch.diag_embed(self.decays)

    def eigenvalues(self) -> Tensor:
        """The diagonal of J."""
        return torch.complex(self.decays, torch.zeros_like(self.decays))

    def jvp(self, v: Tensor) -> Tensor:
        """J v, entry by entry."""
        return self.decays.unsqueeze(-1) * v

    def vjp(self, u: Tensor, at: slice = slice(None)) -> Tensor:
        """Jᵀ u, which is J u."""
        return self.decays[at].unsqueeze(-1) * u

    def back_(self, rows: Tensor, at: int) -> None:
        """Of one step on the rows."""
        rows.mul_(self.decays[at, 0])

    def pull_(self, rows: Tensor, at: int) -> dict[str, Tensor]:
        """Back through step `at`, as of any recorded step where it uses parameters."""
        if self.cell.use is not None:
            return super().pull_(rows, at)
        self.back_(rows, at)
        return {}

    def pushed(self, rows: Tensor, at: int) -> Tensor:
        """J of one step on the rows."""
        return rows * self.decays[at, 0]

    def pulled(self, u: Tensor) -> Tensor:
        """Jᵀ u for one vector a step."""
        return self.decays * u

    def frobenius(self) -> Tensor:
        """‖J‖_F, the norm of its diagonal."""
        norms: Tensor = self.decays.norm(dim=-1)
        return norms

    def direct(self) -> Tensor:
        """The diagonal of J: the whole of a step is its direct path."""
        return self.decays


def chunk(s: int) -> int:
    """Steps whose Jacobians (s, s) are built together."""
    return max(FEWEST, min(CHUNK, CHUNK_BYTES // max(1, 4 * s * s)))


def _jacobian(step: Callable[[Tensor], Tensor], state: Tensor) -> Tensor:
    return cast(Tensor, jacrev(step)(state))


def _pull(step: Callable[[Tensor], Tensor], state: Tensor, u: Tensor) -> Tensor:
    back: Any = vjp(step, state)[1]
    return cast(Tensor, back(u)[0])
