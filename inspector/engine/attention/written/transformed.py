"""What is listed of attention inside a torch.func transform (vmap, grad), where tensors have no values to read.

A tensor there is a wrapper, whose memory is asked of what lies in it: an index of the largest scores is known by that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from inspector.engine.attention.written.facts import Facts, Origin
from inspector.engine.attention.written.sums import Args, Kwargs, WeightedSums

TRANSFORMED = "it is inside a torch.func transform (vmap, grad), where tensors have no values to read"


def _softmax(sums: WeightedSums, args: Args, kwargs: Kwargs, out: Any) -> None:
    """A softmax."""
    sums.origins.append(_origin(sums, "softmax", tuple(out.shape), _axis(args, kwargs, out)))


def _largest(sums: WeightedSums, args: Args, kwargs: Kwargs, out: Any) -> None:
    """argmax, max, topk or sort of scores: it is listed where its index picks something."""
    scores = args[0] if args else kwargs.get("input")
    indices = out if isinstance(out, Tensor) else getattr(out, "indices", None)
    if not isinstance(indices, Tensor) or indices.is_floating_point():
        return
    if isinstance(scores, Tensor) and scores.is_floating_point():
        origin = _origin(sums, "largest", tuple(scores.shape), _axis(args, kwargs, scores))
        sums.facts.note(_inside(indices), Facts(origin=origin))


def _picks(sums: WeightedSums, args: Args, kwargs: Kwargs, _out: Any) -> None:
    """Values, or weights of 1, at an index."""
    given = [*args, *kwargs.values()]
    parts = [one for part in given for one in (part if isinstance(part, tuple) else (part,))]
    for one in parts:
        known = sums.facts.of(_inside(one)) if isinstance(one, Tensor) and not one.is_floating_point() else None
        if known is not None and known.origin is not None and known.origin.kind == "largest":
            if known.origin not in sums.origins:
                sums.origins.append(known.origin)
            return


def _compared(sums: WeightedSums, args: Args, _kwargs: Kwargs, out: Any) -> None:
    """scores == their largest: 1 at a key of every row."""
    if len(args) < 2 or not all(isinstance(one, Tensor) for one in (*args[:2], out)):
        return
    one, two = args[:2]
    differing = [at for at, (a, b) in enumerate(zip(one.shape, two.shape, strict=False)) if a != b]
    if not one.is_floating_point() or one.dim() != two.dim() or len(differing) != 1 or two.shape[differing[0]] != 1:
        return
    every, beyond = _inside(out), _inside(one > two)
    if int(every.sum()) * one.shape[differing[0]] >= every.numel() and not bool(beyond.any()):
        sums.origins.append(_origin(sums, "largest", tuple(one.shape), differing[0]))


LOOKS: dict[str, Callable[[WeightedSums, Args, Kwargs, Any], None]] = {
    "softmax": _softmax,
    "compared": _compared,
    **dict.fromkeys(("largest", "ordered", "routed"), _largest),
    **dict.fromkeys(("gathered", "along", "indexed", "selected_rows", "looked_up", "one_hot", "scattered"), _picks),
}
"""By the name of the handler outside."""


def _origin(sums: WeightedSums, kind: str, shape: tuple[int, ...], axis: int) -> Origin:
    return Origin(kind, *sums.where(), shape, axis, reason=TRANSFORMED)


def _axis(args: Args, kwargs: Kwargs, of: Tensor) -> int:
    dim = kwargs.get("dim", args[1] if len(args) > 1 else -1)
    return dim % of.dim() if isinstance(dim, int) and of.dim() else -1


def _inside(tensor: Tensor) -> Tensor:
    """What lies in the wrappers of all transforms."""
    while torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        tensor = torch._C._functorch.get_unwrapped(tensor)
    return tensor
