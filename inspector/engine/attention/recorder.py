"""What a probe recorded of attention: every call as an Attention, named by its module, and what could not be shown.

Nothing here raises: the first unexpected error ends the recording and is reported as the reason why the rest is
missing.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from inspector.engine.attention import multihead as attention_projection
from inspector.engine.attention.blocks_of_queries import joined_blocks
from inspector.engine.attention.caches import joined_calls
from inspector.engine.attention.calls import (
    WITHOUT_DROPOUT,
    attend,
    check,
    match_heads,
    of_nested,
)
from inspector.engine.attention.flex import from_flex
from inspector.engine.attention.masks import written_out
from inspector.engine.attention.projections import Projections
from inspector.engine.attention.selected_sample import SelectedSample
from inspector.engine.attention.written import transformed
from inspector.engine.attention.written.online import Online
from inspector.engine.errors import Unsupported
from inspector.engine.hooks.heap import GAPS, Heap
from inspector.engine.hooks.module_stack import ROOT, in_backward
from inspector.engine.trace.heads import Heads, PassedOn, edge_of
from inspector.engine.trace.trace import Attention, KeyEnds
from inspector.engine.wording import error_text
from inspector.records.plain_text import shortened

_MHA = inspect.signature(F.multi_head_attention_forward)
_MODULE = inspect.signature(nn.MultiheadAttention.forward)
_LAYER = inspect.signature(nn.TransformerEncoderLayer.forward)
_SDPA = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")


@dataclass(slots=True)
class AttentionRecorder:
    """Collects the calls of one run. `where()` gives (place, class name) of the innermost module being called."""

    selected: SelectedSample
    where: Callable[[], tuple[str, str]]
    arrived: Callable[[Attention], None] = lambda _attention: None
    """Called with each attention as soon as it is known."""
    seen: list[Attention] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    broken: str = ""
    projections: Projections = field(default_factory=Projections)
    own: Online = field(init=False)
    """What the model computes itself."""
    heap: Heap = field(default_factory=Heap)

    def __post_init__(self) -> None:
        self.own = Online(self.selected, self.where, self.add, self.projections)

    def looked(self, record: Callable[..., None], concerns: Callable[..., bool]) -> Callable[..., None]:
        """A handler of a function that may be called at every step: it is called only where that concerns it.

        Inside a torch.func transform tensors have no values to read: a softmax, or an index of the largest, is listed.
        """
        transform, compiling = torch._C._functorch.peek_interpreter_stack, torch.compiler.is_compiling
        inside = transformed.LOOKS.get(record.__name__) if getattr(record, "__self__", None) is self.own else None

        def look(args: Any, kwargs: Any, out: Any) -> None:
            if compiling():
                return
            if transform() is not None:
                if inside is not None:
                    self.guarded(inside, self.own, args, kwargs, out)
            elif concerns(args, out):
                self.guarded(record, args, kwargs, out)

        return look

    def guarded(self, record: Callable[..., None], *arguments: Any) -> None:
        """Call one of the methods below so that nothing it does reaches the user's model."""
        if self.broken or in_backward():
            return
        self.own.result = arguments[-1]
        try:
            with torch.no_grad():
                record(*arguments)
        except Unsupported as reason:
            place = self.where()[0]
            self.refused[place] = f"The attention of {place} is not shown: {reason}."
        except Exception as error:  # noqa: BLE001 - whatever happens here must not reach the user's model
            place = self.where()[0]
            self.broken = (
                f"Recording the attention of {place} failed ({shortened(error_text(error), 150)}); "
                "attention after it is not shown."
            )

    def add(self, attention: Attention) -> None:
        """Keep one attention."""
        self.seen.append(attention)
        result = self.own.result
        self.own.results.note(result[0] if isinstance(result, tuple) and result else result, attention)
        self.arrived(attention)
        self.heap.tidy()

    def sdpa(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], out: Tensor) -> None:
        """F.scaled_dot_product_attention(query, key, value, …) returned `out`."""
        given = dict(zip(_SDPA, args, strict=False)) | dict(kwargs)
        query, key, value, mask = given["query"], given["key"], given["value"], given.get("attn_mask")
        _refuse_unreadable(query, key)
        place, module = self.where()
        returned = out
        heads_first, several = self.selected.heads_first(place, query)
        if heads_first:
            query, key, value, out = (one.transpose(0, 1) for one in (query, key, value, out))
            mask = mask.transpose(0, 1) if isinstance(mask, Tensor) and mask.dim() > 3 else mask
        dropout = float(given.get("dropout_p", 0.0)) > 0
        mask = None if query.is_nested or mask is None else written_out(mask, query, key.shape[-2])
        shape = () if query.is_nested else (*query.shape[:-1], key.shape[-2])
        seen = attend(
            self.selected, place, module, self.selected.fold(query), self.selected.fold(key),
            scale=given.get("scale"), causal=bool(given.get("is_causal", False)),
            mask=None if mask is None else self.selected.fold_mask(mask, shape), given_mask=mask,
            source=self._source(query, key),
            note="; ".join(filter(None, (self._window_note(query), WITHOUT_DROPOUT if dropout else ""))),
        )  # fmt: skip
        if self.selected.passing_on and not query.is_nested:
            values, fold = match_heads(seen.query, self.selected.fold(value.detach()))[0], self.selected.fold_returned
            turned = (lambda given: fold(given.transpose(0, 1))) if heads_first else fold
            call = PassedOn(values, query.shape[-2], edge_of(returned), turned)
            self.projections.expect(seen, Heads([call]), returned)
        if not dropout:
            values = self.selected.fold(value)[..., : seen.key.shape[-2], :]
            output = self.selected.fold_returned(out)
            seen.check = check(seen, values, lambda rows: output[:, rows].transpose(0, 1), lambda heads, _rows: heads)
        seen.ends = None if query.is_nested else self._ends(query, value, key)
        seen.open_axes = several
        if not query.is_nested and 1 < query.shape[-2] < key.shape[-2]:
            seen.block_source = self.own.keys.of(query, key)
        self.own.descends(seen, value, returned)
        self.add(of_nested(self.selected, seen) if query.is_nested else seen)

    def flex(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], out: Any) -> None:
        """flex_attention(query, key, value, …) returned `out`."""
        place, module = self.where()
        given = dict(zip(_SDPA, args, strict=False)) | dict(kwargs)
        source = self._source(given["query"], given["key"])
        seen = from_flex(self.selected, place, module, args, dict(kwargs), out, source)
        self.own.descends(seen, given["value"], out[0] if isinstance(out, tuple) else out)
        self.add(seen)

    def function(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], out: Any) -> None:
        """F.multi_head_attention_forward(…) returned `out`, (output, weights or None)."""
        bound = _MHA.bind(*args, **kwargs)
        bound.apply_defaults()
        place, module = self.where()
        _refuse_unreadable(bound.arguments["query"], bound.arguments["key"])
        if bound.arguments["static_k"] is not None or bound.arguments["static_v"] is not None:
            raise Unsupported("it was given ready-made keys or values (static_k, static_v)")
        seen = attention_projection.from_function(
            self.selected, place, module, bound.arguments, out[0], self._of_module(bound)
        )
        seen.ends = self._ends(*(bound.arguments[name] for name in ("query", "value", "key")))
        self.own.descends(seen, bound.arguments["value"], out[0])
        self.add(seen)

    def module(self, module: nn.MultiheadAttention, name: str, args: Any, kwargs: Any, out: Any) -> None:
        """A MultiheadAttention in eval mode returned `out`, (output, weights or None)."""
        bound = _MODULE.bind(module, *args, **kwargs)
        bound.apply_defaults()
        _refuse_unreadable(bound.arguments["query"])
        seen = attention_projection.from_module(
            self.selected, name, module, bound.arguments, out[0], self._of_module(bound)
        )
        seen.ends = self._ends(*(bound.arguments[name] for name in ("query", "value", "key")))
        self.own.descends(seen, bound.arguments["value"], out[0])
        self.add(seen)

    def layer(self, layer: nn.TransformerEncoderLayer, name: str, args: Any, kwargs: Any, out: Tensor) -> None:
        """A TransformerEncoderLayer ran fused and returned `out`."""
        bound = _LAYER.bind(layer, *args, **kwargs)
        bound.apply_defaults()
        _refuse_unreadable(bound.arguments["src"])
        place = "self_attn" if name == ROOT else f"{name}.self_attn"
        seen = attention_projection.from_encoder_layer(self.selected, place, layer, bound.arguments, out)
        self.own.descends(seen, bound.arguments["src"], out)
        self.add(seen)

    def reshaped(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], out: Any) -> None:
        """A reshape: it shows the order in which the batch was merged with other axes."""
        self.own.passed(args, kwargs, out)
        if args and isinstance(args[0], Tensor) and isinstance(out, Tensor) and not out.is_nested:
            self.own.results.reshaped(args[0], out)
            self.selected.reshaped(tuple(args[0].shape), tuple(out.shape))

    def joined(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], out: Tensor) -> None:
        """A concatenation along the first axis, of heads or windows with a batch each."""
        self.own.stacked(args, kwargs, out)
        parts = kwargs.get("tensors", args[0] if args else ())
        if kwargs.get("dim", args[1] if len(args) > 1 else 0) in (0, -out.dim()) and not out.is_nested:
            self.selected.joined(tuple(tuple(part.shape) for part in parts), out.shape[0])

    def attentions(self) -> list[Attention]:
        """All that was seen, in order; the calls of a loop or a cache joined, repeated calls of a module numbered."""
        self.heap.tidy(GAPS // 8)
        groups: dict[str, list[Attention]] = {}
        self.own.finished()
        shown = [one for one in self.seen if id(one) not in self.own.blocks.withdrawn]
        for number, attention in enumerate(shown):
            attention.order = number
            groups.setdefault(attention.place, []).append(attention)
        return [
            replace(one, place=f"{place}.{n}", call=n) if n else one
            for place, calls in groups.items()
            for n, one in enumerate(joined_calls(self.selected, joined_blocks(self.selected, calls)))
        ]

    def _source(self, query: Tensor, key: Tensor) -> str | None:
        """Of which sequence the keys are, as their graphs say it; None where there are none."""
        if query.is_nested or query.shape[-2] != key.shape[-2] or query.shape[-2] < 2:
            return None  # one query and one key are a step of something, of which the calls together show what it is
        return self.own.keys.of(query, key)

    def _of_module(self, bound: inspect.BoundArguments) -> str | None:
        """The same of the queries and keys that torch's own module is given, before it projects them."""
        query, key = bound.arguments["query"], bound.arguments["key"]
        if query.is_nested or query.shape[:-1] != key.shape[:-1] or (query.grad_fn is None and key.grad_fn is None):
            return None
        return self.own.keys.graph.of(query, key)

    def _ends(self, query: Tensor, *tensors: Tensor) -> KeyEnds | None:
        """What values or keys were put together from; None where the queries were too."""
        known = (self.own.facts.of(one) for one in tensors)
        found = next((one.ends for one in known if one is not None and one.ends is not None), None)
        own = self.own.facts.of(query)
        return None if own is not None and own.ends is found else found

    def _window_note(self, tensor: Tensor) -> str:
        """The note of (b·n, a, …, x, y); with fewer axes, the first one has the heads."""
        if tensor.is_nested or tensor.dim() < 4:
            return ""
        return self.selected.window_note(tensor.shape[0], tensor.shape[1:-2].numel())


def _refuse_unreadable(*tensors: Tensor) -> None:
    for tensor in tensors:
        if tensor.is_meta:
            raise Unsupported("its tensors have no values (meta device)")
        if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
            raise Unsupported("it runs inside a torch.func transform")
