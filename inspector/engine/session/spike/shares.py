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
    """Of each part (n,) float64 its gradient's norm, its share, and the norm of the gradient at the output; NaN where
    it was not computed."""

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
    parameters = list(named.values())
    with torch.enable_grad():
        output = replay.output()
        terms = replay.terms(output)
        kept = replay.call.gradient
        assert kept is not None
        scaled = kept.to(output.device) / replay.scale
        whole = _gradient((output * scaled).sum(), parameters)
    total = dict(zip(named, whole, strict=True))
    if terms is None:
        return Whole(total, None), lambda sample: None
    sizes = _sizes(terms, output, kept, replay)

    def of_sample(sample: int) -> Parts:
        own = terms[sample]
        carried = torch.nonzero(~own.detach().isnan()).flatten().tolist()
        reference = _gradient(own[carried].sum(), parameters)
        return _parts(own, carried, sizes[sample], reference, parameters, MOST_STEPS, check)

    by_sample = torch.where(terms.isnan(), 0.0, terms).sum(1)
    samples = _parts(by_sample, list(range(len(terms))), sizes.nan_to_num(0.0).norm(dim=1), whole, parameters,
                     MOST_SAMPLES, check)  # fmt: skip
    return Whole(total, samples), of_sample


def _sizes(terms: Tensor, output: Tensor, gradient: Tensor, replay: Replay) -> Tensor:
    """(b, t) norm of the gradient at the output; NaN where a step has no loss."""
    squares = replay.by_step((gradient.double() / replay.scale).square().to(output.device))
    found = terms.new_zeros(terms.shape, dtype=torch.float64) if squares is None else squares.sqrt()
    return torch.where(terms.isnan() & found.isnan(), float("nan"), found).cpu()


def _gradient(value: Tensor, parameters: Sequence[Tensor]) -> list[Tensor]:
    found = torch.autograd.grad(value, parameters, retain_graph=True, allow_unused=True)
    return [torch.zeros_like(p) if one is None else one for p, one in zip(parameters, found, strict=True)]


def _parts(
    values: Tensor, which: Sequence[int], sizes: Tensor, whole: Sequence[Tensor], parameters: Sequence[Tensor],
    most: int, check: Callable[[], None],
) -> Parts:  # fmt: skip
    """The parts numbered in `which`, at most so many of them, those with the largest gradient at the output."""
    norm, share = (torch.full((len(values),), math.nan, dtype=torch.float64) for _ in range(2))
    total = sum(float(one.double().square().sum()) for one in whole)
    order = sorted(which, key=lambda n: -_known(float(sizes[n])))[:most]
    for n in order:
        check()
        own = _gradient(values[n], parameters)
        norm[n] = math.sqrt(sum(float(one.double().square().sum()) for one in own))
        product = sum(float((one.double() * other.double()).sum()) for one, other in zip(own, whole, strict=True))
        share[n] = product / total if total > 0 and math.isfinite(total) else math.nan
    return Parts(norm, share, sizes, tuple(order))


def _known(size: float) -> float:
    return math.inf if math.isnan(size) else size
