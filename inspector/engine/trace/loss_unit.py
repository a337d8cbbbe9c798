"""The unit of a loss: nat where autograd's graph shows that it is a negative log-likelihood, else that of the subject.

From the loss the graph is followed through what rearranges, selects, adds up or scales, until a function is met that
makes numbers of its own. Counter-examples: a fused kernel of another package, a Gaussian likelihood that is written
out, a loss without a gradient and one that a custom autograd function makes are log-likelihoods too and are not
recognised; a subject declares them (`loss_unit`). A scale other than a change to bits is not looked at.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from torch import Tensor

UNKNOWN, NAT = "1", "nat"
LIKELIHOODS = re.compile(
    r"(NllLoss(2D|Nd)?|CtcLoss|CudnnCtcLoss|BinaryCrossEntropy(WithLogits)?|LogSoftmax|LogSigmoid(Forward)?)Backward\d*"
)
LOGARITHM = re.compile(r"LogBackward\d*")
PROBABILITIES = re.compile(r"(Softmax|Sigmoid)Backward\d*")
PASSING = re.compile(
    r"(Sum|Mean|Nansum|Nanmean|Neg|View|UnsafeView|ReshapeAlias|AsStrided|Transpose|T|Permute|Squeeze|Unsqueeze|Expand|"
    r"Select|Slice|Cat|Stack|Index|IndexSelect|Gather|MaskedFill|MaskedScatter|MaskedSelect|Where|ConstantPadNd|Copy|Clone|"
    r"ToCopy|Alias|IndexPut|IndexPutImpl|Scatter|Flip|NanToNum|Split|SplitWithSizes|Unbind|Repeat|Diagonal|Roll|Add|Sub|"
    r"SelectScatter|SliceScatter|Clamp(Min|Max)?)Backward\d*|CopySlices|CopyBackwards"
)
SCALING = re.compile(r"(Mul|Div)Backward\d*")
MOST_NODES = 200_000
"""Nodes of autograd's graph that are looked at: a loss that is added up step by step has some for each of them."""


def loss_unit(loss: Tensor, declared: str = "") -> str:
    """The declared unit, else "nat" where the loss is made of log-likelihoods only, else "1"."""
    if declared:
        return declared
    return NAT if loss.grad_fn is not None and _all_reach([loss.grad_fn], LIKELIHOODS) else UNKNOWN


def _all_reach(nodes: Sequence[Any], wanted: re.Pattern[str]) -> bool:
    """Whether every path ends at one of the wanted functions, before any other that makes numbers of its own."""
    waiting, seen = list(nodes), set(nodes)
    while waiting:
        node = waiting.pop()
        name, before = node.name(), [one for one, _ in node.next_functions if one is not None]
        if wanted.fullmatch(name):
            continue
        if LOGARITHM.fullmatch(name) and wanted is LIKELIHOODS:
            if not _all_reach(before, PROBABILITIES):
                return False
            continue
        if not before or not (PASSING.fullmatch(name) or (len(before) == 1 and _scales(node, name))):
            return False
        waiting += [one for one in before if one not in seen]
        seen.update(before)
        if len(seen) > MOST_NODES:
            return False
    return True


def _scales(node: Any, name: str) -> bool:
    """Whether a node multiplies by something that no gradient reaches, other than ln 2, which would make bits."""
    if not SCALING.fullmatch(name):
        return False
    try:
        other = node._saved_other
    except (AttributeError, RuntimeError):  # nothing is saved of what needs no gradient
        return True
    if not isinstance(other, Tensor) or other.numel() != 1:
        return True
    factor = abs(float(other))
    return not any(math.isclose(factor, one, rel_tol=1e-4) for one in (math.log(2), 1 / math.log(2)))
