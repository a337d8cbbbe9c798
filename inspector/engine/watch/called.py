"""Several models that are trained together, as one; and which modules a training loop calls."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn


class Several(nn.Module):
    """Models that are trained together (generator and discriminator, encoder and decoder), by names of their classes.

    It is never called; its parts are.
    """

    def __init__(self, models: Sequence[nn.Module]) -> None:
        super().__init__()
        for model in models:
            name, n = type(model).__name__, 2
            while name in self._modules or hasattr(self, name):
                name, n = f"{type(model).__name__}_{n}", n + 1
            self._modules[name] = model


def called(model: nn.Module) -> list[nn.Module]:
    """The modules whose calls are calls of the model: of several models each, and the parts of a LightningModule too.

    Lightning calls the method `training_step` of these, which hooks on the module do not see without a wrapper.
    """
    if isinstance(model, Several):
        return [part for one in model.children() for part in called(one)]
    return [model, *model.children()] if callable(getattr(type(model), "training_step", None)) else [model]
