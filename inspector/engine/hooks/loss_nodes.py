"""What a loss was computed from, read off autograd's nodes between it and the model: nothing is called or replaced.

Losses of torch save what they were given for their gradient. So targets, and the numbers that stand beside them, are
known where a backward pass begins, whatever a loop calls its loss by.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from inspector.engine.hooks.saved_numbers import signed

MOST_NODES = 200
"""Nodes from the loss on that are looked at: those of the loss come first."""
MOST_LOSSES = 8
SHAPES = frozenset(
    (
        "View", "UnsafeView", "ReshapeAlias", "Reshape", "Transpose", "Permute", "T", "Squeeze", "Unsqueeze", "Slice",
        "Select", "Index", "IndexSelect", "MaskedSelect", "Clone", "ToCopy", "Expand", "Alias", "Stack", "Cat",
        "Unbind", "Split", "SplitWithSizes", "ViewAsReal", "ViewAsComplex",
    )
)  # fmt: skip
"""Operations that move numbers and change none."""
_NUMBERS = ("MseLoss", "SmoothL1Loss", "HuberLoss")
_CLASSES = ("NllLoss", "NllLoss2D")
_LOGITS = "BinaryCrossEntropyWithLogits"
_ENDS = frozenset((*_NUMBERS, _LOGITS, "BinaryCrossEntropy", "LogSoftmax"))
Kind = Literal["classes", "numbers", "shares"]


@dataclass(frozen=True, slots=True)
class Asked:
    """What one loss was given: `kind` "classes": logarithms of probabilities (n, v) and targets (n,) of which
    `ignored` count for nothing; "numbers": predictions and targets of one shape; "shares": logits and probabilities.

    `rows`: how many sequences lie along the first axis; 0 where they were joined with the steps. `cuts`: (entries of an
    axis, how many at its front were left out) of each slice between the model and the loss.
    """

    kind: Kind
    given: Tensor
    targets: Tensor
    ignored: int = -100
    rows: int = 0
    cuts: tuple[tuple[int, int], ...] = ()

    def left_out(self, entries: int) -> int:
        """How many at the front of an axis of so many entries the loss was not given."""
        return sum(start for size, start in self.cuts if size == entries)


def operation(node: Any) -> str:
    """The operation of a node: "LogSoftmax"."""
    return re.sub(r"Backward\d*$", "", str(node.name()))


def losses_of(root: Tensor) -> Iterator[Any]:
    """Nodes from a loss towards the parameters, the nearest first; what losses were given is not gone into, since
    behind it lies the model."""
    return nodes_from(root, lambda name: name not in _ENDS)


def nodes_from(root: Tensor, through: Callable[[str], bool]) -> Iterator[Any]:
    """Nodes from a tensor towards the parameters, the nearest first, MOST_NODES at most; behind an operation that is
    not gone `through` nothing is looked at."""
    waiting, seen = deque[Any]([root.grad_fn]), set[Any]()
    while waiting and len(seen) < MOST_NODES:
        node = waiting.popleft()
        if node is not None and node not in seen:
            seen.add(node)
            yield node
            if through(operation(node)):
                waiting.extend(one for one, _ in node.next_functions)


def asked_of(root: Tensor) -> list[Asked]:
    """What the losses of torch that a scalar was computed from were given, a few at most. Losses that are written out
    by hand save no targets, and those in compiled code are not seen."""
    found = []
    for node in losses_of(root):
        one = _asked(node)
        if one is not None:
            found.append(one)
        if len(found) == MOST_LOSSES:
            break
    return found


def _asked(node: Any) -> Asked | None:
    name = operation(node)
    try:
        if name in _CLASSES:
            given, targets = node._saved_self.detach(), node._saved_target.detach()
            rows = len(given) if given.dim() > 2 else 0
            if given.dim() < 2:
                given, targets = given[None], targets.reshape(1)
            classes = given.movedim(1, -1).reshape(-1, given.shape[1])
            ignored = node._saved_ignore_index
            return Asked("classes", classes, targets.reshape(-1), signed(ignored), rows, _cuts(node))
        if name in _NUMBERS or name == _LOGITS:
            given, targets = node._saved_self.detach(), node._saved_target.detach()
            if given.shape != targets.shape or not given.dim() or not given.is_floating_point():
                return None
            return Asked("numbers" if name in _NUMBERS else "shares", given, targets, rows=len(given))
    except RuntimeError:  # freed by an earlier pass, or changed in place since
        return None
    return None


def _cuts(node: Any) -> tuple[tuple[int, int], ...]:
    """The slices that begin behind the front of their axis, from the loss to what made its numbers."""
    found: list[tuple[int, int]] = []
    for _ in range(16):
        node = next((one for one, _ in node.next_functions if one is not None), None)
        name = "" if node is None else operation(node)
        if name not in SHAPES and name != "LogSoftmax":
            break
        if name == "Slice":
            size, start = node._saved_self_sym_sizes[signed(node._saved_dim)], signed(node._saved_start)
            found.append((int(size), min(int(size), start if start >= 0 else max(0, start + int(size)))))
    return tuple(found)


WRONG = (
    "as it should be",
    "softmax before softmax",
    "sigmoid before softmax",
    "sigmoid before sigmoid",
    "no logarithm",
    "each prediction beside all targets",
)
"""What may be wrong with what a loss is given, by number."""


def wrong_input(root: Tensor, normalised: Callable[[Any], bool] = lambda node: False) -> int | None:
    """A number of WRONG, 0 where all is well, None where no loss of classes is seen. A log-softmax of a log-softmax
    changes nothing, and is well.

    normalised: whether the numbers of a node are known to be probabilities, of code in which no softmax is seen.
    """
    known = None
    for node in losses_of(root):
        name = operation(node)
        if name in ("LogSoftmax", _LOGITS):
            below = beneath(node)
            wrong = {"Softmax": 1, "Sigmoid": 2}.get(_name(below), 1 if below is not None and normalised(below) else 0)
            known = max(known or 0, 3 if wrong and name == _LOGITS else wrong)
        elif name in _CLASSES and _name(beneath(node)) != "LogSoftmax" and (asked := _asked(node)) is not None:
            known = max(known or 0, 0 if are_logarithms(asked.given) else 4)
    return known


def _name(node: Any) -> str:
    return "" if node is None else operation(node)


def beneath(node: Any) -> Any:
    """The node whose numbers a node was given, behind those that only move them; None where it was given a leaf."""
    for _ in range(16):
        node = next((one for one, _ in node.next_functions if one is not None), None)
        if node is None or operation(node) not in SHAPES:
            return node
    return None


def origin(tensor: Tensor) -> Any:
    """The node that made a tensor's numbers, behind those that only moved them."""
    node = tensor.grad_fn
    return node if node is None or operation(node) not in SHAPES else beneath(node)


ROWS, NEAR = 64, 0.1
"""Rows whose sum is looked at; how far the logarithm of a sum of probabilities may be from 0: half precision, a small
number added under the logarithm."""


def are_logarithms(given: Tensor) -> bool:
    """Whether some row of (n, v) may be logarithms of probabilities, which sum to 1; rows with NaN may."""
    rows = given[:: max(1, len(given) // ROWS)][:ROWS].float()
    sums = torch.logsumexp(rows, 1).abs()
    return not len(rows) or not bool((sums > NEAR).all())


def are_shares(given: Tensor) -> bool:
    """Whether rows of (…, v) or (b, v, …) are probabilities: none below 0, and a sum of 1."""
    for axis in {given.dim() - 1, 1} if given.dim() > 1 and given.is_floating_point() else ():
        if given.shape[axis] > 1:
            lines = given.movedim(axis, -1).reshape(-1, given.shape[axis])
            lines = lines[:: max(1, len(lines) // ROWS)][:ROWS].float()
            if bool((lines >= 0).all() & ((lines.sum(1) - 1).abs() < 1e-2).all()):
                return True
    return False
