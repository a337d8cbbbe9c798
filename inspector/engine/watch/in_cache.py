"""Sums over differences and quotients of large tensors, a piece at a time, so that each entry comes from memory once.

For float32 on the CPU, where memory is what these cost: several passes over whole tensors take three times as long.

Letters: p tensor of a list.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

PIECE = 65_536
"""Entries of a piece: 256 kB, which the second-level cache of a core holds."""
MOST, SPACED = 16_384, 4096
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
    room = torch.empty(PIECE)
    sums = []
    for pair in zip(before, after, strict=True):
        moved = held = 0.0
        for a, b in pieces(*pair):
            part = torch.sub(a, b, out=room[: len(a)])
            moved += float(torch.dot(part, part))
            held += float(torch.dot(b, b))
        sums.append((moved, held))
    return _columns(sums)


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


def pieces(a: Tensor, b: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Both tensors, cut into pieces side by side."""
    return zip(a.view(-1).split(PIECE), b.view(-1).split(PIECE), strict=True)


def some(one: Tensor) -> list[Tensor]:
    """All of MOST entries, else evenly spaced pieces of as many, the first and the last among them."""
    count, flat = one.numel(), one.view(-1)
    if count <= MOST:
        return [flat]
    last = MOST // SPACED - 1
    return [flat[start : start + SPACED] for start in (n * (count - SPACED) // last for n in range(last + 1))]


def _columns(sums: Sequence[tuple[float, float]]) -> tuple[Tensor, Tensor]:
    one, two = zip(*sums, strict=True)
    return torch.tensor(one, dtype=torch.float64), torch.tensor(two, dtype=torch.float64)
