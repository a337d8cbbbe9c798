"""Every torch operation of a forward pass, in order, with the place in the user's code that asked for it.

A TorchFunctionMode calls each function as it is and notes it. Frames of torch and of this package are left out of the
place, so that an operation belongs to the line that a person wrote.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from inspector.engine.errors import InputError
from inspector.engine.function_mode import SwitchedMode
from inspector.engine.module_stack import in_backward
from inspector.engine.subject import Subject

MOST_BYTES = 3 << 30
"""What was computed is kept until the run is over; at most this much of it, then recording ends."""
MOST_OPS = 4_000_000
TORCH = str(Path(torch.__file__).parent)
UNROLLED = str(Path(__file__).with_name("unrolled.py"))
OURS = str(Path(__file__).parent.parent)
DROPOUTS = (F.dropout, torch.dropout, F.alpha_dropout, F.feature_alpha_dropout)
_DROPOUTS = frozenset(map(id, DROPOUTS))
MAY_BE_RESUMED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
"""Such a call may have another caller the next time."""
RUN = Subject.run.__code__

Chain = tuple[tuple[FrameType, int], ...]
"""Frames of the user's code, outermost first, each with the offset of the instruction that it is at."""


@dataclass(slots=True)
class Op:
    """One call of a torch function.

    Attributes:
        name: the function's bare name: "sigmoid", "__add__", "linear".
        inputs, outputs: the tensors given (nested ones too) and returned, in order.
        in_place: True when it wrote into something that it was given.
        owner: the `self` of the innermost call of the user's code, or None.
        random: torch's random state before the call, of dropout in training; else None.
        custom: True inside a torch.autograd.Function of the user's: what is differentiated is its backward, not this.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    name: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    in_place: bool
    chain: Chain
    owner: Any
    random: Tensor | None = None
    custom: bool = False


class Editing(Protocol):
    """What the recorder asks for values to be put in the place of results (engine/editing.py)."""

    def wants(self, chain: Chain, name: str) -> Sequence[Any]:
        """Targets of this operation, each with `edit` and the number of the `output`."""


def clamp(value: Tensor, edit: Any) -> tuple[Any, tuple[Any, ...]]:
    """(function, arguments) that give the value with one unit, or all, held: the last axis is the units'."""
    if edit.unit is None:
        return torch.full_like, (value, edit.value)
    return torch.index_fill, (value, -1, torch.tensor([edit.unit], device=value.device), edit.value)


class Recorder(SwitchedMode):
    """Notes what is called while `listening`; `full` and `broken` say why the recording ended early, if it did."""

    def __init__(self, editor: Editing | None = None) -> None:
        super().__init__()
        self.listening, self.full, self.broken = True, False, ""
        self.editor = editor
        self.bytes = 0
        self._calls: list[tuple[Any, ...]] = []
        self._own: dict[CodeType, int] = {}
        self._following = False
        self._inner: FrameType | None = None
        self._outer: Chain = ()

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call the function; note it if it gave or changed a tensor. What goes wrong here never reaches the model."""
        if not self.listening:
            return func(*args, **(kwargs or {}))
        kwargs = kwargs or {}
        random = torch.get_rng_state() if id(func) in _DROPOUTS and _training(args, kwargs) else None
        out = func(*args, **kwargs)
        try:
            chain = self._note(func, args, kwargs, out, random)
            if self.editor is not None and chain:
                out = self._edited(chain, name_of(func), out)
        except InputError:
            raise
        except Exception as fault:  # noqa: BLE001 - the user's model goes on
            self.listening, self.broken = False, f"{type(fault).__name__}: {fault}"
        return out

    def begin(self) -> None:
        """Listen from now on."""
        self._following = torch.is_grad_enabled()
        self.on(True)

    def end(self) -> None:
        """Stop listening."""
        self.listening = False
        self.on(False)

    def forget(self) -> None:
        """Let go of everything that was kept."""
        self._inner, self._outer = None, ()
        self._calls.clear()
        self._own.clear()

    def ops(self) -> list[Op]:
        """What was noted, in order."""
        owners: dict[FrameType, Any] = {}
        found = []
        for func, args, kwargs, out, chain, random, quiet in self._calls:
            inner = chain[-1][0]
            if inner not in owners:
                owners[inner] = inner.f_locals.get("self")
            op = _op(func, args, kwargs, out, chain, owners[inner], random)
            # Without gradients inside and yet with one afterwards. (Asking for grad_fn would make a Python object of
            # every node, and freeing a long chain of those overflows the stack.)
            op.custom = quiet and any(one.requires_grad for one in op.outputs)
            found.append(op)
        return found

    def __len__(self) -> int:
        return len(self._calls)

    def _edited(self, chain: Chain, name: str, out: Any) -> Any:
        """The result with the values that an edit holds put in; each change is noted as an operation of its own."""
        assert self.editor is not None
        for target in self.editor.wants(chain, name):
            values = list(out) if isinstance(out, (tuple, list)) else [out]
            function, given = clamp(values[target.output], target.edit)
            new = function(*given)
            self._calls.append((function, given, {}, new, chain, None, False))
            values[target.output] = new
            out = type(out)(values) if isinstance(out, (tuple, list)) else new
        return out

    def _note(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any, random: Tensor | None) -> Chain:
        """Keep one call, if it gave or changed tensors and comes from the user's code: () where it does not."""
        if type(out) is Tensor or isinstance(out, Tensor):
            self.bytes += out.nbytes
        elif type(out) is torch.Size or (not isinstance(out, (tuple, list)) and func is not Tensor.__setitem__):
            return ()
        chain = self._chain()
        if not chain or in_backward():
            return ()
        if self.bytes > MOST_BYTES or len(self._calls) >= MOST_OPS:
            self.full, self.listening = True, False
            return ()
        quiet = self._following and not torch.is_grad_enabled()
        self._calls.append((func, args, kwargs, out, chain, random, quiet))
        return chain

    def _chain(self) -> Chain:
        frame: FrameType | None = sys._getframe(3)
        found: list[tuple[FrameType, int]] = []
        own = self._own
        while frame is not None:
            code = frame.f_code
            kind = own.get(code)
            if kind is None:
                kind = own[code] = _kind(code)
            if kind == 0:
                if frame is self._inner and not found:  # still the same call: its callers have not moved
                    return (*self._outer, (frame, frame.f_lasti))
                found.append((frame, frame.f_lasti))
            elif kind == 2:  # ours: the run itself, or one of our own probes
                if not found and code is RUN:
                    found.append((frame, frame.f_lasti))  # no line of the user's: the model is made of torch's modules
                break
            frame = frame.f_back
        found.reverse()
        self._inner, self._outer = None, ()
        if found and not found[-1][0].f_code.co_flags & MAY_BE_RESUMED:
            self._inner, self._outer = found[-1][0], tuple(found[:-1])
        return tuple(found)


def _op(
    func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any, chain: Chain, owner: Any, random: Tensor | None
) -> Op:
    outputs = (out,) if isinstance(out, Tensor) else tensors(out) if isinstance(out, (tuple, list)) else ()
    inputs = tensors(args) if not kwargs else tensors((*args, *kwargs.values()))
    name = name_of(func)
    same = any(one is given for one in outputs for given in inputs)
    in_place = name == "__setitem__" or (same and _writes(name, args, kwargs))
    return Op(func, args, kwargs, name, inputs, outputs, in_place, chain, owner, random)


def _writes(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a function that returned what it was given wrote into it (dropout in eval mode, contiguous do not)."""
    named = name.startswith("__i") or (name.endswith("_") and not name.endswith("__"))
    return named or bool(kwargs.get("inplace")) or "out" in kwargs or (len(args) > 1 and args[-1] is True)


def name_of(func: Any) -> str:
    """A function's bare name; of a property's getter (`x.T`) the property's."""
    name = str(getattr(func, "__name__", func))
    return str(getattr(getattr(func, "__self__", None), "__name__", name)) if name == "__get__" else name


def _kind(code: CodeType) -> int:
    """0 the user's code, 1 torch's, 2 this package's. torch's modules written out as loops count as the user's."""
    if code.co_filename == UNROLLED:
        return 0
    if code.co_name == "__torch_function__":  # another mode that only passes the call on
        return 1
    return 2 if code.co_filename.startswith(OURS) else 1 if code.co_filename.startswith(TORCH) else 0


def _training(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return bool(kwargs.get("training", args[2] if len(args) > 2 else True))


def tensors(values: Any) -> tuple[Tensor, ...]:
    """Tensors in nested tuples, lists and dicts, in order."""
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, (tuple, list)):
            found.extend(tensors(value))
        elif isinstance(value, dict):
            found.extend(tensors(value.values()))
    return tuple(found)
