"""Torch's random state, of the CPU and of every device that a model's tensors lie on.

Each device draws from a generator of its own: what is drawn on one leaves the state of the others as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

CPU = torch.device("cpu")
State = Mapping[torch.device, Tensor]


def devices_of(model: nn.Module) -> tuple[torch.device, ...]:
    """The devices of a model's parameters and buffers and the CPU, in the order of their names."""
    found = {value.device for values in (model.parameters(), model.buffers()) for value in values}
    return tuple(sorted({CPU, *(one for one in found if one.type != "meta")}, key=str))


def seeded_with(model: nn.Module) -> tuple[torch.device, ...]:
    """The devices whose generators `torch.manual_seed` sets: the model's, and all others that are in use."""
    found = set(devices_of(model))
    kind = torch.accelerator.current_accelerator(check_available=True)
    module: Any = None if kind is None else getattr(torch, kind.type, None)
    if kind is not None and kind.type != "mps" and getattr(module, "is_initialized", lambda: False)():
        found |= {torch.device(kind.type, number) for number in range(torch.accelerator.device_count())}
    return tuple(sorted(found, key=str))


def state_of(device: torch.device) -> Tensor | None:
    """The state of a device's generator; None for a device that gives none."""
    if device.type == "cpu":
        return torch.get_rng_state()
    module: Any = getattr(torch, device.type, None)
    if not hasattr(module, "get_rng_state"):
        return None
    found: Tensor = module.get_rng_state() if device.type == "mps" else module.get_rng_state(device)
    return found


def states_of(devices: Iterable[torch.device]) -> State:
    """The state of each device that gives one."""
    found = {device: state_of(device) for device in devices}
    return {device: state for device, state in found.items() if state is not None}


def restore(states: State) -> None:
    """Set the state of each device."""
    for device, state in states.items():
        if device.type == "cpu":
            torch.set_rng_state(state)
            continue
        module: Any = getattr(torch, device.type)
        module.set_rng_state(state, *(() if device.type == "mps" else (device,)))


@contextmanager
def drawing_as(states: State) -> Iterator[None]:
    """What is drawn inside begins with these states; afterwards each device has the one that it had before."""
    before = states_of({*states, CPU})
    restore(states)
    try:
        yield
    finally:
        restore(before)
