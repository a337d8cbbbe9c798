"""Which units of a piecewise linear recurrence are open, and how many paths through time stay open."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from inspector.engine.analyses.lag_statistics import log_quantile
from inspector.engine.errors import NotApplicable
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_recurrence, rows_per_page
from inspector.engine.trace.trace import Recurrence

LONGEST, MOST_STARTS = 512, 256
BUDGET = 1e10
"""Multiplications for the norms of products; beyond that, fewer starts are used, and beyond one start none."""
SOURCE = "Glorot, Bordes & Bengio 2011 (active paths of rectifiers); Pascanu, Mikolov & Bengio 2013"
MASK = Describe(
    kind="mask", title="active units", limits=(0, 1), source=SOURCE,
    formula="m_t[u] = φ′(a_t[u]), 1 where unit u lets gradients through (ReLU: a > 0), 0 where it does not",
)  # fmt: skip
SHARE = Describe(
    kind="mask", title="share of open units", limits=(0, 1), source=SOURCE, formula="q_t = (1/H) Σ_u m_t[u]"
)
LEAKY = "m_t[u] = φ′(a_t[u]), 1 where a > 0, elsewhere the slope {:g} that the leaky ReLU has there"
LEAKY_SHARE = "q_t = (1/H) Σ_u [m_t[u] = 1]"
BY_LAG = {
    "open_paths": (
        "share of open paths",
        "∏_{t=k+1…k+ℓ} q_t: of all H^ℓ unit sequences (u_{k+1}, …, u_{k+ℓ}), weighted equally, the share whose units "
        "are all open; the median over starts",
    ),
    "open_pairs": (
        "share of joined pairs",
        "entries of diag(m_{k+ℓ}) W … diag(m_{k+1}) W that at least one open path joins (non-zero entries, chance "
        "cancellations aside), over H²; arithmetic mean over starts",
    ),
    "masked_product": ("product of masked weights", "‖diag(m_{k+ℓ}) W … diag(m_{k+1}) W‖_F / √H; median over starts"),
    "open_product": ("all units open", "‖W^ℓ‖_F / √H, the weights without masks"),
}


@QUANTITIES.register("masks")
@per_recurrence(
    signal="mask", summary="active units of a ReLU recurrence, and the paths that stay open", order=45, jacobians=True
)
def masks(recurrence: Recurrence, emit: Emitter, sample: int) -> None:
    """Write `mask` (step, unit), `mask/open_share` (step,), and by lag, (lag,): see BY_LAG."""
    cell = recurrence.cell
    outside = cell.slope_outside()
    if outside is None:
        raise NotApplicable("Only piecewise linear activations have masks.")
    mask = MASK if outside == 0 else replace(MASK, formula=LEAKY.format(outside))
    open_share = SHARE if outside == 0 else replace(SHARE, formula=LEAKY_SHARE)
    length = recurrence.length(sample)
    found = []
    for start, block in recurrence.blocks(sample, rows_per_page(length, cell.state_size * 2)):
        slopes = block.slopes()
        assert slopes is not None
        nothing = block.following.new_full((), torch.nan)
        found.append(torch.where(block.following.isnan(), nothing, slopes)[:, 0])
        rows = recurrence.in_order(found[-1].half(), sample)
        name = f"{recurrence.place}:mask"
        shape = (length, cell.state_size)
        emit.channel(mask.channel(name, ("step", "unit"), shape, "float16", module=recurrence.module))
        emit.page(name, (recurrence.sequence_offset(start, len(rows), sample), 0), rows)
    slopes = torch.cat(found)
    opened = slopes if outside == 0 else torch.where(slopes.isnan(), slopes, (slopes == 1).to(slopes.dtype))
    share = recurrence.in_order(opened.double().mean(1), sample)
    name = f"{recurrence.place}:mask/open_share"
    emit.array(open_share.channel(name, ("step",), (length,), "float64", module=recurrence.module), share)
    plain = [weight.matrix for weight in cell.recurrent_weights() if weight.gain is not None and weight.step is None]
    if length > 1 and len(plain) == 1:  # the step is φ(W h + …) and nothing else: its Jacobian is diag(m) W
        _by_lag(recurrence, emit, plain[0], slopes, closes=outside == 0)


def _by_lag(recurrence: Recurrence, emit: Emitter, weights: Tensor, slopes: Tensor, *, closes: bool) -> None:
    """The channels by lag; where no unit closes (a leaky ReLU) every path is open, and only products are written."""
    t, h = slopes.shape
    lags = min(t - 1, LONGEST)
    dense = bool((weights != 0).all())
    every = f"exact; every start; lags up to {lags}"
    results = {"open_paths": (open_paths(slopes, lags), every)} if closes else {}
    if dense and closes:
        results["open_pairs"] = (dense_pairs(slopes, lags), every)
    count = min(t - 1, MOST_STARTS, int(BUDGET / ((2.0 if dense else 4.0) * h**3 * lags)))
    if count < 1:
        emit.refuse(
            f"{recurrence.place}:mask/masked_product",
            f"Products of {h} × {h} matrices over {lags} lags cost too much; use fewer units or steps.",
        )
    else:
        starts = sorted({round(i * (t - 2) / max(1, count - 1)) for i in range(count)})
        method = every if count == t - 1 else f"exact; {count} evenly spaced starts of {t - 1}; lags up to {lags}"
        norms, pairs = products(weights, slopes, starts, lags, emit, patterns=closes and not dense)
        results["masked_product"] = (norms, method)
        results["open_product"] = (powers(weights, lags), f"exact; lags up to {lags}")
        if closes and not dense:
            results["open_pairs"] = (pairs, method)
    for signal, (values, method) in results.items():
        title, formula = BY_LAG[signal]
        about = Describe(
            kind="mask", compare="ratio", title=title, formula=formula, source=SOURCE, scale="log", method=method
        )
        name = f"{recurrence.place}:mask/{signal}"
        emit.array(about.channel(name, ("lag",), tuple(values.shape), "float64", module=recurrence.module), values)


def open_paths(slopes: Tensor, lags: int) -> Tensor:
    """exp(median over k of Σ_{t=k+1…k+ℓ} ln q_t), ℓ = 0 … lags, from slopes (t, h); 0 where most starts meet a step
    that closes all."""
    logs = slopes.double().mean(1).log().clamp(min=-1e6)
    total = torch.cat((logs.new_zeros(1), logs[1:].cumsum(0)))
    return torch.stack([log_quantile(total[lag:] - total[: len(total) - lag], 0.5).exp() for lag in range(lags + 1)])


def dense_pairs(slopes: Tensor, lags: int) -> Tensor:
    """Joined pairs where no weight is zero: the last step's share of open units, if no step between closed all."""
    share = slopes.double().mean(1)
    closed = torch.cat((share.new_zeros(1), (share[1:] == 0).double().cumsum(0)))
    found = [share.new_ones(()) / slopes.shape[1]]
    for lag in range(1, lags + 1):
        open_all = (closed[lag:] - closed[: len(closed) - lag]) == 0
        found.append((share[lag:] * open_all).mean())
    return torch.stack(found)


def products(
    weights: Tensor, slopes: Tensor, starts: list[int], lags: int, emit: Emitter, *, patterns: bool = True
) -> tuple[Tensor, Tensor]:
    """Over the starts that reach each lag: (median of ‖∏ diag(m) W‖_F / √H, mean share of joined pairs).

    Shapes (lag,). Without `patterns` the second keeps its value at lag 0.
    """
    h, first = len(weights), torch.tensor(starts)
    pattern, identity = (weights != 0).to(weights.dtype), torch.eye(h, dtype=weights.dtype)
    carried, joined = identity.repeat(len(starts), 1, 1), identity.repeat(len(starts) if patterns else 1, 1, 1)
    size = torch.zeros(len(starts), dtype=torch.float64)
    logs, pairs = [log_quantile(size, 0.5) + math.log(h) / 2], [joined.double().mean()]
    for lag in range(1, lags + 1):
        emit.check()
        reaching = first + lag < len(slopes)
        first, carried, size = first[reaching], carried[reaching], size[reaching]
        mask = slopes[first + lag][:, :, None]
        carried = mask * (weights @ carried)
        norms = carried.flatten(1).double().norm(dim=1)
        carried = carried / torch.where(norms > 0, norms, torch.ones_like(norms)).to(carried.dtype)[:, None, None]
        size = size + norms.log().clamp(min=-1e4)
        logs.append(log_quantile(size, 0.5))
        if patterns:
            joined = (mask * (pattern @ joined[reaching]) > 0).to(weights.dtype)
        pairs.append(joined.double().mean())
    return (torch.stack(logs) - math.log(h) / 2).exp(), torch.stack(pairs)


def powers(weights: Tensor, lags: int) -> Tensor:
    """‖W^ℓ‖_F / √H for ℓ = 0 … lags; infinite beyond the largest float."""
    power, size = torch.eye(len(weights), dtype=weights.dtype), torch.zeros((), dtype=torch.float64)
    found = [size + math.log(len(weights)) / 2]
    for _ in range(lags):
        power = weights @ power
        norm = power.double().norm()
        size = size + norm.log().clamp(min=-1e4)
        power = power / torch.where(norm > 0, norm, torch.ones_like(norm)).to(power.dtype)
        found.append(size)
    return (torch.stack(found) - math.log(len(weights)) / 2).exp()
