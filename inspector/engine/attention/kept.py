"""Copies that a run keeps to its end, in memory of their own.

The C library's heap gives memory back from its end only. A model allocates and frees large tensors all the time; a copy
that stays between them keeps what is free below it from being returned, so that kept copies of 75 MB made a process
150 MB larger than they are (GPT-2 small over 1,024 tokens). A mapping of its own is neither below nor above anything.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from inspector.capture.room import unwritten

LEAST = 1 << 18
"""Bytes. The heap serves smaller requests from what is free between others; a mapping is rounded up to whole pages."""


def kept_copy(tensor: Tensor) -> Tensor:
    """A contiguous copy of a tensor, without its graph; of a large one on the CPU outside the heap."""
    own = tensor.detach()
    size = own.numel() * own.element_size()
    if own.device.type != "cpu" or size < LEAST or own.layout != torch.strided or own.is_nested:
        return own.clone(memory_format=torch.contiguous_format)
    place = torch.from_numpy(unwritten((size,), np.dtype(np.uint8), LEAST))
    return place.view(own.dtype).view(own.shape).copy_(own)
