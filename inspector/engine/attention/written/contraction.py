"""A sum of products of two tensors, however it is written, with a letter for each axis.

`weights @ values`, `torch.einsum`, `torch.tensordot` and `(weights * values).sum(1)` are the same thing: axes that
occur in both operands and not in the result are summed over.
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

LETTERS = string.ascii_letters


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor and a letter for each of its axes."""

    tensor: Tensor
    axes: str

    def without(self, axes: str) -> Operand:
        """The same without some axes of size 1."""
        at = [number for number, axis in enumerate(self.axes) if axis in axes]
        left = "".join(axis for axis in self.axes if axis not in axes)
        if not at:
            return Operand(self.tensor, left)
        with torch.enable_grad():  # a model's own graph, where it has one, tells of which sequence the keys are
            return Operand(self.tensor.squeeze(at), left)

    def ordered(self, axes: str) -> Tensor:
        """The tensor with its axes in another order."""
        return self.tensor.permute([self.axes.index(axis) for axis in axes])

    def size(self, axis: str) -> int:
        """How many positions an axis has; 1 where the tensor has none."""
        return int(self.tensor.shape[self.axes.index(axis)]) if axis in self.axes else 1


@dataclass(frozen=True, slots=True)
class Contraction:
    """`out` is the sum of `left` · `right` over the axes that it lacks. Axes along which one of both is repeated are
    not axes of that one."""

    left: Operand
    right: Operand
    out: Operand

    @classmethod
    def of(cls, left: Operand, right: Operand, out: Operand) -> Contraction:
        """With the axes removed along which an operand of size 1 is repeated."""
        wide = {axis for one in (left, right) for axis in one.axes if one.size(axis) > 1}
        kept = [
            one.without("".join(axis for axis in one.axes if axis in wide and one.size(axis) == 1))
            for one in (left, right)
        ]
        return cls(kept[0], kept[1], out)

    def swapped(self) -> Contraction:
        """The operands in the other order."""
        return Contraction(self.right, self.left, self.out)

    def roles(self) -> Roles | None:
        """The axes with `left` as the weights; None where one operand has an axis of its own that is summed."""
        w, v, out = self.left.axes, self.right.axes, self.out.axes
        if any(axis not in out for axis in w if axis not in v) or any(axis not in out for axis in v if axis not in w):
            return None
        keys = "".join(axis for axis in w if axis in v and axis not in out)
        return Roles(
            shared="".join(axis for axis in w if axis in v and axis in out),
            queries="".join(axis for axis in w if axis not in v),
            keys=keys,
            features="".join(axis for axis in v if axis not in w),
        ) if keys else None  # fmt: skip


@dataclass(frozen=True, slots=True)
class Roles:
    """What the axes of weights and values are: those of both and of the result (batch, heads), of the weights and the
    result (queries), summed over (keys), of the values and the result."""

    shared: str
    queries: str
    keys: str
    features: str


def of_matmul(left: Tensor, right: Tensor, out: Tensor) -> Contraction:
    """`left @ right`, with vectors and with leading axes that are repeated."""
    count = max(left.dim(), right.dim(), 2) - 2
    leading, q, k, d = LETTERS[:count], *list(LETTERS[count : count + 3])
    one = leading[count + 2 - left.dim() :] + q + k if left.dim() > 1 else k
    two = leading[count + 2 - right.dim() :] + k + d if right.dim() > 1 else k
    result = leading + (q if left.dim() > 1 else "") + (d if right.dim() > 1 else "")
    return Contraction.of(Operand(left, one), Operand(right, two), Operand(out, result))


def of_sum(left: Tensor, right: Tensor, dims: Sequence[int], keepdim: bool, out: Tensor) -> Contraction:
    """`(left * right).sum(dims, keepdim)`; no dims are all of them."""
    count = max(left.dim(), right.dim())
    axes = LETTERS[:count]
    summed = {dim % count for dim in dims} if dims else set(range(count))
    rest = "".join(axis for number, axis in enumerate(axes) if number not in summed)
    out = out.squeeze(sorted(summed)) if keepdim else out
    operands = [Operand(one, axes[count - one.dim() :]) for one in (left, right)]
    return Contraction.of(operands[0], operands[1], Operand(out, rest))


def of_tensordot(left: Tensor, right: Tensor, dims: Any, out: Tensor) -> Contraction | None:
    """`torch.tensordot(left, right, dims)` with a number of axes, or two lists of them; None for other forms."""
    if isinstance(dims, int):
        dims = (list(range(left.dim() - dims, left.dim())), list(range(dims)))
    if not isinstance(dims, (tuple, list)) or len(dims) != 2:
        return None
    first, second = ([dims[n]] if isinstance(dims[n], int) else list(dims[n]) for n in (0, 1))
    one = LETTERS[: left.dim()]
    two = list(LETTERS[left.dim() : left.dim() + right.dim()])
    for a, b in zip(first, second, strict=True):
        two[b] = one[a]
    named = "".join(two)
    result = "".join(axis for axis in one + named if not (axis in one and axis in named))
    return Contraction.of(Operand(left, one), Operand(right, named), Operand(out, result))


def of_einsum(equation: str, operands: Sequence[Tensor], at: int, out: Tensor) -> Contraction | None:
    """An einsum as a product of operand `at` with all others; None where an operand repeats an axis.

    Three and more operands: the others are multiplied first, over the axes that only they have.
    """
    found = terms_of(equation, operands)
    if found is None:
        return None
    terms, result = found
    weights = Operand(operands[at], terms[at])
    others = [(term, one) for n, (term, one) in enumerate(zip(terms, operands, strict=True)) if n != at]
    if len(others) == 1:
        return Contraction.of(weights, Operand(others[0][1], others[0][0]), Operand(out, result))
    if not others:
        return None
    used = "".join(dict.fromkeys(axis for term, _ in others for axis in term if axis in result or axis in terms[at]))
    values = torch.einsum(",".join(term for term, _ in others) + "->" + used, [one for _, one in others])
    return Contraction.of(weights, Operand(values, used), Operand(out, result))


def with_factor(equation: str, operands: Sequence[Tensor]) -> Iterator[tuple[Contraction, Tensor]]:
    """An einsum of three operands as the product of two, and a third one that multiplies entries of it.

    Each is (product, factor), the product with the axes of the result and the factor with as many, of size 1 where
    it is repeated.
    """
    left, arrow, result = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != 3 or len(operands) != 3:
        return
    terms, result = _spelled(terms, operands, result if arrow else _implied(left))
    for at in range(3):
        first, second = (n for n in range(3) if n != at)
        if set(terms[at]) <= set(result) <= set(terms[first] + terms[second]):
            rest = f"{terms[first]},{terms[second]}->{result}"
            product = torch.einsum(rest, operands[first], operands[second])
            ordered = Operand(operands[at], terms[at]).ordered("".join(axis for axis in result if axis in terms[at]))
            wide = ordered[tuple(slice(None) if axis in terms[at] else None for axis in result)]
            pair = Operand(operands[first], terms[first]), Operand(operands[second], terms[second])
            yield Contraction.of(*pair, Operand(product, result)), wide


def terms_of(equation: str, operands: Sequence[Tensor]) -> tuple[list[str], str] | None:
    """The letters of each operand of an einsum, and of its result; None where an operand repeats one."""
    left, arrow, result = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        return None
    terms, result = _spelled(terms, operands, result if arrow else _implied(left))
    return None if any(len(set(term)) < len(term) for term in terms) else (terms, result)


def _spelled(terms: list[str], operands: Sequence[Tensor], result: str) -> tuple[list[str], str]:
    """Letters in place of "...", the same at the same distance from the end of it."""
    free = [axis for axis in LETTERS if not any(axis in term for term in (*terms, result))]
    counts = [one.dim() - len(term.replace("...", "")) for term, one in zip(terms, operands, strict=True)]
    most = max((count for term, count in zip(terms, counts, strict=True) if "..." in term), default=0)
    extra = "".join(free[:most])
    spelled = [
        term.replace("...", extra[most - count :] if count else "") for term, count in zip(terms, counts, strict=True)
    ]
    return spelled, result.replace("...", extra)


def _implied(left: str) -> str:
    """The result of an equation without an arrow: letters that occur once, in the order of the alphabet."""
    text = left.replace("...", "").replace(",", "")
    return ("..." if "..." in left else "") + "".join(sorted(axis for axis in set(text) if text.count(axis) == 1))
