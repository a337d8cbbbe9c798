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
    """(Σ v, Σ g² / max(v, least²)), (p,) float64 each, of second moments v and gradients g."""
    room = torch.empty(PIECE)
    sums = []
    for second, gradient, smallest in zip(seconds, gradients, least, strict=True):
        total = relative = 0.0
        for v, g in pieces(second, gradient):
            part = torch.sqrt(v, out=room[: len(v)])
            total += float(torch.dot(part, part))
            part.clamp_min_(smallest)
            torch.div(g, part, out=part)
            relative += float(torch.dot(part, part))
        sums.append((total, relative))
    return _columns(sums)


def pieces(a: Tensor, b: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Both tensors, cut into pieces side by side."""
    return zip(a.view(-1).split(PIECE), b.view(-1).split(PIECE), strict=True)


def _columns(sums: Sequence[tuple[float, float]]) -> tuple[Tensor, Tensor]:
    one, two = zip(*sums, strict=True)
    return torch.tensor(one, dtype=torch.float64), torch.tensor(two, dtype=torch.float64)
