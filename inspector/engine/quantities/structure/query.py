"""Does attention depend on its query at all? The rows of each map are compared."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from inspector.engine.attention.rows import Rows
from inspector.engine.attention.statistics import refusal
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Attention, Trace
from inspector.records.catalogue import ATTENTION

ABOUT = Describe(
    kind="structure", compare="separate", limits=(0.0, 1.0), title="dependence of attention on its query",
    formula="mean over pairs of rows of ½ Σ_k |A_ik − A_jk|, both normalised over the keys that both may attend to",
    source="total variation distance",
    method="pairs of neighbours and of the first and every other row, among 128 rows evenly spaced",
)  # fmt: skip
MOST_ROWS = 128
ONE_KEY = (
    "{} gives its whole weight to one key (hard attention): that all queries take the same one does not show that "
    "their scores do not depend on them."
)


@QUANTITIES.register("structure/query")
@per_run(
    summary="whether attention depends on its query", order=90, default=False, needs=(ATTENTION,),
    cost="nearly nothing", work=lambda run: run.call * 1,
)  # fmt: skip
def query(trace: Trace, emit: Emitter) -> None:
    """Write (head,) for every attention: 0 where all queries attend alike, as with a score that is a sum of a term of
    the query and one of the key, W[s; h] without tanh: the query's term cancels in the softmax. NaN where every
    key of every query is masked by a finite number, so that the weights are those of what is to be hidden."""
    for attention in trace.attentions:
        if attention.equivalent:  # what a scan stands for: no query asks, and with a constant decay rows are equal
            continue
        name = f"{attention.place}:structure/query"
        reason = refusal(attention)
        if reason is not None:
            emit.refuse(name, reason)
            continue
        if attention.margins is not None and bool((attention.margins[0] == -torch.inf).all()):
            none = np.full(attention.margins.shape[1], np.nan)
            emit.array(ABOUT.channel(name, ("head",), none.shape, "float64", module=attention.module), none)
            continue
        found = dependence(attention, trace.look_at)
        if found is None:
            emit.refuse(name, f"{attention.place} has no two queries with two keys in common, so none can be compared.")
            continue
        if not found.all() and takes_one_key(attention, trace.look_at):
            emit.refuse(name, ONE_KEY.format(attention.place))
            continue
        emit.array(ABOUT.channel(name, ("head",), (len(found),), "float64", module=attention.module), found)


def dependence(attention: Attention, sample: int) -> np.ndarray[tuple[int], np.dtype[np.float64]] | None:
    """(a,) float64 the mean distance; None where no pair of rows has two keys in common."""
    rows = Rows(attention, sample)
    if rows.queries < 2 or rows.keys < 2:
        return None
    picks = torch.unique(torch.linspace(0, rows.queries - 1, min(rows.queries, MOST_ROWS)).round().long())
    block = rows.picked(picks.to(rows.device))
    weights = block.full().double().cpu()
    allowed = torch.stack([rows.allowed(int(q), int(q) + 1)[:, 0] for q in picks], 1).cpu().expand(weights.shape)
    if attention.margins is not None:  # a row of masked keys alone is even, whatever its query
        allowed = allowed & (attention.margins[0].cpu()[:, picks] != -torch.inf)[..., None]
    n = len(picks)
    pairs = [(i, i + 1) for i in range(n - 1)] + [(0, i) for i in range(2, n)]
    one, other = torch.tensor(pairs).T
    common = allowed[:, one] & allowed[:, other]
    a, b = _normalised(weights[:, one], common), _normalised(weights[:, other], common)
    distance = (a - b).abs().sum(-1) / 2
    usable = (common.sum(-1) > 1) & distance.isfinite()
    if not bool(usable.any(-1).all()):
        return None
    found: np.ndarray[tuple[int], np.dtype[np.float64]] = (
        (distance.nan_to_num() * usable).sum(-1) / usable.sum(-1)
    ).numpy()
    return found


def takes_one_key(attention: Attention, sample: int) -> bool:
    """Whether the weights that are compared are 0 and 1 alone."""
    rows = Rows(attention, sample)
    picks = torch.unique(torch.linspace(0, rows.queries - 1, min(rows.queries, MOST_ROWS)).round().long())
    weights = rows.picked(picks.to(rows.device)).full().nan_to_num()
    return bool(((weights == 0) | (weights == 1)).all())


def _normalised(weights: Tensor, common: Tensor) -> Tensor:
    kept = weights * common
    return kept / kept.sum(-1, keepdim=True)
