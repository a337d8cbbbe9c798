"""Sums that are written in other ways than as a product of matrices: multiply and sum, values that an index chooses,
weights that are put together only when they are divided."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from inspector.engine.attention.written import masking, picked
from inspector.engine.attention.written.by_index import ByIndex, one_index
from inspector.engine.attention.written.contraction import Contraction, of_sum, of_tensordot
from inspector.engine.attention.written.factored import Factored
from inspector.engine.attention.written.facts import Facts, Origin
from inspector.engine.attention.written.sums import Args, Kwargs, WeightedSums


@dataclass(slots=True)
class IndirectSums(WeightedSums):
    """Handlers of functions that sum, of those that take or sum values by an index, and of quotients."""

    by_index: ByIndex = field(default_factory=ByIndex)
    factored: Factored = field(default_factory=Factored)
    pairs: dict[int, tuple[weakref.ref[Tensor], Tensor, Tensor]] = field(default_factory=dict)
    """Queries and keys of products of all pairs that were multiplied by something more, as long as these live."""
    ungated: dict[int, tuple[weakref.ref[Tensor], Tensor]] = field(default_factory=dict)
    """By the identity of a product with a gate, the sum of weights and values that it multiplied."""

    def product_added(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """baddbmm(input, batch1, batch2) and addmm: a sum of values where what they add is 0; else scores and perhaps
        a mask."""
        given = masking.arguments(args, kwargs, ("input", "batch1", "batch2"))
        left, right = given.get("batch1", given.get("mat1")), given.get("batch2", given.get("mat2"))
        beta = given.get("beta", 1)
        added = given["input"] if beta else None
        nothing = added is None or not bool(added.detach().any())
        if given.get("alpha", 1) == 1 and nothing:
            self.product((left, right), {}, out)
        elif not nothing and isinstance(out, Tensor) and out is not added:
            known = masking.added(None, masking.times(added, beta), out)
            if known is not None:
                self.facts.note(out, known)

    def tensordot(self, args: Args, kwargs: Kwargs, out: Tensor) -> None:
        """tensordot with lists of axes."""
        if self._any(*args[:2]):
            found = of_tensordot(args[0], args[1], kwargs.get("dims", args[2] if len(args) > 2 else 2), out)
            if found is not None:
                self.consider(found)

    def summed(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """A sum over some axes of a product that may be of weights and values."""
        found = self.products.get(id(args[0])) if self.products and args else None
        if found is None or found[0]() is not args[0]:
            return
        dims = kwargs.get("dim", kwargs.get("axis", args[1] if len(args) > 1 else None))
        axes: Sequence[int] = () if dims is None else (dims,) if isinstance(dims, int) else tuple(dims)
        keepdim = bool(kwargs.get("keepdim", args[2] if len(args) > 2 else False))
        contraction = of_sum(found[1], found[2], axes, keepdim, out)
        self.consider(contraction)
        self.undivided_sum(contraction)
        self._scores(contraction)

    def accumulated(self, args: Args, kwargs: Kwargs, out: Tensor) -> None:
        """cumsum(products of keys and values, dim)."""
        found = self.products.get(id(args[0])) if self.products and args else None
        dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
        if found is not None and found[0]() is args[0] and isinstance(dim, int):
            self.linear.running(found[1], found[2], dim, out)

    def gathered(self, args: Args, kwargs: Kwargs, out: Tensor) -> None:
        """gather(values, dim, index)."""
        given = masking.arguments(args, kwargs, ("input", "dim", "index"))
        if self.facts.of(given["index"]) is not None:
            self._picks(picked.gathered(self.facts, given["input"], given["dim"], given["index"], out))

    def along(self, args: Args, kwargs: Kwargs, out: Tensor) -> None:
        """take_along_dim(values, index, dim)."""
        given = masking.arguments(args, kwargs, ("input", "indices", "dim"))
        if self.facts.of(given["indices"]) is not None and isinstance(given.get("dim"), int):
            index = given["indices"]
            wide = index.expand(*given["input"].shape[: given["dim"]], *out.shape[given["dim"] :])
            self._picks(picked.gathered(self.facts, given["input"], given["dim"], wide, out))

    def indexed(self, args: Args, _kwargs: Kwargs, out: Any) -> None:
        """values[arange, index]; rows of edges, x[source] or x[:, source]."""
        index = args[1] if isinstance(args[1], tuple) else (args[1],)
        if any(self.facts.of(one) is not None for one in index) and isinstance(args[1], tuple):
            self._picks(picked.indexed(self.facts, args[0], args[1], out))
        elif isinstance(index[-1], Tensor) and all(one == slice(None) for one in index[:-1]):
            self.by_index.note(args[0], len(index) - 1, index[-1], out)

    def selected_rows(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """index_select(x, dim, index)."""
        given = masking.arguments(args, kwargs, ("input", "dim", "index"))
        self.by_index.note(given.get("input"), given["dim"], given["index"], out)

    def summed_by_index(self, args: Args, kwargs: Kwargs, out: Any) -> None:
        """index_add(x, dim, index, source), scatter_add(x, dim, index, source), in place or not."""
        given = masking.arguments(args, kwargs, ("input", "dim", "index", "source"))
        source = given.get("source", given.get("src"))
        found = self.products.get(id(source)) if self.products else None
        if found is None or found[0]() is not source or not isinstance(out, Tensor):
            return
        dim = given["dim"] % out.dim()
        index = one_index(given["index"], dim)
        edges = None if index is None else self.by_index.summed(found[1:], dim, index, out)
        if edges is None:
            return
        place, module = self.where()
        if edges.contraction is None:
            self.origins.append(Origin("edges", place, module, edges.shape, dim, reason=edges.reason))
            return
        self.facts.note(edges.contraction.left.tensor, Facts(masked=edges.absent, made=True))
        self._picks(edges.contraction)

    def factored_sum(self, contraction: Contraction) -> None:
        """A product of matrices, one of which may be the product of an exponential and values."""
        if self.products:
            self.factored.summed(contraction, self.result, self._power_apart)

    def undivided_sum(self, contraction: Contraction) -> None:
        """A sum of products of exponentials and values that may be divided by the sum of these."""
        for one in (contraction, contraction.swapped()):
            known, roles = self.facts.of(one.left.tensor), one.roles()
            plain = known is not None and known.made and known.scored is None and known.origin is None
            if plain and roles is not None and len(roles.keys) == 1 and roles.queries:
                place, module = self.where()
                shape = tuple(one.left.tensor.shape)
                self.linear.undivided(one, None, Origin("", place, module, shape, one.left.axes.index(roles.keys)))
                return

    def factored_quotient(self, args: Args, out: Any) -> None:
        """A quotient, perhaps of such a sum by that of its weights."""
        if not self.factored.sums or len(args) < 2 or not isinstance(out, Tensor):
            return
        found = self.factored.divided(args[0], args[1], out)
        if isinstance(found, str):
            place, module = self.where()
            self.origins.append(Origin("features", place, module, tuple(out.shape), out.dim() - 1, reason=found))
        elif found is not None:
            self.facts.note(found.left.tensor, Facts(made=True, masked=_nothing(found.left.tensor)))
            self._picks(found)

    def _power_apart(self, tensor: Tensor) -> tuple[Tensor, Tensor] | None:
        found = self.products.get(id(tensor))
        if found is None or found[0]() is not tensor:
            return None
        known = [self.facts.of(one) for one in found[1:]]
        powers = [one is not None and one.made for one in known]
        if powers.count(True) != 1:
            return None
        return (found[1], found[2]) if powers[0] else (found[2], found[1])

    def _picks(self, contraction: Contraction | None) -> None:
        if contraction is not None:
            self.weighs(contraction)


def _nothing(weights: Tensor) -> Tensor | None:
    """True at keys that have no weight at all (outside a window), None where there are none."""
    none = weights == 0
    return none if bool(none.any()) and not bool(torch.isnan(weights).any()) else None
