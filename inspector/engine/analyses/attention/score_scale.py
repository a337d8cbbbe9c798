"""What a model does with the result of its head before it takes it for scores: a factor, a soft cap.

Cohere and Granite scale their scores; Gemma 2 caps them, c tanh(x / c) (Gemma Team 2024, arXiv 2408.00118, section 2).
Both are found from the numbers before and after and hold only where they give all of these again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

MOST = 1 << 20
"""Numbers that are compared: evenly spaced ones of more."""
NEAR = 1e-5
"""Of the largest score: by how much a number may differ, in float32; half precision has its own rounding."""
HALVINGS = 200


@dataclass(frozen=True, slots=True)
class ScoreScale:
    """scores = cap · tanh(factor · x / cap), of the result x of the head; factor · x without a cap."""

    factor: float = 1.0
    cap: float = math.inf

    def of(self, result: Tensor) -> Tensor:
        """The scores."""
        if self == AS_THEY_ARE:
            return result
        scaled = result * self.factor
        return scaled if math.isinf(self.cap) else self.cap * torch.tanh(scaled / self.cap)

    @property
    def names(self) -> tuple[str, ...]:
        """Each as a word for a list of what lies on the way."""
        factor = (f"times {self.factor:.4g}",) * (self.factor != 1.0)
        return (*factor, *((f"soft cap {self.cap:.4g}",) * math.isfinite(self.cap)))


AS_THEY_ARE = ScoreScale()


def score_scale(result: Tensor, scores: Tensor) -> ScoreScale | None:
    """From the result of a head to scores of the same shape; None where it is neither a factor nor a soft cap."""
    if result.shape != scores.shape or not scores.numel():
        return None
    every = -(-scores.numel() // MOST)
    x, y = (one.detach().flatten()[::every].double() for one in (result, scores))
    known = x.isfinite() & y.isfinite()  # classes that the model rules out are −∞ in the scores
    x, y = x[known], y[known]
    if not bool(known.any()) or not bool(x.any()) or not bool(y.any()):
        return None
    eps = torch.finfo(scores.dtype).eps
    near = max(NEAR, 4 * eps) * float(y.abs().max())
    for found in _candidates(x, y):
        if float((found.of(x) - y).abs().max()) <= near:
            return found
    return None


def _candidates(x: Tensor, y: Tensor) -> Iterator[ScoreScale]:
    slope = float(x.dot(y) / x.dot(x))
    yield from (ScoreScale(one) for one in _rounded(slope))
    most = int(y.abs().argmax())
    half = int((y.abs() - y[most].abs() / 2).abs().argmin())
    x1, y1, x2, y2 = float(x[most]), float(y[most]), float(x[half]), float(y[half])
    cap = _cap(x1, y1, x2, y2)
    for one in () if cap is None else _rounded(cap):
        if one > abs(y1):  # the largest may lie at the cap, where rounding says little of the factor
            yield from (ScoreScale(two, one) for two in _rounded(one * math.atanh(y2 / one) / x2))


def _rounded(value: float) -> list[float]:
    """A number as it was written, probably, before as it was fitted."""
    return [*dict.fromkeys(float(f"{value:.{digits}g}") for digits in (2, 3, 4)), value]


def _cap(x1: float, y1: float, x2: float, y2: float) -> float | None:
    """c of y = c tanh(k x / c) through the largest |y|, y1, and the one nearest to half of it; None where none fits.

    With k set so that the first is met, |y| at the second falls as c grows, from the first's to that of a line.
    """
    if not x1 or not x2 or x1 * y1 < 0 or abs(x2) >= abs(x1):
        return None

    def beyond(cap: float) -> bool:
        return cap * math.tanh(math.atanh(abs(y1) / cap) * abs(x2 / x1)) > abs(y2)

    low, high = math.log(abs(y1) * (1 + 1e-12)), math.log(abs(y1) * 1e4)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if beyond(math.exp(middle)) else (low, middle)
    return math.exp(low)
