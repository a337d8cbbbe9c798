"""The module of a plan. All tensors of the file are in it under their own names, also those that are not run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from inspector.engine.errors import InputError
from inspector.engine.opening.weights_alone.plan import LETTERS, Plan, reordered
from inspector.engine.opening.weights_alone.stacks import Stack
from inspector.records.plain_text import shortened

CELLS = (nn.RNNCell, nn.GRUCell, nn.LSTMCell)
DEEPEST = 64
"""Parts of a name at most: each is a module."""


def rebuilt(plan: Plan, tensors: Mapping[str, Tensor]) -> nn.Module:
    """The model of a plan with its weights; where the file is the state of the recurrent layers, these themselves."""
    tensors = _in_torchs_order(plan, tensors)
    if len(plan.stacks) > 1 or plan.stacks[0].place or not plan.stacks[0].layers:
        return RebuiltModel(plan, tensors)
    with torch.device("meta"):
        layers = plan.stacks[0].module(plan.nonlinearity)
    keep(layers, tensors)
    return layers


def _in_torchs_order(plan: Plan, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """The blocks of rows of the gates in the order in which torch has them."""
    found = dict(tensors)
    for stack in plan.stacks:
        if not reordered(stack, plan.gates):
            continue
        for name in stack.names:
            if "weight_hr" not in name.rpartition(".")[2]:
                blocks = dict(zip(plan.gates, tensors[name].chunk(len(plan.gates)), strict=True))
                found[name] = torch.cat([blocks[letter] for letter in LETTERS[stack.kind]])
    return found


class Group(nn.Module):
    """A part of a name that is no module that is run."""


class RebuiltModel(nn.Module):
    """Embedding or linear layer, recurrent layers, linear layer, as a plan says."""

    def __init__(self, plan: Plan, tensors: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.order: list[tuple[str, ...]] = []
        self.backward = frozenset(tuple(place.split(".")) for place in plan.backward)
        with torch.device("meta"):
            for one in (plan.embedding, plan.before, *plan.stacks, plan.head):
                if isinstance(one, Stack):
                    self._put(one.place, one.module(plan.nonlinearity))
                elif one is not None and one is plan.embedding:
                    self._put(one.place, nn.Embedding(one.rows, one.columns))
                elif one is not None:
                    self._put(one.place, nn.Linear(one.columns, one.rows, bias=one.bias))
        keep(self, tensors)

    def _put(self, place: str, module: nn.Module) -> None:
        group_of(self, place)._modules[place.rpartition(".")[2]] = module
        self.order.append(tuple(place.split(".")))

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Ids (b, t), or vectors (b, t, i) → (b, t, o); `lengths` (b,) matter where a layer reads backward."""
        for path in self.order:
            module: Any = self
            for part in path:
                module = module._modules[part]
            x = turned(x, lengths) if path in self.backward else x
            x = run_cell(module, x) if isinstance(module, CELLS) else module(x)
            if isinstance(x, tuple):
                x = x[0]
            x = turned(x, lengths) if path in self.backward else x
        return x


def turned(x: Tensor, lengths: Tensor | None) -> Tensor:
    """(b, t, i) with the steps of each sequence from the last to the first; padding behind them stays there."""
    steps = torch.arange(x.shape[1], device=x.device).expand(len(x), -1)
    ends = torch.full((len(x), 1), x.shape[1], device=x.device) if lengths is None else lengths.to(x.device)[:, None]
    order = torch.where(steps < ends, ends - 1 - steps, steps)
    return x.gather(1, order[:, :, None].expand_as(x))


def run_cell(cell: nn.Module, x: Tensor) -> Tensor:
    """(b, t, h) the states of a cell over the steps of (b, t, i), from zeros."""
    state, rows = None, []
    for step in x.unbind(1):
        state = cell(step, state)
        rows.append(state[0] if isinstance(state, tuple) else state)
    return torch.stack(rows, 1)


def group_of(root: nn.Module, name: str) -> nn.Module:
    """The module in which a tensor or module of this name is; groups are made where there are none. Raises InputError
    for names that no module can have."""
    parts = name.split(".")
    if not all(parts) or len(parts) > DEEPEST:
        raise InputError(
            f"{shortened(name, 80)!r} is no name of a tensor in a module: parts between dots, {DEEPEST} at most."
        )
    for part in parts[:-1]:
        if part in root._parameters or part in root._buffers:
            raise InputError(f"{shortened(name, 80)!r} is both a tensor and the beginning of another one's name.")
        found = root._modules.get(part)
        if found is None:
            found = root._modules[part] = Group()
        root = found
    return root


def keep(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Give a module all these tensors by name, of its modules or beside them: floating ones as parameters."""
    for name, tensor in tensors.items():
        owner, own = group_of(model, name), name.rpartition(".")[2]
        if own in owner._modules:
            raise InputError(f"{shortened(name, 80)!r} is both a tensor and the beginning of another one's name.")
        floating = tensor.is_floating_point() or tensor.is_complex()
        if floating:
            owner._parameters[own] = nn.Parameter(tensor)
        else:
            owner._buffers[own] = tensor
    for module in model.modules():
        if isinstance(module, nn.RNNBase):
            module._init_flat_weights()
