"""A few numbers by which one tensor can be compared with another that is in another process, on another machine.

Linear ones: Σ_i w_i x_i with signs w_i = ±1. For two tensors x, y of the same shape the difference of such sums is
w·(x − y), whose mean square over signs is ‖x − y‖²: with 16 of them ‖x − y‖ is known to within a factor of three
(chi-squared with 16 degrees of freedom: four in a million are further off), however x and y were computed. The signs
come from integer arithmetic, so that they are the same on every machine and in every version of torch and NumPy.

Johnson & Lindenstrauss 1984; with signs: Achlioptas 2003; their sum of squares: Alon, Matias & Szegedy 1996.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

COUNT = 16
WIDTH = 4096
"""Entry n has the sign s[n % WIDTH] · t[n // WIDTH]: so few signs stay in the cache of a core."""
SMALL = 16 * WIDTH
ROWS = 256
"""Rows of WIDTH entries that are converted to float64 at a time: 8 MB."""
NUMBERS = ("not finite", "sum", "norm", "sum of sizes", "largest", *(f"projection {n}" for n in range(1, COUNT + 1)))


def mixed(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """splitmix64 of each number (Steele, Lea & Flood 2014)."""
    with np.errstate(over="ignore"):
        z = numbers + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        found: npt.NDArray[np.uint64] = z ^ (z >> np.uint64(31))
    return found


def _signs(start: int, count: int, salt: int) -> Tensor:
    """(count, COUNT) float64, +1 or −1: bit p of the mixed number of each position."""
    bits = mixed(mixed(np.arange(start, start + count, dtype=np.uint64)) + np.uint64(salt))
    kept = (bits[:, None] >> np.arange(COUNT, dtype=np.uint64)) & np.uint64(1)
    return torch.from_numpy(1.0 - 2.0 * kept.astype(np.float64))


@functools.lru_cache(maxsize=8)
def _within(device: str) -> Tensor:
    return _signs(0, WIDTH, 1).to(device)


@functools.cache
def _signs_within() -> npt.NDArray[np.float64]:
    return _signs(0, WIDTH, 1).numpy()


@functools.cache
def _signs_between() -> npt.NDArray[np.float64]:
    return _signs(0, SMALL // WIDTH, 2).numpy()


@functools.lru_cache(maxsize=64)
def _between(first: int, device: str) -> Tensor:
    return _signs(first, ROWS, 2).to(device)


def _projections(numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """(COUNT,) of (n,), n up to SMALL."""
    found = np.zeros(COUNT)
    for row, start in enumerate(range(0, len(numbers), WIDTH)):
        part = numbers[start : start + WIDTH]
        found += np.einsum("i,ij->j", part, _signs_within()[: len(part)]) * _signs_between()[row]
    return found


def projections(flat: Tensor, start: int = 0) -> Tensor:
    """(COUNT,) float64, on the device: of numbers (n,) that are the entries from `start` on of a tensor; of parts of a
    tensor they add up to those of the whole. float64 arithmetic throughout."""
    if not start and flat.device.type == "cpu" and flat.numel() <= SMALL:  # without the threads of a matrix product
        return torch.from_numpy(_projections(flat.double().numpy()))
    device = str(flat.device)
    total = torch.zeros(COUNT, dtype=torch.float64, device=flat.device)
    row, before = divmod(start, WIDTH)
    if before:  # up to the next row: signs within a row begin with it
        here = flat[: WIDTH - before].double()
        sums = here @ _within(device)[before : before + here.numel()]
        return sums * _row(row).to(flat.device) + projections(flat[WIDTH - before :], (row + 1) * WIDTH)
    for first in range(row, row - (-flat.numel() // WIDTH), ROWS):
        part = flat[(first - row) * WIDTH : (first - row + ROWS) * WIDTH].double()
        rows = -(-part.numel() // WIDTH)
        if part.numel() < rows * WIDTH and rows > 1:
            part = torch.nn.functional.pad(part, (0, rows * WIDTH - part.numel()))
        sums = part.view(rows, -1) @ _within(device)[: part.numel() // rows]
        total += (sums * _between(first, device)[:rows]).sum(0)
    return total


def projections_at(flat: Tensor, positions: Callable[[int, int], Tensor]) -> Tensor:
    """The same of numbers (n,) that lie anywhere in a tensor: `positions(first, last)` are the places (m,) of those
    from `first` up to `last`, in its order of memory."""
    device = str(flat.device)
    total = torch.zeros(COUNT, dtype=torch.float64, device=flat.device)
    for first in range(0, flat.numel(), SMALL):
        part = flat[first : first + SMALL].double()
        places = positions(first, first + part.numel())
        rows, which = torch.unique(places.div(WIDTH, rounding_mode="floor").cpu(), return_inverse=True)
        between = torch.stack([_row(int(row)) for row in rows]).to(flat.device)
        signs = _within(device)[places % WIDTH] * between[which.to(flat.device)]
        total += part @ signs
    return total


@functools.lru_cache(maxsize=4096)
def _row(row: int) -> Tensor:
    return _signs(row, 1, 2)[0]


def real(tensor: Tensor) -> Tensor:
    """(n,) the numbers of a tensor as plain ones: of a complex one its parts, of a sparse one all entries."""
    tensor = tensor.detach()
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    if tensor.is_quantized:
        tensor = tensor.int_repr()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    return tensor.resolve_neg().reshape(-1)


def fingerprint(tensor: Tensor) -> npt.NDArray[np.float64]:
    """The NUMBERS of a tensor. Entries that are not finite are counted, and left out of the others."""
    flat = real(tensor)
    if flat.device.type == "mps":
        flat = flat.cpu()  # which has float64
    bad = 0
    if flat.is_floating_point():
        fine = flat.isfinite()
        bad = flat.numel() - int(fine.sum())
        flat = flat if not bad else flat.where(fine, 0)
    total = sizes = squares = largest = 0.0
    for start in range(0, flat.numel(), ROWS * WIDTH):
        part = flat[start : start + ROWS * WIDTH].double()
        size = part.abs()
        total, sizes = total + float(part.sum()), sizes + float(size.sum())
        squares += float(torch.linalg.vector_norm(part)) ** 2
        largest = max(largest, float(size.max()))
    own = projections(flat).cpu().numpy() if flat.numel() else np.zeros(COUNT)
    return np.array([bad, total, math.sqrt(squares), sizes, largest, *own])


def bits_of(tensor: Tensor) -> int:
    """A hash of 63 bits of dtype, shape and every bit of the entries, in their order."""
    flat = real(tensor).cpu().contiguous()
    kind = f"{tensor.dtype} {tuple(tensor.shape)}"
    data = flat.view(torch.uint8).numpy() if flat.numel() else np.zeros(0, np.uint8)
    digest = hashlib.blake2b(kind.encode(), digest_size=8)
    digest.update(data.tobytes())
    return int.from_bytes(digest.digest(), "big") >> 1


STRIDE = 1009
"""Signs of one tensor begin so many places after those of the one before."""


def _enough(count: int) -> int:
    """A power of two, so that few lengths are made."""
    return 1 << max(12, (count - 1).bit_length())


@functools.lru_cache(maxsize=2)
def _flips(count: int) -> npt.NDArray[np.int8]:
    """(count,) +1 or −1, always the same."""
    up = (mixed(mixed(np.arange(count, dtype=np.uint64))) & np.uint64(1)).astype(np.int8)
    found: npt.NDArray[np.int8] = 1 - 2 * up
    return found


def perturbed(tensor: Tensor, salt: int) -> Tensor:
    """A copy with each entry moved by one unit of rounding, up or down by signs that do not change."""
    if not tensor.is_floating_point() or tensor.layout != torch.strided:
        return tensor.clone()
    flat = tensor.detach().reshape(-1)
    start = salt * STRIDE
    signs = torch.from_numpy(_flips(_enough(start + flat.numel()))[start : start + flat.numel()]).to(tensor.device)
    eps = torch.finfo(tensor.dtype).eps
    moved = torch.empty_like(tensor)  # strides as they are: kernels depend on them
    moved.copy_((flat + flat * (signs * eps)).view(tensor.shape))
    return moved
