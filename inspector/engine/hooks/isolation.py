"""A run changes nothing in the process: random state of every device, buffers and training flags are restored."""

from __future__ import annotations

import gc
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import nn

from inspector.engine.devices.random_state import restore, seeded_with, states_of

_runs = threading.local()


def in_own_run() -> bool:
    """Whether this thread is inside `unchanged`: the model is run for the app, and not by the user's program."""
    return getattr(_runs, "depth", 0) > 0


@contextmanager
def unchanged(model: nn.Module, seed: int) -> Iterator[None]:
    """Seeded random state inside, the old one afterwards;
    buffers and training flags restored if the run changed them."""
    states, drawn = (random.getstate(), np.random.get_state()), states_of(seeded_with(model))
    modes = [(module, module.training) for module in model.modules()]
    buffers = [
        (module, name, buffer, None if buffer is None else buffer.detach().clone())
        for module in model.modules()
        for name, buffer in module._buffers.items()
    ]
    collecting = gc.isenabled()
    gc.disable()  # probes store what the model makes; the collector would traverse all of it, again and again
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)
    _runs.depth = getattr(_runs, "depth", 0) + 1
    try:
        yield
    finally:
        _runs.depth -= 1
        random.setstate(states[0])
        np.random.set_state(states[1])
        restore(drawn)
        if collecting:
            gc.enable()
        for module, mode in modes:
            module.training = mode
        with torch.no_grad():
            for module, name, buffer, value in buffers:
                module._buffers[name] = buffer  # a model may have put another tensor in its place
                if buffer is not None and value is not None and not torch.equal(buffer, value):
                    buffer.copy_(value)
