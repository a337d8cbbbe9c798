"""What a probe recorded of attention: every call as an Attention, named by its module, and what could not be shown.

Nothing here raises: the first unexpected error ends the recording and is reported as the reason why the rest is
missing.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from inspector.engine.attention import multihead as attention_projection
from inspector.engine.attention.caches import joined_calls
from inspector.engine.attention.calls import (
    WITHOUT_DROPOUT,
    attend,
    check,
    from_weights,
    of_nested,
)
from inspector.engine.attention.masks import written_out
from inspector.engine.attention.selected_sample import SelectedSample
from inspector.engine.errors import Unsupported
from inspector.engine.hooks.module_stack import in_backward
from inspector.engine.trace.trace import Attention
from inspector.engine.wording import error_text

OWN_WEIGHTS_BYTES = 2 << 30
"""Maps that the model itself computes stay in memory until they are written; at most this many bytes of them in a
run."""

_MHA = inspect.signature(F.multi_head_attention_forward)
_MODULE = inspect.signature(nn.MultiheadAttention.forward)
_LAYER = inspect.signature(nn.TransformerEncoderLayer.forward)
_SDPA = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")


@dataclass(slots=True)
class Candidate:
    """The result of a softmax that may turn out to be attention: the sample's part (1, a, q, k), None if too large."""

    place: str
    module: str
    weights: Tensor | None
    bytes: int
    note: str = ""


@dataclass(slots=True)
class AttentionRecorder:
    """Collects the calls of one run. `where()` gives (place, class name) of the innermost module being called."""

    selected: SelectedSample
    where: Callable[[], tuple[str, str]]
    seen: list[Attention] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    broken: str = ""
    _pending: dict[int, tuple[weakref.ref[Tensor], Candidate]] = field(default_factory=dict)
    _own_bytes: int = 0

    def guarded(self, record: Callable[..., None], *arguments: Any) -> None:
        """Call one of the methods below so that nothing it does reaches the user's model."""
        if self.broken or in_backward():
            return
        try:
            with torch.no_grad():
                record(*arguments)
        except Unsupported as reason:
            place = self.where()[0]
            self.refused[place] = f"The attention of {place} is not shown: {reason}."
        except Exception as error:  # noqa: BLE001 - whatever happens here must not reach the user's model
            place = self.where()[0]
            self.broken = (
                f"Recording the attention of {place} failed ({error_text(error)[:150]}); "
                "attention after it is not shown."
            )

    def sdpa(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], out: Tensor) -> None:
        """F.scaled_dot_product_attention(query, key, value, …) returned `out`."""
        given = dict(zip(_SDPA, args, strict=False)) | dict(kwargs)
        query, key, value, mask = given["query"], given["key"], given["value"], given.get("attn_mask")
        _refuse_unreadable(query, key)
        place, module = self.where()
        dropout = float(given.get("dropout_p", 0.0)) > 0
        mask = None if query.is_nested or mask is None else written_out(mask, query, key.shape[-2])
        shape = () if query.is_nested else (*query.shape[:-1], key.shape[-2])
        seen = attend(
            self.selected, place, module, self.selected.fold(query), self.selected.fold(key),
            scale=given.get("scale"), causal=bool(given.get("is_causal", False)),
            mask=None if mask is None else self.selected.fold_mask(mask, shape), source=mask,
            note="; ".join(filter(None, (self._window_note(query), WITHOUT_DROPOUT if dropout else ""))),
        )  # fmt: skip
        if not dropout:
            values = self.selected.fold(value)[..., : seen.key.shape[-2], :]
            output = self.selected.fold_returned(out)
            seen.check = check(seen, values, lambda rows: output[:, rows].transpose(0, 1), lambda heads, _rows: heads)
        self.seen.append(of_nested(self.selected, seen) if query.is_nested else seen)

    def function(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], out: Any) -> None:
        """F.multi_head_attention_forward(…) returned `out`, (output, weights or None)."""
        bound = _MHA.bind(*args, **kwargs)
        bound.apply_defaults()
        place, module = self.where()
        _refuse_unreadable(bound.arguments["query"], bound.arguments["key"])
        if bound.arguments["static_k"] is not None or bound.arguments["static_v"] is not None:
            raise Unsupported("it was given ready-made keys or values (static_k, static_v)")
        self.seen.append(attention_projection.from_function(self.selected, place, module, bound.arguments, out[0]))

    def module(self, module: nn.MultiheadAttention, name: str, args: Any, kwargs: Any, out: Any) -> None:
        """A MultiheadAttention in eval mode returned `out`, (output, weights or None)."""
        bound = _MODULE.bind(module, *args, **kwargs)
        bound.apply_defaults()
        _refuse_unreadable(bound.arguments["query"])
        self.seen.append(attention_projection.from_module(self.selected, name, module, bound.arguments, out[0]))

    def layer(self, layer: nn.TransformerEncoderLayer, name: str, args: Any, kwargs: Any, out: Tensor) -> None:
        """A TransformerEncoderLayer ran fused and returned `out`."""
        bound = _LAYER.bind(layer, *args, **kwargs)
        bound.apply_defaults()
        _refuse_unreadable(bound.arguments["src"])
        place = f"{name}.self_attn"
        self.seen.append(attention_projection.from_encoder_layer(self.selected, place, layer, bound.arguments, out))

    def softmax(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], out: Tensor) -> None:
        """A softmax returned `out`; over the last axis of (b, q, k) or (b, a, q, k) it may be attention."""
        dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
        if dim not in (-1, out.dim() - 1) or not 2 <= out.dim() <= 5 or not out.is_floating_point():
            return
        place, module = self.where()
        named = any(word in f"{place}.{module}".lower() for word in ("attn", "attention"))
        batch = self.selected.batch
        if out.dim() == 2 and out.shape[0] != batch and (batch != 1 or not named):
            return
        weights = out[None] if out.dim() == 2 and out.shape[0] != batch else out
        weights = weights.unsqueeze(1) if weights.dim() == 2 else weights
        try:
            part = self.selected.fold(weights.detach())
        except Unsupported:
            return
        size = part.numel() * part.element_size()
        fits = self._own_bytes + size <= OWN_WEIGHTS_BYTES
        candidate = Candidate(place, module, part.clone() if fits else None, size, self._window_note(weights))
        if named:
            self._confirm(candidate)
        else:
            self._track(out, candidate)

    def passed_on(self, args: tuple[Any, ...], _kwargs: Mapping[str, Any], out: Any) -> None:
        """A dropout, cast or reshape: the result of a followed tensor is followed too if its keys stay last."""
        candidate = self._candidate(args[0]) if self._pending and args else None
        if candidate is not None and isinstance(out, Tensor) and out.shape[-1:] == args[0].shape[-1:]:
            self._track(out, candidate)

    def reshaped(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], out: Any) -> None:
        """A reshape: it shows the order in which the batch was merged with other axes."""
        self.passed_on(args, kwargs, out)
        if args and isinstance(args[0], Tensor) and isinstance(out, Tensor) and not out.is_nested:
            self.selected.reshaped(tuple(args[0].shape), tuple(out.shape))

    def joined(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], out: Tensor) -> None:
        """A concatenation along the first axis, of heads or windows with a batch each."""
        parts = kwargs.get("tensors", args[0] if args else ())
        if kwargs.get("dim", args[1] if len(args) > 1 else 0) in (0, -out.dim()) and not out.is_nested:
            self.selected.joined(tuple(tuple(part.shape) for part in parts), out.shape[0])

    def product(self, args: tuple[Any, ...], _kwargs: Mapping[str, Any], _out: Any) -> None:
        """weights @ values with a batch of values: the followed softmax was attention."""
        candidate = self._candidate(args[0]) if self._pending and len(args) > 1 else None
        if candidate is None:
            return
        weights, values = args[:2]
        if weights.dim() >= 3 and values.dim() == weights.dim() and values.shape[-2] == weights.shape[-1]:
            self._confirm(candidate)

    def einsum(self, args: tuple[Any, ...], _kwargs: Mapping[str, Any], _out: Any) -> None:
        """einsum that sums a followed tensor over its keys with a batch of values."""
        if not self._pending or not isinstance(args[0], str) or "->" not in args[0]:
            return
        operands = args[1] if len(args) == 2 and isinstance(args[1], (list, tuple)) else args[1:]
        left, result = args[0].replace(" ", "").split("->")
        terms = left.split(",")
        for term, operand in zip(terms, operands, strict=False):
            candidate = self._candidate(operand)
            others = [other for other in terms if other is not term]
            if candidate is not None and term[-1] not in result and any(term[-1] in o and len(o) > 2 for o in others):
                self._confirm(candidate)

    def attentions(self) -> list[Attention]:
        """All that was seen, in order; the calls of a loop or a cache joined, repeated calls of a module numbered."""
        groups: dict[str, list[Attention]] = {}
        for attention in self.seen:
            groups.setdefault(attention.place, []).append(attention)
        return [
            replace(one, place=f"{place}.{n}") if n else one
            for place, calls in groups.items()
            for n, one in enumerate(joined_calls(self.selected, calls))
        ]

    def _window_note(self, tensor: Tensor) -> str:
        """The note of (b·n, a, …, x, y); with fewer axes, the first one has the heads."""
        if tensor.is_nested or tensor.dim() < 4:
            return ""
        return self.selected.window_note(tensor.shape[0], tensor.shape[1:-2].numel())

    def _track(self, tensor: Tensor, candidate: Candidate) -> None:
        number = id(tensor)
        self._pending[number] = (weakref.ref(tensor, lambda _: self._pending.pop(number, None)), candidate)

    def _candidate(self, tensor: Any) -> Candidate | None:
        found = self._pending.get(id(tensor))
        return found[1] if found is not None and found[0]() is tensor else None

    def _confirm(self, candidate: Candidate) -> None:
        for number in [n for n, (_, other) in self._pending.items() if other is candidate]:
            del self._pending[number]
        if candidate.weights is None:
            raise Unsupported(
                f"the model computes the maps itself and this one would take {candidate.bytes / 1e9:.2g} GB more than "
                "allowed; with scaled_dot_product_attention only queries and keys are stored"
            )
        self._own_bytes += candidate.bytes
        self.seen.append(
            from_weights(self.selected, candidate.place, candidate.module, candidate.weights, candidate.note)
        )


def _refuse_unreadable(*tensors: Tensor) -> None:
    for tensor in tensors:
        if tensor.is_meta:
            raise Unsupported("its tensors have no values (meta device)")
        if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
            raise Unsupported("it runs inside a torch.func transform")
