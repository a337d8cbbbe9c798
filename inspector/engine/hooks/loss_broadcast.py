"""A loss that sets every prediction beside every target: (n, 1) against (n,) is broadcast to (n, n). Read off the
shapes of autograd's nodes between the loss and the model."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from inspector.engine.hooks.loss_nodes import WRONG, nodes_from, operation

CROSSED = WRONG.index("each prediction beside all targets")
_BROADCASTS = ("Sub", "Add", "Mul", "Div", "Expand")
_BETWEEN = frozenset(
    (
        *_BROADCASTS, "Mean", "Sum", "Pow", "Abs", "Neg", "Sqrt", "Log", "Log1p", "Exp", "Cosh", "Where", "Clamp",
        "ClampMin", "MaskedFill", "Softplus", "LogSigmoid", "MseLoss", "SmoothL1Loss", "HuberLoss",
    )
)  # fmt: skip
"""Operations that work entry by entry, or sum: behind any other lies the model."""


def crosses_all(root: Tensor) -> bool:
    """Whether a loss combines n predictions, (n, 1) or (n,), with n numbers without a graph to (n, n)."""
    nodes = nodes_from(root, _BETWEEN.__contains__)
    return any(operation(node) in _BROADCASTS and _crosses(node) for node in nodes)


def _crosses(node: Any) -> bool:
    """Of an axis that was put in on purpose (`[:, None]`) it is not said."""
    there = [(one, at) for one, at in node.next_functions if one is not None]
    shape = tuple(node._input_metadata[0].shape)
    if len(there) != 1 or len(shape) != 2 or shape[0] != shape[1] or shape[0] < 2:
        return False
    below, at = there[0]
    given = tuple(below._input_metadata[at].shape)
    return operation(below) != "Unsqueeze" and given in ((shape[0], 1), (shape[0],))
