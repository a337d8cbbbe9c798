"""A projection of the heads that a layer's own code computes, without a module of its own: `z @ W_O`, an einsum.

It is found by its result in one more call of the layer: the sums of the heads, projected, and the same addition at
every position. In further calls the same product, counted from the beginning of the layer, is changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from inspector.engine.analyses.attention.residual_stream import Stream
from inspector.engine.analyses.module_calls import ModuleCall

PRODUCTS = {
    torch.einsum, torch.matmul, torch.bmm, torch.mm, torch.addmm, torch.baddbmm, torch.tensordot, F.linear,
    torch.Tensor.matmul, torch.Tensor.__matmul__, torch.Tensor.bmm, torch.Tensor.mm, torch.Tensor.addmm,
    torch.Tensor.__rmatmul__,
}  # fmt: skip


class _Products(TorchFunctionMode):
    """Counts products while a layer runs; one may be changed."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def seen(self, result: Tensor) -> Tensor:
        """Look at the result of a product, and what goes on in its place."""
        return result

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func in PRODUCTS and isinstance(result, Tensor):
            self.count += 1
            result = self.seen(result)
        return result


class _Found(_Products):
    """Which product has this result: (t, e) and the same addition at every position."""

    def __init__(self, stream: Stream, expected: Tensor, rounding: float) -> None:
        super().__init__()
        self.stream, self.expected, self.rounding = stream, expected, rounding
        self.number = 0

    def seen(self, result: Tensor) -> Tensor:
        if self.number or result.dim() not in (2, 3) or not result.is_floating_point() or len(self.expected) < 2:
            return result
        rows = self.stream.of_sample(result.detach()).double()
        if rows.shape == self.expected.shape:
            rest = rows - self.expected
            size = max(self.rounding, 16 * torch.finfo(result.dtype).eps) * float(rows.abs().max())
            if float((rest - rest[0]).abs().max()) <= size:
                self.number = self.count
        return result


class _Changed(_Products):
    """One product lacks `taken` (t, e) in the selected sequence."""

    def __init__(self, number: int, stream: Stream, taken: Tensor) -> None:
        super().__init__()
        self.number, self.stream, self.taken = number, stream, taken

    def seen(self, result: Tensor) -> Tensor:
        if self.count != self.number:
            return result
        result = result.clone()
        rows = self.stream.of_sample(result)
        rows -= self.taken.to(rows)
        return result


def product_inside(stream: Stream, layer: ModuleCall, expected: Tensor, rounding: float) -> int:
    """The number of the product in a layer whose result is `expected` (t, e) up to one addition; 0 for none."""
    found = _Found(stream, expected, rounding)
    with found, torch.no_grad():
        layer.again()
    return found.number


@contextmanager
def changed_inside(number: int, stream: Stream, taken: Tensor) -> Iterator[None]:
    """Inside, a product lacks `taken`; products count from the first call of the layer."""
    with _Changed(number, stream, taken):
        yield
