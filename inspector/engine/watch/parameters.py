"""The parameters that are watched: their names, which of them share storage, and the part that this process holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from inspector.engine.model.uncompiled import original

MOST = 20_000
"""Parameters that are watched one by one."""
WRAPPERS = ("DistributedDataParallel", "DataParallel", "FullyShardedDataParallel")
_INSIDE = ("_orig_mod.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module.")


def inner(model: nn.Module) -> nn.Module:
    """The user's own module inside the wrappers of torch."""
    while True:
        below = original(model)
        wrapped = getattr(below, "module", None) if type(below).__name__ in WRAPPERS else None
        below = wrapped if isinstance(wrapped, nn.Module) else below
        if below is model:
            return model
        model = below


def plain_name(name: str) -> str:
    """A qualified name without the parts that wrappers put in."""
    for part in _INSIDE:
        name = name.replace(part, "")
    return name


class Parameters:
    """The watched parameters in order: those of the model, then those that only an optimizer has.

    Attributes:
        names, tensors: of each; column: id of a tensor → its number; ties: names that are one tensor.
    """

    def __init__(self, model: nn.Module) -> None:
        self.names: list[str] = []
        self.tensors: list[Tensor] = []
        self.column: dict[int, int] = {}
        self.ties: dict[str, list[str]] = {}
        self._of: WeakKeyDictionary[torch.optim.Optimizer, tuple[list[int], list[int]]] = WeakKeyDictionary()
        self._model = model
        for name, tensor in inner(model).named_parameters(remove_duplicate=False):
            if id(tensor) in self.column:
                self.ties.setdefault(self.names[self.column[id(tensor)]], []).append(plain_name(name))
            else:
                self._add(plain_name(name), tensor)
        self.of_model = len(self.names)

    def _add(self, name: str, tensor: Tensor) -> None:
        if not self.full:
            self.column[id(tensor)] = len(self.names)
            self.names.append(name)
            self.tensors.append(tensor)

    def take(self, optimizers: Sequence[torch.optim.Optimizer]) -> None:
        """Add parameters that an optimizer has and the model does not (those of a loss, for example)."""
        for n, optimizer in enumerate(optimizers):
            for g, group in enumerate(optimizer.param_groups):
                for p, tensor in enumerate(group["params"]):
                    if id(tensor) not in self.column:
                        self._add(self._free(f"optimizer {n} group {g} parameter {p}"), tensor)

    def again(self, optimizers: Sequence[torch.optim.Optimizer]) -> list[str]:
        """Add parameters that came since (a head that was replaced): names of all that are new, each a name of its own.
        Those that were replaced keep their numbers."""
        before = len(self.names)
        for name, tensor in inner(self._model).named_parameters():
            if id(tensor) not in self.column:
                self._add(self._free(plain_name(name)), tensor)
        self.take(optimizers)
        return self.names[before:]

    def in_model(self, optimizer: torch.optim.Optimizer) -> bool:
        """Whether an optimizer has parameters that the model has now, known or not: a model whose parameters were
        replaced (`load_state_dict(…, assign=True)`) is the same model."""
        now = {id(one) for one in inner(self._model).parameters()}
        return any(id(one) in now for group in optimizer.param_groups for one in group["params"])

    def was_in_model(self, optimizer: torch.optim.Optimizer) -> bool:
        """Whether all parameters of the model that an optimizer has were replaced."""
        own = [self.column.get(id(one), self.of_model) for group in optimizer.param_groups for one in group["params"]]
        return any(column < self.of_model for column in own) and not self.in_model(optimizer)

    @property
    def full(self) -> bool:
        """Whether no more can be watched."""
        return len(self.names) >= MOST

    def _free(self, name: str) -> str:
        number = 2
        found = name
        while not self.full and found in self.names:
            found, number = f"{name} ({number})", number + 1
        return found

    def columns(self, tensors: Iterable[Tensor]) -> list[int]:
        """The numbers of those that are watched."""
        return [self.column[id(one)] for one in tensors if id(one) in self.column]

    def of_optimizer(self, optimizer: torch.optim.Optimizer) -> list[int]:
        """The numbers of an optimizer's parameters with which torch computes; others may take their place while it
        runs."""
        now = [id(one) for group in optimizer.param_groups for one in group["params"]]
        known = self._of.get(optimizer)
        if known is None or known[0] != now:
            known = (
                now,
                [self.column[n] for n in now if n in self.column and not in_8_bits(self.tensors[self.column[n]])],
            )
            self._of[optimizer] = known
        return known[1]

    def with_gradient(self, columns: Iterable[int]) -> tuple[list[int], list[Tensor]]:
        """(numbers, local gradients) of those that have a gradient with entries in this process."""
        numbers, found = [], []
        for number in columns:
            gradient = self.tensors[number].grad
            if gradient is not None and (part := local(gradient)).numel():
                numbers.append(number)
                found.append(part)
        return numbers, found


def first_of(names: Sequence[str], most: int = 4) -> str:
    """Names in a sentence, not all of many."""
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def in_8_bits(tensor: Tensor) -> bool:
    """Whether torch computes nothing with it: 8-bit floats are storage."""
    return tensor.is_floating_point() and tensor.element_size() == 1


def local(tensor: Any) -> Tensor:
    """The entries that this process holds: of a sharded tensor its own shard, of a sparse one its values."""
    if hasattr(tensor, "_local_tensor"):
        tensor = tensor._local_tensor
    if tensor.is_sparse:
        tensor = tensor.coalesce().values()
    found: Tensor = torch.view_as_real(tensor.detach()) if tensor.is_complex() else tensor.detach()
    return found
