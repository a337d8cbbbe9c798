"""The projection behind the heads, W_O: the linear layer that is given the sums of values, recognised by its input.

The heads are merged by a transposition and a reshape, so that a row of the layer's input is z of one query, all heads
one after the other, bit for bit; or an einsum sums over heads and their entries at once. Where the model does something
else with z (a gate, dropout, a concatenation with other values, a layer for each head) no projection is found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from inspector.engine.trace.heads import Heads
from inspector.engine.trace.trace import Attention

WAITING = 8
"""Attentions whose projection is waited for: it follows soon, or there is none."""


@dataclass(slots=True)
class Projections:
    """Finds W_O of attentions that were just recorded."""

    waiting: list[tuple[Attention, Tensor]] = field(default_factory=list)

    def expect(self, attention: Attention, heads: Heads, result: object) -> None:
        """Give an attention what its heads pass on, and wait for the layer that is given `result`."""
        attention.heads = heads
        call = heads.calls[0] if heads.calls else None
        if call is None or call.take is None or not isinstance(result, Tensor):
            return
        sums = call.take(result.detach())
        ends = sums[:, [0, -1]].transpose(0, 1).flatten(1)  # (2, a·d)
        self.waiting = [*self.waiting[-WAITING + 1 :], (attention, ends)]

    def linear(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], _out: Any) -> None:
        """linear(x, weight (e, i), bias)."""
        if self.waiting:
            given = dict(zip(("input", "weight"), args, strict=False)) | dict(kwargs)
            self._offer(given["input"], given["weight"].T)

    def added_product(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], _out: Any) -> None:
        """addmm(bias, x, weight (i, e))."""
        if self.waiting:
            given = dict(zip(("input", "mat1", "mat2"), args, strict=False)) | dict(kwargs)
            self._offer(given["mat1"], given["mat2"])

    def product(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], _out: Any) -> None:
        """x @ weight (i, e)."""
        if self.waiting:
            given = dict(zip(("input", "other"), args, strict=False)) | dict(kwargs)
            self._offer(given.get("input"), given.get("other"))

    def einsum(self, args: tuple[Any, ...], _kwargs: Mapping[str, Any], _out: Any) -> None:
        """einsum("bqhd,hde->bqe", z, weight), with any letters in any order."""
        operands = args[1] if len(args) == 2 and isinstance(args[1], (list, tuple)) else args[1:]
        if not self.waiting or not isinstance(args[0], str) or len(operands) != 2 or "." in args[0]:
            return
        left, _, result = args[0].replace(" ", "").partition("->")
        terms = left.split(",")
        for one, two in ((0, 1), (1, 0)):
            own = [axis for axis in terms[two] if axis in terms[one] and axis not in result]
            rest = [axis for axis in terms[two] if axis not in own]
            if len(own) != 2 or len(rest) != 1 or rest[0] not in result or rest[0] in terms[one]:
                continue
            kept = [axis for axis in terms[one] if axis not in own]
            for order in (own, own[::-1]):
                given = operands[one].detach().permute([terms[one].index(axis) for axis in (*kept, *order)])
                weight = operands[two].detach().permute([terms[two].index(axis) for axis in (*order, *rest)])
                self._offer(given.flatten(-2), weight.flatten(0, 1))

    def _offer(self, given: object, weight: object) -> None:
        """A product of x (…, i) and a matrix (i, e): perhaps the one that is waited for."""
        if not isinstance(given, Tensor) or not isinstance(weight, Tensor) or weight.dim() != 2:
            return
        for number, (attention, ends) in enumerate(self.waiting):
            if _holds(given, ends) and attention.heads is not None:
                heads, windows = attention.heads.calls[0].value.shape[0], ends.shape[1] // given.shape[-1]
                own = weight.detach().unflatten(0, (heads // windows, -1))
                attention.heads.weight = own.repeat(windows, 1, 1)  # the heads of each window have the same
                del self.waiting[number]
                return


def _holds(given: Tensor, ends: Tensor) -> bool:
    """Whether both rows are rows of x; of several windows, whose heads lie one after the other, those of each window.

    A layer that is given one head alone (a projection for each head) holds the rows of that head only.
    """
    if given.is_nested or given.dtype != ends.dtype or not given.shape[-1] or ends.shape[1] % given.shape[-1]:
        return False
    rows = given.detach().reshape(-1, given.shape[-1])
    windows = ends.unflatten(1, (-1, rows.shape[1])).flatten(0, 1)
    return all(bool((rows == one).all(-1).any()) for one in windows)
