"""Free memory: of a device as its driver reports it, of the machine as the system does."""

from __future__ import annotations

from typing import Any

import torch

from inspector.transport.memory import main_memory


def free_bytes(device: torch.device) -> int | None:
    """Bytes that are free on a device, cached blocks of torch's allocator included; None where it reports none."""
    if device.type == "cpu":
        return main_memory()
    if device.type == "mps":
        return max(0, torch.mps.recommended_max_memory() - torch.mps.driver_allocated_memory())
    module: Any = getattr(torch, device.type, None)
    if not hasattr(module, "mem_get_info"):
        return None
    free, _whole = module.mem_get_info(device)
    cached = module.memory_reserved(device) - module.memory_allocated(device)
    return int(free + cached)
