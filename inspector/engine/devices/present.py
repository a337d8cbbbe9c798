"""The devices of this machine, by the names under which `--device` takes them."""

from __future__ import annotations

from functools import cache

import torch

from inspector.engine.errors import InputError

CPU = "cpu"


def present() -> tuple[str, ...]:
    """The CPU, and each device of the accelerator that torch finds ("cuda:0", "cuda:1"; "mps" has no number)."""
    found = torch.accelerator.current_accelerator(check_available=True)
    if found is None:
        return (CPU,)
    if found.type == "mps":
        return CPU, found.type
    return CPU, *(f"{found.type}:{number}" for number in range(torch.accelerator.device_count()))


def checked(wanted: str) -> torch.device:
    """The device of that name; "cuda" is "cuda:0". Raises InputError where it is not there, naming those that are."""
    names = present()
    try:
        device = torch.device(wanted)
    except RuntimeError:
        raise InputError(f"{wanted!r} is not a device; there {_are(names)}.") from None
    if device.type in (CPU, "mps"):
        device = torch.device(device.type)
    elif str(device) == device.type:  # without a number
        device = torch.device(device.type, 0)
    if str(device) not in names:
        raise InputError(f"This machine has no device {wanted!r}; there {_are(names)}.")
    return device


@cache
def has_float64(device: torch.device) -> bool:
    """Whether a device computes in float64; Apple's does not."""
    try:
        torch.zeros((), dtype=torch.float64, device=device)
    except (TypeError, RuntimeError):
        return False
    return True


def _are(names: tuple[str, ...]) -> str:
    return f"is only {names[0]}" if len(names) == 1 else f"are {', '.join(names)}"
