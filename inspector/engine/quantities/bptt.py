"""Backpropagation through time, itemised: which step's use of a parameter owes how much to which step's loss."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from inspector.engine.emitter import Emitter
from inspector.engine.errors import Unsupported
from inspector.engine.itemised import (
    SOURCE,
    Source,
    all_factors,
    announce,
    begin,
    relative_error,
    row_norms,
    sweep,
    unrolled_gradient,
)
from inspector.engine.quantity import BLOCK_STEPS, Describe, dtype_name, per_recurrence
from inspector.engine.shelves import QUANTITIES
from inspector.engine.steps.product import linear
from inspector.engine.trace import Recurrence

LONGEST = 4096
"""Steps up to which the step × step map is made: 64 MB of float32 a parameter."""
LAG_BYTES = 128 << 20
"""Memory for the summed gradients of all lags of one weight; beyond, their norms come from random projections."""
PROBES = 32
ROUNDINGS = 256.0
"""Roundings by which the sum of all items may differ from autograd's gradient before it is refused."""
STATISTICS = ("norm of the sum", "sum of the norms", "standard error")
MAP = "M[t, k] = ‖a_tᵀ J_{t:k} ∂⁺s_k/∂θ‖_F, a_t = the loss gradient that enters the recurrence at step t, k ≤ t"
LAG = "‖Σ_t a_tᵀ J_{t:t−ℓ} ∂⁺s_{t−ℓ}/∂θ‖_F (norm of the sum) and Σ_t M[t, t−ℓ] (sum of the norms) at lag ℓ"


@QUANTITIES.register("bptt")
@per_recurrence(
    signal="bptt",
    summary="backpropagation through time by loss step and source step",
    order=90,
    default=False,
)
def bptt(recurrence: Recurrence, emit: Emitter, sample: int) -> None:
    """Write, for each parameter θ, `bptt/θ` (step, source), `bptt/θ/lag` (statistic, lag) and its scalars.

    Scalars: `check_error` (sum of all items against autograd's gradient, relative), `total_norm`, `immediate_norm`
    (lag 0 alone) and `immediate_cosine` (of the two). Refused where the sum is not autograd's gradient.
    """
    arriving = begin(recurrence, sample)
    if len(arriving) > LONGEST:
        raise Unsupported(
            f"The map of {len(arriving):,} × {len(arriving):,} steps is not made beyond {LONGEST:,} steps; a shorter "
            "sequence has it, and the quantity truncation needs no map."
        )
    text = announce(recurrence, len(arriving), len(arriving), "Itemised gradient", emit)
    factors = all_factors(recurrence, sample)
    items = Items(len(arriving), arriving)
    for source in sweep(recurrence, sample, emit, text):
        items.add(source)
    expected = unrolled_gradient(recurrence, sample, emit)
    for name, parameter in items.parameters.items():
        parameter.settle(items.heads[parameter.signal], items.totals[parameter.signal], factors[name])
        _write(recurrence, emit, name, parameter, expected[name].reshape(parameter.total.shape))


@dataclass(slots=True)
class Parameter:
    """What is gathered of one parameter. `map` is (source k, step t); `sums` (lag, q, r) the gradient of every lag."""

    signal: str
    map: Tensor
    lagged: Tensor
    sums: Tensor
    projected: bool
    total: Tensor = field(default_factory=lambda: torch.zeros(0))
    immediate: Tensor = field(default_factory=lambda: torch.zeros(0))

    def settle(self, heads: Tensor, totals: Tensor, factors: Tensor) -> None:
        """The gradient (g, r) from all items, and from those of lag 0: heads and totals (t, g), factors (t, r)."""
        self.total, self.immediate = totals.T @ factors, heads.T @ factors

    def norms(self) -> Tensor:
        """(norm of the sum, sum of the norms, standard error of the first), (3, lag) float64."""
        squares = self.sums.double().square().sum(2)
        if not self.projected:
            norm = squares.sum(1).sqrt()
            return torch.stack((norm, self.lagged, torch.zeros_like(norm)))
        norm = squares.mean(1).sqrt()
        error = squares.std(1) / math.sqrt(squares.shape[1]) / (2 * norm)
        return torch.stack((norm, self.lagged, torch.where(norm > 0, error, torch.zeros_like(norm))))


class Items:
    """Takes the sources of a sweep one by one and adds up what is shown of them; blocks make products of sums."""

    def __init__(self, length: int, like: Tensor) -> None:
        self.length, self.like = length, like
        self.parameters: dict[str, Parameter] = {}
        self.heads: dict[str, Tensor] = {}
        self.totals: dict[str, Tensor] = {}
        self.probes: dict[str, Tensor] = {}
        self._rows: list[dict[tuple[str, bool], Tensor]] = []
        self._factors: list[dict[str, Tensor]] = []

    def add(self, source: Source) -> None:
        """One step: its column of every map, its share of every lag."""
        if not self.parameters:
            self._prepare(source)
        k = source.step
        norms = {signal: row_norms(rows) for signal, rows in source.rows.items()}
        for signal, rows in source.rows.items():
            self.heads[signal][k], self.totals[signal][k] = rows[0], rows.sum(0)
        waiting: dict[tuple[str, bool], Tensor] = {}
        factors: dict[str, Tensor] = {}
        for name, (signal, factor) in source.factors.items():
            parameter, rows = self.parameters[name], source.rows[signal]
            column = norms[signal] * torch.linalg.vector_norm(factor, dtype=torch.float64)
            parameter.map[k, k:] = column.to(self.like.dtype)
            parameter.lagged[: len(column)] += column
            if len(factor) == 1 and not parameter.projected:
                parameter.sums[: len(rows), :, 0].add_(rows, alpha=float(factor))
                continue
            factors[name] = factor
            if (signal, parameter.projected) not in waiting:
                waiting[signal, parameter.projected] = (
                    linear(rows, self.probes[signal]) if parameter.projected else rows
                )
        self._rows.append(waiting)
        self._factors.append(factors)
        held = sum(rows.nbytes for rows in waiting.values()) * len(self._rows)
        if len(self._rows) == BLOCK_STEPS or held > LAG_BYTES or k == 0:
            self._flush()

    def _prepare(self, source: Source) -> None:
        t, new = self.length, self.like.new_zeros
        random = torch.Generator().manual_seed(11)
        for signal, rows in source.rows.items():
            g = rows.shape[1]
            self.heads[signal], self.totals[signal] = new(t, g), new(t, g)
            self.probes[signal] = torch.randn(PROBES, g, generator=random, dtype=torch.float64).to(self.like.dtype)
        widest: dict[str, int] = {}
        for signal, factor in source.factors.values():
            widest[signal] = max(len(factor), widest.get(signal, 0))
        for name, (signal, factor) in source.factors.items():
            g, r = source.rows[signal].shape[1], len(factor)
            projected = g > PROBES and t * g * widest[signal] * self.like.element_size() > LAG_BYTES
            sums = new(t, PROBES if projected else g, r)
            self.parameters[name] = Parameter(signal, new(t, t), new(t, dtype=torch.float64), sums, projected)

    def _flush(self) -> None:
        """Add the waiting steps to the gradient of every lag: Σ_k row_{k, ℓ} ⊗ factor_k as one product a lag."""
        stacked = {}
        for key in self._rows[0]:
            waiting = [rows[key] for rows in self._rows]
            block = self.like.new_zeros(len(waiting), max(map(len, waiting)), waiting[0].shape[1])
            for row, values in zip(block, waiting, strict=True):
                row[: len(values)] = values
            stacked[key] = block.permute(1, 2, 0)
        for name in self._factors[0]:
            parameter = self.parameters[name]
            rows = stacked[parameter.signal, parameter.projected]
            parameter.sums[: len(rows)] += rows @ torch.stack([factors[name] for factors in self._factors])
        self._rows.clear()
        self._factors.clear()


def _write(recurrence: Recurrence, emit: Emitter, name: str, parameter: Parameter, expected: Tensor) -> None:
    """The channels and scalars of one parameter; refused where the items do not add up to autograd's gradient."""
    place, base = recurrence.place, f"{recurrence.place}:bptt/{name}"
    error = relative_error(parameter.total, expected)
    steps, size = len(parameter.map), float(expected.double().norm())
    unit = ROUNDINGS * torch.finfo(expected.dtype).eps * steps**0.5
    if error * size > unit * float(parameter.lagged.sum()):
        emit.refuse(
            base,
            f"The items of {place} {name} add up to something else than autograd's gradient: they differ by "
            f"{error:.3g} of it, so they are not shown.",
        )
        return
    shown = parameter.map.T.flip(0, 1) if recurrence.reverse else parameter.map.T
    about = Describe(kind="bptt", title=name, unit="nat", scale="log", formula=MAP, source=SOURCE)
    emit.array(
        about.channel(base, ("step", "source"), (steps, steps), dtype_name(shown), module=recurrence.module), shown
    )
    method = (
        f"norm of the sum: estimated from {PROBES} Gaussian projections (band: two standard errors)"
        if parameter.projected
        else "exact"
    )
    lag = Describe(
        kind="bptt", title=f"{name} by lag", unit="nat", scale="log", formula=LAG, source=SOURCE, method=method,
        labels={"statistic": STATISTICS},
    )  # fmt: skip
    norms = parameter.norms()
    emit.array(
        lag.channel(f"{base}/lag", ("statistic", "lag"), tuple(norms.shape), "float64", module=recurrence.module), norms
    )
    total, immediate = parameter.total.double(), parameter.immediate.double()
    cosine = (total * immediate).sum() / (total.norm() * immediate.norm())
    emit.scalar(f"{base}/check_error", error)
    emit.scalar(f"{base}/total_norm", float(total.norm()))
    emit.scalar(f"{base}/immediate_norm", float(immediate.norm()))
    emit.scalar(f"{base}/immediate_cosine", float(cosine))
