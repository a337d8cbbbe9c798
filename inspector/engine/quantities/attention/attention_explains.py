"""Attention against gradient for the same query and key: do they order the keys alike?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from inspector.analysis.attention_explains import explains
from inspector.analysis.rank_correlation import Array, Spread, kendall, spearman, spread
from inspector.engine.analyses.attention.head_maps import write_heads
from inspector.engine.analyses.attention.layers_of_attention import in_series, mean_map, rolled
from inspector.engine.analyses.attention.lineages import lineages
from inspector.engine.analyses.input_gradients import MOST, of_scores
from inspector.engine.attention.rows import Rows
from inspector.engine.attention.statistics import refusal
from inspector.engine.errors import Unsupported
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Trace
from inspector.records import Log, Option
from inspector.records.catalogue import ATTENTION

NAME, SENSITIVITY = "attention/against_gradient", "output:sensitivity"
OF_ROLLOUT = "attention/rollout_against_gradient"
STATISTICS = ("ρ", "ρ low", "ρ high", "τ", "τ low", "τ high", "queries")
SOURCE = "Jain & Wallace 2019, Attention is not explanation; Spearman 1904; Kendall 1945; bootstrap: Efron 1979"
METHOD = "exact; largest score of each of {} evenly spaced steps, one backward pass each"
ABOUT = Describe(
    kind="attention_statistic", title="rank correlation with the gradient", source=SOURCE, scale="diverging",
    formula="over queries t: Spearman's ρ and Kendall's τ_b, over the keys s that t may attend to, of A_ts and "
    "‖∂(largest score at t)/∂x_s‖; low and high: 95 % of bootstrap means over queries",
)  # fmt: skip
ABOUT_MAP = Describe(
    kind="attention_map", title="sensitivity of the output", scale="log",
    formula="‖∂(largest score at t)/∂x_s‖₂, x as embedded",
    source="Simonyan et al. 2014; Jain & Wallace 2019",
)  # fmt: skip
OTHER_STEPS = "{} does not attend from the steps of the output to those of the input, so no query has a gradient."
RowsAt = Callable[[int], Tensor]
"""A query → (a, k) its row in each of a maps."""


@QUANTITIES.register(NAME)
@per_run(
    summary="does attention explain the predictions: its rank correlation with the gradient, by head", order=62,
    default=False, needs=(ATTENTION,), cost="a backward pass for each of up to 64 steps",
    work=lambda run: run.call * (2 * min(MOST, max(1, run.steps)) + 2),
    options=(Option(name="queries", type="int", default=MOST, low=2, high=4096, help="Most steps that are taken."),),
)  # fmt: skip
def against_gradient(trace: Trace, emit: Emitter, queries: int = MOST) -> None:
    """Write `output:sensitivity` (query, key), `PLACE:attention/against_gradient` (head, statistic) of attention
    whose keys are the input's steps, the same of the rollout as `layers:attention/rollout_against_gradient`, and a
    verdict.

    Compared are the keys that a query may attend to; queries with fewer than three have no rank correlation.
    """
    if not trace.attentions:
        return
    try:
        steps, slopes = of_scores(trace, emit, queries)
    except Unsupported as fault:
        emit.refuse(f"{trace.attentions[0].place}:{NAME}", str(fault))
        return
    _write_map(emit, trace, steps, slopes)
    for attention in trace.attentions:
        reason = refusal(attention)
        rows = Rows(attention, trace.look_at)
        if reason is None and (rows.keys != slopes.shape[1] or rows.queries <= steps[-1] or attention.first_query):
            reason = OTHER_STEPS.format(attention.place)
        if reason is not None:
            emit.refuse(f"{attention.place}:{NAME}", reason)
            continue
        about = replace(ABOUT, method=METHOD.format(len(steps)))
        found = _correlations(steps, slopes, rows, partial(_row, rows), emit)
        write_heads(emit, attention, NAME, about, found, STATISTICS)
    _judge(trace, emit, steps, slopes)


def _row(rows: Rows, t: int) -> Tensor:
    """(a, k)."""
    return rows.block(t, t + 1).full()[:, 0]


def _write_map(emit: Emitter, trace: Trace, steps: list[int], slopes: Tensor) -> None:
    domain = "answer step" if trace.answer is not None else "step"
    length = steps[-1] + 1
    channel = ABOUT_MAP.channel(
        SENSITIVITY, ("query", "key"), (length, slopes.shape[1]), "float64", method=METHOD.format(len(steps)),
        domains={"query": domain, "key": "step"},
    )  # fmt: skip
    emit.channel(channel)
    for row, step in enumerate(steps):
        emit.page(SENSITIVITY, (step, 0), slopes[row : row + 1])


def _correlations(steps: list[int], slopes: Tensor, rows: Rows, rows_at: RowsAt, emit: Emitter) -> Tensor:
    """(statistic, a) over the queries, of each of the maps; a query's row is computed once for all of them."""
    found: list[tuple[list[float], list[float]]] = []
    for number, t in enumerate(steps):
        emit.check()
        allowed = rows.allowed(t, t + 1).any(0)[0].cpu()
        given, other = rows_at(t).cpu().double()[:, allowed].numpy(), slopes[number][allowed].numpy()
        found.append(_of_query(given, other))
    rho, tau = (np.array([one[which] for one in found]).T for which in (0, 1))
    each = [_spread_of(*pair) for pair in zip(rho, tau, strict=True)]
    return torch.tensor(each, dtype=torch.float64).T


def _of_query(given: Array, slopes: Array) -> tuple[list[float], list[float]]:
    """ρ and τ_b of each row of `given` (a, k) with the slopes (k,), over the keys where both are finite."""
    finite = np.isfinite(given) & np.isfinite(slopes)
    both = [(one[there], slopes[there]) for one, there in zip(given, finite, strict=True)]
    return [spearman(*pair) for pair in both], [kendall(*pair) for pair in both]


def _spread_of(rho: Array, tau: Array) -> list[float]:
    """(statistic,) over the queries."""
    first, second = spread(rho), spread(tau)
    return [first.mean, first.low, first.high, second.mean, second.low, second.high, float(first.rows)]


def _judge(trace: Trace, emit: Emitter, steps: list[int], slopes: Tensor) -> None:
    """The rollout through all layers, or the mean over heads of the only one, against the gradient."""
    try:
        layers = in_series(trace.attentions, trace.look_at, partial(lineages, trace)).layers
    except Unsupported as reason:
        emit.refuse(f"layers:{OF_ROLLOUT}", str(reason))
        return
    rows = Rows(layers[0].first, trace.look_at)
    if len(slopes[0]) != rows.keys or rows.queries <= steps[-1]:
        return
    whole: Tensor | None = None
    for layer in layers:
        whole = rolled(mean_map(layer, trace.look_at), whole)
    assert whole is not None
    flow = whole
    found = _correlations(steps, slopes, Rows(layers[-1].first, trace.look_at), lambda t: flow[t][None], emit)[:, 0]
    channel = ABOUT.channel(
        f"layers:{OF_ROLLOUT}", ("statistic",), (len(STATISTICS),), "float64", labels={"statistic": STATISTICS},
        kind="attention_head", title="rank correlation of the rollout with the gradient",
        method=METHOD.format(len(steps)),
    )  # fmt: skip
    emit.array(channel, found)
    verdict = explains("the rollout", Spread(float(found[0]), float(found[1]), float(found[2]), int(found[6])))
    emit.sink.write(Log(f"{verdict.sentence[:1].upper()}{verdict.sentence[1:]}.", "info", "engine"))
