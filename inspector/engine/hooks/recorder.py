"""What the probes of recurrent modules share: a recorder that never raises into the user's model, and its hooks.

Hooks are copied and pickled with the model; a copy records nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Any, Self

import torch
from torch import nn

from inspector.engine.errors import CancelledError
from inspector.engine.hooks.module_stack import in_backward
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Trace
from inspector.engine.wording import error_text


class CallRecorder(ABC):
    """Records the calls of some modules. After an internal error, or on request, a module is no longer recorded."""

    def __init__(self, trace: Trace | None = None, emit: Emitter | None = None) -> None:
        self.trace, self.emit = trace, emit
        self.broken: set[str] = set()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return type(self)()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()

    def watches(self, place: str) -> bool:
        """True where a call is to be recorded:
        not in copies, compiled code, or a backward pass that runs modules again."""
        watching = self.trace is not None and place not in self.broken
        return watching and not torch.compiler.is_compiling() and not in_backward()

    def after(self, place: str, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        """A recorded module returned. Never raises into the user's model."""
        if not self.watches(place):
            return
        try:
            self.keep(place, module, args, kwargs, output)
        except CancelledError:
            self.broken.add(place)
        except Exception as fault:  # noqa: BLE001 - a probe may not end the user's run
            self.give_up(place, f"Recording {place} failed ({error_text(fault)}).")

    def give_up(self, place: str, reason: str) -> None:
        """Stop recording a module, and report why."""
        self.broken.add(place)
        with suppress(Exception):
            assert self.emit is not None
            self.emit.refuse(f"{place}:h", reason)

    @abstractmethod
    def keep(self, place: str, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        """Store one call. May raise."""


class AfterHook:
    """A forward hook, with keyword arguments, that passes each call to a recorder."""

    def __init__(self, recorder: CallRecorder, place: str) -> None:
        self.recorder, self.place = recorder, place

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        self.recorder.after(self.place, module, args, kwargs, output)
