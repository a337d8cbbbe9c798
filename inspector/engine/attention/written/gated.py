"""Products of queries and keys of all pairs, multiplied by something more before they are summed over features.

`(q[:, :, None] * k[:, None] * d).sum(-1)`, with a decay or gate of each pair and feature, is scores as (q · k) is; what
it is multiplied by is of no account for that.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

from torch import Tensor

from inspector.engine.attention.key_source import SELF
from inspector.engine.attention.written import scores
from inspector.engine.attention.written.contraction import Contraction, Operand, of_sum, terms_of
from inspector.engine.attention.written.judging import is_parameter
from inspector.engine.attention.written.put_in import PutIn
from inspector.engine.attention.written.sums import NOTHING, Args, Kwargs


class Gated(PutIn):
    """What `PutIn` sees, and such products."""

    __slots__ = ()

    def multiplied(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """q · k of all pairs and features, times something."""
        pair = self._pair(args[:2])
        super().multiplied(args, kwargs, out)
        self._keep(pair, out)

    def quotient(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """The same divided by something."""
        pair = self._pair(args[:1])
        super().quotient(args, kwargs, out)
        self._keep(pair, out)

    def summed(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """A sum over features."""
        super().summed(args, kwargs, out)
        found = self.pairs.get(id(args[0])) if self.pairs and args else None
        dims = kwargs.get("dim", kwargs.get("axis", args[1] if len(args) > 1 else None))
        if found is not None and found[0]() is args[0] and isinstance(dims, (int, tuple, list)):
            axes = (dims,) if isinstance(dims, int) else tuple(dims)
            keepdim = bool(kwargs.get("keepdim", args[2] if len(args) > 2 else False))
            self._gated(of_sum(found[1], found[2], axes, keepdim, out))

    def product(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """A sum over features by a product with a vector."""
        super().product(args, kwargs, out)
        pair = self._pair(args[:1]) if len(args) > 1 else None
        vector = pair is not None and isinstance(args[1], Tensor) and args[1].shape[1:].numel() == 1
        if pair is not None and vector and isinstance(out, Tensor):
            self._gated(of_sum(*pair, (-1,), args[1].dim() > 1, out))

    def _gated(self, contraction: Contraction) -> None:
        """Note scores that are such a sum, where nothing else is known of them."""
        known = self.facts.of(contraction.out.tensor) or NOTHING
        if known.origin is None and known.scored in (None, scores.ADDITIVE):
            found = scores.of_product(self.selected, contraction)
            if found is not None:
                own = self.facts.alike(contraction.left.tensor, contraction.right.tensor)
                self.facts.note(contraction.out.tensor, replace(found, own=SELF if own else ""))

    def einsum(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """einsum of queries, keys and what multiplies them."""
        super().einsum(args, kwargs, out)
        operands = args[1] if len(args) == 2 and isinstance(args[1], (list, tuple)) else args[1:]
        if isinstance(args[0], str) and len(operands) == 3 and isinstance(out, Tensor):
            self._of_three(args[0], operands, out)

    def _of_three(self, equation: str, operands: Sequence[Tensor], out: Tensor) -> None:
        found = terms_of(equation, operands)
        if found is None:
            return
        terms, result = found
        for one, two in combinations(range(3), 2):
            if is_parameter(operands[one]) or is_parameter(operands[two]):
                continue
            q, k = (Operand(operands[at], terms[at]) for at in (one, two))
            contraction = Contraction.of(q, k, Operand(out, result))
            queries_and_keys = set(result) <= set(terms[one] + terms[two])
            if queries_and_keys and scores.of_product(self.selected, contraction) is not None:
                self._gated(contraction)
                return

    def _pair(self, given: Sequence[Any]) -> tuple[Tensor, Tensor] | None:
        """The queries and keys of one of these, as far as it is their product."""
        for one in given:
            for table in (self.products, self.pairs):
                found = table.get(id(one))
                if found is not None and found[0]() is one:
                    both = [self.facts.of(part) or NOTHING for part in found[1:]]
                    return None if any(part.origin is not None for part in both) else (found[1], found[2])
        return None

    def _keep(self, pair: tuple[Tensor, Tensor] | None, out: Any) -> None:
        if pair is not None and isinstance(out, Tensor):
            number = id(out)
            self.pairs[number] = (weakref.ref(out, lambda _: self.pairs.pop(number, None)), *pair)
