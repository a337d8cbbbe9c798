"""Sums over differences and quotients of large tensors, a piece at a time, so that each entry comes from memory once.

For float32 on the CPU, where memory is what these cost: several passes over whole tensors take three times as long.

Letters: p tensor of a list.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

PIECE = 65_536
"""Entries of a piece: 256 kB, which the second-level cache of a core holds."""
SMALL = 16_384
"""Entries of a tensor up to which calls cost more than memory."""
MOST, SPACED = 8192, 2048
"""Entries of a tensor that quotients are looked at, and of a piece of a larger one. Counter-example: of a table of
embeddings with few rows in use the pieces may see other shares of these than there are."""


def fits(*lists: Sequence[Tensor]) -> bool:
    """Whether all tensors are float32 in one run of memory on the CPU."""
    return all(
        one.dtype == torch.float32 and one.device.type == "cpu" and one.is_contiguous()
        for many in lists
        for one in many
    )


def differences(before: Sequence[Tensor], after: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """(Σ (before − after)², Σ after²), (p,) float64 each."""
    sums = torch.empty(2, len(after), dtype=torch.float64)
    small = [p for p, one in enumerate(after) if one.numel() <= SMALL]
    if small:  # all together, since calls are what they cost
        own = [after[p] for p in small]
        sums[0, small] = _squares(torch._foreach_sub([before[p] for p in small], own))
        sums[1, small] = _squares(own)
    large = [p for p, one in enumerate(after) if one.numel() > SMALL]
    if large:
        sums[:, large] = _in_pieces([before[p] for p in large], [after[p] for p in large])
    return sums[0], sums[1]


def _in_pieces(before: Sequence[Tensor], after: Sequence[Tensor]) -> Tensor:
    """(2, p) float64: Σ (before − after)², Σ after²."""
    room, subtract, dot = torch.empty(PIECE), torch.sub, torch.dot
    moved, held, counts = list[Tensor](), list[Tensor](), list[int]()
    for a, b in zip(before, after, strict=True):
        own = b.view(-1).split(PIECE)
        for first, second in zip(a.view(-1).split(PIECE), own, strict=True):
            part = subtract(first, second, out=room if len(second) == PIECE else room[: len(second)])
            moved.append(dot(part, part))
            held.append(dot(second, second))
        counts.append(len(own))
    parts = torch.stack(moved + held).double().view(2, -1)
    which = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))
    return torch.zeros(2, len(counts), dtype=torch.float64).index_add_(1, which, parts)


def quotients(seconds: Sequence[Tensor], gradients: Sequence[Tensor], least: Sequence[float]) -> tuple[Tensor, Tensor]:
    """(Σ v, Σ g² / max(v, least²)), (p,) float64 each, of second moments v and gradients g.

    Of tensors of more than MOST entries from evenly spaced pieces, as sums over all entries.
    """
    counts = [min(MOST, one.numel()) for one in seconds]
    whole = torch.tensor([one.numel() / count for one, count in zip(seconds, counts, strict=True)], dtype=torch.float64)
    roots = torch.cat([part for one in seconds for part in some(one)]).sqrt_()
    total = _squares(roots.split(counts))
    if len(set(least)) == 1:
        roots.clamp_min_(least[0])
    else:
        torch._foreach_clamp_min_(list(roots.split(counts)), list(least))
    quotient = torch.cat([part for one in gradients for part in some(one)]).div_(roots)
    return total * whole, _squares(quotient.split(counts)) * whole


def _squares(parts: Sequence[Tensor]) -> Tensor:
    found: Tensor = torch.stack(torch._foreach_norm(list(parts))).double().square_()
    return found


def some(one: Tensor) -> list[Tensor]:
    """All of MOST entries, else evenly spaced pieces of as many, the first and the last among them."""
    count, flat = one.numel(), one.view(-1)
    if count <= MOST:
        return [flat]
    last = MOST // SPACED - 1
    return [flat[start : start + SPACED] for start in (n * (count - SPACED) // last for n in range(last + 1))]
