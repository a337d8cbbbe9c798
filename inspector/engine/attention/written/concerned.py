"""Which calls of a function that may be called at every step have anything to do with attention: cheap questions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from inspector.engine.attention.written import masking
from inspector.engine.attention.written.indirect import IndirectSums
from inspector.engine.attention.written.scores import for_each_row


class Concerned(IndirectSums):
    """The same, with the questions that are asked before a handler is called."""

    __slots__ = ()

    def concerns(self, handler: Callable[..., None]) -> Callable[[Any, Any], bool] | None:
        """When one of the handlers below has anything to do: a function of the arguments and the result of a call that
        costs next to nothing; None for handlers that are not of this class."""
        if getattr(handler, "__self__", None) is not self:
            return None
        cheap: list[tuple[Callable[[Any, Any], bool], str]] = [
            (self._known, "passed dropped routed mapped lower upper"),
            (self._keyed, "indexed"),
            (self._remembered, "summed accumulated"),
            (self._adds_products, "summed_by_index"),
            (self._rows, "selected_rows"),
            (self._adds, "added subtracted"),
            (self._multiplied, "multiplied"),
            (self._over_positions, "sigmoid"),
            (self._assigns, "assigned"),
            (self._replaces, "replaced"),
        ]
        return next((one for one, names in cheap if handler.__name__ in names.split()), lambda _args, _out: True)

    def _known(self, args: Any, _out: Any) -> bool:
        return self.facts.knows(args[:2]) or (len(args) > 0 and self.results.of(args[0]) is not None)

    def _keyed(self, args: Any, _out: Any) -> bool:
        index = args[1]
        if type(index) is tuple:
            return self.facts.knows(index) or (len(index) > 0 and type(index[-1]) is Tensor)
        return type(index) is Tensor and index.dim() == 1

    def _rows(self, _args: Any, out: Any) -> bool:
        return isinstance(out, Tensor) and out.is_floating_point()

    def _adds_products(self, args: Any, _out: Any) -> bool:
        return bool(self.products)

    def _remembered(self, args: Any, _out: Any) -> bool:
        return bool(args) and (id(args[0]) in self.products or id(args[0]) in self.pairs)

    def _adds(self, args: Any, out: Any) -> bool:
        return (
            bool(self.pieces.sums or self.blocks.waiting)
            or self.facts.knows(args[:2])
            or (len(args) > 1 and isinstance(args[0], Tensor) and for_each_row(args[1], args[0]))
            or any(masking.may_be_mask(one, out) for one in args[:2])
        )

    def _multiplied(self, args: Any, _out: Any) -> bool:
        return (
            bool(self.linear.uses or self.products or self.pairs or self.blocks.waiting or self.factored.sums)
            or self.facts.knows(args[:2])
            or (len(args) > 1 and is_outer(args[0], args[1]))
        )

    def _over_positions(self, _args: Any, out: Any) -> bool:
        shape = out.shape
        return self.selected.padded in shape or self.selected.length in shape

    def _replaces(self, _args: Any, out: Any) -> bool:
        return isinstance(out, Tensor) and out.dim() > 1

    def _assigns(self, args: Any, _out: Any) -> bool:
        return isinstance(args[1], Tensor) and args[1].dtype == torch.bool


def is_outer(left: object, right: object) -> bool:
    """Whether a product is of (…, d, 1) and (…, 1, e), or the other way round; or of (…, 1, d) and (…, k, d)."""
    if not isinstance(left, Tensor) or not isinstance(right, Tensor) or left.dim() != right.dim() or left.dim() < 3:
        return False
    ends = (left.shape[-1], right.shape[-2]), (left.shape[-2], right.shape[-1])
    outer = (1, 1) in ends and left.shape[:-2] == right.shape[:-2]
    return outer or (left.shape[-1] == right.shape[-1] > 1 and 1 in (left.shape[-2], right.shape[-2]) != (1, 1))
