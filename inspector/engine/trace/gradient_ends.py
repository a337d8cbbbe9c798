"""Modules through which no gradient goes though their output depends on their input.

A gradient of 0 before them says nothing of the model. Such a module has an attribute `ends_gradients`: the reason, as a
sentence without its stop.
"""

from __future__ import annotations

from torch import Tensor, nn


def why_no_gradient(model: nn.Module, gradient: Tensor) -> str:
    """Why a gradient that is 0 everywhere is none of the model's; "" where it is not 0 or nothing ends it.

    Counter-example: a gradient that has underflowed to 0 everywhere in a model that has such a module elsewhere.
    """
    if bool((gradient != 0).any()):
        return ""
    return next((str(one.ends_gradients) for one in model.modules() if hasattr(one, "ends_gradients")), "")
