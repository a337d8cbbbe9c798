"""Of what products the scores before a softmax are made, read off autograd's graph of them.

Between a product of queries and keys (bmm, einsum, multiply and sum) and the softmax stand scales, masks, something
added, and changes of axes. The graph is followed from the scores back to the product through these alone; then the
positions of the product's entries are brought forward by the same changes of axes, so that each score knows its two
vectors, whatever the axes are called. A score w · tanh(W q + U k) is such a product as well, of w and the hidden units.

Letters: a head, q query, k key, d component, n vectors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import torch
from torch import Tensor

from inspector.engine.attention.written.facts import Facts, Origin
from inspector.engine.attention.written.layout import Layout
from inspector.engine.attention.written.product_nodes import Factors, Moved, Operands, factors_of, moved_by
from inspector.engine.errors import Unsupported
from inspector.engine.trace.products import Products

NO_SOFTMAX = "its weights do not come from a softmax of scores that autograd follows"
NONE = "no product was found that its scores are, but for a scale, a mask and something added"
SEVERAL = "its scores are the sum of several products"
UNEVEN = "its scores are scaled by something that differs from pair to pair"
WINDING = "more operations than are followed lie between its scores and a product"
OTHER = "the product that was found does not give its scores again"
MOST_NODES = 400
ROUNDING = 256.0
"""How many rounding errors scores that are added up in another order may differ by."""
FILLED_BEYOND = -1e4
"""Scores that are lower may be masks, which take the place of products."""
SAME = ("CloneBackward0", "ToCopyBackward0", "AliasBackward0", "MaskedFillBackward0", "MaskedFillBackward1",
        "IndexPutBackward0")  # fmt: skip
"""Functions whose first argument goes on where it is not masked."""


@dataclass(frozen=True, slots=True)
class Found:
    """A product and how its entries became scores.

    Attributes:
        factors: the vectors.
        moves: changes of the axes, and scales, from the product to the scores; each gives a tensor of the next shape.
        scales: the same with factors, for a tensor of ones.
        plus: whether anything was added.
    """

    factors: Factors
    moves: tuple[Moved, ...] = ()
    scales: tuple[Moved, ...] = ()
    plus: bool = False

    def then(self, move: Moved, scale: Moved | None = None, *, plus: bool = False) -> Found:
        """With one more change."""
        return replace(self, moves=(*self.moves, move), scales=(*self.scales, scale or move), plus=self.plus or plus)


@dataclass(slots=True)
class Walk:
    """From scores back to products; `seen` operations so far."""

    operands: Operands
    seen: int = 0

    def products(self, node: Any, shape: tuple[int, ...]) -> Iterator[Found]:
        """Those of a result of this shape. Raises Unsupported."""
        if node is None:
            return
        self.seen += 1
        if self.seen > MOST_NODES:
            raise Unsupported(WINDING)
        factors = factors_of(node, self.operands)
        if factors is not None:
            yield Found(factors).then(_to(shape), _by(torch.tensor(factors.alpha), shape), plus=factors.plus)
            return
        name = node.name()
        changed = moved_by(node, shape)
        if changed is not None:
            for one in self.products(node.next_functions[0][0], changed.before):
                yield one.then(changed.move)
        elif name in SAME:
            for one in self.products(node.next_functions[0][0], shape):
                yield one.then(_to(shape))
        elif name in ("AddBackward0", "SubBackward0", "WhereBackward0"):
            yield from self._either(node, shape)
        elif name in ("MulBackward0", "DivBackward0", "NegBackward0"):
            yield from self._scaled(node, shape)

    def _either(self, node: Any, shape: tuple[int, ...]) -> Iterator[Found]:
        """A sum or difference, of which one or both are products; or one of both by a condition."""
        alpha = float(getattr(node, "_saved_alpha", 1.0))
        signs = (1.0, -alpha) if node.name() == "SubBackward0" else (1.0, alpha)
        for (before, _), sign in zip(node.next_functions, signs, strict=False):
            for one in self.products(before, shape):
                yield one.then(_to(shape), _by(torch.tensor(sign), shape), plus=node.name() != "WhereBackward0")

    def _scaled(self, node: Any, shape: tuple[int, ...]) -> Iterator[Found]:
        """A product with a number or a tensor, a quotient by one, or the negative."""
        if node.name() == "NegBackward0":
            sides: list[tuple[int, Tensor | None]] = [(0, torch.tensor(-1.0))]
        elif node.name() == "DivBackward0":
            sides = [(0, 1.0 / node._saved_other.detach().double())]
        else:
            sides = [(0, node._saved_other), (1, node._saved_self)]
        for which, by in sides:
            if by is not None:
                for one in self.products(node.next_functions[which][0], shape):
                    yield one.then(_to(shape), _by(by.detach(), shape))


def _to(shape: tuple[int, ...]) -> Moved:
    """Broadcast; a tensor of as many entries, or of entries that are repeated."""
    return lambda given: given.expand(shape)


def _by(factor: Tensor, shape: tuple[int, ...]) -> Moved:
    return lambda given: (given * factor.to(given)).expand(shape)


def products_of(node: Any, scores: Tensor, entries: Tensor, operands: Operands) -> Products:
    """Of the scores (…) of a softmax, whose graph is `node`, those of one sample: `entries` (a, q, k) says which.

    Raises Unsupported with the reason where there is no such product, or more than one.
    """
    found = list(Walk(operands).products(node, tuple(scores.shape)))
    if len(found) != 1:
        raise Unsupported(SEVERAL if found else NONE)
    one, shape = found[0], found[0].factors.shape
    own = torch.arange(prod(shape), device=scores.device).reshape(shape)
    try:
        places = _through(one.moves, own).reshape(-1)[entries]
        scale = _through(one.scales, torch.ones(shape, dtype=torch.float64)).reshape(-1)[entries.cpu()]
    except RuntimeError:  # axes that are broadcast in a way that was not followed
        raise Unsupported(NONE) from None
    at = torch.unravel_index(places, shape)
    left, at_left = _vectors(one.factors.left, at)
    right, at_right = _vectors(one.factors.right, at)
    if not bool((scale == scale[:, :1, :1]).all()):
        raise Unsupported(UNEVEN)
    own_scores = scores.detach().reshape(-1)[entries]
    made = Products(left, right, at_left, at_right, scale[:, 0, 0], own_scores, one.plus)
    _confirm(made)
    return made


def _confirm(made: Products) -> None:
    """The last query's products are its scores, where nothing is added and nothing masked. Raises Unsupported."""
    scores = made.scores[:, -1].double()
    heads, keys = scores.shape
    own = torch.stack([made.of_pair(-1, torch.full((heads,), key)).double().sum(-1) for key in range(keys)], 1)
    seen = scores.isfinite() & (scores > FILLED_BEYOND)
    near = ROUNDING * torch.finfo(made.scores.dtype).eps
    size = float(own.abs().max()) + float(made.left.abs().max() * made.right.abs().max())
    if not made.plus and bool(((own - scores).abs() > near * max(size, 1.0))[seen].any()):
        raise Unsupported(OTHER)


def _through(moves: tuple[Moved, ...], given: Tensor) -> Tensor:
    for move in moves:
        given = move(given)
    return given


def _vectors(factor: Tensor, at: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
    """((n, d) the vectors of a factor (…, d) that are used, (a, q, k) which of them each score has)."""
    sizes = factor.shape[:-1]
    which = torch.zeros_like(at[0])
    for size, index in zip(sizes, at, strict=True):
        which = which * size + (index if size > 1 else 0)
    used, which = which.unique(return_inverse=True)
    coordinates = torch.unravel_index(used, sizes)
    return factor.detach()[coordinates].clone(), which


def products_behind(layout: Layout, known: Facts, origin: Origin, operands: Operands) -> list[Products] | str:
    """The products that the sample's scores are made of; why they are not known."""
    if origin.scores is None or known.entries is None:
        return NO_SOFTMAX
    entries = known.entries.expand(layout.contraction.left.tensor.shape)
    try:
        return [products_of(origin.scores[1], origin.scores[0], layout.of_weights(entries)[0], operands)]
    except Unsupported as reason:
        return str(reason)
