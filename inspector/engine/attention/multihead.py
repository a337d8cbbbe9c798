"""nn.MultiheadAttention and the fused encoder layer: queries and keys recomputed from the inputs and the weights.

Neither returns its heads: F.multi_head_attention_forward projects inside, and in eval mode the fused kernels
`_native_multi_head_attention` and `_transformer_encoder_layer_fwd` do all of it in one call. The projections of the one
selected sample are computed again beside the unchanged call, and a few rows are computed through to the module's output
and compared with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from inspector.engine.attention.calls import WITHOUT_DROPOUT, Projection, attend, check, of_nested
from inspector.engine.attention.key_source import CROSS, SELF
from inspector.engine.attention.selected_sample import SelectedSample
from inspector.engine.trace.heads import Heads, PassedOn, behind_changes, edge_of
from inspector.engine.trace.trace import Attention


@dataclass(slots=True)
class Projected:
    """One call of multi-head attention on one sample, its inputs as (n, t, e), (n, s, e), (n, s, e): n windows.

    `mask` (n·a or 1, t, s) and `padding` (n, s) are as PyTorch takes them there: True = may NOT attend, or additive.
    """

    inputs: tuple[Tensor, Tensor, Tensor]
    weights: tuple[Tensor, Tensor, Tensor]
    biases: tuple[Tensor | None, Tensor | None, Tensor | None]
    heads: int
    output: tuple[Tensor, Tensor | None]
    mask: Tensor | None = None
    padding: Tensor | None = None
    causal: bool = False
    cross: bool = False
    extra: tuple[Tensor | None, Tensor | None] = (None, None)
    zero: bool = False
    dropout: float = 0.0
    note: str = ""

    def split(self, which: int) -> Tensor:
        """(1, n·a, k, d) projected queries (0), keys (1) or values (2), with the learned and the zero key appended."""
        flat = F.linear(self.inputs[which], self.weights[which], self.biases[which])
        learned = self.extra[which - 1] if which else None
        if learned is not None:
            flat = torch.cat([flat, learned.reshape(1, 1, -1).to(flat).expand(len(flat), -1, -1)], dim=1)
        if self.zero and which:
            flat = torch.cat([flat, torch.zeros_like(flat[:, :1])], dim=1)
        heads: Tensor = flat.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        return heads.reshape(1, -1, *heads.shape[-2:])

    def project(self, heads: Tensor, _rows: Tensor) -> Tensor:
        """(q, n, e) what comes out of the module for some rows (q, n·a, d) of the heads."""
        weight, bias = self.output
        merged = heads.unflatten(1, (-1, self.heads)).flatten(2)
        return F.linear(merged.to(weight.dtype), weight, bias)

    def passed_on(self, returned: Tensor, of_sample: Callable[[Tensor], Tensor]) -> Heads:
        """What the heads pass on to `returned`, y = z W_O: the gradient at z is that at y times W_O.

        of_sample: the gradient of `returned` → (n, t, e) of the sample.
        """
        value, weight = self.split(2)[0].detach(), self.output[0].detach()
        by_head = weight.T.unflatten(0, (self.heads, -1))

        def by_window(gradient: Tensor) -> Tensor:
            at_heads: Tensor = (of_sample(gradient) @ weight).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            return at_heads

        take = behind_changes(by_window)
        call = PassedOn(
            value, self.inputs[0].shape[1], edge_of(returned), lambda gradient: take(gradient).flatten(0, 1)
        )
        return Heads([call], by_head.repeat(len(value) // self.heads, 1, 1))

    def merged_mask(self, keys: int) -> Tensor | None:
        """(1, n·a or 1, t or 1, k) True = may attend, or additive."""
        given = [part.detach() for part in (self.mask, self._padding()) if part is not None]
        if not given:
            return None
        if all(part.dtype == torch.bool for part in given):
            blocked = given[0] if len(given) == 1 else given[0] | given[1]
            return F.pad(~blocked, (0, keys - blocked.shape[-1]), value=True)[None]
        total = sum(_additive(part, self.inputs[0].dtype) for part in given)
        assert isinstance(total, Tensor)
        return F.pad(total, (0, keys - total.shape[-1]))[None]

    def _padding(self) -> Tensor | None:
        """(n·a or 1, 1, s): every head of a window has the window's padding."""
        if self.padding is None or len(self.padding) == 1:
            return None if self.padding is None else self.padding[:, None]
        return self.padding.repeat_interleave(self.heads, dim=0)[:, None]

    def attention(
        self, selected: SelectedSample, place: str, module: str, output: Tensor, project: Projection | None = None
    ) -> Attention:
        """The Attention of this call; `output` (n, t, e) is what the module returned for the sample."""
        key = self.split(1)
        mask = None if self.causal else self.merged_mask(key.shape[-2])
        note = WITHOUT_DROPOUT if self.dropout > 0 else ""
        seen = attend(
            selected, place, module, self.split(0), key, causal=self.causal, mask=mask,
            source=CROSS if self.cross else SELF,
            note="; ".join(filter(None, (self.note, "queries and keys recomputed from the module's input", note))),
        )  # fmt: skip
        if self.dropout == 0:
            value = self.split(2)[..., : seen.key.shape[-2], :]
            seen.check = check(seen, value, lambda rows: output[:, rows].transpose(0, 1), project or self.project)
        return seen


def from_function(
    selected: SelectedSample,
    place: str,
    module: str,
    arguments: Mapping[str, Any],
    output: Tensor,
    source: str | None = None,
) -> Attention:
    """An Attention from the bound arguments of F.multi_head_attention_forward and the (t, b, e) it returned.

    source: SELF where keys that are another tensor than the queries are of the same sequence nevertheless.
    """
    call = _projected(selected, arguments, source)

    def of_sample(tensor: Tensor) -> Tensor:
        return tensor[None] if tensor.dim() == 2 else selected.returned(tensor, 1).transpose(0, 1)

    seen = call.attention(selected, place, module, of_sample(output))
    if selected.passing_on:
        seen.heads = call.passed_on(output, of_sample)
    return seen


def _projected(selected: SelectedSample, arguments: Mapping[str, Any], source: str | None) -> Projected:
    """The call of the selected sample, of the bound arguments of F.multi_head_attention_forward."""
    query, key, value = (arguments[name] for name in ("query", "key", "value"))
    if arguments["use_separate_proj_weight"]:
        weights = tuple(arguments[f"{name}_proj_weight"] for name in "qkv")
    else:
        weights = arguments["in_proj_weight"].chunk(3)
    bias = arguments["in_proj_bias"]
    mask, padding = arguments["attn_mask"], arguments["key_padding_mask"]
    return Projected(
        inputs=(_sequence(selected, query), _sequence(selected, key), _sequence(selected, value)),
        weights=weights,
        biases=(None, None, None) if bias is None else bias.chunk(3),
        heads=arguments["num_heads"],
        output=(arguments["out_proj_weight"], arguments["out_proj_bias"]),
        mask=None if mask is None else _mask_of(selected, mask, arguments["num_heads"]),
        padding=None if padding is None else _row(selected, padding),
        causal=bool(arguments["is_causal"]) and padding is None and not arguments["need_weights"],
        cross=source != SELF and not same(query, key),
        extra=(arguments["bias_k"], arguments["bias_v"]),
        zero=bool(arguments["add_zero_attn"]),
        dropout=arguments["dropout_p"] if arguments["training"] else 0.0,
        note="" if query.dim() == 2 else selected.window_note(query.shape[1], arguments["num_heads"]),
    )


def from_module(
    selected: SelectedSample,
    place: str,
    module: nn.MultiheadAttention,
    arguments: Mapping[str, Any],
    output: Tensor,
    source: str | None = None,
) -> Attention:
    """An Attention from the bound arguments of nn.MultiheadAttention.forward in eval mode, and what it returned."""
    query = arguments["query"]
    if query.is_nested:
        call = _self_attention(selected, module, _batch_first(selected, query), None, None)
        return of_nested(selected, call.attention(selected, place, type(module).__name__, _returned(selected, output)))
    swap = module.batch_first and query.dim() == 3
    named: dict[str, Any] = {
        "in_proj_weight": module.in_proj_weight, "in_proj_bias": module.in_proj_bias,
        "use_separate_proj_weight": not module._qkv_same_embed_dim, "num_heads": module.num_heads,
        "out_proj_weight": module.out_proj.weight, "out_proj_bias": module.out_proj.bias,
        "bias_k": module.bias_k, "bias_v": module.bias_v, "add_zero_attn": module.add_zero_attn,
        "dropout_p": module.dropout, "training": module.training,
    }  # fmt: skip
    named |= {f"{name}_proj_weight": getattr(module, f"{name}_proj_weight") for name in "qkv"}
    named |= {name: arguments[name] for name in ("attn_mask", "key_padding_mask", "need_weights")}
    named["is_causal"] = arguments["is_causal"] and arguments["attn_mask"] is None
    named |= {name: arguments[name].transpose(0, 1) if swap else arguments[name] for name in ("query", "key", "value")}
    return from_function(
        selected, place, type(module).__name__, named, output.transpose(0, 1) if swap else output, source
    )


def from_encoder_layer(
    selected: SelectedSample,
    place: str,
    layer: nn.TransformerEncoderLayer,
    arguments: Mapping[str, Any],
    output: Tensor,
) -> Attention:
    """An Attention from a TransformerEncoderLayer that ran fused: (b, t, e) in and out, dense or nested."""
    source, mask, padding = arguments["src"], arguments["src_mask"], arguments["src_key_padding_mask"]
    x = _batch_first(selected, source)
    inputs = F.layer_norm(x, *_norm(layer.norm1)) if layer.norm_first else x
    row = None if padding is None or source.is_nested else _row(selected, padding)
    call = _self_attention(selected, layer.self_attn, inputs, mask, row)
    call.note = "" if source.is_nested else selected.window_note(source.shape[0], call.heads)

    def rest(heads: Tensor, rows: Tensor) -> Tensor:
        return _after_attention(layer, x[:, rows].transpose(0, 1), call.project(heads, rows))

    seen = call.attention(selected, place, type(layer.self_attn).__name__, _returned(selected, output), rest)
    if selected.passing_on:  # a fused layer runs without gradients only
        seen.heads = call.passed_on(output.detach(), lambda gradient: gradient)
    return of_nested(selected, seen) if source.is_nested else seen


def same(query: Tensor, key: Tensor) -> bool:
    """True when both are the same tensor or views of the same numbers: self-attention."""
    if query is key:
        return True
    alike = query.shape == key.shape and query.stride() == key.stride()
    return alike and query.data_ptr() == key.data_ptr() and query.numel() > 0


def _self_attention(
    selected: SelectedSample, module: nn.MultiheadAttention, inputs: Tensor, mask: Tensor | None, padding: Tensor | None
) -> Projected:
    """The fused call of a module whose queries, keys and values are one (n, t, e)."""
    bias = module.in_proj_bias
    assert module.in_proj_weight is not None
    return Projected(
        inputs=(inputs, inputs, inputs),
        weights=module.in_proj_weight.chunk(3),  # type: ignore[arg-type]
        biases=(None, None, None) if bias is None else bias.chunk(3),  # type: ignore[arg-type]
        heads=module.num_heads,
        output=(module.out_proj.weight, module.out_proj.bias),
        mask=None if mask is None else _mask_of(selected, mask, module.num_heads),
        padding=padding,
    )


def _after_attention(layer: nn.TransformerEncoderLayer, x: Tensor, attended: Tensor) -> Tensor:
    """The rest of an encoder layer in eval mode for some rows (q, n, e)."""

    def feed(y: Tensor) -> Tensor:
        inner = F.linear(y, layer.linear1.weight, layer.linear1.bias)
        inner = F.gelu(inner) if layer.activation_relu_or_gelu == 2 else F.relu(inner)
        return F.linear(inner, layer.linear2.weight, layer.linear2.bias)

    x = x + attended
    if layer.norm_first:
        return x + feed(F.layer_norm(x, *_norm(layer.norm2)))
    x = F.layer_norm(x, *_norm(layer.norm1))
    return F.layer_norm(x + feed(x), *_norm(layer.norm2))


def _norm(norm: nn.LayerNorm) -> tuple[Any, ...]:
    return norm.normalized_shape, norm.weight, norm.bias, norm.eps


def _sequence(selected: SelectedSample, tensor: Tensor) -> Tensor:
    """(n, t, e) the sample's part of (t, b·n, e), or of unbatched (t, e)."""
    tensor = tensor.detach()
    return tensor[None] if tensor.dim() == 2 else selected.part(tensor, 1).transpose(0, 1)


def _batch_first(selected: SelectedSample, tensor: Tensor) -> Tensor:
    """(n, t, e) the sample's part of (b·n, t, e), dense or nested."""
    tensor = tensor.detach()
    return tensor.unbind()[selected.sample][None] if tensor.is_nested else selected.part(tensor)


def _returned(selected: SelectedSample, output: Tensor) -> Tensor:
    """(n, t, e) what a call returned for the sample, (b·n, t, e) dense or nested."""
    output = output.detach()
    return output.unbind()[selected.sample][None] if output.is_nested else selected.returned(output)


def _row(selected: SelectedSample, padding: Tensor) -> Tensor:
    """(n, s) the sample's part of (b·n, s), or of unbatched (s,)."""
    return padding[None] if padding.dim() == 1 else selected.part(padding)


def _mask_of(selected: SelectedSample, mask: Tensor, heads: int) -> Tensor:
    """(n·a or 1, t, s) the sample's part of (t, s) or (b·n·a, t, s)."""
    if mask.dim() == 2:
        return mask[None]
    return selected.part(mask.reshape(-1, heads, *mask.shape[-2:])).flatten(0, 1)


def _additive(mask: Tensor, dtype: torch.dtype) -> Tensor:
    if mask.dtype != torch.bool:
        return mask
    return torch.zeros_like(mask, dtype=dtype).masked_fill_(mask, -torch.inf)
