"""Torch function modes that can be taken off in the middle of a run, and when they must be.

The mere presence of such a mode turns the fused eval path of nn.MultiheadAttention, nn.TransformerEncoderLayer and
nn.TransformerEncoder off, which would change their results in the last bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch._C import _len_torch_function_stack
from torch.overrides import TorchFunctionMode, _pop_mode, _push_mode

FUSED = (nn.MultiheadAttention, nn.TransformerEncoderLayer, nn.TransformerEncoder)
_FORWARDS = tuple(kind.forward for kind in FUSED)


class SwitchedMode(TorchFunctionMode):
    """A mode that is put on and taken off by `on`, wherever on torch's stack it is."""

    def __init__(self) -> None:
        super().__init__()
        self._on = False

    def on(self, wanted: bool) -> None:
        """Put the mode on torch's stack or take it off."""
        if wanted == self._on:
            return
        if wanted:
            _push_mode(self)
            self._on = True
            return
        above = []
        while _len_torch_function_stack():
            top = _pop_mode()
            if top is self:
                self._on = False
                break
            above.append(top)
        for mode in reversed(above):
            _push_mode(mode)


@contextmanager
def unwatched() -> Iterator[None]:
    """Inside no SwitchedMode sees what is called, and none costs time; modes of the user's stay."""
    every = [_pop_mode() for _ in range(_len_torch_function_stack())][::-1]
    for mode in every:
        if not isinstance(mode, SwitchedMode):
            _push_mode(mode)
    try:
        yield
    finally:
        while _len_torch_function_stack():
            _pop_mode()
        for mode in every:
            _push_mode(mode)


def runs_fused(module: nn.Module) -> bool:
    """True when this call may take PyTorch's fused path, which a torch function mode would turn off."""
    if not isinstance(module, FUSED) or type(module).forward not in _FORWARDS:
        return False
    layer = module.layers[0] if isinstance(module, nn.TransformerEncoder) and len(module.layers) else module
    if layer.training or not torch.backends.mha.get_fastpath_enabled():
        return False
    return not (torch.is_grad_enabled() and any(weight.requires_grad for weight in layer.parameters()))
