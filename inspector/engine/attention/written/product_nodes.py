"""Nodes of autograd's graph that are products summed over an axis, and those that change axes; see `products.py`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from torch import Tensor

from inspector.engine.hooks.saved_numbers import signed

Moved = Callable[[Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Factors:
    """P[i, …] = alpha Σ_d left[i, …, d] right[i, …, d]: (…, d) each, whose other axes broadcast to `shape`.

    plus: something is added in the same operation.
    """

    left: Tensor
    right: Tensor
    shape: tuple[int, ...]
    alpha: float = 1.0
    plus: bool = False


@dataclass(frozen=True, slots=True)
class Changed:
    """A change of the axes: the shape before it, and how a tensor of that shape is changed."""

    before: tuple[int, ...]
    move: Moved


@dataclass(slots=True)
class Operands:
    """What products were given whose graph saves one factor alone, since the other one needs no gradient (a first state
    of zeros), by their node."""

    given: dict[Any, tuple[Tensor, Tensor]] = field(default_factory=dict)

    def look(self, args: tuple[Any, ...], _kwargs: Any, out: Any) -> None:
        """A product of two tensors."""
        pair = tuple(one for one in args[:2] if isinstance(one, Tensor))
        one_alone = len(pair) == 2 and pair[0].requires_grad != pair[1].requires_grad
        if one_alone and isinstance(out, Tensor) and out.grad_fn is not None:
            self.given[out.grad_fn] = pair[0].detach(), pair[1].detach()

    def of(self, node: Any, names: tuple[str, str]) -> tuple[Tensor, Tensor] | None:
        """The factors of a product; None where one of them is not known."""
        one, two = (getattr(node, f"_saved_{name}") for name in names)
        if one is not None and two is not None:
            return one, two
        given = self.given.get(node)
        # A product of more axes is one of matrices in its graph, whose factors are laid out in another way.
        kept = one if one is not None else two
        return given if given is not None and kept is not None and given[one is None].dim() == kept.dim() else None


def factors_of(node: Any, operands: Operands) -> Factors | None:
    """The factors of a node that is a product of matrices, or a sum over one axis of a product; None for others."""
    name = node.name()
    if name in MATRICES:
        both = operands.of(node, MATRICES[name])
        if both is None:
            return None
        one, two = both
        found = _of_matrices(one, two)
        plus = hasattr(node, "_saved_alpha")  # addmm and baddbmm
        return replace(found, alpha=float(node._saved_alpha), plus=True) if plus else found
    return _summed(node, operands) if name == "SumBackward1" else None


MATRICES = {
    "MmBackward0": ("self", "mat2"), "BmmBackward0": ("self", "mat2"), "AddmmBackward0": ("mat1", "mat2"),
    "BaddbmmBackward0": ("batch1", "batch2"), "MvBackward0": ("self", "vec"),
}  # fmt: skip


def _of_matrices(one: Tensor, two: Tensor) -> Factors:
    """(…, i, d) (…, d, j), or (i, d) (d,)."""
    if two.dim() == 1:
        return Factors(one, two.expand(1, -1), (one.shape[0],))
    right = two.mT
    return Factors(one.unsqueeze(-2), right.unsqueeze(-3), (*one.shape[:-1], right.shape[-2]))


def _summed(node: Any, operands: Operands) -> Factors | None:
    """(x * y).sum(axis)."""
    before = node.next_functions[0][0]
    if before is None or before.name() != "MulBackward0" or len(node._saved_dim) != 1:
        return None
    both, sizes = operands.of(before, ("self", "other")), tuple(node._saved_self_sym_sizes)
    if both is None:
        return None
    one, two = both
    axis = signed(node._saved_dim[0]) % len(sizes)
    if one.expand(sizes).shape != sizes or sizes[axis] < 2:
        return None
    left, right = (_last(part, axis, len(sizes)) for part in (one, two))
    rest = tuple(size for number, size in enumerate(sizes) if number != axis)
    if node._saved_keepdim:
        left, right = left.unsqueeze(axis), right.unsqueeze(axis)
        rest = (*rest[:axis], 1, *rest[axis:])
    return Factors(left.expand(*left.shape[:-1], sizes[axis]), right.expand(*right.shape[:-1], sizes[axis]), rest)


def _last(part: Tensor, axis: int, dims: int) -> Tensor:
    """With as many axes as the product, the summed one last."""
    return part.reshape((1,) * (dims - part.dim()) + tuple(part.shape)).movedim(axis, -1)


def moved_by(node: Any, shape: tuple[int, ...]) -> Changed | None:
    """What a node that only changes axes does, whose result has this shape; None for other nodes."""
    maker = MOVES.get(node.name())
    return None if maker is None else maker(node, shape)


def _view(node: Any, shape: tuple[int, ...]) -> Changed:
    return Changed(tuple(node._saved_self_sym_sizes), lambda given: given.reshape(shape))


def _expanded(node: Any, shape: tuple[int, ...]) -> Changed:
    return Changed(tuple(node._saved_self_sym_sizes), lambda given: given.expand(shape))


def _transposed(node: Any, shape: tuple[int, ...]) -> Changed:
    one, two = (signed(axis) % len(shape) for axis in (node._saved_dim0, node._saved_dim1))
    before = list(shape)
    before[one], before[two] = shape[two], shape[one]
    return Changed(tuple(before), lambda given: given.transpose(one, two))


def _turned(node: Any, shape: tuple[int, ...]) -> Changed:
    return Changed(shape[::-1], lambda given: given.t())


def _permuted(node: Any, shape: tuple[int, ...]) -> Changed:
    axes = [signed(axis) % len(shape) for axis in node._saved_dims]
    before = [0] * len(shape)
    for new, old in enumerate(axes):
        before[old] = shape[new]
    return Changed(tuple(before), lambda given: given.permute(axes))


def _unsqueezed(node: Any, shape: tuple[int, ...]) -> Changed:
    axis = signed(node._saved_dim) % len(shape)
    return Changed((*shape[:axis], *shape[axis + 1 :]), lambda given: given.unsqueeze(axis))


def _sliced(node: Any, shape: tuple[int, ...]) -> Changed:
    sizes = tuple(node._saved_self_sym_sizes)
    axis = signed(node._saved_dim) % len(sizes)
    part = slice(signed(node._saved_start), min(signed(node._saved_end), sizes[axis]), node._saved_step)
    return Changed(sizes, lambda given: given[(slice(None),) * axis + (part,)])


def _selected(node: Any, shape: tuple[int, ...]) -> Changed:
    sizes = tuple(node._saved_self_sym_sizes)
    axis, index = signed(node._saved_dim) % len(sizes), signed(node._saved_index)
    return Changed(sizes, lambda given: given.select(axis, index))


MOVES: dict[str, Callable[[Any, tuple[int, ...]], Changed]] = {
    **dict.fromkeys(("ViewBackward0", "UnsafeViewBackward0", "SqueezeBackward0", "SqueezeBackward1"), _view),
    **dict.fromkeys(("ReshapeAliasBackward0", "SqueezeBackward2"), _view),
    "ExpandBackward0": _expanded, "TransposeBackward0": _transposed, "TBackward0": _turned,
    "PermuteBackward0": _permuted, "UnsqueezeBackward0": _unsqueezed, "SliceBackward0": _sliced,
    "SelectBackward0": _selected,
}  # fmt: skip
