"""Parts of a hand-written recurrence's state, and its steps grouped by the program that they ran."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from inspector.engine.devices.random_state import CPU
from inspector.engine.recurrent.traced.program.instructions import Program


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the state: a carried tensor, `lag` iterations old; `batch` is its batch axis (None: one sample), and
    `device` where the model has it: states as rows lie in main memory.

    `dtype` is set where the parts of a state have several types: rows are of the widest.
    """

    slot: int
    lag: int
    shape: tuple[int, ...]
    batch: int | None
    device: torch.device = CPU
    dtype: torch.dtype | None = None

    @property
    def key(self) -> Hashable:
        """Its key among a program's inputs."""
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
        rows = rows.to(self.device, self.dtype or rows.dtype)
        if self.batch is None:
            return rows.reshape(self.shape)
        rest = [size for axis, size in enumerate(self.shape) if axis != self.batch]
        return rows.reshape(-1, *rest).movedim(0, self.batch)


@dataclass(slots=True)
class Steps:
    """Steps of one program: its tensors from outside, stacked over those steps; one for all where `shared`."""

    program: Program
    numbers: Tensor
    outside: list[Tensor]
    shared: list[bool]

    def at(self, index: Tensor) -> list[Tensor]:
        """The tensors from outside of some of the steps, stacked where they are not shared: index (n,)."""
        return [t if shared else t[index] for t, shared in zip(self.outside, self.shared, strict=True)]

    def one(self, index: int) -> list[Tensor]:
        """The tensors from outside of one step."""
        return [t if shared else t[index] for t, shared in zip(self.outside, self.shared, strict=True)]

    @property
    def axes(self) -> list[int | None]:
        """Where they are stacked, for vmap."""
        return [None if shared else 0 for shared in self.shared]


@dataclass(slots=True)
class Layout:
    """The parts of a state by name and where their entries lie in a state-like row.

    Attributes:
        parts: name of a part → the part.
        entries: name of a part → its entries.
    """

    parts: dict[str, Part]
    entries: dict[str, slice] = field(default_factory=dict)

    def __post_init__(self) -> None:
        start = 0
        for name, part in self.parts.items():
            self.entries[name] = slice(start, start + part.width)
            start += part.width

    def given(self, rows: Tensor) -> dict[Hashable, Tensor]:
        """A program's inputs for states (b, s)."""
        return {part.key: part.tensor(rows[:, self.entries[name]]) for name, part in self.parts.items()}

    def advance(
        self,
        program: Program,
        rows: Tensor,
        outside: Sequence[Tensor],
        *,
        given: Mapping[Hashable, Tensor] | None = None,
        added: Mapping[int, Tensor] | None = None,
        direct: bool = False,
    ) -> Tensor:
        """(b, s) from (b, s), the whole batch at once; `given` are further inputs, for the rest see `Program.run`."""
        made = iter(program.run({**self.given(rows), **(given or {})}, outside, direct=direct, added=added))
        out = []
        for part in self.parts.values():
            if part.lag:
                newer = next(n for n, p in self.parts.items() if p.slot == part.slot and p.lag == part.lag - 1)
                out.append(rows[:, self.entries[newer]])
            else:
                out.append(part.rows(next(made)).to(rows.device, rows.dtype))
        return torch.cat(out, dim=-1)


def grouped(groups: Sequence[Steps], steps: int) -> tuple[Tensor, Tensor]:
    """Which group each step belongs to, and its number in that group: (t,) each."""
    which = torch.zeros(steps, dtype=torch.int64)
    index = torch.zeros(steps, dtype=torch.int64)
    for n, group in enumerate(groups):
        which[group.numbers] = n
        index[group.numbers] = torch.arange(len(group.numbers))
    return which, index
