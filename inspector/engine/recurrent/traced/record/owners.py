"""Which module a frame of the user's code belongs to: known from the call of the module, whatever its parameters are
called."""

from __future__ import annotations

from collections.abc import Mapping
from types import CodeType, FrameType
from typing import Any

from torch import nn

from inspector.engine.hooks.module_stack import CALL
from inspector.engine.recurrent.traced.record.operation import Where

USUAL = ("self",)


def called_module(frame: FrameType) -> Any:
    """The module whose call runs this frame as its `forward`, or None. To be asked while the frame is running."""
    above = frame.f_back
    while above is not None and above.f_code.co_filename == CALL.co_filename:
        if above.f_code is CALL:
            return above.f_locals["self"]
        above = above.f_back
    return None


def usual(code: CodeType) -> bool:
    """True for a method whose first parameter is `self`: its object is known without the call."""
    return code.co_varnames[:1] == USUAL


def owner_of(frame: FrameType, called: Mapping[FrameType, Any]) -> Any:
    """The object that a frame belongs to, as in `Owners.of`, or None. `called`: modules by frames of their calls."""
    if frame in called:
        return called[frame]
    code, values = frame.f_code, frame.f_locals
    if "self" in values:
        return values["self"]
    first = values.get(code.co_varnames[0]) if code.co_argcount else None
    return first if isinstance(first, nn.Module) else None


class Owners:
    """The object that each frame belongs to; `called`: the modules that were called by torch, by their frames."""

    def __init__(self, called: Mapping[FrameType, Any] | None = None) -> None:
        self._called = dict(called or {})
        self._known: dict[FrameType, Any] = {}

    def of(self, frame: FrameType) -> Any:
        """The module whose call runs the frame, what it calls `self`, or a module that is its first argument; or None.

        Counter-example: a function `f(head, x)` that is given a module of which it runs nothing belongs to that module.
        """
        if frame not in self._known:
            self._known[frame] = self._find(frame)
        return self._known[frame]

    def _find(self, frame: FrameType) -> Any:
        return owner_of(frame, self._called)

    def innermost(self, where: Where) -> Any:
        """The object of the frame, or of the nearest caller that has one: a function belongs to what calls it."""
        outer, frame = where
        for one in (frame, *(above for above, _ in reversed(outer))):
            found = self.of(one)
            if found is not None:
                return found
        return None
