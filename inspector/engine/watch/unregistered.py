"""Parameters of a watched model that neither torch nor an optimizer finds."""

from __future__ import annotations

from collections.abc import Iterable

from torch import nn
from torch.optim import Optimizer

from inspector.engine.model.outside_modules import outside_modules
from inspector.engine.watch.parameters import inner


def unregistered(model: nn.Module, optimizers: Iterable[Optimizer]) -> list[str]:
    """Names ("encoder.layers[0].weight") of parameters that require a gradient, that neither the model's parameters nor
    an optimizer has, and that lie in a container which is an attribute of one of its modules."""
    stepped = {id(one) for each in optimizers for group in each.param_groups for one in group["params"]}
    return [name for name, _ in outside_modules(inner(model), stepped)]
