"""The table of a model that an encoding of positions was taken from, and the formula that it agrees with."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

BASE = 10_000.0
NEAR = 2e-4
"""Sines of 10⁴ radians in float32 are so far from those in float64."""
LEARNED, COMPUTED, BUFFER = "parameter", "computed in the run", "buffer"


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """All positions (n, d) that a model has; `first` is the row of step 0. `kind`: parameter, buffer, or computed."""

    name: str
    rows: Tensor
    first: int
    kind: str


def table_of(model: nn.Module, rows: Tensor, place: str) -> Table:
    """The parameter or buffer that has these rows (t, d) one after another; the rows themselves where none has."""
    named: list[tuple[str, Tensor, str]] = []
    named += [(name, one, LEARNED) for name, one in model.named_parameters(remove_duplicate=False)]
    named += [(name, one, BUFFER) for name, one in model.named_buffers(remove_duplicate=False)]
    for name, one, kind in named:
        whole = _two_axes(one.detach(), rows.shape[1])
        first = None if whole is None else _first(whole, rows)
        if whole is not None and first is not None:
            return Table(name.removesuffix(".weight"), whole, first, kind)
    return Table(place, rows, 0, COMPUTED)


def _two_axes(one: Tensor, width: int) -> Tensor | None:
    """(n, d) of a table that may have axes of length 1."""
    plain = one.is_floating_point() and one.layout == torch.strided and not one.is_nested
    if not plain or one.dim() < 2 or one.shape[-1] != width or one.numel() != max(one.shape[:-1]) * width:
        return None
    return one.reshape(-1, width).double().cpu()


def _first(whole: Tensor, rows: Tensor) -> int | None:
    """Where the rows begin in a table; they may have been rounded to the type of the stream."""
    if len(whole) < len(rows):
        return None
    starts = ((whole[: len(whole) - len(rows) + 1] - rows[0]).abs() <= _rounding(rows[0])).all(1).nonzero()[:, 0]
    for start in starts.tolist():
        if bool(((whole[start : start + len(rows)] - rows).abs() <= _rounding(rows)).all()):
            return int(start)
    return None


def _rounding(rows: Tensor) -> Tensor:
    return 4e-3 * rows.abs()  # bfloat16 has 8 bits


def formula_of(rows: Tensor) -> str:
    """Which of the usual formulas gives these rows (t, d), or ""; sin and cos of i / 10000^{2j/d} (Vaswani et al. 2017)
    in turns or one behind the other."""
    count, width = rows.shape
    if width % 2 or width < 2:
        return ""
    for start in (0, 1):
        angles = torch.arange(start, start + count, dtype=torch.float64)[:, None]
        for last in (width, width - 2):  # fairseq divides by d / 2 − 1
            rates = BASE ** (-torch.arange(0, width, 2, dtype=torch.float64) / max(1, last))
            sines, cosines = torch.sin(angles * rates), torch.cos(angles * rates)
            for said, made in (
                ("sine and cosine in turns", torch.stack((sines, cosines), -1).flatten(1)),
                ("sines, then cosines", torch.cat((sines, cosines), 1)),
                ("cosines, then sines", torch.cat((cosines, sines), 1)),
            ):
                if bool(((made - rows).abs() <= NEAR * max(1.0, count / 1000)).all()):
                    return f"sinusoidal, {said}: i / 10000^(2j/{last}), i from {start}"
    return ""
