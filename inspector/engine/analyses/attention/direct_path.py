"""A direction pulled back through autograd's graph along the direct path alone: sums, and what scales them.

Between what the heads give and the stream behind a layer stand sums, products with vectors or gates, and norms. With
the scales of norms and the gates held at their values the path is linear, and its transpose is walked here node by
node; what goes through any other function (a feed-forward part, a softmax) is no direct path and ends the walk.

Letters: b batch, t steps, e width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import get_gradient_edge

from inspector.engine.analyses.attention.residual_stream import Stream
from inspector.engine.errors import Unsupported
from inspector.engine.hooks.saved_numbers import signed

AS_IT_IS = ("CloneBackward0", "ToCopyBackward0", "AliasBackward0", "BackwardHookFunctionBackward")
"""Functions of autograd that return the numbers they are given."""
MOST_NODES = 10_000
MULTIPLIED = "What is added in {} is multiplied with something that contains it, so it has no linear path."
WINDING = "The path through {} has more than {:,} operations."
LOST = "What scales the stream in {} was overwritten, so the path could not be followed."
OTHER_SHAPE = "What scales the stream in {} has another shape than the stream, so the path could not be followed."

Edge = tuple[Any, int]
Step = tuple[int, Tensor]


@dataclass(slots=True)
class Path:
    """A walk from a tensor to others that it was made of.

    Attributes:
        stream, place: whose rows they are, and the layer, for reasons.
        sources: where the walk ends.
        found: (t, e) the direction at each source; None where no direct path reaches it.
        seen: how many operations were walked.
    """

    stream: Stream
    place: str
    sources: tuple[Edge, ...]
    found: list[Tensor | None]
    seen: int = 0

    def walk(self, at: Edge, direction: Tensor) -> bool:
        """Whether any source was reached from here. Raises Unsupported."""
        for number, source in enumerate(self.sources):
            if at[0] is source[0] and at[1] == source[1]:
                before = self.found[number]
                self.found[number] = direction if before is None else before + direction
                return True
        self.seen += 1
        if self.seen > MOST_NODES:
            raise Unsupported(WINDING.format(self.place, MOST_NODES))
        step = STEPS.get(at[0].name()) if at[0] is not None else None
        before_it = at[0].next_functions if step is not None else ()
        hits = [self.walk(before_it[which], made) for which, made in step(self, at[0], direction)] if step else []
        if sum(hits) > 1 and at[0].name() in PRODUCTS:
            raise Unsupported(MULTIPLIED.format(self.place))
        return any(hits)

    def rows(self, saved: Tensor) -> Tensor:
        """(t, e) of a factor that is broadcast over the stream."""
        shape = self.stream.values[0].shape
        if torch.broadcast_shapes(saved.shape, shape) != shape:
            raise Unsupported(OTHER_SHAPE.format(self.place))
        return self.stream.of_sample(saved.detach().expand(shape)).double()


def pulled(stream: Stream, place: str, result: Tensor, direction: Tensor, sources: list[Tensor]) -> list[Tensor | None]:
    """The direction (t, e) at `result` as one at each of the tensors that it was made of on the direct path.

    With result = Σ_i L_i s_i + … it is L_iᵀ direction, the scales of norms and gates held; None where s_i does not
    reach the result by sums, scales and norms alone, or has no graph. Raises Unsupported.
    """
    known = [one for one in sources if one.requires_grad]
    if not result.requires_grad or not known:
        return [None] * len(sources)
    path = Path(stream, place, tuple(_edge(one) for one in known), [None] * len(known))
    try:
        path.walk(_edge(result), direction)
    except Unsupported:
        raise
    except RuntimeError:  # a saved tensor was changed in place
        raise Unsupported(LOST.format(place)) from None
    found = iter(path.found)
    return [next(found) if one.requires_grad else None for one in sources]


def _edge(tensor: Tensor) -> Edge:
    edge = get_gradient_edge(tensor)
    return edge.node, edge.output_nr


def _same(path: Path, node: Any, direction: Tensor) -> list[Step]:
    return [(0, direction)]


def _negative(path: Path, node: Any, direction: Tensor) -> list[Step]:
    return [(0, -direction)]


def _added(path: Path, node: Any, direction: Tensor) -> list[Step]:
    return [(0, direction), (1, direction * node._saved_alpha)]


def _subtracted(path: Path, node: Any, direction: Tensor) -> list[Step]:
    return [(0, direction), (1, direction * -node._saved_alpha)]


def _multiplied(path: Path, node: Any, direction: Tensor) -> list[Step]:
    """Each factor, the other one held. What is not a path of sums and scales is not reached behind it (a gate)."""
    sides = ((0, node._saved_other), (1, node._saved_self))
    return [(which, direction * path.rows(by)) for which, by in sides if by is not None]


def _divided(path: Path, node: Any, direction: Tensor) -> list[Step]:
    """The numerator; and the divisor only to see that what is followed is not in it."""
    by = path.rows(node._saved_other)
    return [(0, direction / by), (1, torch.zeros_like(direction))]


def _view(path: Path, node: Any, direction: Tensor) -> list[Step]:
    """Rows in their order, in other axes: (b t, e) for (b, t, e). Factors are known only where they fit the stream."""
    return [(0, direction)] if node._saved_self_sym_sizes[-1] == direction.shape[-1] else []


def _mean(path: Path, node: Any, direction: Tensor) -> list[Step]:
    """The mean over the width, kept as an axis of size 1: a norm written out subtracts it."""
    sizes = node._saved_self_sym_sizes
    axes = [signed(axis) for axis in node._saved_dim]
    over_width = axes in ([-1], [len(sizes) - 1]) and node._saved_keepdim and sizes[-1] == direction.shape[-1]
    return [(0, direction.mean(-1, keepdim=True).expand_as(direction))] if over_width else []


def _layer_norm(path: Path, node: Any, direction: Tensor) -> list[Step]:
    """y = (x − mean) ⊙ γ / σ_t + β with σ_t held."""
    if len(node._saved_normalized_shape) != 1:
        return []
    gamma, scale = node._saved_weight, path.rows(node._saved_result2)
    moved = direction * scale if gamma is None else direction * scale * path.rows(gamma)
    return [(0, moved - moved.mean(-1, keepdim=True))]


STEPS: dict[str, Callable[[Path, Any, Tensor], list[Step]]] = {
    **dict.fromkeys(AS_IT_IS, _same), **dict.fromkeys(("ViewBackward0", "UnsafeViewBackward0"), _view),
    "NegBackward0": _negative, "AddBackward0": _added, "SubBackward0": _subtracted, "MulBackward0": _multiplied,
    "DivBackward0": _divided, "MeanBackward1": _mean, "NativeLayerNormBackward0": _layer_norm,
}  # fmt: skip
PRODUCTS = ("MulBackward0", "DivBackward0")
