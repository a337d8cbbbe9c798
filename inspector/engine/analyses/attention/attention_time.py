"""Between which times attention may take at lengths that were not run.

A short call takes mostly the time of calling operations, which does not grow with the length; a long one that of its
products. What a product takes on this machine is measured, so that one is not taken for the other.

Letters: T queries, S keys, a heads, d width of a head.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from inspector.engine.analyses.attention.attention_cost import Shape

SIDE = 1024
"""Rows of the products that are measured: long enough that calling them is a small share of their time."""
TIMES = 3
"""Calls of which the shortest is taken: anything else on the machine makes a call longer, nothing makes it shorter."""


@dataclass(frozen=True, slots=True)
class Rates:
    """What products take on this machine.

    Attributes:
        projection: seconds an operation (a multiplication with its addition is two) of a product with a matrix.
        fused, written: seconds an operation of scores and sums of values, softmax included, of torch's own kernel and
            of products and a softmax one after the other.
    """

    projection: float
    fused: float
    written: float


def shortest(call: Callable[[], object], device: torch.device) -> float:
    """Seconds of one call, the shortest of `TIMES`."""
    taken = []
    for _ in range(TIMES):
        began = time.perf_counter()
        call()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        taken.append(time.perf_counter() - began)
    return min(taken)


def measured_rates(shape: Shape, like: Tensor) -> Rates:
    """Of one head of `shape` over `SIDE` steps, in the type and on the device of `like`."""
    x, w = (like.new_ones(one) for one in ((SIDE, max(shape.width, 1)), (max(shape.width, 1), shape.heads * shape.key)))
    q, k = (like.new_ones(1, 1, SIDE, shape.key) for _ in range(2))
    v = like.new_ones(1, 1, SIDE, shape.value)
    pairs = 2 * SIDE * SIDE * (shape.key + shape.value)
    with torch.no_grad():
        product = shortest(lambda: x @ w, like.device) / (2 * x.numel() * w.shape[1])
        fused = shortest(lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v), like.device) / pairs
        written = shortest(lambda: torch.softmax(q @ k.mT / math.sqrt(shape.key), -1) @ v, like.device) / pairs
    return Rates(product, fused, written)


def between(shape: Shape, seconds: float, lengths: Sequence[tuple[int, int]], rates: Rates) -> Tensor:
    """(2, length) least and most seconds at (queries, keys), of which the first took `seconds`.

    Three estimates: in proportion to the operations, as if nothing were calling; and the measured time with what more
    operations take by `rates`, with torch's kernel and written out. Where fewer operations are left, nothing is faster
    than 0. Wrong where a kernel that is not like these two is used (sliding windows: too much).
    """
    counts = [shape.flops(*one) for one in lengths]
    work = torch.tensor([(sum(one[:4]), sum(one[4:])) for one in counts], dtype=torch.float64)
    total, more = work.sum(1), work - work[0]
    in_proportion = seconds * total / total[0] if total[0] else torch.full_like(total, seconds)
    added = [seconds + more[:, 0] * rates.projection + more[:, 1] * rate for rate in (rates.fused, rates.written)]
    every = torch.stack([in_proportion, *(one.clamp_min(0.0) for one in added)])
    return torch.stack([every.amin(0), every.amax(0)])
