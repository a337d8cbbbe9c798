"""A recurrent step given by recorded operations: run again under torch.func, its derivatives are exact.

Steps that did the same operations are one program and are differentiated together (vmap over steps); a step that took
another branch has a program of its own.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.func import jacrev, vjp, vmap

from inspector.engine.errors import Unsupported
from inspector.engine.handwritten.program import Program
from inspector.engine.steps.cell import Cell, StepBlock
from inspector.engine.steps.matrix import MatrixBlock
from inspector.engine.trace import Recurrence

CHUNK = 64
"""Steps whose Jacobians are computed together."""
LARGEST = 4096
"""State entries up to which Jacobians are built."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the state: a carried tensor, `lag` iterations old; `batch` is its batch axis (None: one sample)."""

    slot: int
    lag: int
    shape: tuple[int, ...]
    batch: int | None

    @property
    def key(self) -> Hashable:
        """The name under which programs are given it."""
        return self.slot, self.lag

    @property
    def width(self) -> int:
        """Entries of one sample."""
        count = 1
        for axis, size in enumerate(self.shape):
            count *= 1 if axis == self.batch else size
        return count

    def rows(self, tensor: Tensor) -> Tensor:
        """(b, width) of the tensor."""
        if self.batch is None:
            return tensor.reshape(1, -1)
        return tensor.movedim(self.batch, 0).reshape(tensor.shape[self.batch], -1)

    def tensor(self, rows: Tensor) -> Tensor:
        """The tensor of rows (b, width)."""
        if self.batch is None:
            return rows.reshape(self.shape)
        rest = [size for axis, size in enumerate(self.shape) if axis != self.batch]
        return rows.reshape(-1, *rest).movedim(0, self.batch)


@dataclass(slots=True)
class Steps:
    """Steps of one program: its tensors from outside, stacked over those steps; the same one for all where `shared`."""

    program: Program
    numbers: Tensor
    outside: list[Tensor]
    shared: list[bool]


class ReplayStep(Cell):
    """The cell of a hand-written recurrence; it lives by its recording, so it has no step on other inputs."""

    family = "handwritten"
    method = "exact: the recorded step run again under torch.func"

    def __init__(
        self, parts: Mapping[str, Part], groups: Sequence[Steps], steps: int, gate_names: tuple[str, ...]
    ) -> None:
        self.layout, self.groups, self.gate_names = dict(parts), list(groups), gate_names
        self.parts, start = {}, 0
        for name, part in parts.items():
            self.parts[name] = slice(start, start + part.width)
            start += part.width
        self.which = torch.zeros(steps, dtype=torch.int64)
        self.index = torch.zeros(steps, dtype=torch.int64)
        for n, group in enumerate(groups):
            self.which[group.numbers] = n
            self.index[group.numbers] = torch.arange(len(group.numbers))

    def step(self, x: Tensor, state: Tensor) -> Tensor:
        """A recording is no function of other inputs."""
        raise Unsupported("A recorded step cannot be run on inputs that it was not given.")

    def gates(self, x: Tensor, previous: Tensor) -> dict[str, Tensor]:
        """They are kept, not computed."""
        raise Unsupported("The gates of a recorded step are those that were recorded.")

    def block(self, x: Tensor, previous: Tensor, following: Tensor, known: tuple[Tensor, ...] = ()) -> ReplayBlock:
        """Blocks are made by the recurrence, which knows which steps they are."""
        raise Unsupported("A recorded step cannot be run on states that it was not given.")

    def again(self, group: Steps, states: Tensor) -> Tensor:
        """(n, b, s): every step of a group run again from the states before it."""
        axes = [None if shared else 0 for shared in group.shared]

        def step(rows: Tensor, *outside: Tensor) -> Tensor:
            return self._advance(group.program, rows, outside)

        if not group.program.writes:
            found: Tensor = vmap(step, in_dims=(0, *axes), chunk_size=16 * CHUNK)(states, *group.outside)
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

    def _advance(self, program: Program, rows: Tensor, outside: Sequence[Tensor], *, direct: bool = False) -> Tensor:
        """(b, s) from (b, s), the whole batch at once; `direct`: see `Program.run`."""
        given = {part.key: part.tensor(rows[:, self.parts[name]]) for name, part in self.layout.items()}
        made = iter(program.run(given, outside, direct=direct))
        out = []
        for part in self.layout.values():
            if part.lag:
                newer = next(n for n, p in self.layout.items() if p.slot == part.slot and p.lag == part.lag - 1)
                out.append(rows[:, self.parts[newer]])
            else:
                out.append(part.rows(next(made)).to(rows.dtype))
        return torch.cat(out, dim=-1)


@dataclass(slots=True)
class ReplayRecurrence(Recurrence):
    """A recurrence whose blocks know which of the recorded steps they are."""

    def block(self, start: int, stop: int, samples: slice | Tensor = slice(None)) -> StepBlock:
        """Steps start … stop-1 of the given samples."""
        assert isinstance(self.cell, ReplayStep)
        columns = torch.arange(self.states.shape[1])[samples]
        known = tuple(values[start:stop, samples] for values in self.known)
        return ReplayBlock(self.cell, start, columns, self.states[start : stop + 1], known, self.x[start:stop, samples])


class ReplayBlock(MatrixBlock):
    """Consecutive recorded steps of some samples."""

    cell: ReplayStep

    def __init__(
        self, cell: ReplayStep, start: int, columns: Tensor, states: Tensor, known: tuple[Tensor, ...], x: Tensor
    ) -> None:
        self.cell, self.start, self.columns, self.whole, self.x = cell, start, columns, states[:-1], x
        self.previous, self.following = states[:-1, columns], states[1:, columns]
        self.gates = dict(zip(cell.gate_names, known, strict=True))

    @cached_property
    def matrices(self) -> Tensor:
        """J, (t, b, s, s). Raises Unsupported."""
        t, b, s = self.shape
        if s > LARGEST:
            raise Unsupported(f"The state has {s} entries; Jacobians of recorded steps are built up to {LARGEST}.")
        found = self.following.new_empty(t, b, s, s)
        for n, column in enumerate(self.columns.tolist()):
            for which, rows in self._runs():
                found[rows, n] = self._group(which, rows, column)
        return found

    def _runs(self) -> list[tuple[int, Tensor]]:
        which = self.cell.which[self.start : self.start + self.shape[0]]
        return [(int(n), torch.nonzero(which == n)[:, 0]) for n in which.unique()]

    def _group(self, which: int, rows: Tensor, column: int) -> Tensor:
        """J of the block's steps `rows`, all of one program, for one sample: (n, s, s)."""
        group = self.cell.groups[which]
        index = self.cell.index[self.start + rows]
        outside = [t if shared else t[index] for t, shared in zip(group.outside, group.shared, strict=True)]
        axes = [None if shared else 0 for shared in group.shared]

        def step(state: Tensor, whole: Tensor, *given: Tensor) -> Tensor:
            return self.cell.advance(group.program, column, state, whole, given)

        state, whole = self.whole[rows, column], self.whole[rows]
        with torch.enable_grad():
            if not group.program.writes:
                batched = vmap(jacrev(step), in_dims=(0, 0, *axes), chunk_size=CHUNK)
                found: Tensor = batched(state, whole, *outside)
                return found.detach()
            one = [
                jacrev(step)(
                    state[r], whole[r], *(t if a is None else t[r] for t, a in zip(outside, axes, strict=True))
                )
                for r in range(len(rows))
            ]  # vmap cannot write batched values into an unbatched tensor
        return torch.stack([matrix.detach() for matrix in one])

    def direct(self) -> Tensor | None:
        """What each entry of the state carries over onto itself through sums and elementwise products: (t, b, s)."""
        t, b, s = self.shape
        found = self.following.new_zeros(t, b, s)
        for which, rows in self._runs():
            group = self.cell.groups[which]
            if group.program.writes:
                return None
            found[rows] = self._carried(group, rows)[:, self.columns].to(found.dtype)
        return found if bool(found.any()) else None

    def _carried(self, group: Steps, rows: Tensor) -> Tensor:
        """(n, b, s): the derivative of every entry with respect to its own part, part by part."""
        index = self.cell.index[self.start + rows]
        outside = [t if shared else t[index] for t, shared in zip(group.outside, group.shared, strict=True)]
        axes = [None if shared else 0 for shared in group.shared]
        whole = self.whole[rows]
        carried = torch.zeros_like(whole)
        for entries in self.cell.parts.values():
            tangent = torch.zeros_like(whole[0])
            tangent[:, entries] = 1

            def one(state: Tensor, *given: Tensor, along: Tensor = tangent) -> Tensor:
                def step(value: Tensor) -> Tensor:
                    return self.cell._advance(group.program, value, given, direct=True)

                back: Any = vjp(step, state)[1]
                moved: Tensor = back(along)[0]
                return moved

            moved = vmap(one, in_dims=(0, *axes), chunk_size=16 * CHUNK)(whole, *outside)
            carried[..., entries] = moved[..., entries]
        return carried.detach()

    def input_vjp(self, u: Tensor) -> Tensor:
        """Not asked of recorded steps: autograd has followed their inputs already."""
        raise Unsupported("The gradient at a recorded step's inputs is autograd's own.")
