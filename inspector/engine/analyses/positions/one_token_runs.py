"""Two calls of the model on one token repeated, and what in them depends on the position alone."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from inspector.engine.analyses.attention.attended import NOT_SEEN, following, recorded
from inspector.engine.analyses.positions.added import Encoding, encodings
from inspector.engine.analyses.positions.counts import counts_of
from inspector.engine.analyses.positions.one_token import is_time, one_token
from inspector.engine.analyses.positions.operands import Operands, watching
from inspector.engine.analyses.rerun import undisturbed
from inspector.engine.attention.rows import Rows
from inspector.engine.errors import Unsupported
from inspector.engine.hooks.module_stack import CalledModules
from inspector.engine.model.batch import Batch
from inspector.engine.trace.trace import Attention, Trace

NO_QUERIES = "its scores are no product of one vector for each query and one for each key"


@dataclass(frozen=True, slots=True)
class Runs:
    """Encodings of positions, and the attentions of the second of two runs on one token repeated.

    `queries`: of each attention those (a, t, d) of the second and of the first run, or why they are not known.
    `times`: the inputs that say when each step was, and were left as they are.
    """

    encodings: list[Encoding]
    attentions: list[Attention]
    queries: dict[str, tuple[Tensor, ...] | str]
    times: tuple[str, ...] = ()

    def tokens(self, attention: Attention) -> Tensor | None:
        """(t,) which positions of an attention change with the token; None where no query tells. What stands beside the
        tokens (a class token in front) is found in the first layer, before it has attended to any."""
        shape = attention.query.shape if attention.weights is None else attention.weights.shape
        found: Tensor | None = None
        for both in self.queries.values():
            if isinstance(both, str) or len(both) < 2 or both[0].shape[1] != shape[2]:
                continue
            differ = (both[0] != both[1]).any(-1).any(0).cpu()
            if bool(differ.any()):
                found = differ if found is None else found & differ
        return found


def runs(trace: Trace) -> Runs:
    """Call the model twice on one token repeated, without dropout, which would be noise of its own at each step.

    Raises Unsupported.
    """
    counts = counts_of(trace)
    place = CalledModules(trace.subject.model).place
    seen: list[list[Operands]] = []
    attentions: list[Attention] = []
    queries: list[dict[str, Tensor | str]] = []
    for which in (0, 1):
        batch = one_token(trace, which)
        with (
            undisturbed(trace.subject.model, trace.seed + which), torch.no_grad(),
            watching(place, counts, seen[0] if seen else ()) as operands,
        ):  # fmt: skip
            trace.subject.model.eval()
            attentions = recorded(trace, batch)[1]
        seen.append(operands)
        queries.append(_queries(trace, batch, attentions))
    both: dict[str, tuple[Tensor, ...] | str] = {}
    for name, last in queries[1].items():
        first = queries[0].get(name)
        if isinstance(last, Tensor) and isinstance(first, Tensor) and first.shape == last.shape:
            both[name] = (last, first)
        else:
            both[name] = last if isinstance(last, str) else (last,)
    times = tuple(name for name in trace.batch.named if is_time(trace, name))
    return Runs(encodings(seen[0], seen[1], counts), attentions, both, times)


def _queries(trace: Trace, batch: Batch, attentions: list[Attention]) -> dict[str, Tensor | str]:
    """(a, t, d) the queries of each self-attention times the scale, or why they are not known; where a model computes
    its weights itself they are read off autograd's graph in a call more."""
    found: dict[str, Tensor | str] = {}
    for one in attentions:
        if one.weights is None:
            found[one.place] = Rows(one, 0).scaled[0].clone()  # type: ignore[index]
    written = [one.place for one in attentions if one.weights is not None and one.of_itself]
    if not written:
        return found
    try:
        with undisturbed(trace.subject.model, trace.seed), following(trace.subject.model):
            trace.subject.model.eval()
            again = {one.place: one.products or NOT_SEEN for one in recorded(trace, batch, products=True)[1]}
    except Unsupported as reason:
        return found | dict.fromkeys(written, str(reason))
    for place in written:
        products = again.get(place, NOT_SEEN)
        parts = [] if isinstance(products, str) else [one.queries_and_keys() for one in products]
        if len(parts) == 1 and parts[0]:
            found[place] = parts[0][0][0].detach()
        else:
            found[place] = products if isinstance(products, str) else NO_QUERIES
    return found
