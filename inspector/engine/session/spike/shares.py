"""Which sample, and which step of the loss, made the gradient of an iteration: its parts, each by a backward pass.

The gradient of all parameters is a sum over samples, and each of these a sum over the steps of the loss:
G = Σ_b G_b, G_b = Σ_t G_bt. The share of a part is its projection, ⟨G_b, G⟩ / ‖G‖²; the shares of all parts add up to
1, and a part that works against the others has a negative one.

Letters: b sample, t step of the loss, n part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from inspector.engine.session.spike.replay import Replay

MOST_SAMPLES, MOST_STEPS = 128, 256
"""Parts whose gradient is computed: those with the largest gradient at the output; the others stay unknown (NaN)."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Of each part (n,) float64 its gradient's norm (infinite where that is not finite), its share, and the norm of the
    gradient at the output; NaN where it was not computed."""

    norm: Tensor
    share: Tensor
    at_output: Tensor

    tried: tuple[int, ...]
    """The parts that were computed, those with the largest gradient at the output first."""

    @property
    def largest(self) -> int:
        """The part with the largest share; where a gradient is not finite, the first part whose own is not."""
        broken = [n for n in self.tried if not math.isfinite(float(self.norm[n]))]
        if broken:
            return min(broken)
        known = [n for n in self.tried if math.isfinite(float(self.share[n]))]
        return max(known, key=lambda n: float(self.share[n]), default=0)


@dataclass(frozen=True, slots=True)
class Whole:
    """The gradient of each parameter by name, and of the samples."""

    gradients: dict[str, Tensor]
    samples: Parts | None


def shares_of(replay: Replay, check: Callable[[], None]) -> tuple[Whole, Callable[[int], Parts | None]]:
    """The gradient of a call and its parts by sample; and a function that gives the parts of one sample by step.

    `check` is called between backward passes and may raise. Raises InputError.
    """
    named = {name: one for name, one in replay.model.named_parameters() if one.requires_grad}
    with torch.enable_grad():
        cut = Cut(replay, list(named.values()), check)
    total = dict(zip(named, cut.whole, strict=True))
    if cut.cells is None:
        return Whole(total, None), lambda sample: None
    samples = torch.eye(len(cut.carries), dtype=torch.bool, device=cut.carries.device)
    sizes = torch.where(cut.carries, cut.sizes, 0.0).norm(dim=1).cpu()
    every = list(range(len(samples)))
    return Whole(
        total, cut.parts([one[:, None] for one in samples], every, sizes, cut.whole, MOST_SAMPLES)
    ), cut.of_sample


class Cut:
    """The output of a call made again, and the gradients of pieces of it: each by a backward pass whose gradient at
    the output is 0 outside of the piece, so that what is not finite in one piece is in no other.

    Attributes:
        whole: the gradient of each parameter. cells: ⟨1, y⟩ by sample and step (b, t) of a stand-in for the output, by
            which the entries of a piece are found; None where the output has no samples. carries: where there is a
            loss. sizes: the norm of the gradient at the output, infinite where that is not finite.
    """

    def __init__(self, replay: Replay, parameters: Sequence[Tensor], check: Callable[[], None]) -> None:
        self._parameters, self._check = parameters, check
        self._output = replay.output()
        kept = replay.call.gradient
        assert kept is not None
        self._at_output = kept.to(self._output.device) / replay.scale
        self.whole = self._gradient(self._at_output)
        self._entries = torch.zeros_like(self._output, requires_grad=True)
        self.cells = replay.by_step(self._entries)
        if self.cells is None:
            return
        ones, squares = (
            replay.by_step(one) for one in (torch.ones_like(self._output), self._at_output.double().square())
        )
        assert ones is not None and squares is not None
        self.carries = ~ones.isnan()
        self.sizes = torch.where(self.carries, squares.sqrt().nan_to_num(math.inf, posinf=math.inf), math.nan)

    def of_sample(self, sample: int) -> Parts:
        """The parts of one sample by step of the loss."""
        row = torch.zeros_like(self.carries)
        row[sample] = True
        steps = torch.eye(row.shape[1], dtype=torch.bool, device=row.device)
        carried = torch.nonzero(self.carries[sample]).flatten().tolist()
        return self.parts([row & one for one in steps], carried, self.sizes[sample].cpu(), self.of(row), MOST_STEPS)

    def of(self, piece: Tensor) -> list[Tensor]:
        """The gradient of each parameter by the cells of a piece (b, t)."""
        assert self.cells is not None
        with torch.enable_grad():
            total = torch.where(self.carries & piece, self.cells, 0.0).sum()
            (inside,) = torch.autograd.grad(total, self._entries, retain_graph=True)
        return self._gradient(torch.where(inside != 0, self._at_output, 0.0))

    def _gradient(self, at_output: Tensor) -> list[Tensor]:
        found = torch.autograd.grad(
            self._output, self._parameters, at_output, retain_graph=True, allow_unused=True
        )  # fmt: skip
        return [torch.zeros_like(p) if one is None else one for p, one in zip(self._parameters, found, strict=True)]

    def parts(
        self, pieces: Sequence[Tensor], which: Sequence[int], sizes: Tensor, whole: Sequence[Tensor], most: int
    ) -> Parts:
        """Those numbered in `which`, at most so many of them, those with the largest gradient at the output."""
        norm, share = (torch.full((len(pieces),), math.nan, dtype=torch.float64) for _ in range(2))
        total = sum(float(one.double().square().sum()) for one in whole)
        order = sorted(which, key=lambda n: -float(sizes[n]))[:most]
        for n in order:
            self._check()
            own = self.of(pieces[n])
            size = math.sqrt(sum(float(one.double().square().sum()) for one in own))
            norm[n] = math.inf if math.isnan(size) else size  # NaN is what was not computed
            product = sum(float((one.double() * other.double()).sum()) for one, other in zip(own, whole, strict=True))
            share[n] = product / total if total > 0 and math.isfinite(total) else math.nan
        return Parts(norm, share, sizes, tuple(order))
