"""What most families of modules have in common: torch's conventions for calls, and a plain loop over the step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from inspector.engine.cells.base import Cell
from inspector.engine.cells.family import CellFamily, Stack
from inspector.engine.devices.random_state import devices_of, drawing_as, states_of


class ModuleFamily(ABC):
    """A `CellFamily` for modules written in Python; a family of your own defines what differs.

    A module of `modules` is called as torch's are, module(input, state) → (output, last state), or returns its output
    alone; one of `cells` is called cell(input, state) → the new state. A state of one part is a tensor, of several a
    tuple. With one layer in one direction `from_module` and `live` are all that has to be written.
    """

    summary = ""
    modules: tuple[type[nn.Module], ...] = ()
    cells: tuple[type[nn.Module], ...] = ()
    parts: tuple[str, ...] = ("h",)
    opaque = False
    kernels: ClassVar[Mapping[str, Any]] = {}
    operations: tuple[str, ...] = ()
    input_name, state_name = "input", "hx"
    """Names of the arguments where a call passes them by keyword."""

    def stack(self, module: nn.Module) -> Stack:
        """One layer in one direction, (b, t, i) where the module has `batch_first` set."""
        return Stack(batch_first=bool(getattr(module, "batch_first", False)))

    def arguments(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[Any, tuple[Any, ...]]:
        """The first and the second argument."""
        given = args[0] if args else kwargs.get(self.input_name)
        return given, items_of(args[1] if len(args) > 1 else kwargs.get(self.state_name))

    def results(self, module: nn.Module, returned: Any) -> tuple[Any, tuple[Any, ...]] | None:
        """(output, state), or the output alone; of a cell its state."""
        if isinstance(module, self.cells):
            return None, items_of(returned)
        if isinstance(returned, tuple) and type(returned) is tuple:
            return (returned[0], items_of(returned[1])) if len(returned) == 2 else None
        return returned, ()

    def returned(self, module: nn.Module, output: Any, final: tuple[Tensor, ...]) -> Any:
        """(output, state); of a cell its state. A family whose modules return the output alone overrides this."""
        state = final if len(self.parts) > 1 else final[0]
        return state if isinstance(module, self.cells) else (output, state)

    def weights(self, module: nn.Module) -> dict[str, Tensor]:
        """The module's parameters."""
        return {name: value.detach() for name, value in module.named_parameters()}

    @abstractmethod
    def from_module(self, module: nn.Module, weights: Mapping[str, Tensor], layer: int = 0, direction: int = 0) -> Cell:
        """See `CellFamily`."""

    def live(self, module: nn.Module, layer: int = 0, direction: int = 0) -> Cell:
        """From the parameters themselves; enough where the cell stores them unchanged."""
        return self.from_module(module, dict(module.named_parameters()), layer, direction)

    def layer_weights(self, weights: Mapping[str, Tensor], layer: int, direction: int) -> list[Tensor]:
        """None: `run` has them in its cell."""
        return []

    def run(
        self, module: nn.Module, cell: Cell, weights: Sequence[Tensor], x: Tensor, start: Sequence[Tensor]
    ) -> list[Tensor]:
        """A loop over `Cell.step`, in the cell's own dtype."""
        states = cell.unroll(x.to(cell.dtype), [value.to(cell.dtype) for value in start])
        return [states, *(states[-1][..., part] for part in cell.parts.values())]

    def make(self, variant: str, weights: Sequence[Any], *, live: bool = False) -> Cell:
        """None of torch's functions computes these steps."""
        raise NotImplementedError(f"{type(self).__name__} has no operation {variant!r}.")


def model_weights(family: CellFamily, module: nn.Module, layer: int = 0, direction: int = 0) -> dict[str, Tensor]:
    """The parameters of a layer's step, by the step's names, with autograd's graph back to the module's own."""
    with untouched(module), torch.enable_grad():
        cell = family.live(module, layer, direction)
        found = cell.parameters()
        if "bias" in cell.trained and "bias" not in found and getattr(cell, "b_ih", None) is not None:
            found["bias"] = getattr(cell, "b_ih") + getattr(cell, "b_hh")  # noqa: B009 - a family's own attributes
    return found


def items_of(value: Any) -> tuple[Any, ...]:
    """The parts of a state: (h,), (h, c), or () for None."""
    return tuple(value) if isinstance(value, (tuple, list)) else () if value is None else (value,)


@contextmanager
def untouched(module: nn.Module) -> Iterator[None]:
    """Reading a parametrised weight computes it, which may move buffers (spectral norm) or draw random numbers."""
    if not hasattr(module, "parametrizations"):
        yield
        return
    buffers = [(buffer, buffer.detach().clone()) for buffer in module.buffers()]
    with drawing_as(states_of(devices_of(module))), torch.no_grad():
        yield
        for buffer, value in buffers:
            if not torch.equal(buffer, value):
                buffer.copy_(value)
