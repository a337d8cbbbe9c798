"""Numbers of pairs of positions, gathered by their distance: i − j, position i of a query minus j of a key."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from inspector.engine.attention.rows import FORBIDDEN, Rows
from inspector.engine.errors import Unsupported
from inspector.engine.trace.trace import Attention

NO_OWN = "No query of {} may attend to its own position, from which the scores at other distances are counted."
NOT_A_SOFTMAX = "The weights of {} are not those of a softmax of its scores, so scores cannot be told from them."


@dataclass(frozen=True, slots=True, eq=False)
class ByDistance:
    """Of numbers at every distance: mean and standard deviation over the pairs, (a, n); NaN where there is no pair.

    `least`: the distance of the first, which is negative where queries attend to later keys.
    """

    mean: Tensor
    spread: Tensor
    least: int


def scores_by_distance(attention: Attention, sample: int, tokens: Tensor | None = None) -> ByDistance:
    """How much higher the score of a key at each distance is than that of the query's own position, over all queries.

    Where the model computes its weights itself the difference of two scores is that of the logarithms of two weights,
    as a softmax is defined. Keys that are masked do not count, nor positions that are not among the tokens (t,).
    Raises Unsupported.
    """
    rows = Rows(attention, sample)
    least, count = 1 - rows.keys - attention.first_query, rows.queries + rows.keys + attention.first_query - 1
    sums = torch.zeros(3, rows.heads, count, dtype=torch.float64)
    for heads, q0, q1 in rows.blocks():
        scores = _scores(attention, rows, heads, q0, q1)
        if tokens is not None:
            aside = ~tokens[q0:q1, None] | ~tokens[: scores.shape[-1]]
            scores = scores.masked_fill(aside, -torch.inf)
        keys = torch.arange(scores.shape[-1])
        queries = torch.arange(q0, q1) + attention.first_query
        own = torch.where(queries[:, None] == keys, scores, 0.0).sum(-1)
        has_own = ((queries[:, None] == keys) & scores.isfinite()).any(-1)
        there = scores.isfinite() & has_own[..., None]
        above = torch.where(there, scores - own[..., None], 0.0)
        at = (queries[:, None] - keys - least).expand(scores.shape[0], -1, -1).flatten(1)
        for row, values in enumerate((there.double(), above, above**2)):
            sums[row, heads] = sums[row, heads].scatter_add(1, at, values.flatten(1))
    number, total, squares = sums
    if not bool(number.any()):
        raise Unsupported(NO_OWN.format(attention.place))
    mean = total / number
    spread = (squares / number - mean**2).clamp_min(0.0).sqrt()
    seen = number.any(0).nonzero()[:, 0]
    part = slice(int(seen[0]), int(seen[-1]) + 1)
    return ByDistance(mean[:, part], spread[:, part], least + part.start)


def _scores(attention: Attention, rows: Rows, heads: slice, q0: int, q1: int) -> Tensor:
    """(a, q, k') float64 the scores, −∞ where masked."""
    block = rows.block(q0, q1, heads)
    if block.scores is not None:
        scores = block.scores.double().cpu()
        return scores.masked_fill(scores <= FORBIDDEN / 2, -torch.inf)
    if attention.equivalent or bool(block.signed.any()) or bool((block.weights.nansum(-1) - 1).abs().max() > 1e-2):
        raise Unsupported(NOT_A_SOFTMAX.format(attention.place))
    return block.weights.double().cpu().nan_to_num(nan=0.0).log()


def cosine(rows: Tensor) -> Tensor:
    """(n, n) cosine of every two rows (n, d); NaN beside a row of zeros."""
    sizes = rows.norm(dim=1, keepdim=True)
    unit = rows / sizes.masked_fill(sizes == 0, torch.nan)
    alike: Tensor = unit @ unit.T
    return alike


def by_distance(similar: Tensor) -> Tensor:
    """(3, n) mean, least and largest number of all pairs at each distance of a symmetric (n, n); NaN ones do not
    count."""
    found = []
    for distance in range(len(similar)):
        line = similar.diagonal(distance)
        line = line[~line.isnan()]
        nothing = line.new_tensor([torch.nan] * 3)
        found.append(torch.stack([line.mean(), line.min(), line.max()]) if len(line) else nothing)
    return torch.stack(found, 1)
