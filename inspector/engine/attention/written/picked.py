"""Hard attention: the key with the largest score, taken by its index, as weights of 1 and 0."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from inspector.engine.attention.written.contraction import LETTERS, Contraction, Operand
from inspector.engine.attention.written.facts import Facts, FactTable, Origin


def largest(
    facts: FactTable, args: tuple[Any, ...], kwargs: Mapping[str, Any], out: Any, own: Callable[[Tensor], str | None]
) -> None:
    """argmax(scores, dim) or max(scores, dim): note that a result holds indices of keys, which are masked, and of which
    sequence they are (`own` of the scores), since an index has no graph."""
    scores = args[0] if args else kwargs.get("input")
    dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
    indices = out if isinstance(out, Tensor) else getattr(out, "indices", None)
    if not isinstance(scores, Tensor) or not isinstance(dim, int) or not isinstance(indices, Tensor):
        return
    known = facts.of(scores)
    masked = None if known is None else known.masked
    if masked is None and scores.is_floating_point():
        low = scores.detach() == -torch.inf
        masked = low if bool(low.any()) else None
    origin = Origin("hard", "", "", tuple(scores.shape), dim % scores.dim())
    origin.masked = None if masked is None else masked.expand(scores.shape).movedim(dim, -1)
    weighs = known is not None and (known.scored is not None or known.origin is not None)
    facts.note(indices, Facts(origin=origin, own=(own(scores) or "") if weighs else ""))


def one_hot(facts: FactTable, indices: object, out: Tensor) -> None:
    """one_hot(indices): weights of 1 and 0 along the last axis."""
    known = facts.of(indices)
    origin = None if known is None else known.origin
    masked = None if origin is None or origin.masked is None else origin.masked
    fits = masked is not None and masked.numel() == out.numel()
    masked = masked.reshape(out.shape) if masked is not None and fits else None
    facts.note(out, Facts(made=True, masked=masked, own="" if known is None else known.own))


def put_back(facts: FactTable, given: Mapping[str, Any], out: Tensor) -> None:
    """scatter(zeros, dim, index, src): note that a softmax of the largest scores was put back to their keys; the others
    are masked. `given`: the arguments by name."""
    known, dim = facts.of(given.get("src")), given["dim"]
    origin = None if known is None else known.origin
    if known is None or origin is None or not isinstance(dim, int) or not out.is_floating_point():
        return
    if origin.axis != dim % out.dim() or tuple(given["index"].shape) != origin.shape:
        return
    left_out = torch.ones_like(out, dtype=torch.bool).scatter(dim, given["index"], value=False)
    if not bool(out.detach()[left_out].any()):
        facts.note(out, Facts(masked=left_out, highest=known.highest, origin=origin, own=known.own))


def gathered(facts: FactTable, source: Tensor, dim: int, index: Tensor, out: Tensor) -> Contraction | None:
    """gather(source, dim, index) as a product with weights of 1 and 0; None where the index is no key of every query.

    The index (…, q, 1 or d) must be the same along all axes after `dim`.
    """
    dim %= source.dim()
    after = source.dim() - dim - 1
    chosen = index.flatten(dim + 1)[..., 0] if after else index
    if index.shape[:dim] != source.shape[:dim] or not bool(
        (index == chosen.reshape(*chosen.shape, *(1,) * after)).all()
    ):
        return None
    if index.shape[dim + 1 :] != source.shape[dim + 1 :]:
        return None
    lead, features = LETTERS[:dim], LETTERS[dim + 2 : dim + 2 + after]
    q, k = LETTERS[dim], LETTERS[dim + 1]
    return _with(facts, source, lead + k + features, index, chosen, lead + q, Operand(out, lead + q + features))


def indexed(facts: FactTable, source: Tensor, key: tuple[Any, ...], out: Tensor) -> Contraction | None:
    """source[arange, index] with an index (b,) or (b, q); None for other keys."""
    if len(key) != 2 or not all(isinstance(one, Tensor) for one in key):
        return None
    first, index = key
    numbers = torch.arange(source.shape[0], device=first.device)
    numbers = numbers.reshape(-1, *(1,) * (first.dim() - 1)) if first.dim() else numbers
    if index.dim() not in (1, 2) or first.shape[:1] != numbers.shape[:1] or not bool((first == numbers).all()):
        return None
    b, q, k = list(LETTERS[:3])
    features = LETTERS[3 : 3 + source.dim() - 2]
    rows = b + (q if index.dim() == 2 else "")
    return _with(facts, source, b + k + features, index, index, rows, Operand(out, rows + features))


def rows(facts: FactTable, source: Tensor, dim: int, index: Tensor, out: Tensor) -> Contraction | None:
    """Rows of a tensor (k, …), or along another axis, at an index (q,)."""
    axes, q = LETTERS[: source.dim()], LETTERS[source.dim()]
    k = axes[dim % source.dim()]
    return _with(facts, source, axes, index, index, q, Operand(out, axes.replace(k, q)))


def is_identity(source: Tensor, dim: int) -> bool:
    """Whether rows of a tensor are weights of 1 and 0 at their number."""
    square = source.dim() == 2 and dim == 0 and source.shape[0] == source.shape[1] > 1
    return square and bool((source.detach() == torch.eye(len(source), device=source.device, dtype=source.dtype)).all())


def _with(
    facts: FactTable, source: Tensor, axes: str, index: Tensor, chosen: Tensor, rows: str, out: Operand
) -> Contraction | None:
    known = facts.of(index)
    if known is None or known.origin is None or known.origin.kind != "hard":
        return None
    k = next(axis for axis in axes if axis not in out.axes)
    keys = source.shape[axes.index(k)]
    weights = F.one_hot(chosen, keys).to(source.dtype)
    masked = known.origin.masked
    fits = masked is not None and masked.numel() == weights.numel()
    masked = masked.reshape(weights.shape) if masked is not None and fits else None
    facts.note(weights, Facts(masked=masked, origin=known.origin, own=known.own))
    return Contraction.of(Operand(weights, rows + k), Operand(source, axes), out)
