"""What torch's own recurrent modules have in common: names and order of their weights, and their kernels."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from inspector.engine.cells.base import Cell
from inspector.engine.cells.family import Stack
from inspector.engine.cells.kept_gates import KeptGates
from inspector.engine.cells.module_family import ModuleFamily, untouched

KINDS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
"""Weights of a layer, in the order in which the kernels take them; the last one only where an LSTM is projected."""


class TorchFamily(ModuleFamily):
    """A family of nn.RNNBase and nn.RNNCellBase; `make` gives the step."""

    opaque = True

    def stack(self, module: nn.Module) -> Stack:
        """From the attributes of nn.RNNBase."""
        assert isinstance(module, nn.RNNBase)
        return Stack(module.num_layers, 2 if module.bidirectional else 1, module.batch_first, module.dropout)

    def weights(self, module: nn.Module) -> dict[str, Tensor]:
        """The weights of the call that has just been made, as the module itself took them.

        Those of a sequence module are read from its list of weights, not by name: a parametrised weight is computed
        again at every access by name.
        """
        if isinstance(module, nn.RNNBase):
            pairs = zip(module._flat_weights_names, module._flat_weights, strict=True)
            return {name: weight.detach() for name, weight in pairs if isinstance(weight, Tensor)}
        with untouched(module):
            found = {name: getattr(module, name, None) for name in KINDS}
        return {name: weight.detach() for name, weight in found.items() if isinstance(weight, Tensor)}

    def kept(self, module: nn.Module, output: Tensor) -> tuple[KeptGates, ...]:
        """What the kernel of a call kept of each layer and direction; () where it keeps nothing, or none is read."""
        return ()

    def from_module(self, module: nn.Module, weights: Mapping[str, Tensor], layer: int = 0, direction: int = 0) -> Cell:
        """The step with the weights that the call used."""
        end = suffix(module, layer, direction)
        return self.make(self.variant(module), [weights.get(kind + end) for kind in KINDS])

    def live(self, module: nn.Module, layer: int = 0, direction: int = 0) -> Cell:
        """The step with the weights that the module has."""
        end = suffix(module, layer, direction)
        return self.make(self.variant(module), [getattr(module, kind + end, None) for kind in KINDS], live=True)

    def layer_weights(self, weights: Mapping[str, Tensor], layer: int, direction: int) -> list[Tensor]:
        """Those of one layer in one direction, in the order of the kernels."""
        end = f"_l{layer}" + ("_reverse" if direction else "")
        return [weights[kind + end] for kind in KINDS if kind + end in weights]

    def run(
        self, module: nn.Module, cell: Cell, weights: Sequence[Tensor], x: Tensor, start: Sequence[Tensor]
    ) -> list[Tensor]:
        """By torch's fused kernel: one layer, no dropout, (t, b, ·)."""
        states = [value[None] for value in start]
        options = (module.bias, 1, 0.0, False, False, False)
        out, *final = self.kernels[self.variant(module)](
            x, states if len(states) > 1 else states[0], list(weights), *options
        )
        return [out, *(value[0] for value in final)]

    def variant(self, module: nn.Module) -> str:
        """The name of the kernel that computes a module."""
        return next(iter(self.kernels))

    @abstractmethod
    def make(self, variant: str, weights: Sequence[Any], *, live: bool = False) -> Cell:
        """A step of the weights in the order of KINDS, some of them None; with `live` they stay as they are."""


def suffix(module: nn.Module, layer: int, direction: int) -> str:
    """What the names of one layer's weights end with; "" for a cell."""
    return f"_l{layer}" + ("_reverse" if direction else "") if isinstance(module, nn.RNNBase) else ""
