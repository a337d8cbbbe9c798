"""Whether the keys of an attention are of its queries' own sequence or of another one, read off autograd's graph.

Both were projected from something. From either the graph is followed back, through everything that computes each
position by itself (projections, norms, added positions, casts, views, residual sums), to what the sequence was made by:
embeddings, earlier attention, recurrent layers, given numbers. Where both come from the same of these it is one
sequence.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from inspector.engine.attention.graph_alone import WithoutValues
from inspector.engine.hooks.saved_numbers import signed

SELF, CROSS = "self", "cross"
MOST_NODES = 20_000
"""Of one call's graph that are looked at; beyond, the source is not known."""
PRODUCTS = ("Mm", "Bmm", "Addmm", "Baddbmm", "Linear", "Mv", "Addmv", "Dot")
MIXERS = ("ScaledDotProduct", "Attention", "Rnn", "Lstm", "Gru", "Cumsum", "Cumprod")
"""Words of the names of nodes that make each position from several."""
_LEFT, _RIGHT = ("self", "mat1", "batch1"), ("mat2", "batch2")
"""Names by which nodes keep the factors of a product."""
TAKEN = ("Slice", "Select", "Split", "Unbind", "Narrow", "Chunk")
REORDERED = ("Index", "Gather", "Flip", "Roll", "Sort", "TakeAlongDim", "MaskedSelect")
PLAIN = (
    "Add", "Sub", "Mul", "Div", "Neg", "Pow", "Rsqrt", "Sqrt", "Mean", "Sum", "View", "Reshape", "Transpose", "Permute",
    "Expand", "Squeeze", "Unsqueeze", "Clone", "Copy", "LayerNorm", "RmsNorm", "BatchNorm", "GroupNorm", "Dropout",
    "Relu", "Gelu", "Silu", "Tanh", "Sigmoid", "Cat", "Stack", "Convolution", "TBackward", "Alias", "AsStrided",
    "Repeat",
    "Softmax", "Exp", "Log", "Var", "Std", "Norm", "Clamp", "MaskedFill", "Where", "Pad", "Softplus", "Elu", "Max",
    "Complex", "ViewAsReal", "Real", "Glu", "Detach", "Movedim", "Flatten", "Unflatten", "Contiguous", "Fused",
    "Triu", "Tril", "Swish", "Leaky", "Maximum", "Minimum", "Abs", "Sin", "Cos", "Outer",
)  # fmt: skip
Node = Any
Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Made:
    """What a tensor was computed from, position by position.

    Attributes:
        made: what made its positions: embeddings, mixers (nodes), given tensors.
        mixers: those of them that made each position from several.
        fixed: the parameters.
        taken: of which parts of something it is; reordered: by what its positions were moved, and how long the axes are
            along which they were (None: not known).
        lost: something on the way is not known.
    """

    made: frozenset[Key] = frozenset()
    mixers: frozenset[Key] = frozenset()
    fixed: frozenset[Key] = frozenset()
    taken: frozenset[Key] = frozenset()
    reordered: frozenset[Key] = frozenset()
    lost: bool = False

    def __or__(self, other: Made) -> Made:
        return Made(
            self.made | other.made, self.mixers | other.mixers, self.fixed | other.fixed, self.taken | other.taken,
            self.reordered | other.reordered, self.lost or other.lost,
        )  # fmt: skip


@dataclass(slots=True)
class KeySource:
    """Of the attentions of one run. Nodes that were looked at are kept, so that a node has one identity in the run."""

    known: dict[Node, Made] = field(default_factory=dict)
    given: list[Tensor] = field(default_factory=list)
    followed: set[Key] = field(default_factory=set)
    """Inputs of which a gradient is wanted: all that is made of them has a graph."""

    def of(self, query: Tensor, key: Tensor, keys: int | None = None) -> str | None:
        """SELF, CROSS, or "" where it cannot be known, of queries and keys with their graphs; None inside a checkpoint,
        of which another call shows it. keys: how many, where these are not the last axis but one."""
        if query is key or (query.grad_fn is None and key.grad_fn is None):
            return SELF if query is key else ""
        if hooked():
            return None if checkpointed() else ""
        return self.relation(self.made(query), self.made(key), key.shape[-2] if keys is None else keys)

    def of_weights(self, weights: Tensor, *, windows: bool = False) -> str | None:
        """The same of weights: of the queries and keys of the product of which they were computed; None where no such
        product was found and the weights were made of more than one thing.

        windows: the keys were gathered to windows of one sequence, which is no other order of it."""
        if weights.grad_fn is None or hooked():
            return None if weights.grad_fn is not None and checkpointed() else ""
        keys = None if windows else weights.shape[-1]
        constants: list[tuple[Made, Tensor]] = []
        sides = list(self._scores(weights.grad_fn, keys, constants))
        if not sides and constants:
            return self._beside(*constants[0], keys)
        found = {self.relation(*both, keys) for both in sides}
        if not found or found == {""}:
            return SELF if len(self.node(weights.grad_fn).made) == 1 and not found else None if not found else ""
        return SELF if SELF in found else CROSS if found == {CROSS} else ""

    def relation(self, query: Made, key: Made, keys: int | None) -> str:
        """SELF, CROSS or "", of this many keys; None where it is known in which order they are."""
        if not query.made and not key.made:  # parameters that attend to parameters
            return SELF if query.fixed & key.fixed else ""
        differing = query.made ^ key.made
        nested = query.made <= key.made or key.made <= query.made
        if not query.made or not key.made:
            return "" if query.lost or key.lost else CROSS
        if nested and not differing & (query.mixers | key.mixers):
            return SELF if keys is None else self._same(query, key, keys)
        return "" if query.lost or key.lost else CROSS

    def _same(self, query: Made, key: Made, keys: int) -> str:
        """Of two that were made of one thing. Parts of another length than the keys have are heads or features."""
        if any(part[2] is None or keys in part[2] for part in query.reordered ^ key.reordered):
            return ""
        mine, yours = (
            {part for part in one.taken - other.taken if part[4] == keys} for one, other in ((query, key), (key, query))
        )
        if not mine and not yours:
            return SELF
        return CROSS if mine and yours and all(_apart(one, other) for one in mine for other in yours) else ""

    def _scores(
        self, weights: Node, keys: int | None, constants: list[tuple[Made, Tensor]]
    ) -> Iterator[tuple[Made, Made]]:
        """(queries, keys) of each product that the weights were computed from, in any order; those with numbers that
        have no graph (a table of relative positions, or keys) are added to `constants`."""
        waiting, seen = [weights], set[Node]()
        while waiting and len(seen) < MOST_NODES:
            node = waiting.pop()
            if node in seen:
                continue
            seen.add(node)
            sides = [self.node(one) for one, _ in node.next_functions if one is not None]
            if len(sides) > 1 and (_is_product(node) or self._spreads(node)):
                pair = sides[-2], sides[-1]
                if all(one.made or len(one.fixed) > 1 for one in pair):  # one parameter alone is a projection
                    yield pair
                    continue
            elif len(sides) == 1 and sides[0].made and _is_product(node):
                constant = _constant(node, keys)
                if constant is not None:
                    constants.append((sides[0], constant))
                    continue
            waiting.extend(one for one, _ in node.next_functions if one is not None)

    def _beside(self, side: Made, constant: Tensor, keys: int | None) -> str | None:
        """The relation of what is followed and numbers without a graph: these are an input, or, where the inputs are
        followed, another sequence. None where they may have been computed from an input that is not followed."""
        for number, one in enumerate(self.given):
            if any(_equal(one, form) for form in (constant, constant.mT) if one.numel() == form.numel()):
                return self.relation(side, Made(made=frozenset({("given", number)})), keys)
        if side.lost or not side.made <= self.followed:
            return None
        return self.relation(side, Made(made=frozenset({self._of_given(constant)})), keys)

    def _spreads(self, node: Node) -> bool:
        """Whether each of two operands is repeated along an axis of the other: (…, q, 1, d) and (…, 1, k, d)."""
        if not _named(node, ("Add", "Sub", "Mul")):
            return False
        shapes = [_shape(one, number) for one, number in node.next_functions if one is not None]
        if len(shapes) != 2 or len(shapes[0]) != len(shapes[1]):
            return False
        own = [(a == 1 < b) - (b == 1 < a) for a, b in zip(*shapes, strict=True)]
        return 1 in own and -1 in own

    def made(self, tensor: Tensor) -> Made:
        """What a tensor was made of, position by position."""
        if tensor.grad_fn is not None:
            return self.node(tensor.grad_fn)
        if tensor.requires_grad and is_parameter(tensor):
            return Made(fixed=frozenset({("parameter", tensor.data_ptr())}))
        return Made(made=frozenset({self._of_given(tensor)}))

    def node(self, start: Node) -> Made:
        """What the result of a node was made from; every node before it is known afterwards."""
        waiting, count = [start], 0
        while waiting:
            node = waiting[-1]
            before = [one for one, _ in node.next_functions if one is not None and one not in self.known]
            if node in self.known or not before or count > MOST_NODES:
                self.known.setdefault(node, Made(lost=True) if before else self._of_node(node))
                waiting.pop()
            else:
                waiting.extend(before)
            count += 1
        return self.known[start]

    def _of_node(self, node: Node) -> Made:
        if hasattr(node, "variable"):
            if not is_parameter(node.variable):  # an input that a gradient is wanted of
                key = self._of_given(node.variable)
                self.followed.add(key)
                return Made(made=frozenset({key}))
            return Made(fixed=frozenset({("parameter", node.variable.data_ptr())}))
        if _named(node, ("Embedding",)):
            return self._embedded(node)
        before = [self.known[one] for one, _ in node.next_functions if one is not None]
        if _named(node, MIXERS) or (_is_product(node) and sum(bool(one.made) for one in before) > 1):
            return _maker(node, mixes=True)
        together = Made()
        for one in before:
            together |= one
        if not together.made and any(one is None for one, _ in node.next_functions):
            together |= self._saved(node)
        return self._moved(node, together)

    def _moved(self, node: Node, made: Made) -> Made:
        """Parts of a sequence and other orders are known of what comes before a projection."""
        if _named(node, REORDERED):
            if not made.made:
                return made | _maker(node)
            return made | Made(reordered=frozenset({("moved", node, _moved_lengths(node))}))
        parts = [(one, number) for one, number in node.next_functions if one is not None]
        if _named(node, TAKEN) and parts:
            return made | Made(taken=_part(node))
        if _is_product(node):
            return made
        if _named(node, ("Sum",)) and not getattr(node, "_saved_keepdim", True) and not _over_last(node):
            return _maker(node, lost=True)
        return made if _named(node, PLAIN) else made | Made(lost=True)

    def _embedded(self, node: Node) -> Made:
        table = node.next_functions[0][0]
        indices = getattr(node, "_saved_indices", None)
        if not isinstance(indices, Tensor):
            return _maker(node)
        key = ("embedding", table, self._of_given(indices))
        rows = indices.reshape(-1, indices.shape[-1]) if indices.dim() else indices.reshape(1, 1)
        spaced = torch.arange(rows.shape[1], device=rows.device) + rows[:1, :1]
        positions = indices.dim() == 1 or (rows.shape[1] > 1 and bool((rows == spaced).all()))
        if positions:  # of a batch of sequences, or in a row: positions that are added
            return Made(fixed=frozenset({key})) if self._is_beside(node) else Made(made=frozenset({key}))
        return Made(made=frozenset({key}))

    def _is_beside(self, node: Node) -> bool:
        """Whether other embeddings with other tables were found, to which such positions are added."""
        return any(
            key[0] == "embedding" and key[1] is not node.next_functions[0][0]
            for made in list(self.known.values())
            for key in made.made
        )

    def _saved(self, node: Node) -> Made:
        """The tensor without a graph from which a node was computed, where the node has kept it."""
        for name in ("_saved_mat1", "_saved_input", "_saved_self", "_saved_mat2", "_saved_other", "_saved_weight"):
            one = getattr(node, name, None)
            if isinstance(one, Tensor) and not one.requires_grad:
                return Made(made=frozenset({self._of_given(one)}))
        return _maker(node, lost=True)

    def _of_given(self, tensor: Tensor) -> Key:
        """The same key for the same numbers, whose copies are many (a layout that a product needs)."""
        for number, one in enumerate(self.given):
            if one is tensor or (one.numel() == tensor.numel() and one.dtype == tensor.dtype and _equal(one, tensor)):
                return ("given", number)
        self.given.append(tensor.detach())
        return ("given", len(self.given) - 1)


def is_parameter(tensor: Tensor | None) -> bool:
    """Whether a leaf is a parameter."""
    return isinstance(tensor, nn.Parameter)


def _maker(node: Node, *, mixes: bool = False, lost: bool = False) -> Made:
    key = frozenset({("node", node)})
    return Made(made=key, mixers=key if mixes else frozenset(), lost=lost)


def _part(node: Node) -> frozenset[Key]:
    """(dimensions, axis, first, end, how many) of what was taken out of a sequence; nothing for features."""
    sizes = getattr(node, "_saved_self_sym_sizes", None) or getattr(node, "_saved_self_sizes", None)
    dim = getattr(node, "_saved_dim", None)
    if dim is None or not sizes:
        return frozenset()
    axis = signed(dim) % len(sizes)
    start, end = (getattr(node, f"_saved_{name}", 0) for name in ("start", "end"))
    if axis == len(sizes) - 1 or not _named(node, ("Slice",)):
        return frozenset()
    first, last = (min(one % sizes[axis] if one < 0 else one, sizes[axis]) for one in map(signed, (start, end)))
    return (
        frozenset()
        if (first, last) == (0, sizes[axis])
        else frozenset({(len(sizes), axis, first, last, -(-(last - first) // getattr(node, "_saved_step", 1)))})
    )


def _moved_lengths(node: Node) -> frozenset[int] | None:
    """How long the axes are, before and behind, whose entries an index chooses; None where the node does not say."""
    sizes = getattr(node, "_saved_self_sym_sizes", None)
    if not sizes:
        return None
    if node.name().startswith("IndexSelect"):
        axis = signed(node._saved_dim) % len(sizes)
        return frozenset((int(sizes[axis]), node._saved_index.numel()))
    chosen = getattr(node, "_saved_indices", None)
    if not node.name().startswith("IndexBackward") or chosen is None:
        return None
    found = set[int]()
    for axis, one in enumerate(chosen):
        if isinstance(one, Tensor):
            found |= {int(sizes[axis]), one.numel(), *one.shape}
    return frozenset(found)


def _apart(one: Key, other: Key) -> bool:
    """Whether two parts of one axis have nothing in common."""
    return one[:2] == other[:2] and (one[3] <= other[2] or other[3] <= one[2])


def _equal(one: Tensor, other: Tensor) -> bool:
    if one.data_ptr() == other.data_ptr():
        return True
    return one.device == other.device and torch.equal(one.reshape(-1), other.detach().reshape(-1))


def _constant(node: Node, keys: int | None) -> Tensor | None:
    """The factor without a graph of a product along whose other axis are this many keys; None for other products (by
    the weights of a layer that do not learn) and where the node has not kept it."""
    if keys is None or keys < 2 or len(node.next_functions) < 2:
        return None
    left = next((getattr(node, f"_saved_{name}") for name in _LEFT if hasattr(node, f"_saved_{name}")), None)
    right = next((getattr(node, f"_saved_{name}") for name in _RIGHT if hasattr(node, f"_saved_{name}")), None)
    before, after = (one is None for one, _ in node.next_functions[-2:])
    one, axis = (left, -2) if before else (right, -1)
    if before == after or not isinstance(one, Tensor) or one.dim() < 2 or one.requires_grad:
        return None
    return None if is_parameter(one) or is_parameter(one._base) or one.shape[axis] != keys else one.detach()


def _shape(node: Node, number: int) -> tuple[int, ...]:
    described = getattr(node, "_input_metadata", ())
    return tuple(described[number].shape) if number < len(described) else ()


def _over_last(node: Node) -> bool:
    dims, sizes = getattr(node, "_saved_dim", ()), getattr(node, "_saved_self_sym_sizes", ())
    dims = (dims,) if isinstance(dims, int) else tuple(dims or ())
    wide = len(sizes)
    return bool(dims) and all(signed(one) % max(1, wide) == wide - 1 for one in dims)


def _named(node: Node, words: tuple[str, ...]) -> bool:
    name = node.name()
    return any(word in name for word in words)


def _is_product(node: Node) -> bool:
    return bool(node.name().startswith(PRODUCTS))


def hooked() -> bool:
    """Whether saved tensors are unpacked by functions of the user's, or by a checkpoint that computes again."""
    found = torch._C._autograd._top_saved_tensors_default_hooks(True)
    return found is not None and not isinstance(getattr(found[0], "__self__", None), WithoutValues)


def checkpointed() -> bool:
    """Whether a checkpoint of torch's unpacks what is saved."""
    found = torch._C._autograd._top_saved_tensors_default_hooks(True)
    return found is not None and getattr(found[0], "__module__", "") == "torch.utils.checkpoint"
