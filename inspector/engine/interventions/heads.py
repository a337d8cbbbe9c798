"""Heads of attention that give a value, or their mean, in place of what they compute: ablation of heads.

Every call of the model inside `HeadEdits.on` is changed, the run that is shown and those that quantities make. The maps
stay what they are: a head that gives 0 still attends, and nothing of it goes on. Fused paths are off meanwhile.

How: the result of F.scaled_dot_product_attention has an axis of heads; in F.multi_head_attention_forward the result is
linear in the columns of W_O that belong to a head; of attention that a model writes itself the sum of values is found
as the probe finds it, and changed there. Reference: Michel, Levy & Neubig 2019, Are sixteen heads really better than
one?
"""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from inspector.engine.attention.recorder import AttentionRecorder
from inspector.engine.attention.selected_sample import SelectedSample
from inspector.engine.errors import InputError, Unsupported
from inspector.engine.hooks.function_mode import unwatched
from inspector.engine.hooks.module_stack import CalledModules
from inspector.engine.model.subject import Batch
from inspector.engine.probes.attention import AttentionMode
from inspector.engine.trace.heads import Heads, Replaced, replacing
from inspector.engine.trace.trace import Attention, Trace
from inspector.records import Edit
from inspector.records.edits import MEAN

_MHA = inspect.signature(F.multi_head_attention_forward)
UNKNOWN = "as many heads as sequences"
NO_MEAN = "{} attends once a call, one query at a time, so a head has no mean over queries there; give it a number."


class HeadEdits:
    """The changes, and which of them were made."""

    def __init__(self, model: nn.Module, edits: Sequence[Edit], batch: Batch) -> None:
        self.model, self.edits, self.batch = model, tuple(edits), batch
        self.made: set[Edit] = set()
        self.problem = ""
        self.open: set[str] = set()
        """Places of which sizes do not say which axis is the batch."""
        self.choices: dict[str, int] | None = None
        """By place, which of several axes it is, as an unedited run has found; None: that was not asked yet."""

    @contextmanager
    def on(self) -> Iterator[None]:
        """Inside, every call of the model is changed."""
        forward = self.model.forward
        own, fast = "forward" in vars(self.model), torch.backends.mha.get_fastpath_enabled()

        @wraps(forward)
        def changed(*args: Any, **kwargs: Any) -> Any:
            with _Editing(self, args, kwargs):
                return forward(*args, **kwargs)

        self.model.forward = changed
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            yield
        finally:
            torch.backends.mha.set_fastpath_enabled(fast)
            if own:
                self.model.forward = forward
            else:
                del self.model.forward

    def settle(self, trace: Trace) -> None:
        """Take which axis is the batch from an unedited run, which refuses what it could not find."""
        known = {one.called for one in trace.attentions} | {one.place for one in trace.attentions}
        self.choices = {place: trace.batch_axes.get(place, 0) for place in self.open & known}
        self.made.clear()

    def is_open(self, place: str) -> bool:
        """Whether it is not known which axis is the batch: then nothing is changed there.
        Raises Unsupported in a run that is shown."""
        if self.choices is not None and place in self.choices:
            return False
        if self.choices is not None and place not in self.open:
            raise Unsupported(f"Heads of {place} cannot be changed in a call with {UNKNOWN}.")
        self.open.add(place)
        self.problem = f"{UNKNOWN}, sizes do not say which axis of its attention is the batch"
        return True

    def of(self, place: str, call: int) -> list[Edit]:
        """The changes at the call of a place; its later calls have a number ("attn.1")."""
        return [edit for edit in self.edits if edit.place in (place, f"{place}.{call}" if call else place)]


class _Editing(AttentionMode):
    """The mode of one call of the model."""

    def __init__(self, edits: HeadEdits, args: Any, kwargs: Any) -> None:
        leaf = next((one for one in tree_leaves((args, kwargs)) if isinstance(one, Tensor) and one.dim()), None)
        size, steps = edits.batch.size if leaf is None else leaf.shape[0], edits.batch.steps
        self.selected = SelectedSample(size, 0, steps, steps, choices=edits.choices or {}, passing_on=True)
        self.edits, self.called = edits, CalledModules(edits.model)
        self.found: list[Attention] = []
        self.calls: dict[str, int] = {}
        recorder = AttentionRecorder(self.selected, self.called.place, self._arrived)
        super().__init__(recorder)
        for function in (F.scaled_dot_product_attention, F.multi_head_attention_forward):
            self.handlers.pop(id(function), None)

    def __enter__(self) -> _Editing:
        self.on(True)
        return self

    def __exit__(self, *_: Any) -> None:
        self.on(False)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is F.multi_head_attention_forward:
            return self._multihead(args, kwargs)
        out = func(*args, **kwargs)
        with unwatched():
            if func is F.scaled_dot_product_attention:
                return self._sdpa(args[0] if args else kwargs["query"], out)
            handler = self.handlers.get(id(func))
            if handler is not None:
                self.found.clear()
                handler(args, kwargs, out)
                for attention in self.found:
                    out = self._written(attention, out)
        return out

    def _arrived(self, attention: Attention) -> None:
        self.found.append(attention)

    def _next(self, place: str) -> tuple[int, list[Edit]]:
        number = self.calls[place] = self.calls.get(place, -1) + 1
        return number, self.edits.of(place, number)

    def _sdpa(self, query: Tensor, out: Tensor) -> Tensor:
        """The axis of heads is the third from behind, or the first where they stand before the batch."""
        place = self.called.place()[0]
        number, wanted = self._next(place)
        if not wanted:
            return out
        if out.dim() < 4 or out.is_nested:
            self.edits.problem = f"{place} gives its heads no axis of their own"
            return out
        first, several = self.selected.heads_first(place, query)
        if several and out.shape[1] == self.selected.batch and self.edits.is_open(place):
            return out
        out = out.clone()
        by_head = out.movedim(0 if first else -3, 0)
        for edit in wanted:
            rows = _rows(edit, out.shape[-2], number)
            for head in _heads(edit, len(by_head)):
                own = by_head[head]
                own[..., rows, :] = _new(edit, place, own).expand_as(own)[..., rows, :]
            self.edits.made.add(edit)
        return out

    def _multihead(self, args: Any, kwargs: Any) -> tuple[Tensor, Any]:
        """y is linear in W_O: without the columns of a head it lacks what that head adds."""
        place = self.called.place()[0]
        number, wanted = self._next(place)
        bound = _MHA.bind(*args, **kwargs)
        queries, heads = bound.arguments["query"].shape[0], bound.arguments["num_heads"]
        parts = [
            (edit, Replaced(head, _rows(edit, queries, number), edit.text == MEAN))
            for edit in wanted
            for head in _heads(edit, heads)
        ]
        with replacing([part for _, part in parts]):
            y, weights = F.multi_head_attention_forward(*args, **kwargs)
        with unwatched():
            for edit, part in parts:
                y = y + _change(bound, edit, part, place)
        self.edits.made.update(wanted)
        return y, weights

    def _written(self, attention: Attention, out: Any) -> Any:
        """A sum of values that the model computed itself."""
        place = attention.place
        number, wanted = self._next(place)
        heads: Heads | None = attention.heads
        if not wanted or (attention.open_axes and self.edits.is_open(place)):
            return out
        call = heads.calls[0] if heads is not None and heads.calls else None
        if call is None or call.put is None:
            self.edits.problem = f"the sum of values of {place} is put together from several operations"
            return out
        try:
            for edit in wanted:
                for head in _heads(edit, call.value.shape[0]):
                    rows = _rows(edit, call.queries, number)
                    out = call.put(out, head, rows, partial(_new, edit, place))
                self.edits.made.add(edit)
        except Unsupported as reason:
            self.edits.problem = str(reason)
        return out


def _change(bound: inspect.BoundArguments, edit: Edit, part: Replaced, place: str) -> Tensor:
    """What is added to y for one head. The head's own part comes from two more calls, not from y: y less itself would
    have no gradient at y, where the gradient at the heads is read."""
    weight, heads = bound.arguments["out_proj_weight"], bound.arguments["num_heads"]
    columns = slice(part.head * weight.shape[1] // heads, (part.head + 1) * weight.shape[1] // heads)
    without = torch.cat(
        (weight[:, : columns.start], torch.zeros_like(weight[:, columns]), weight[:, columns.stop :]), dim=1
    )
    whole, rest = (
        F.multi_head_attention_forward(*(ours := _with(bound, one)).args, **ours.kwargs)[0] for one in (weight, without)
    )
    added = whole - rest
    value = _mean(added, 0, place) if part.mean else (edit.value * weight[:, columns].sum(1)).to(added)
    change = torch.zeros_like(added)
    change[part.rows] = (value - added)[part.rows]
    return change


def _with(bound: inspect.BoundArguments, weight: Tensor) -> inspect.BoundArguments:
    """The same call with another W_O."""
    return inspect.BoundArguments(_MHA, OrderedDict(bound.arguments | {"out_proj_weight": weight}))


def _rows(edit: Edit, queries: int, number: int) -> slice:
    """The rows of a call; of a decoder that attends once a step, the call is the row."""
    if queries == 1 and (edit.start or edit.stop is not None):
        return slice(0, int(edit.start <= number and (edit.stop is None or number < edit.stop)))
    return slice(edit.start, edit.stop)


def _heads(edit: Edit, count: int) -> list[int]:
    if edit.unit is None:
        return list(range(count))
    if edit.unit >= count:
        raise InputError(f"{edit.place} has the heads 0 to {count - 1}; there is no head {edit.unit}.")
    return [edit.unit]


def _new(edit: Edit, place: str, before: Tensor) -> Tensor:
    """What is put in the place of (…, q, d)."""
    if edit.text == MEAN:
        return _mean(before, -2, place)
    return torch.full((), edit.value, dtype=before.dtype, device=before.device)


def _mean(values: Tensor, axis: int, place: str) -> Tensor:
    if values.shape[axis] < 2:
        raise InputError(NO_MEAN.format(place))
    return values.mean(axis, keepdim=True)
