"""What the scores of attention are made of where a model computes them itself: queries and keys as products were given
them.

Letters: a head, q query, k key, d component.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.functional import pad

from inspector.engine.analyses.attention.attended import products_again
from inspector.engine.attention.rows import Rows
from inspector.engine.errors import Unsupported
from inspector.engine.trace.products import Products
from inspector.engine.trace.trace import Attention, Trace

UNKNOWN = "What the scores of {} are products of is not known: {}."
NOT_SEEN = "it was not seen when the model was called again"
TOGETHER = (
    "The scores of {} are computed from each query and key together (additive), so there are no queries and keys whose "
    "product they are; attention/pair has their parts."
)
OTHER_KEYS = "Calls of {} multiply with different keys, so there is no one list of them; attention/pair knows each."
ROUNDING = 64.0
"""How many rounding errors of the largest product a sum in another order may have."""


def products_of(trace: Trace, attention: Attention) -> list[Products]:
    """Those of an attention that the model computes itself, call by call, from one more call of the model.

    Raises Unsupported with the reason.
    """
    made = products_again(trace).get(attention.place, NOT_SEEN)
    if isinstance(made, str):
        raise Unsupported(UNKNOWN.format(attention.place, made))
    return made


def as_queries_and_keys(trace: Trace, attention: Attention) -> Attention:
    """The same attention with its queries, keys and what is added to their products, in place of weights.

    Raises Unsupported where they are not known, or where there are none.
    """
    calls = products_of(trace, attention)
    ways = [call.queries_and_keys() for call in calls]
    if not all(ways):
        raise Unsupported(TOGETHER.format(attention.place))
    rows = Rows(attention, trace.look_at)
    keys = ways[-1][0][1][:, : rows.keys]
    known = [next((q for q, k in way if _begins_with(keys, k[:, : rows.keys])), None) for way in ways]
    found = [one for one in known if one is not None]
    if len(found) < len(known):
        raise Unsupported(OTHER_KEYS.format(attention.place))
    queries = torch.cat(found, 1)[:, : rows.queries]
    allowed = rows.allowed(0, rows.queries).expand(rows.heads, -1, -1)
    made = replace(
        attention, weights=None, query=queries[None], key=keys[None], scale=1.0, causal=False, mask=allowed[None],
        kept=trace.look_at,
    )  # fmt: skip
    more = _added(calls, queries, keys, allowed) if any(call.plus for call in calls) else None
    return made if more is None else replace(made, mask=more[None])


def _begins_with(keys: Tensor, own: Tensor) -> bool:
    """Whether the keys of a call are the first ones of a later call, up to rounding."""
    first = keys[:, : own.shape[1]]
    near = ROUNDING * torch.finfo(keys.dtype).eps * float(keys.abs().max())
    return first.shape == own.shape and bool(((first - own).abs() <= near).all())


def _added(calls: list[Products], queries: Tensor, keys: Tensor, allowed: Tensor) -> Tensor | None:
    """(a, q, k) what is added to the products, −∞ where masked; None where it is a mask alone."""
    q, k = allowed.shape[1:]
    scores = torch.cat([pad(call.scores, (0, max(0, k - call.scores.shape[2])))[..., :k] for call in calls], 1)[:, :q]
    sums = queries.double() @ keys.double().mT
    more = (scores.double() - sums).where(allowed, 0.0)
    near = ROUNDING * torch.finfo(scores.dtype).eps * float((queries.abs().double() @ keys.abs().double().mT).max())
    if float(more.abs().max()) <= near:
        return None
    return more.to(scores.dtype).masked_fill(~allowed, -torch.inf)
