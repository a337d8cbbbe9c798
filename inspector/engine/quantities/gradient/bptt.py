"""Backpropagation through time, itemised: how much each step's loss contributes to the gradient of each step's use of a
parameter."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from inspector.engine.analyses.itemised_bptt import (
    SOURCE,
    all_factors,
    announce,
    begin,
    confirmed,
    references,
    row_norms,
    say_ahead,
    signals,
    sweep_cost,
)
from inspector.engine.analyses.itemised_tiles import Chunk, chunks, widths
from inspector.engine.analyses.own_gradients import as_ran
from inspector.engine.errors import Unsupported
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, dtype_name, per_recurrence
from inspector.engine.trace.trace import Recurrence
from inspector.engine.trace.work import Work
from inspector.records import LOSS_UNIT
from inspector.records.catalogue import LOSS

LONGEST = 4096
"""Steps up to which the step × step map is made: 64 MB of float32 a parameter."""
LAG_BYTES = 128 << 20
"""Memory for the summed gradients of all lags of one weight; beyond, their norms come from random projections."""
PROBES = 32
STATISTICS = ("norm of the sum", "sum of the norms", "standard error")
MAP = "M[t, k] = ‖a_tᵀ J_{t:k} ∂⁺s_k/∂θ‖_F, a_t = the loss gradient that enters the recurrence at step t, k ≤ t"
LAG = "‖Σ_t a_tᵀ J_{t:t−ℓ} ∂⁺s_{t−ℓ}/∂θ‖_F (norm of the sum) and Σ_t M[t, t−ℓ] (sum of the norms) at lag ℓ"


def check_size(recurrence: Recurrence, sample: int) -> None:
    """Raises Unsupported where the map is too large, or takes too long."""
    recurrence = as_ran(recurrence)
    length = len(begin(recurrence, sample))
    if length > LONGEST:
        raise Unsupported(
            f"The map of {length:,} × {length:,} steps is too large (limit {LONGEST:,}); use a shorter sequence; the "
            "quantity truncation needs no map."
        )
    sweep_cost(recurrence, length, length, "Itemised gradient")


@QUANTITIES.register("bptt")
@per_recurrence(
    signal="bptt",
    summary="backpropagation through time by loss step and source step",
    order=90,
    default=False,
    parameter_gradients=True,
    needs=(LOSS,),
    cost="time and memory grow with the square of the steps; up to 4,096 steps",
    work=lambda size: Work(27.0 * size.steps**2 * size.row, calls=100.0 * size.steps),
    limit=check_size,
)
def bptt(recurrence: Recurrence, emit: Emitter, sample: int) -> None:
    """Write, for each parameter θ, `bptt/θ` (step, source), `bptt/θ/lag` (statistic, lag) and its scalars.

    Scalars: `check_error` (sum of all items against the gradient of the run's own backward pass, relative),
    `total_norm`, `immediate_norm` (lag 0 alone) and `immediate_cosine` (of the two). A parameter is rejected where the
    sum is not that gradient.
    """
    known, recurrence = recurrence, as_ran(recurrence)
    arriving = begin(recurrence, sample)
    say_ahead(known, "bptt", emit)
    text = announce(recurrence, len(arriving), len(arriving), "Itemised gradient", emit)
    items = itemised(recurrence, sample, emit, text)
    expected = references(recurrence, sample, emit)
    for name, parameter in items.parameters.items():
        try:
            error = confirmed(recurrence, sample, name, parameter.total, float(parameter.lagged.sum()), expected)
        except Unsupported as reason:
            emit.refuse(f"{recurrence.place}:bptt/{name}", str(reason))
            continue
        _write(recurrence, emit, name, parameter, error)


def itemised(recurrence: Recurrence, sample: int, emit: Emitter, text: str) -> Items:
    """One sweep over all pairs of steps, with all results of every parameter."""
    items = Items(recurrence, sample)
    for chunk in chunks(recurrence, sample, emit, text, items.probes, LAG_BYTES):
        items.add(chunk)
    items.settle()
    return items


@dataclass(slots=True)
class Signal:
    """Gradients at one set of pre-activations: from the own step's loss and from all losses, (t, g), for all
    parameters.

    `sums` (lag · q, r): the gradient of every lag, whole or projected, the factors of all its parameters side by side.
    """

    names: list[str]
    heads: Tensor
    totals: Tensor
    sums: Tensor
    projected: bool


@dataclass(slots=True)
class Parameter:
    """What is accumulated for one parameter:
    `map` is (source k, step t), `columns` are its own in the signal's sums."""

    signal: Signal
    columns: slice
    map: Tensor
    lagged: Tensor
    total: Tensor = field(default_factory=lambda: torch.zeros(0))
    immediate: Tensor = field(default_factory=lambda: torch.zeros(0))

    @property
    def projected(self) -> bool:
        """Whether norms of sums are estimates."""
        return self.signal.projected

    def add(self, chunk: Chunk, norms: Tensor, factor: Tensor) -> None:
        """The chunk's part of the map, and of the sums of norms by lag: norms (n, t) float64, factor (n, r)."""
        n, t = norms.shape
        items = (norms * row_norms(factor)[:, None]).triu_(chunk.first)  # not 0 · NaN before the step
        self.map[chunk.first : chunk.first + n] = items
        padded = torch.nn.functional.pad(items, (0, n))
        self.lagged[: t - chunk.first] += padded.as_strided((n, t - chunk.first), (t + n + 1, 1), chunk.first).sum(0)

    def norms(self) -> Tensor:
        """(norm of the sum, sum of the norms, standard error of the first), (3, lag) float64."""
        squares = row_norms(self.signal.sums[:, self.columns]).view(len(self.lagged), -1).square()
        if not self.projected:
            norm = squares.sum(1).sqrt()
            return torch.stack((norm, self.lagged, torch.zeros_like(norm)))
        norm = squares.mean(1).sqrt()
        error = squares.std(1) / math.sqrt(squares.shape[1]) / (2 * norm)
        return torch.stack((norm, self.lagged, torch.where(norm > 0, error, torch.zeros_like(norm))))


class Items:
    """Adds up the chunks of a sweep, within the memory limits above."""

    def __init__(self, recurrence: Recurrence, sample: int) -> None:
        like = begin(recurrence, sample)
        t, new = len(like), like.new_zeros
        self.factors = all_factors(recurrence, sample)
        self.signal_of = signals(recurrence, sample)
        self.parameters: dict[str, Parameter] = {}
        self.signals: dict[str, Signal] = {}
        self.probes: dict[str, Tensor] = {}
        random = torch.Generator().manual_seed(11)
        for signal, g in widths(recurrence, sample).items():
            names = [name for name, own in self.signal_of.items() if own == signal]
            if not names:
                continue
            r = [self.factors[name].shape[1] for name in names]
            projected = g > PROBES and t * g * max(r) * like.element_size() > LAG_BYTES
            if projected:
                self.probes[signal] = torch.randn(PROBES, g, generator=random, dtype=torch.float64).to(like.dtype)
            sums = new(t * (PROBES if projected else g), sum(r))
            self.signals[signal] = Signal(names, new(t, g), new(t, g), sums, projected)
            for j, name in enumerate(names):
                columns = slice(sum(r[:j]), sum(r[: j + 1]))
                lagged = new(t, dtype=torch.float64)
                self.parameters[name] = Parameter(self.signals[signal], columns, new(t, t), lagged)

    def add(self, chunk: Chunk) -> None:
        """Some steps: their columns of every map, and Σ_k row_{k, ℓ} ⊗ factor_k for all lags as one product."""
        for name, (signal, factor) in chunk.factors.items():
            self.parameters[name].add(chunk, chunk.norms[signal], factor)
        for key, kept in self.signals.items():
            rows, steps = chunk.rows[key], slice(chunk.first, chunk.first + len(chunk.rows[key]))
            kept.heads[steps], kept.totals[steps] = chunk.heads[key], chunk.totals[key]
            factors = torch.cat([chunk.factors[name][1] for name in kept.names], dim=1)
            kept.sums[: rows.shape[1]].addmm_(rows.T, factors)

    def settle(self) -> None:
        """The gradient (g, r) of every parameter from all items, and from those of lag 0."""
        for name, parameter in self.parameters.items():
            factors = self.factors[name]
            parameter.total = parameter.signal.totals.T @ factors
            parameter.immediate = parameter.signal.heads.T @ factors


def _write(recurrence: Recurrence, emit: Emitter, name: str, parameter: Parameter, error: float) -> None:
    """The channels and scalars of one parameter."""
    base, steps = f"{recurrence.place}:bptt/{name}", len(parameter.map)
    shown = parameter.map.T.flip(0, 1) if recurrence.reverse else parameter.map.T
    about = Describe(
        kind="bptt", compare="separate", title=name, unit=LOSS_UNIT, scale="log", formula=MAP, source=SOURCE
    )
    emit.array(
        about.channel(base, ("step", "source"), (steps, steps), dtype_name(shown), module=recurrence.module), shown
    )
    method = (
        f"norm of the sum: estimated from {PROBES} Gaussian projections (band: two standard errors)"
        if parameter.projected
        else "exact"
    )
    lag = Describe(
        kind="bptt", compare="separate",
        title=f"{name} by lag", unit=LOSS_UNIT, scale="log", formula=LAG, source=SOURCE, method=method,
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
