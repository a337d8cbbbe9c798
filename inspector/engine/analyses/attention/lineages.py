"""Of which earlier attentions each one was computed: the model is called once more, and its graph is looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from inspector.engine.analyses.attention.attended import following, recorded
from inspector.engine.analyses.attention.keys_again import StillFollowed
from inspector.engine.analyses.attention.without_checkpoints import without_checkpoints
from inspector.engine.analyses.rerun import undisturbed
from inspector.engine.attention.graph_alone import WithoutValues
from inspector.engine.errors import Unsupported
from inspector.engine.model.batch import Batch
from inspector.engine.trace.attention import Lineage
from inspector.engine.trace.trace import Trace

_DETACHED = (Tensor.detach, torch.detach, Tensor.data.__get__)  # type: ignore[attr-defined]


class NothingDetached(StillFollowed):
    """Inside, what a model detaches keeps its graph: that a layer is given the numbers of another one counts here, and
    not which gradients the model wants."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in _DETACHED and torch.is_grad_enabled() and args[0].requires_grad:
            return args[0].view_as(args[0])
        return super().__torch_function__(func, types, args, kwargs)


@dataclass(slots=True)
class KnownLineages:
    """What one more call showed, or why it showed nothing."""

    by_place: Mapping[str, Lineage | None] | None = None
    reason: str = ""


def lineages(trace: Trace) -> Mapping[str, Lineage | None]:
    """By place; None of attentions of which it is not known. Raises Unsupported."""
    known = trace.findings.of(KnownLineages)
    if known.by_place is None and not known.reason:
        try:
            known.by_place = _called_again(trace)
        except Unsupported as reason:
            known.reason = str(reason)
    if known.by_place is None:
        raise Unsupported(known.reason)
    return known.by_place


def _called_again(trace: Trace) -> Mapping[str, Lineage | None]:
    """Large tensors are not kept for the graph; a model that itself takes gradients needs them."""
    try:
        with WithoutValues().hooks():
            return _call(trace)
    except Unsupported:
        return _call(trace)


def _call(trace: Trace) -> Mapping[str, Lineage | None]:
    with (
        undisturbed(trace.subject.model, trace.seed),
        following(trace.subject.model),
        without_checkpoints(),
        NothingDetached(),
    ):
        made = recorded(trace, followed(trace.batch), lineages=True)[1]
    return {one.place: one.lineage for one in made}


def followed(batch: Batch) -> Batch:
    """The batch with every input of floating point followed by autograd, and no leaf: a model may write into it."""
    named = {
        name: replace(one, tensor=one.tensor.detach().clone().requires_grad_().clone())
        if one.tensor is not None and one.tensor.is_floating_point()
        else one
        for name, one in batch.named.items()
    }
    return Batch.of(named, batch.primary, targets=batch.targets, look_at=batch.look_at, title=batch.title)
