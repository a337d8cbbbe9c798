"""Value zeroing: a layer called again without the value of one key, and how far each position's output moves.

The layer is called on what it was given in the run. What the key's value adds to the attention's output, A_qj v_j (with
W_O where the module projects itself), is subtracted there for all queries of the selected sequence; everything behind
it in the layer is computed as the model computes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from inspector.engine.analyses.attention.head_maps import head_rows, known
from inspector.engine.analyses.attention.projected_inside import changed_inside, product_inside
from inspector.engine.analyses.attention.residual_stream import Stream
from inspector.engine.analyses.module_calls import ModuleCall, first_tensor
from inspector.engine.errors import Unsupported
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Attention, Trace

LONGEST = 1024
"""Positions: a layer is called once for each, and the map of a layer has as many entries as their square."""
ROUNDING = 1e-3
NOT_FOUND = "What {} returns is neither the sums of its heads nor their projection, so no value can be taken out of it."


def distances(trace: Trace, stream: Stream, layer: ModuleCall, attention: Attention, emit: Emitter) -> Tensor:
    """(t, t) cosine distance of a layer's output at i from that without the value of j at [i, j], rows scaled to sum
    to 1; a row that nothing moves is 0. Raises Unsupported."""
    assert layer.result is not None
    plain = stream.of_sample(layer.result.detach()).double()
    weights, values = _whole(attention, trace.look_at)
    projection = known(attention).weight
    projected = None if projection is None else torch.bmm(values, projection.double())
    projecting = _projecting(stream, layer, attention.called, torch.bmm(weights, values).transpose(0, 1).flatten(1))
    inside = 0
    if projecting is None and projected is not None and attention.called == layer.name:
        inside = product_inside(stream, layer, torch.bmm(weights, projected).sum(0), ROUNDING)
    merged = projecting is not None or (not inside and _is_merged(stream, attention, weights, values, projected))
    without = (
        partial(_given_without, projecting.module) if projecting is not None else
        partial(changed_inside, inside) if inside else
        partial(_without, dict(trace.subject.model.named_modules())[_module_of(trace, attention)])
    )  # fmt: skip
    found = torch.zeros(len(plain), len(plain), dtype=torch.float64)
    for key in range(min(len(plain), weights.shape[2])):
        emit.check()
        added = weights[:, :, key, None] * (values if merged else projected)[:, key, None]  # type: ignore[index]
        taken = added.transpose(0, 1).flatten(1) if merged else added.sum(0)
        with without(stream, taken), torch.no_grad():
            moved = first_tensor(layer.again())
        assert moved is not None
        after = stream.of_sample(moved).double()
        found[:, key] = 1 - torch.nn.functional.cosine_similarity(plain, after, dim=1, eps=1e-30)
    found = found.clamp_min(0.0)
    total = found.sum(1, keepdim=True)
    return torch.where(total > 0, found / total, 0.0)


def _module_of(trace: Trace, attention: Attention) -> str:
    modules = dict(trace.subject.model.named_modules())
    return attention.called if attention.called in modules else attention.called.rpartition(".")[0]


def _whole(attention: Attention, sample: int) -> tuple[Tensor, Tensor]:
    """((a, t, t) weights, (a, t, d) values) in float64."""
    blocks = list(head_rows(attention, sample, gradient=False))
    value = known(attention).calls[0].value.double()
    heads, rows, keys = value.shape[0], max(block.rows.stop for block in blocks), value.shape[1]
    weights = torch.zeros(heads, rows, keys, dtype=torch.float64, device=value.device)
    for block in blocks:
        part = block.weights[..., :keys].double()
        weights[block.heads, block.rows, : part.shape[2]] = part
    return weights, value


def _is_merged(stream: Stream, attention: Attention, weights: Tensor, values: Tensor, projected: Tensor | None) -> bool:
    """Whether the module at the place returns the sums of its heads side by side, not their projection; checked with
    what it returned. Raises Unsupported."""
    place = attention.called
    name = next((one.name for one in stream.calls if f"{place}.".startswith(f"{one.name}.")), "")
    calls = [one for one in stream.calls if one.name == name]
    call = calls[attention.call] if attention.call < len(calls) else None
    if call is None or call.result is None or call.result.dim() not in (2, 3):
        raise Unsupported(NOT_FOUND.format(place))
    out = stream.of_sample(call.result.detach()).double()
    sums = torch.bmm(weights, values).transpose(0, 1).flatten(1)
    size = max(ROUNDING, 16 * torch.finfo(call.result.dtype).eps) * float(out.abs().max())
    if out.shape == sums.shape and float((out - sums).abs().max()) <= size:
        return True
    if projected is not None and projected.shape[2] == out.shape[1] and len(out) > 1:
        rest = out - torch.bmm(weights, projected).sum(0)
        if float((rest - rest[0]).abs().max()) <= size:
            return False
    raise Unsupported(NOT_FOUND.format(place))


def _projecting(stream: Stream, layer: ModuleCall, place: str, sums: Tensor) -> ModuleCall | None:
    """Where a layer's own code attends: the call in it that is given the sums of the heads side by side."""
    inside = (one for one in stream.calls if place == layer.name and one.name.startswith(f"{place}."))
    for call in inside:
        given = first_tensor((call.args, call.kwargs))
        if given is None or given.dim() not in (2, 3):
            continue
        rows = stream.of_sample(given.detach()).double()
        if rows.shape == sums.shape and float((rows - sums).abs().max()) <= ROUNDING * float(rows.abs().max()):
            return call
    return None


@contextmanager
def _given_without(module: nn.Module, stream: Stream, taken: Tensor) -> Iterator[None]:
    """Inside, what the module is given first lacks `taken` (t, e) in the selected sequence."""
    changed = lambda _module, args: (_changed(args[0], stream, taken), *args[1:])  # noqa: E731
    handle = module.register_forward_pre_hook(changed)
    try:
        yield
    finally:
        handle.remove()


@contextmanager
def _without(module: nn.Module, stream: Stream, taken: Tensor) -> Iterator[None]:
    """Inside, what the module returns lacks `taken` (t, e) in the selected sequence; fused paths are off."""
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    handle = module.register_forward_hook(lambda _module, _args, result: _changed(result, stream, taken))
    try:
        yield
    finally:
        handle.remove()
        torch.backends.mha.set_fastpath_enabled(fast)


def _changed(result: Any, stream: Stream, taken: Tensor) -> Any:
    if isinstance(result, Tensor):
        out = result.clone()
        rows = stream.of_sample(out)
        rows -= taken.to(rows)
        return out
    first = next(number for number, one in enumerate(result) if isinstance(one, Tensor))
    return type(result)((*result[:first], _changed(result[first], stream, taken), *result[first + 1 :]))
