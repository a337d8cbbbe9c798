"""The ids that an embedding looked up, call by call, and how calls become sequences: shared by its probe and its
quantity."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby

import torch
from torch import Tensor

from inspector.engine.model.batch import NamedInput
from inspector.engine.trace.trace import Trace
from inspector.records import ANSWER_DOMAIN, STEP_DOMAIN


@dataclass(slots=True)
class EmbeddingCall:
    """One call: ids (any shape), and, once known, the norms of ∂L/∂e for the vector e returned for each of them."""

    ids: Tensor
    output: Tensor | None
    version: int
    norms: Tensor | None = None
    changed: bool = False

    def take(self, gradient: Tensor | None) -> None:
        """Store the norms; the gradient of a result that was changed in place belongs to another value."""
        assert self.output is not None
        self.changed = self.output._version != self.version
        self.output = None
        if gradient is not None:
            self.norms = gradient.detach().norm(dim=-1).cpu()


@dataclass(slots=True)
class EmbeddingCalls:
    """Place of an embedding → its calls in their order."""

    by_place: dict[str, list[EmbeddingCall]] = field(default_factory=dict)


def sequences(trace: Trace, calls: list[EmbeddingCall]) -> Iterator[tuple[str, EmbeddingCall]]:
    """(step axis, ids and norms (b, t)) of calls that read the input or the output of all samples, in their order.

    Calls of one token a sample, one after the other, are one sequence. Embeddings of positions and others are left out.
    """
    size = len(trace.batch.lengths)
    for single, group in groupby(calls, lambda call: call.ids.numel() == size):
        alike = list(group)
        for call in _joined(alike, size) if single and trace.batch.steps > 1 else alike:
            found = _step_axis_of(trace, call)
            if found is not None:
                yield found


def _joined(calls: list[EmbeddingCall], size: int) -> list[EmbeddingCall]:
    norms = [torch.zeros(size) if call.norms is None else call.norms.reshape(size) for call in calls]
    ids = torch.stack([call.ids.reshape(size) for call in calls], dim=1)
    known = any(call.norms is not None for call in calls)
    joined = torch.stack([row.to(norms[-1]) for row in norms], dim=1) if known else None
    return [EmbeddingCall(ids, None, 0, joined, any(call.changed for call in calls))]


def _step_axis_of(trace: Trace, call: EmbeddingCall) -> tuple[str, EmbeddingCall] | None:
    """The step axis of a call: that of the input whose ids it read, the output's where they fit that."""
    answer, ids = trace.answer, call.ids
    others = [(name, one) for name, one in trace.batch.others() if one.kind == "tokens"]
    for name, one in [(trace.batch.primary, trace.batch.first), *others]:
        for turned in (ids, ids.T) if ids.dim() == 2 and one.tensor is not None else ():
            if _is_read(turned, one):
                norms = call.norms if turned is ids or call.norms is None else call.norms.T
                domain = ANSWER_DOMAIN if answer is not None and answer.source == name else one.axis or STEP_DOMAIN
                return domain, EmbeddingCall(turned, None, 0, norms, call.changed)
    if answer is not None and tuple(ids.shape) == (len(trace.batch.lengths), answer.steps):
        return ANSWER_DOMAIN, call
    return None


def _is_read(ids: Tensor, one: NamedInput) -> bool:
    """Whether ids are those of an input, at its real steps."""
    given = one.tensor
    assert given is not None
    if ids.shape != given.shape:
        return False
    real = torch.arange(given.shape[1])[None] < one.lengths[:, None]
    return bool((ids == given).cpu()[real].all())


def length_over(trace: Trace, domain: str) -> int:
    """Real steps of the selected sample over a step axis."""
    if trace.answer is not None and domain == ANSWER_DOMAIN:
        return trace.answer.length(trace.look_at)
    found = next((one for _, one in trace.batch.others() if one.axis == domain), trace.batch.first)
    return int(found.lengths[trace.look_at])
