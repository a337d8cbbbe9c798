"""Truncated backpropagation through time: what is lost when each loss is propagated back only K − 1 steps."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from inspector.engine.analyses.itemised_bptt import (
    Source,
    all_factors,
    announce,
    begin,
    confirmed,
    pairs,
    references,
    say_ahead,
    seconds,
    signals,
    sweep,
    sweep_cost,
)
from inspector.engine.analyses.own_gradients import as_ran
from inspector.engine.cells.linear import linear
from inspector.engine.errors import Unsupported
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import BLOCK_STEPS, Describe, per_recurrence
from inspector.engine.trace.trace import Recurrence
from inspector.engine.trace.work import Work
from inspector.records.catalogue import LOSS

BAND_BYTES = 256 << 20
"""Memory for the gradients of all bands of lags of one parameter; beyond that, fewer K are tried."""
ITEM_BYTES = 256 << 20
"""Memory for the contributions of every pair of steps, from which the smallest K of each step is found."""
SWEEP_SECONDS, FEWEST, PROBES = 20.0, 4, 64
TOLERANCES = (0.1, 0.01)
SOURCE = "Williams & Peng 1990; Pascanu, Mikolov & Bengio 2013; Aicher, Foti & Fox 2019 (K by tolerance)"
ROUNDINGS = 4
"""Roundings of the largest gradient of a recurrence's parameters at which another one is taken for none.
Counter-example: a parameter that the loss depends on 10⁷ times less in float32 is said to have no gradient."""
STATISTICS = ("K", "relative error", "cosine", "share of the cost")
FORMULA = (
    "‖g_K − g‖ / ‖g‖ and cos(g_K, g), g_K = Σ_t Σ_{t−K<k≤t} a_tᵀ J_{t:k} ∂⁺s_k/∂θ: each loss is propagated back K − 1 "
    "steps at most; cost: pairs (t, k) of all T (T + 1) / 2"
)
OTHERS = "The truncated gradient of all parameters of {} together is not shown, since that of {} is not known."
ADAPTIVE = "smallest K with ‖g_{t,K} − g_t‖ ≤ tolerance · ‖g_t‖, g_t the gradient of step t's own loss, all parameters"


def check_size(recurrence: Recurrence, sample: int) -> None:
    """Raises Unsupported where the gradients take too much memory, or too long."""
    recurrence = as_ran(recurrence)
    length = len(begin(recurrence, sample))
    sweep_cost(recurrence, length, int(lengths_tried(recurrence, length)[-1]), "Truncated gradients")


@QUANTITIES.register("truncation")
@per_recurrence(
    signal="truncation", summary="truncated backpropagation: error, cosine and cost by K", order=91, default=False,
    needs=(LOSS,), parameter_gradients=True, cost="a backward sweep for each K that is tried, up to some 20 s",
    work=lambda size: Work(min(75.0 * size.steps**2 * size.row, 8e11), calls=100.0 * size.steps), limit=check_size,
)  # fmt: skip
def truncation(recurrence: Recurrence, emit: Emitter, sample: int) -> None:
    """Write `truncation/θ` and `truncation/all`, (statistic, truncation), their scalars, and `truncation/adaptive`.

    Scalars: `smallest_k_10_percent` and `smallest_k_1_percent`, the smallest K tried whose relative error is
    within 10 % or 1 %; NaN where there is none.
    """
    known, recurrence = recurrence, as_ran(recurrence)
    arriving = begin(recurrence, sample)
    say_ahead(known, "truncation", emit)
    ks = lengths_tried(recurrence, len(arriving))
    window = int(ks[-1])
    text = announce(recurrence, len(arriving), window, "Truncated gradients", emit)
    bands = Bands(ks, arriving)
    items = Items(recurrence, len(arriving), window, arriving)
    for source in sweep(recurrence, sample, emit, text, window):
        bands.add(source)
        items.add(source)
    cost = torch.tensor([pairs_within(len(arriving), int(k)) for k in ks]) / pairs(len(arriving), len(arriving))
    every, refused = _parameters(recurrence, emit, sample, bands, cost)
    if refused:
        for signal in ("truncation/all", "truncation/adaptive"):
            emit.refuse(f"{recurrence.place}:{signal}", OTHERS.format(recurrence.place, ", ".join(refused)))
        return
    _write(recurrence, emit, "all", ks, every, cost)
    _adaptive(recurrence, emit, sample, items)


def _parameters(
    recurrence: Recurrence, emit: Emitter, sample: int, bands: Bands, cost: Tensor
) -> tuple[Tensor, list[str]]:
    """Write the curve of every parameter whose sum is autograd's gradient: (products of all, names of the others)."""
    every, refused = torch.zeros(len(bands.ks), 4, dtype=torch.float64), []
    expected = references(recurrence, sample, emit)
    sizes = {name: float(sums.double().flatten(1).norm(dim=1).sum()) for name, sums in bands.sums.items()}
    floor = ROUNDINGS * torch.finfo(recurrence.states.dtype).eps * max(sizes.values(), default=0.0)
    for name, sums in bands.sums.items():
        size = sizes[name]
        try:
            confirmed(recurrence, sample, name, sums.sum(0), size, expected)
        except Unsupported as reason:
            emit.refuse(f"{recurrence.place}:truncation/{name}", str(reason))
            refused.append(name)
            continue
        squares = products(sums)
        every += squares
        _write(recurrence, emit, name, bands.ks, squares, cost, floor)
    return every, refused


def lengths_tried(recurrence: Recurrence, length: int) -> Tensor:
    """Which K: all of 1 … t where their gradients fit the memory, else about three an octave, as far as time allows."""
    largest = max(value.numel() for value in recurrence.cell.parameters().values())
    room = BAND_BYTES // (largest * recurrence.states.element_size())
    spaced = sorted({min(length, round(2 ** (j / 3))) for j in range(3 * math.ceil(math.log2(length)) + 1)})
    ks = list(range(1, length + 1)) if length + 1 <= room else spaced
    while len(ks) + 1 > room and len(ks) > FEWEST:
        ks = sorted({*ks[::2], ks[-1]})
    affordable = [k for k in ks if seconds(recurrence.cell, pairs(length, k), length) <= SWEEP_SECONDS]
    if len(ks) + 1 > max(room, FEWEST + 1) or not affordable:
        raise Unsupported(
            f"Truncated gradients of {recurrence.place} need {FEWEST + 1} times {largest:,} numbers and "
            f"{seconds(recurrence.cell, length, length):,.0f} s at least; that is over the limit."
        )
    return torch.tensor(affordable)


def pairs_within(length: int, k: int) -> int:
    """Pairs (t, k') with a lag below k."""
    return pairs(length, k - 1) if k else 0


class Bands:
    """The gradient of every band of lags: band j holds lags K_{j−1} … K_j − 1, the last one all lags from K_last on."""

    def __init__(self, ks: Tensor, like: Tensor) -> None:
        self.ks, self.like = ks, like
        self.sums: dict[str, Tensor] = {}
        self._rows: dict[str, list[Tensor]] = {}
        self._factors: dict[str, list[Tensor]] = {}
        window = int(ks[-1])
        band = torch.searchsorted(ks, torch.arange(window + 1), right=True)
        self._which = torch.nn.functional.one_hot(band, len(ks) + 1).T.to(like.dtype)

    def add(self, source: Source) -> None:
        """One step: the sums of its rows band by band, waiting for the product with its factor."""
        whole = len(self.ks) == int(self.ks[-1])  # every lag is a band of its own
        for signal, rows in source.rows.items():
            summed = rows if whole else self._which[:, : len(rows)] @ rows
            self._rows.setdefault(signal, []).append(summed)
        for name, (signal, factor) in source.factors.items():
            if name not in self.sums:
                shape = (len(self.ks) + 1, source.rows[signal].shape[1], len(factor))
                self.sums[name] = self.like.new_zeros(shape)
            self._factors.setdefault(name, []).append(factor)
        waiting = next(iter(self._rows.values()))
        held = sum(rows[-1].nbytes for rows in self._rows.values()) * len(waiting)
        if len(waiting) == BLOCK_STEPS or held > BAND_BYTES // 4 or source.step == 0:
            self._flush({name: signal for name, (signal, _) in source.factors.items()})

    def _flush(self, signals: dict[str, str]) -> None:
        blocks = {}
        for signal, waiting in self._rows.items():
            block = self.like.new_zeros(len(waiting), max(map(len, waiting)), waiting[0].shape[1])
            for row, values in zip(block, waiting, strict=True):
                row[: len(values)] = values
            blocks[signal] = block.permute(1, 2, 0)
        for name, factors in self._factors.items():
            rows = blocks[signals[name]]
            self.sums[name][: len(rows)] += rows @ torch.stack(factors)
        self._rows.clear()
        self._factors.clear()


def products(sums: Tensor) -> Tensor:
    """(‖tail‖², ⟨head, g⟩, ‖head‖², ‖g‖²) at every K, (K, 4) float64, from the bands' gradients (K + 1, g, r).

    The tail is summed from the farthest band on, so that a small one is not the difference of two large numbers.
    """
    found = torch.zeros(len(sums) - 1, 4, dtype=torch.float64)
    g = sums.double().sum(0) if sums.numel() < 1 << 22 else sums.sum(0).double()
    tail, head = torch.zeros_like(g), torch.zeros_like(g)
    for j in range(len(sums) - 2, -1, -1):
        tail += sums[j + 1]
        found[j, 0] = tail.square().sum()
    for j in range(len(sums) - 1):
        head += sums[j]
        found[j, 1], found[j, 2], found[j, 3] = (head * g).sum(), head.square().sum(), g.square().sum()
    return found


def _write(
    recurrence: Recurrence, emit: Emitter, name: str, ks: Tensor, squares: Tensor, cost: Tensor, floor: float = 0.0
) -> None:
    """The curve of one parameter and its smallest K. Of a gradient not above `floor` there is neither error nor cosine:
    it is what rounding left of terms that cancel, or of nothing."""
    tail, inner, head, whole = squares.T
    nothing = bool((whole.sqrt() <= floor).all())
    error = torch.full_like(tail, torch.nan) if nothing else (tail / whole).sqrt()
    cosine = (inner / (head * whole).sqrt()).masked_fill(head.sqrt() <= floor, torch.nan) + 0 * error
    table = torch.stack((ks.double(), error, cosine, cost.double()))
    base = f"{recurrence.place}:truncation/{name}"
    title = ("all parameters" if name == "all" else name) + (", no gradient" if nothing else "")
    about = Describe(
        kind="truncation", compare="separate",
        title=title, formula=FORMULA, source=SOURCE,
        scale="log", method=f"exact at the {len(ks)} values of K that are shown, up to {int(ks[-1])}",
        labels={"statistic": STATISTICS},
    )  # fmt: skip
    emit.array(
        about.channel(base, ("statistic", "truncation"), tuple(table.shape), "float64", module=recurrence.module), table
    )
    for tolerance in TOLERANCES:
        enough = torch.nonzero(error <= tolerance)
        smallest = float(ks[enough[0, 0]]) if len(enough) else math.nan
        emit.scalar(f"{base}/smallest_k_{tolerance:.0%}".replace("%", "_percent"), smallest)


@dataclass(slots=True)
class Items:
    """The contribution of each pair of steps, (t, k, q) for each signal:
    whole where it fits, else in q random projections."""

    recurrence: Recurrence
    length: int
    window: int
    like: Tensor
    kept: dict[str, Tensor] | None = None
    projected: bool = False

    def add(self, source: Source) -> None:
        """Store the rows of one step; nothing where that does not fit or the window cuts."""
        t = self.length
        if self.kept is None:
            widths = {signal: rows.shape[1] for signal, rows in source.rows.items()}
            one = t * t * self.like.element_size()
            self.projected = one * sum(widths.values()) > ITEM_BYTES
            widths = {signal: min(PROBES, width) if self.projected else width for signal, width in widths.items()}
            fits = one * sum(widths.values()) <= ITEM_BYTES and self.window == t
            self.kept = {signal: self.like.new_zeros(t, t, q) for signal, q in widths.items()} if fits else {}
        for signal, kept in self.kept.items():
            rows = source.rows[signal]
            if rows.shape[1] > kept.shape[2]:
                rows = linear(rows, _probes(rows.shape[1]).to(rows.dtype))
            kept[source.step :, source.step] = rows


def _probes(width: int) -> Tensor:
    """(PROBES, width) Gaussian numbers of variance 1 / PROBES: projections keep inner products on average."""
    generator = torch.Generator().manual_seed(13)
    return torch.randn(PROBES, width, generator=generator, dtype=torch.float64) / math.sqrt(PROBES)


def _adaptive(recurrence: Recurrence, emit: Emitter, sample: int, items: Items) -> None:
    """The smallest K of every step for each tolerance, (statistic, step); NaN where a step carries no loss."""
    name = f"{recurrence.place}:truncation/adaptive"
    if not items.kept:
        emit.refuse(
            name, f"The smallest K of every step needs all pairs of {items.length:,} steps in memory; they do not fit."
        )
        return
    factors, own_signals = all_factors(recurrence, sample), signals(recurrence, sample)
    grams = {signal: torch.zeros(items.length, items.length, dtype=torch.float64) for signal in items.kept}
    for own, signal in own_signals.items():
        grams[signal] += factors[own].double() @ factors[own].double().T
    found = torch.full((len(TOLERANCES), items.length), math.nan, dtype=torch.float64)
    for t in range(items.length):
        if t % BLOCK_STEPS == 0:
            emit.check()
        inner = torch.zeros(t + 1, t + 1, dtype=torch.float64)
        for signal, kept in items.kept.items():
            rows = kept[t, : t + 1]
            inner += (rows @ rows.T).double() * grams[signal][: t + 1, : t + 1]
        found[:, t] = smallest_lengths(inner)
    found = found.flip(1) if recurrence.reverse else found
    about = Describe(
        kind="truncation", compare="separate",
        title="smallest K by step", unit="step", formula=ADAPTIVE, source=SOURCE,
        method=f"estimated from {PROBES} random projections (norms within about 9 %)" if items.projected else "exact",
        labels={"statistic": tuple(f"{tolerance:.0%}" for tolerance in TOLERANCES)},
    )  # fmt: skip
    emit.array(
        about.channel(name, ("statistic", "step"), tuple(found.shape), "float64", module=recurrence.module), found
    )


def smallest_lengths(inner: Tensor) -> Tensor:
    """For each tolerance the smallest K, from the inner products of the items of one loss, (k, k) in order of steps."""
    squares = (2 * inner.tril(-1).sum(1) + inner.diagonal()).cumsum(0).clamp(min=0)  # ‖sum of items 0 … m‖²
    tails = torch.cat((squares.flip(0)[1:], squares.new_zeros(1)))  # what K = 1, 2, … leaves out
    if not bool(squares[-1] > 0):
        return squares.new_full((len(TOLERANCES),), math.nan)
    first = [torch.nonzero(tails <= tolerance**2 * squares[-1])[0, 0] + 1 for tolerance in TOLERANCES]
    return torch.stack(first).double()
