"""Torch's operators that are called by their own names (`torch.ops.aten.…`), as decompositions and exported code do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from inspector.engine.attention.recorder import AttentionRecorder

KERNELS = (
    "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_attention_math",
)  # fmt: skip
"""What scaled_dot_product_attention calls, which return the result first."""
SOFTMAX = "_softmax _safe_softmax"


def of_operators(
    recorder: AttentionRecorder, named: Sequence[tuple[Callable[..., None], str]]
) -> list[tuple[Any, Callable[..., None]]]:
    """Each operator and its overloads, with the method that looks at its calls: those of the functions of the same
    name, whose arguments are the same; `named` has methods and names."""
    kernel = partial(_kernel, recorder)
    every = [*named, (recorder.own.softmax, SOFTMAX), (recorder.sdpa, "scaled_dot_product_attention")]
    found = [(one, handler) for handler, names in every for name in names.split() for one in _overloads(name)]
    return found + [(one, kernel) for name in KERNELS for one in _overloads(name)]


def _overloads(name: str) -> Iterator[Any]:
    packet = getattr(torch.ops.aten, name, None)
    if packet is not None:
        yield packet
        yield from (getattr(packet, one) for one in packet.overloads())


def _kernel(recorder: AttentionRecorder, args: tuple[Any, ...], kwargs: Mapping[str, Any], out: Any) -> None:
    """A kernel of attention (query, key, value, dropout, causal) or (query, key, value, mask, dropout, causal)."""
    returned = out[0] if isinstance(out, tuple) else out
    more = list(args[3:])
    mask = more.pop(0) if more and (more[0] is None or isinstance(more[0], Tensor)) else None
    given = dict(zip(("dropout_p", "is_causal"), more, strict=False))
    recorder.sdpa(args[:3], {"attn_mask": mask, **given, **kwargs}, returned)
