"""Every torch operation of a forward pass, in order, with the place in the user's code that asked for it.

A TorchFunctionMode calls each function as it is and notes it. Frames of torch and of this package are left out of the
place, so that an operation belongs to the line that a person wrote.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from inspector.engine.function_mode import SwitchedMode
from inspector.engine.module_stack import in_backward
from inspector.engine.subject import Subject

MOST_BYTES = 3 << 30
"""What was computed is kept until the run is over; at most this much of it, then recording ends."""
MOST_OPS = 4_000_000
TORCH = str(Path(torch.__file__).parent)
OURS = str(Path(__file__).parent.parent)
DROPOUTS = (F.dropout, torch.dropout, F.alpha_dropout, F.feature_alpha_dropout)
SKIPPED = ("__get__", "__set__", "size", "dim", "numel", "is_floating_point", "stride", "data_ptr", "requires_grad_")

RUN = Subject.run.__code__

Chain = tuple[tuple[FrameType, int], ...]
"""Frames of the user's code, outermost first, each with the offset of the instruction that it is at."""


@dataclass(slots=True)
class Op:
    """One call of a torch function.

    Attributes:
        inputs, outputs: the tensors given (nested ones too) and returned, in order.
        place: qualified name of the innermost module of the model that was being called.
        random: torch's random state before the call, of dropout in training; else None.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    chain: Chain
    place: str
    random: Tensor | None = None

    @property
    def name(self) -> str:
        """The function's bare name: "sigmoid", "__add__", "linear"."""
        return str(getattr(self.function, "__name__", self.function))

    @property
    def in_place(self) -> bool:
        """True when it wrote into something that it was given."""
        return self.name == "__setitem__" or any(out is given for out in self.outputs for given in self.inputs)


@dataclass(slots=True)
class Recording:
    """The operations of one run, and why it is incomplete, if it is."""

    ops: list[Op] = field(default_factory=list)
    bytes: int = 0
    full: bool = False


class Recorder(SwitchedMode):
    """Notes what is called; `where()` names the innermost module. `listening` may be turned off."""

    def __init__(self, where: Callable[[], str]) -> None:
        super().__init__()
        self.where = where
        self.recording = Recording()
        self.listening = True
        self.broken = ""
        self._own: dict[CodeType, int] = {}

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call the function; note it if it gave or changed a tensor. What goes wrong here never reaches the model."""
        kwargs = kwargs or {}
        random = torch.get_rng_state() if self.listening and func in DROPOUTS and _training(args, kwargs) else None
        out = func(*args, **kwargs)
        if self.listening:
            try:
                self._note(func, args, kwargs, out, random)
            except Exception as fault:  # noqa: BLE001 - the user's model goes on
                self.listening, self.broken = False, f"{type(fault).__name__}: {fault}"
        return out

    def _note(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any, random: Tensor | None) -> None:
        outputs = (out,) if isinstance(out, Tensor) else _tensors(out) if isinstance(out, (tuple, list)) else ()
        name = getattr(func, "__name__", "")
        if not outputs and name != "__setitem__":
            return
        if name in SKIPPED and not outputs:
            return
        chain = self._chain()
        if not chain or in_backward():
            return
        inputs = _tensors(args) if not kwargs else _tensors((*args, *kwargs.values()))
        recording = self.recording
        recording.bytes += sum(one.nbytes for one in outputs)
        if recording.bytes > MOST_BYTES or len(recording.ops) >= MOST_OPS:
            recording.full, self.listening = True, False
            return
        recording.ops.append(Op(func, args, kwargs, inputs, outputs, chain, self.where(), random))

    def _chain(self) -> Chain:
        frame: FrameType | None = sys._getframe(3)
        found: list[tuple[FrameType, int]] = []
        own = self._own
        while frame is not None:
            code = frame.f_code
            kind = own.get(code)
            if kind is None:
                kind = own[code] = _kind(code)
            if kind == 2:  # ours: the run itself, or one of our own probes
                if not found and code is RUN:
                    found.append((frame, frame.f_lasti))  # no line of the user's: the model is made of torch's modules
                break
            if kind == 0:
                found.append((frame, frame.f_lasti))
            frame = frame.f_back
        found.reverse()
        return tuple(found)


def _kind(code: CodeType) -> int:
    """0 the user's code, 1 torch's, 2 this package's."""
    return 2 if code.co_filename.startswith(OURS) else 1 if code.co_filename.startswith(TORCH) else 0


def _training(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return bool(kwargs.get("training", args[2] if len(args) > 2 else True))


def _tensors(values: Any) -> tuple[Tensor, ...]:
    """Tensors in nested tuples, lists and dicts, in order."""
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, (tuple, list)):
            found.extend(_tensors(value))
        elif isinstance(value, dict):
            found.extend(_tensors(value.values()))
    return tuple(found)
