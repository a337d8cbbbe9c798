"""Of which sequence keys are, where the run had no graph that shows it: the model is called once more, with one."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from inspector.engine.analyses.attention.attended import following, recorded, with_gradients
from inspector.engine.analyses.attention.without_checkpoints import without_checkpoints
from inspector.engine.analyses.rerun import undisturbed
from inspector.engine.errors import Unsupported
from inspector.engine.trace.attention import SOURCE_NOT_KNOWN, UNKNOWN_SOURCE
from inspector.engine.trace.trace import Attention, Trace


class StillFollowed(TorchFunctionMode):
    """Inside, a model's own `torch.no_grad()` and `torch.set_grad_enabled(False)` do nothing, so that autograd follows
    it all the same; what a model computes in `torch.inference_mode` it cannot follow."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch._C._set_grad_enabled and not _own():
            return None
        return func(*args, **(kwargs or {}))


def _own() -> bool:
    """Whether this program itself asked for it, and not the model."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_name == "__torch_function__":  # of other modes inside this one
        frame = frame.f_back
    while frame is not None and frame.f_globals.get("__name__") == "torch.autograd.grad_mode":
        frame = frame.f_back
    return frame is not None and str(frame.f_globals.get("__name__")).startswith("inspector.")


def name_sources(trace: Trace) -> None:
    """Name the keys of attentions to as many keys as queries whose source no name, no memory and no graph has told.

    Where a call with a graph does not show it either it is not known, and what needs it is refused.
    """
    unknown = [one for one in trace.attentions if not one.source_asked]
    if not unknown:
        return
    try:
        model = trace.subject.model
        with undisturbed(model, trace.seed), following(model), without_checkpoints(), StillFollowed():
            again = {one.place: one for one in recorded(trace, with_gradients(trace.batch))[1]}
    except Unsupported:
        again = {}
    for one in unknown:
        _name(one, again.get(one.place))


def _name(attention: Attention, seen: Attention | None) -> None:
    """Name the keys as those of a call that had a graph."""
    attention.source_asked = True
    if seen is None or not seen.source_asked or not seen.source_known:  # no graph, or no product of both in it
        attention.keys_from = UNKNOWN_SOURCE
        attention.note = "; ".join(filter(None, (attention.note, SOURCE_NOT_KNOWN)))
    elif not seen.of_itself:
        attention.keys_from = seen.keys_from
