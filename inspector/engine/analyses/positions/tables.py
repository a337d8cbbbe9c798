"""The table of a model that an encoding of positions was taken from, and the formula that it agrees with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

BASE = 10_000.0
NEAR = 2e-4
"""Sines of 10⁴ radians in float32 are so far from those in float64."""
LEARNED, COMPUTED, BUFFER = "parameter", "computed in the run", "buffer"


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """All positions (n, d) that a model has, as it uses them; `first` is the row of step 0. `kind`: parameter, buffer,
    or computed; `factor`: what the rows of the parameter or buffer are multiplied by; `eps`: that of its type."""

    name: str
    rows: Tensor
    first: int
    kind: str
    factor: float = 1.0
    eps: float = 0.0

    @property
    def said(self) -> str:
        """What it is, in words."""
        if self.kind == COMPUTED:
            return self.kind
        return (f"{self.factor:.4g} × " if self.factor != 1.0 else "") + f"{self.kind} {self.name!r}"


def table_of(model: nn.Module, rows: Tensor, place: str, eps: float = 0.0) -> Table:
    """The parameter or buffer that has these rows (t, d) one after another, or has them but for one factor; the rows
    themselves where none has. eps: that of the type of the rows."""
    named: list[tuple[str, Tensor, str]] = []
    named += [(name, one, LEARNED) for name, one in model.named_parameters(remove_duplicate=False)]
    named += [(name, one, BUFFER) for name, one in model.named_buffers(remove_duplicate=False)]
    for scaled in (False, True):
        for name, one, kind in named:
            for whole in _two_axes(one.detach(), rows.shape[1]) if len(rows) > 1 else ():
                at = _first(whole, rows, scaled)
                if at is not None:
                    first, factor = at
                    called = name.removesuffix(".weight")
                    return Table(called, whole * factor, first, kind, factor, torch.finfo(one.dtype).eps)
    return Table(place, rows, 0, COMPUTED, eps=eps)


def _two_axes(one: Tensor, width: int) -> Iterator[Tensor]:
    """(n, d) of a table that may have axes of length 1, and may have its positions last."""
    if not one.is_floating_point() or one.layout != torch.strided or one.is_nested or one.dim() < 2:
        return
    plain = [size for size in one.shape if size > 1]
    rest = [*plain]
    if one.shape[-1] == width:
        if width > 1:
            rest.pop()
        if len(rest) < 2:
            yield one.reshape(-1, width).double().cpu()
    if len(plain) == 2 and plain[0] == width:
        yield one.reshape(width, -1).T.double().cpu()


def _first(whole: Tensor, rows: Tensor, scaled: bool) -> tuple[int, float] | None:
    """Where the rows begin in a table, and times what; they may have been rounded to the type of the stream."""
    count = len(whole) - len(rows) + 1
    if count < 1:
        return None
    largest = int((rows.norm(dim=1)).argmax())  # the first row of a table may be 0
    starts = whole[largest : largest + count]
    factors = torch.ones(count, dtype=torch.float64)
    if scaled:
        factors = (starts @ rows[largest]) / (starts**2).sum(1)
    near = ((starts * factors[:, None] - rows[largest]).abs() <= _rounding(rows[largest])).all(1)
    for start in near.nonzero()[:, 0].tolist():
        made = whole[start : start + len(rows)] * factors[start]
        if bool(((made - rows).abs() <= _rounding(rows)).all()):
            return int(start), float(factors[start])
    return None


def _rounding(rows: Tensor) -> Tensor:
    return 4e-3 * rows.abs()  # bfloat16 has 8 bits


def formula_of(rows: Tensor, eps: float = 0.0) -> str:
    """Which of the usual formulas gives these rows (t, d), or ""; sin and cos of i / 10000^{2j/d} (Vaswani et al. 2017)
    in turns or one behind the other, or a multiple of these. eps: that of the type of the rows."""
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
                factor = float((made * rows).sum() / (made**2).sum())
                allowed = abs(factor) * (NEAR * max(1.0, count / 1000) + eps)
                if bool(((factor * made - rows).abs() <= allowed).all()) and factor:
                    times = "" if abs(factor - 1) <= NEAR + eps else f"{factor:.4g} × "
                    return f"{times}sinusoidal, {said}: i / 10000^(2j/{last}), i from {start}"
    return ""
