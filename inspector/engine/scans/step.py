"""The step h_t = a_t ⊙ h_{t−1} + b_t as a cell: every derivative is a product with a_t, entry by entry.

A complex state is its real entries, then its imaginary ones: s = 2k, and the Jacobian of unit k is
[[Re a, −Im a], [Im a, Re a]], a turn by arg a and a stretch by |a|. The step's input x is b_t, and a_t behind it where
the decay is not the same at every step; complex numbers in it are split in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor

from inspector.engine.cells.base import Cell, StepBlock
from inspector.engine.cells.gate_info import GateInfo, MemoryGate
from inspector.engine.cells.linear_maps import LinearMaps

SOURCE = "Orvieto et al. 2023, arXiv 2303.06349; Gu & Dao 2023, arXiv 2312.00752"
DECAY, FREE = "gate/decay", "decay"
"""Signals of |a|: as a gate where it lies between 0 and 1 throughout, else as a number."""


class DiagonalStep(Cell):
    """A diagonal linear step of `units`, real or complex; `fixed` (k,) is its decay where that never changes."""

    family = "scan"
    diagonal = True
    gate_info: ClassVar[tuple[GateInfo, ...]] = (
        GateInfo(DECAY, "decay", "|a_t|, h_t = a_t ⊙ h_{t−1} + b_t", SOURCE),
        GateInfo(FREE, "decay", "|a_t|, h_t = a_t ⊙ h_{t−1} + b_t", SOURCE, (0, 2)),
    )

    def __init__(self, units: int, *, twofold: bool, fixed: Tensor | None, bounded: bool, like: torch.dtype) -> None:
        self.units, self.twofold, self.like = units, twofold, like
        self.fixed = None if fixed is None else split(fixed, twofold)
        """(s,) where the decay is the same at every step."""
        k = units
        self.parts = {"h.real": slice(0, k), "h.imaginary": slice(k, 2 * k)} if twofold else {"h": slice(0, k)}
        self.gate_names = (DECAY,) if bounded else (FREE,)
        if bounded:
            self.memory_gate = MemoryGate(DECAY, True, part=next(iter(self.parts)))  # type: ignore[misc]

    @property
    def dtype(self) -> torch.dtype:
        """That of the model's states, real."""
        return self.like

    def decay(self, x: Tensor) -> Tensor:
        """a (…, s), of steps from x (…, i)."""
        s = self.state_size
        return x[..., s:] if self.fixed is None else self.fixed.to(x).expand(*x.shape[:-1], s)

    def step(self, x: Tensor, state: Tensor) -> Tensor:
        """a ⊙ h + b."""
        return self.times(self.decay(x), state) + x[..., : self.state_size]

    def times(self, a: Tensor, v: Tensor) -> Tensor:
        """a ⊙ v over the last axis, (…, s) each."""
        if not self.twofold:
            return a * v
        k = self.units
        re, im = a[..., :k], a[..., k:]
        return torch.cat([re * v[..., :k] - im * v[..., k:], im * v[..., :k] + re * v[..., k:]], -1)

    def conjugate(self, a: Tensor) -> Tensor:
        """(…, s) whose product is that with Jᵀ."""
        return torch.cat([a[..., : self.units], -a[..., self.units :]], -1) if self.twofold else a

    def moduli(self, x: Tensor) -> Tensor:
        """|a| (…, k)."""
        a = self.decay(x)
        return torch.hypot(a[..., : self.units], a[..., self.units :]) if self.twofold else a.abs()

    def gates(self, x: Tensor, previous: Tensor) -> dict[str, Tensor]:
        """|a|, (t, b, k)."""
        return {self.gate_names[0]: self.moduli(x)}

    def block(self, x: Tensor, previous: Tensor, following: Tensor, known: tuple[Tensor, ...] = ()) -> DiagonalBlock:
        """The steps from `previous` to `following`."""
        return DiagonalBlock(self, x, previous, following)


def split(values: Tensor, twofold: bool) -> Tensor:
    """(…, k) as (…, s): real entries, then imaginary ones where the state has both."""
    if not twofold:
        return values
    values = values if values.is_complex() else torch.complex(values, torch.zeros_like(values))
    return torch.cat([values.real, values.imag], -1)


class DiagonalBlock(StepBlock):
    """Derivatives of a diagonal step, all in closed form."""

    cell: DiagonalStep

    def __init__(self, cell: DiagonalStep, x: Tensor, previous: Tensor, following: Tensor) -> None:
        self.cell, self.x, self.previous, self.following = cell, x, previous, following

    @cached_property
    def gates(self) -> Mapping[str, Tensor]:  # type: ignore[override]
        """|a|, (t, b, k)."""
        return self.cell.gates(self.x, self.previous)

    @cached_property
    def decay(self) -> Tensor:
        """a, (t, b, s)."""
        return self.cell.decay(self.x)

    def eigenvalues(self) -> Tensor:
        """a of every unit, and its conjugate where the state is complex: (t, b, s)."""
        if not self.cell.twofold:
            return torch.complex(self.decay, torch.zeros_like(self.decay))
        a = torch.complex(self.decay[..., : self.cell.units], self.decay[..., self.cell.units :].contiguous())
        return torch.cat([a, a.conj()], -1)

    def jvp(self, v: Tensor) -> Tensor:
        """a ⊙ v."""
        return self.cell.times(self.decay[..., None, :], v.mT).mT

    def vjp(self, u: Tensor, at: slice = slice(None)) -> Tensor:
        """The conjugate of a, times u."""
        return self.cell.times(self.cell.conjugate(self.decay[at])[..., None, :], u.mT).mT

    def jacobian(self) -> Tensor:
        """J, (t, b, s, s): diagonal, or diagonal in four squares."""
        s, k = self.cell.state_size, self.cell.units
        found = self.decay.new_zeros(*self.decay.shape, s)
        re, im = self.decay[..., :k], self.decay[..., k:]
        found[..., :k, :k].diagonal(dim1=-2, dim2=-1).copy_(re)
        if self.cell.twofold:
            found[..., k:, k:].diagonal(dim1=-2, dim2=-1).copy_(re)
            found[..., k:, :k].diagonal(dim1=-2, dim2=-1).copy_(im)
            found[..., :k, k:].diagonal(dim1=-2, dim2=-1).copy_(-im)
        return found

    def maps(self) -> LinearMaps:
        """The diagonals alone where the state is real."""
        if self.cell.twofold:
            return super().maps()
        entries, whole = self.decay[:, 0], slice(0, self.cell.units)
        return LinearMaps(
            self.cell.units, slice(0, 0), entries.new_zeros(*entries.shape, 0), ((whole, whole, entries),)
        )

    def frobenius(self) -> Tensor:
        """√Σ|a|² over the state's entries."""
        norms: Tensor = self.eigenvalues().abs().norm(dim=-1)
        return norms

    def back_(self, rows: Tensor, at: int) -> None:
        """The conjugate of a, times the rows."""
        rows.copy_(self.cell.times(self.cell.conjugate(self.decay[at, 0]), rows))

    def pushed(self, rows: Tensor, at: int) -> Tensor:
        """a times the rows."""
        return self.cell.times(self.decay[at, 0], rows)

    def input_vjp(self, u: Tensor) -> Tensor:
        """u itself for b, and for a decay that changes the conjugate of h_{t−1}, times u."""
        if self.cell.fixed is not None:
            return u
        before = self.cell.conjugate(self.previous)
        return torch.cat([u, self.cell.times(before[..., None, :], u.mT).mT], -2)
