"""Numbers that sum up one tensor of a checkpoint, and what differs between two: in double precision, block by block."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

BLOCK = 1 << 20
"""Elements that are converted to double precision at a time."""
BINS = 32
MOST_SPECTRUM = 1 << 22
"""Elements up to which singular values are computed: 2048 x 2048 take some seconds on one core."""


def summary(tensor: Tensor, *, spectrum: bool = True) -> dict[str, Any]:
    """Counts, range, moments, norm, histogram and, of a matrix, singular values, over the finite elements.

    Shape: any. NaN and infinities are counted and left out of the rest; of complex numbers the magnitudes are used.
    `std` is that of the whole population. What does not exist (the mean of nothing) or exceeds the largest double is
    None. Sums are taken of elements divided by the largest, so that squares neither overflow nor vanish.
    """
    found: dict[str, Any] = {"count": tensor.numel(), "nan": 0, "inf": 0, "zeros": 0}
    total, low, high = 0, math.inf, -math.inf
    for block in _blocks(tensor):
        found["nan"] += int(block.isnan().sum())
        found["inf"] += int(block.isinf().sum())
        found["zeros"] += int((block == 0).sum())
        block = block[block.isfinite()]
        if block.numel():
            total += block.numel()
            low, high = min(low, float(block.min())), max(high, float(block.max()))
    found |= dict.fromkeys(("min", "max", "mean", "std", "norm", "histogram"))
    if total:
        found |= {"min": low, "max": high, **_moments(tensor, total, low, high)}
    return found | (_spectrum(tensor, total) if spectrum else {})


def _blocks(tensor: Tensor) -> Iterator[Tensor]:
    """The elements in order, as float64, at most BLOCK at a time."""
    flat = tensor.detach().reshape(-1)
    for start in range(0, flat.numel(), BLOCK):
        block = flat[start : start + BLOCK]
        yield (block.to(torch.complex128).abs() if block.is_complex() else block.to(torch.float64))


def _moments(tensor: Tensor, count: int, low: float, high: float) -> dict[str, Any]:
    """Mean, std, norm and histogram of the finite elements, whose number and range are known."""
    scale = max(abs(low), abs(high)) or 1.0
    first, last = low / scale, high / scale
    sums = squares = 0.0
    counts = torch.zeros(BINS, dtype=torch.float64)
    for block in _blocks(tensor):
        block = block[block.isfinite()] / scale
        sums, squares = sums + float(block.sum()), squares + float(block.square().sum())
        if block.numel() and last > first:
            counts += torch.histc(block, BINS, first, last)
    mean, spread = sums / count, 0.0
    for block in _blocks(tensor):
        spread += float((block[block.isfinite()] / scale - mean).square().sum())
    bins = [int(one) for one in counts] if last > first else [count]
    return {
        "mean": _number(mean * scale),
        "std": _number(math.sqrt(spread / count) * scale),
        "norm": _number(math.sqrt(squares) * scale),
        "histogram": bins,
    }


def _spectrum(tensor: Tensor, finite: int) -> dict[str, Any]:
    """Singular values, the largest first, of a matrix whose elements are all finite; otherwise why there are none."""
    reason = ""
    if tensor.dim() != 2 or not tensor.numel():
        reason = "no matrix"
    elif finite < tensor.numel():
        reason = "not finite"
    elif tensor.numel() > MOST_SPECTRUM:
        reason = f"more than {MOST_SPECTRUM:,} elements"
    if reason:
        return {"singular_values": None, "no_spectrum": reason}
    matrix = tensor.detach().to(torch.complex128 if tensor.is_complex() else torch.float64)
    scale = float(matrix.abs().max()) or 1.0
    values = [_number(float(one) * scale) for one in torch.linalg.svdvals(matrix / scale)]
    return {"singular_values": values, "no_spectrum": ""}


def difference(first: Tensor, second: Tensor) -> dict[str, Any]:
    """How two tensors of one shape differ: `equal` (NaN where the other has NaN counts as equal), the largest |b - a|
    with its place, ‖b - a‖, ‖b - a‖ / ‖a‖, `ratio` ‖b‖ / ‖a‖ and `cosine` ⟨a, b⟩ / (‖a‖ ‖b‖) (of complex numbers its
    real part), all over the elements that are finite in both, and how many are not.

    Complex numbers are subtracted as such, others in double precision. Raises ValueError for different shapes.
    """
    if first.shape != second.shape:
        raise ValueError(f"Shapes differ: {tuple(first.shape)} and {tuple(second.shape)}.")
    one, other = first.detach().reshape(-1), second.detach().reshape(-1)
    sums = _Sums((_largest(one) or 1.0, _largest(other) or 1.0))
    for start in range(0, one.numel(), BLOCK):
        sums.add(start, one[start : start + BLOCK], other[start : start + BLOCK])
    return sums.result(tuple(first.shape))


@dataclass(slots=True)
class _Sums:
    """What two tensors differ by, summed block by block; products are of values divided by `scales`."""

    scales: tuple[float, float]
    equal: bool = True
    left_out: int = 0
    largest: float = -1.0
    at: int = 0
    product: float = 0.0
    norms: list[tuple[float, float, float]] = field(default_factory=list)

    def add(self, start: int, one: Tensor, other: Tensor) -> None:
        """A block of each, (k,), which begins at element `start`."""
        wide = torch.complex128 if one.is_complex() or other.is_complex() else torch.float64
        a, b = one.to(wide), other.to(wide)
        if one.dtype == other.dtype and not (one.is_floating_point() or one.is_complex()):
            same = torch.equal(one, other)  # above 2^53 whole numbers that differ may have the same double
        else:
            same = bool(((a == b) | (a.isnan() & b.isnan())).all())
        known = a.isfinite() & b.isfinite()
        self.equal, self.left_out = self.equal and same, self.left_out + int((~known).sum())
        moved = torch.where(known, b - a, 0).abs()
        if float(moved.max()) > self.largest:
            self.largest, self.at = float(moved.max()), start + int(moved.argmax())
        a, b = torch.where(known, a, 0), torch.where(known, b, 0)
        self.norms.append((_norm(moved), _norm(a.abs()), _norm(b.abs())))
        self.product += float((a / self.scales[0] * (b / self.scales[1]).conj()).sum().real)

    def result(self, shape: tuple[int, ...]) -> dict[str, Any]:
        """See `difference`."""
        columns = zip(*self.norms, strict=True)
        moved, base, other = (math.hypot(*column) for column in columns) if self.norms else (0.0,) * 3
        return {
            "equal": self.equal,
            "left_out": self.left_out,
            "largest": _number(max(self.largest, 0.0)),
            "at": _place(self.at, shape) if self.largest > 0 else None,
            "norm": _number(moved),
            "relative": _number(moved / base) if base else (0.0 if not moved else None),
            "ratio": _number(other / base) if base else None,
            "cosine": _cosine(self.product, base / self.scales[0], other / self.scales[1]),
        }


def _largest(flat: Tensor) -> float:
    """The largest finite magnitude."""
    found = 0.0
    for block in _blocks(flat):
        block = block[block.isfinite()].abs()
        found = max(found, float(block.max()) if block.numel() else 0.0)
    return found


def _cosine(product: float, first: float, second: float) -> float | None:
    """Within −1 and 1 despite rounding; None beside a tensor of zeros."""
    return max(-1.0, min(1.0, product / first / second)) if first and second else None


def _norm(values: Tensor) -> float:
    scale = float(values.max()) or 1.0
    return float((values / scale).square().sum().sqrt()) * scale if math.isfinite(scale) else math.inf


def _place(flat: int, shape: tuple[int, ...]) -> list[int]:
    place: list[int] = []
    for size in reversed(shape):
        flat, index = divmod(flat, size)
        place.insert(0, index)
    return place


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
