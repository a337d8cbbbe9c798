"""States that a matrix makes and another reads, b_t = B u_t and y_t = C h_t (LRU: Orvieto et al. 2023,
arXiv 2303.06349).

Then y_t = Σ_s C diag(p) B u_s with p = Π_{s<j≤t} a_j, a matrix for every pair of steps, and its Frobenius norm is the
map from token to token. Where u and y are real it is that of the real part, X = C diag(p) B:
‖Re X‖² = ½ (‖X‖² + Re Σ X_de²), with ‖X‖² = p̄ᵀ [(Cᴴ C) ⊙ (B Bᴴ)ᵀ] p and Σ X_de² = pᵀ [(Cᵀ C) ⊙ (B Bᵀ)] p.
Letters: t, s step, n state entry, d entry of y, e entry of u.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from inspector.engine.cells.check import Check
from inspector.engine.scans.diagonal import Diagonal
from inspector.engine.scans.equivalent import MOST_NUMBERS, MOST_WORK
from inspector.engine.scans.readout import Reading
from inspector.engine.scans.values import Flow, Layout, rounding, wide

FORMULA = "‖C (Π_{s<j≤t} a_j) B‖, the Frobenius norm of the matrix by which x_s acts on y_t"
NOTE = "one map of norms: matrices mix all states"


@dataclass(frozen=True, slots=True)
class Mixed:
    """C (d, n) and B (n, e), in double precision, whether their product counts by its real part, and how well they
    reproduce y and b."""

    c: Tensor
    b: Tensor
    real: bool
    check: Check


def mixed_of(flow: Flow, found: Diagonal, reading: Reading) -> Mixed | None:
    """The matrices around some states of one axis of units; None where none are seen."""
    layout = found.layout
    if len(layout.units) != 1 or layout.units[0] != len(layout.shape) - 1:
        return None
    h, b = found.h.numbers(), found.b.numbers()
    after = _matrix(h, sorted(reading.outputs, key=Tensor.is_complex), reading.given, layout)  # Re y, where it is taken
    before = [*(one.tensor for one in flow.before(found.b, 40)), *reading.given]
    ahead = _matrix_into(b, [one for one in before if one.dim() == len(layout.shape)], before, layout)
    if after is None or ahead is None:
        return None
    (c, factor, real, error), (matrix, other) = after, ahead
    worst = max(error, other)
    return Mixed(factor * c, matrix, real, Check(worst, rounding(found.h.tensor.dtype)))


def _rows(tensor: Tensor, layout: Layout) -> Tensor | None:
    """(t, ·) of the selected sequence, in double precision, of a tensor in the axes of the states but the last."""
    shape = (*layout.shape[:-1], tensor.shape[-1])
    if tuple(tensor.shape) != shape:
        return None
    own = replace(layout, shape=shape)
    return wide(own.rows(tensor.detach(), layout.sample if layout.batch is not None else None)[:, 0])


def _matrices(tensors: Iterable[Tensor], size: int, axis: int) -> Iterator[Tensor]:
    """The matrices among some tensors with so many entries along an axis, in double precision, turned where need be."""
    for one in tensors:
        if one.dim() == 2 and size in one.shape and (one.is_floating_point() or one.is_complex()):
            own = wide(one.detach())
            yield from (turned for turned in (own, own.T) if turned.shape[axis] == size)


def _matrix(
    h: Tensor, outputs: Iterable[Tensor], given: Iterable[Tensor], layout: Layout
) -> tuple[Tensor, float, bool, float] | None:
    """(C, factor, whether y is the real part, relative error)."""
    states, matrices = _rows(h, layout), list(_matrices(given, h.shape[-1], 1))
    for y in outputs:
        wanted = _rows(y, layout) if y.dim() == h.dim() else None
        if wanted is None or states is None or not float(wanted.abs().max()):
            continue
        for c in matrices:
            if c.shape[0] != wanted.shape[1]:
                continue
            dtype = torch.promote_types(states.dtype, c.dtype)
            made = states.to(dtype) @ c.T.to(dtype)
            real = made.is_complex() and not wanted.is_complex()
            made = made.real if real else made
            for factor in (1.0, 2.0):
                error = float((factor * made - wanted).abs().max() / wanted.abs().max())
                if error <= rounding(h.dtype):
                    return c, factor, real, error
    return None


def _matrix_into(
    b: Tensor, inputs: Iterable[Tensor], given: Iterable[Tensor], layout: Layout
) -> tuple[Tensor, float] | None:
    """(B, relative error)."""
    wanted, matrices = _rows(b, layout), list(_matrices(given, b.shape[-1], 0))
    for u in inputs:
        own = _rows(u, layout)
        if own is None or wanted is None or u.is_complex():
            continue
        for matrix in matrices:
            if matrix.shape[1] == own.shape[1]:
                error = float((own.to(matrix.dtype) @ matrix.T - wanted).abs().max() / wanted.abs().max())
                if error <= rounding(b.dtype):
                    return matrix, error
    return None


def norms(mixed: Mixed, decay: Tensor, steps: int) -> Tensor | None:
    """(t, s) the norms, from a (t or 1, n) in double precision; None where they are too many."""
    n = decay.shape[-1]
    if steps * steps > MOST_NUMBERS or steps * steps * n * n > MOST_WORK:
        return None
    c, b = (one.to(torch.complex128) for one in (mixed.c, mixed.b))
    whole = (c.mH @ c) * (b @ b.mH).T
    square = (c.T @ c) * (b @ b.T)
    left, found = torch.zeros(steps, n, dtype=torch.complex128), torch.zeros(steps, steps, dtype=torch.float64)
    for t in range(steps):
        left[:t] *= decay[t if len(decay) > 1 else 0]
        left[t] = 1.0
        own = left[: t + 1]
        size = torch.einsum("sn,nm,sm->s", own.conj(), whole, own).real
        if mixed.real:
            size = 0.5 * (size + torch.einsum("sn,nm,sm->s", own, square, own).real)
        found[t, : t + 1] = size.clamp_min(0.0).sqrt()
    return found
