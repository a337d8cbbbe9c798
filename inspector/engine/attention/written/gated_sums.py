"""Sums of values that a gate multiplies before the sum of their weights divides them, and einsums of scores and values.

An attention-free transformer (Zhai et al. 2021, arXiv 2105.14103) may be written σ(q) ⊙ Σ e^{w+k} v / Σ e^{w+k} with
the gate before the division; Mamba-2's quadratic form (Dao & Gu 2024, arXiv 2405.21060) as one einsum of C, B, L and x.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any

import torch
from torch import Tensor

from inspector.engine.attention.written import scores
from inspector.engine.attention.written.contraction import Contraction, Operand, terms_of
from inspector.engine.attention.written.gated import Gated
from inspector.engine.attention.written.judging import is_parameter
from inspector.engine.attention.written.sums import Args, Kwargs

REMEMBERED = 4
SIGMOID = "sigmoid"


class GatedSums(Gated):
    """What `Gated` sees, and these."""

    __slots__ = ()

    def multiplied(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """A gate, or one over the sum of the weights after it."""
        super().multiplied(args, kwargs, out)
        if len(args) < 2 or not (self.factored.sums or self.linear.uses) or not isinstance(out, Tensor):
            return
        for source, factor in ((args[0], args[1]), (args[1], args[0])):
            if not isinstance(source, Tensor) or not isinstance(factor, Tensor) or source.shape != out.shape:
                continue
            if self.factored.knows(source) or self.linear.waits(source):
                self._gated_is(out, source)
                return
            if (before := self._before_gate(source)) is not None:
                self._divided(before, torch.reciprocal(factor.detach()), factor)
                self._gated_is(out, before)  # or it was another gate
                return

    def _gated_is(self, out: Tensor, source: Tensor) -> None:
        self.ungated[id(out)] = weakref.ref(out), source
        if len(self.ungated) > REMEMBERED:
            self.ungated.pop(next(iter(self.ungated)))

    def quotient(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """The division by the sum of the weights."""
        super().quotient(args, kwargs, out)
        before = self._before_gate(args[0]) if len(args) > 1 and isinstance(args[1], Tensor) else None
        if before is not None:
            self._divided(before, args[1].detach(), None)

    def _before_gate(self, tensor: object) -> Tensor | None:
        found = self.ungated.get(id(tensor))
        return found[1] if found is not None and found[0]() is tensor else None

    def _divided(self, source: Tensor, by: Tensor, factor: Tensor | None) -> None:
        """The same as if the gate came afterwards; nothing reads that quotient, so no head passes it on."""
        given, self.result = self.result, source.detach() / by
        self.factored_quotient((source, by), self.result)
        one_over = torch.reciprocal(by) if factor is None else factor
        self.divided(source, one_over, self.result, by_product=factor is not None)
        self.result = given

    def einsum(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """einsum of queries, keys, values and what multiplies their weights."""
        operands = args[1] if len(args) == 2 and isinstance(args[1], (list, tuple)) else args[1:]
        many = isinstance(args[0], str) and len(operands) > 2 and isinstance(out, Tensor)
        kinds = (
            {known.origin.kind for one in operands if (known := self.facts.of(one)) and known.origin} if many else set()
        )
        if kinds == {SIGMOID} and self._at_once(args[0], operands, out):
            return  # a gate beside queries and keys, and not weights of its own
        super().einsum(args, kwargs, out)
        if many and not kinds:
            self._at_once(args[0], operands, out)

    def _at_once(self, equation: str, operands: Sequence[Tensor], out: Tensor) -> bool:
        """Returns whether it is such a sum."""
        found = terms_of(equation, operands)
        if found is None:
            return False
        given, result = [Operand(one, term) for one, term in zip(operands, found[0], strict=True)], found[1]
        for read, queries, keys in permutations(given, 3):
            axis = _keys_axis(read, queries, keys, given, result)
            if axis is None or any(is_parameter(one.tensor) for one in (read, queries, keys)):
                continue
            values = _for_each(read, [one for one in result if one in queries.axes and one in keys.axes], queries)
            others = [one for one in given if one is not read]
            letters = "".join(one for one in result if any(one in other.axes for other in others)) + axis
            equation = ",".join(one.axes for one in others) + "->" + letters
            weights = torch.einsum(equation, [one.tensor.detach() for one in others])
            scored = Contraction.of(queries, keys, Operand(weights, letters))
            known = scores.of_product(self.selected, scored, named=True)
            if known is not None:
                absent = weights == 0 if any(_forbids(one, letters) for one in others) else None
                self.facts.note(weights, replace(known, masked=absent))
                self.weighs(Contraction.of(Operand(weights, letters), values, Operand(out, result)))
                return True
        return False


def _for_each(values: Operand, axes: Sequence[str], queries: Operand) -> Operand:
    """Values that all heads read, repeated for each of them: else each head would count as more queries."""
    missing = [axis for axis in axes if axis not in values.axes]
    with torch.enable_grad():
        tensor = values.tensor.expand(*(queries.size(axis) for axis in missing), *values.tensor.shape)
    return Operand(tensor, "".join(missing) + values.axes)


def _keys_axis(values: Operand, queries: Operand, keys: Operand, given: Sequence[Operand], result: str) -> str | None:
    """The letter of the keys, which values and keys have and queries and result lack, where queries and keys are summed
    over an axis of their own, queries have an axis that neither has, and values one of the result alone."""
    summed = [axis for axis in values.axes if axis in keys.axes and axis not in result and axis not in queries.axes]
    within = [axis for axis in queries.axes if axis in keys.axes and axis not in result + values.axes]
    own = [axis for axis in queries.axes if axis in result and axis not in values.axes + keys.axes]
    others = "".join(one.axes for one in given if one is not values)
    features = [axis for axis in values.axes if axis in result and axis not in others]
    return summed[0] if len(summed) == 1 and within and own and features else None


def _forbids(one: Operand, letters: str) -> bool:
    """Whether a factor for each query and key has zeros."""
    return len(one.axes) > 1 and set(one.axes) <= set(letters) and bool((one.tensor == 0).any())
