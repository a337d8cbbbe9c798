"""Torch function modes that can be switched off in the middle of a run, and when they must be.

The presence of such a mode turns off the fused eval path of nn.MultiheadAttention, nn.TransformerEncoderLayer and
nn.TransformerEncoder, which would change their results in the last bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch._C import _len_torch_function_stack
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack, _pop_mode, _push_mode

FUSED = (nn.MultiheadAttention, nn.TransformerEncoderLayer, nn.TransformerEncoder)
_FORWARDS = tuple(kind.forward for kind in FUSED)


Handler = Callable[[tuple[Any, ...], dict[str, Any], Any], None]
"""Called with the arguments and the result of a function that has run."""


class SwitchedMode(TorchFunctionMode):
    """A mode that `on` switches on and off, wherever it is on torch's stack.

    Every mode costs time at every operation. A mode that needs only some functions declares them in `handlers` (by the
    id of the function), and a mode above it that finds them in `also` calls them in its place.
    """

    def __init__(self) -> None:
        super().__init__()
        self.handlers: dict[int, Handler] = {}
        self.also: dict[int, Handler] = {}
        self._wanted = self._there = False
        self._guest: SwitchedMode | None = None
        self._host: SwitchedMode | None = None

    def on(self, wanted: bool) -> None:
        """Record from now on, or stop."""
        if wanted == self._wanted:
            return
        self._wanted = wanted
        host = self._host or self
        host._put(host._wanted)
        guest = host._guest
        if guest is not None:
            host.also = guest.handlers if guest._wanted else {}
            guest._put(guest._wanted and not host._wanted)

    def carry(self) -> None:
        """While this mode is on, call the handlers of the mode that is on now, which then need not be on the stack."""
        below = [mode for mode in _get_current_function_mode_stack() if isinstance(mode, SwitchedMode)]
        if len(below) == 1 and below[0].handlers and below[0]._guest is None:
            self._guest, below[0]._host = below[0], self

    def _put(self, there: bool) -> None:
        """Put the mode on torch's stack or remove it."""
        if there == self._there:
            return
        self._there = there
        if there:
            _push_mode(self)
            return
        above = []
        while _len_torch_function_stack():
            top = _pop_mode()
            if top is self:
                break
            above.append(top)
        for mode in reversed(above):
            _push_mode(mode)


@contextmanager
def unwatched() -> Iterator[None]:
    """Inside, no SwitchedMode receives calls or costs time; modes of the user's stay."""
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
