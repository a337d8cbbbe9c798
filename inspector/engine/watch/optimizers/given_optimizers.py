"""What a user passes as the optimizer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch.optim import Optimizer


def optimizers_of(given: Any) -> list[Optimizer]:
    """The optimizers inside what a user passed: one, several, or wrappers of them with an attribute `optimizer`.

    Raises TypeError for anything else.
    """
    if given is None:
        return []
    many: Iterable[Any] = given if isinstance(given, (list, tuple)) else (given,)
    found = []
    for one in many:
        inside = one
        for _ in range(4):
            if isinstance(inside, Optimizer) and "_optimizer_step_pre_hooks" in vars(inside):
                break  # a wrapper may be of the class and have nothing of it
            inside = getattr(inside, "optimizer", None)
        if not isinstance(inside, Optimizer):
            raise TypeError(f"watch was given {type(one).__name__}; expected a torch.optim.Optimizer or several.")
        found.append(inside)
    return found
