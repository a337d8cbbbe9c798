"""Which operation made the first loss of a training that is not finite: the logarithm of 0, a division by 0, a root.

Autograd saves what these operations were given, for their gradient; so it is read off the graph of that loss. Behind
them all numbers are finite still: what is not finite there has another cause, which is not looked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor

from inspector.engine.hooks.loss_nodes import nodes_from, operation
from inspector.engine.watch.measure import Measure, Moment
from inspector.engine.watch.parameters import Parameters
from inspector.engine.watch.tables import PLACE, About, on_axis

MADE = f"{PLACE}:loss/broken_by"
LOGARITHM, NEGATIVE, DIVISION, ROOT = (
    "the logarithm of 0", "the logarithm of a negative number", "a division by 0", "the root of a negative number"
)  # fmt: skip


def _logarithm(node: Any) -> str:
    given = node._saved_self
    return LOGARITHM if bool((given == 0).any()) else NEGATIVE if bool((given < 0).any()) else ""


def _shifted(node: Any) -> str:
    given = node._saved_self
    return LOGARITHM if bool((given == -1).any()) else NEGATIVE if bool((given < -1).any()) else ""


def _division(node: Any) -> str:
    return DIVISION if bool((node._saved_other == 0).any()) else ""


def _reciprocal(node: Any) -> str:
    return DIVISION if bool(node._saved_result.isinf().any()) else ""


def _root(node: Any) -> str:
    return ROOT if bool(node._saved_result.isnan().any()) else ""


OPERATIONS: Mapping[str, Callable[[Any], str]] = {
    "Log": _logarithm, "Log2": _logarithm, "Log10": _logarithm, "Log1P": _shifted, "Div": _division,
    "Reciprocal": _reciprocal, "Sqrt": _root,
}  # fmt: skip


class BrokenLoss(Measure):
    """Looks at the first loss that is not finite, once; on another device than the CPU it had to be waited for."""

    tables = (
        on_axis(
            About(
                name=MADE, title="operations that made the loss not finite", column=("operation", "loss operation"),
                formula="1 where an operation of the loss was given numbers for which it has no finite value",
                method="of the first loss that is not finite, recorded or not, on the CPU; those nearest to the loss",
            ),
            "graph",
        ),
    )  # fmt: skip

    always = True

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        self._over = False

    def backward_begins(self, moment: Moment, roots: Sequence[Tensor]) -> None:
        """Look, where one of the losses is not finite."""
        for root in roots if self.must_look(roots) else ():
            self._over = True
            for name in broken_by(root):
                moment.put(MADE, self.column("loss operation", name), 1.0)

    def must_look(self, roots: Sequence[Tensor]) -> bool:
        """Whether one of them is the first that is not finite."""
        return not self._over and any(
            one.numel() == 1 and one.device.type == "cpu" and not math.isfinite(one.item()) for one in roots
        )


def broken_by(root: Tensor) -> list[str]:
    """What was done below a loss that is not finite, each once, the nearest first."""
    found = dict[str, None]()
    for node in nodes_from(root, lambda name: True) if root.grad_fn is not None else ():
        look = OPERATIONS.get(operation(node))
        try:
            said = "" if look is None else look(node)
        except (AttributeError, RuntimeError):  # a constant was not saved, or was freed
            continue
        if said:
            found[said] = None
    return list(found)
