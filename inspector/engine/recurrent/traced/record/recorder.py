"""Every torch operation of a forward pass, in order, with the place in the user's code that called it.

A TorchFunctionMode calls each function as it is and records it. Frames of torch and of this package are left out of the
place, so that an operation belongs to the line that the user wrote. Recording costs time at every operation of the run:
everything that can be derived afterwards is left to the table of the calls (op_table.py).
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from inspector.engine.cells.written import AS_WRITTEN
from inspector.engine.devices.random_state import state_of
from inspector.engine.errors import InputError
from inspector.engine.hooks.function_mode import SwitchedMode
from inspector.engine.model.subject import Subject
from inspector.engine.recurrent.traced.record.call_offsets import moved
from inspector.engine.recurrent.traced.record.op_table import Table
from inspector.engine.recurrent.traced.record.operation import Call, Chain, Where, name_of
from inspector.engine.recurrent.traced.record.operator_traits import TABLE, Kind
from inspector.engine.recurrent.traced.record.owners import Owners, called_module, owner_of, usual
from inspector.engine.trace.gradient_hooks import WatchedHook

MOST_BYTES = 3 << 30
"""Results are stored until the run is over; at most this many bytes of them, then recording ends. Views and in-place
results count as often as they are made. Counter-example: the recording of a loop over views of one large tensor ends
early; the number of operations is reported."""
MOST_OPS = 4_000_000
"""Each takes some hundred bytes of Python objects. Counter-example: of 500,000 steps of ten operations the last are not
recorded, which is reported."""
TORCH = str(Path(torch.__file__).parent)
FUNCTORCH = str(Path(torch.__file__).parent / "_functorch")
ENGINE = Path(__file__).parents[3]
EAGER_LOOPS = str(ENGINE / "interventions" / "eager_loops.py")
ONNX = ENGINE / "programs" / "onnx"
AS_A_USER = frozenset({
    EAGER_LOOPS, str(ENGINE / "opening" / "weights_alone" / "keras_cells.py"), str(ONNX / "cells.py"),
    *(str(ONNX / "operators" / f"{name}.py") for name in ("elementwise", "layers", "shapes")),
})  # fmt: skip
"""Files with operations that are a model's: torch's modules written out as loops, those of Keras, those of ONNX."""
PASSED_ON = str(ENGINE / "programs" / "scripted" / "functions.py")
"""The file with what TorchScript's code calls `torch`: an operation belongs to the line of that code."""
OURS = str(ENGINE)
_DROPOUTS = frozenset(
    id(getattr(place, form))
    for place in (F, torch)
    for name, traits in TABLE.items()
    for form in (name, f"{name}_")
    if traits.kind is Kind.DROPOUT and hasattr(place, form)
)
MAY_BE_RESUMED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
"""Such a call may have another caller the next time."""
RUN = Subject.called.__code__
HOOKING = frozenset({"register_hook", "register_prehook"})
"""What code calls that puts a hook on a node. Counter-example: a function that is given the node and hooks it; nothing
of torch's says that a node has hooks, so that is not noticed."""
LEAVING = frozenset(
    id(getattr(Tensor, name)) for name in ("numpy", "tolist", "__array__", "__dlpack__") if hasattr(Tensor, name)
)
"""By which the numbers of a tensor leave torch. `item` is none of them: numbers that are logged, or decide a branch."""
_GRAD_FN: Any = Tensor.grad_fn
_METHOD: Any = type(_GRAD_FN.__get__)
_getframe = sys._getframe
_task = torch._C._current_graph_task_id
_transform = torch._C._functorch.peek_interpreter_stack


class Editing(Protocol):
    """The editor from which the recorder gets values that replace results (engine/interventions/editor.py)."""

    def wants(self, chain: Chain, name: str, owner: Callable[[FrameType], Any]) -> Sequence[Any]:
        """Targets of this operation, each with `edit`, the number of the `output` and the `entry` where the value has
        several axes of units. `owner`: object of a frame."""


CLAMPS = (torch.full_like, torch.index_fill, torch.masked_fill)
"""The functions that `clamp` returns."""


def clamp(value: Tensor, edit: Any, entry: Tensor | None = None) -> tuple[Any, tuple[Any, ...]]:
    """(function, arguments) that return the value with one unit, or all, clamped.

    The last axis is the units'; of a value with several axes of units `entry` is True at the one that is clamped.
    """
    if edit.unit is None:
        return torch.full_like, (value, edit.value)
    if entry is not None:
        return torch.masked_fill, (value, entry.to(value.device), edit.value)
    return torch.index_fill, (value, -1, torch.tensor([edit.unit], device=value.device), edit.value)


class OperationRecorder(SwitchedMode):
    """Records calls while `listening`; `full` and `broken` give the reason if the recording ended early."""

    def __init__(self, editor: Editing | None = None) -> None:
        super().__init__()
        self.listening, self.full, self.broken = True, False, ""
        self.transformed: tuple[str, int] | None = None
        """The first function, and line, that ran inside a torch.func transform (vmap, grad, jvp)."""
        self.editor = editor
        self.bytes = 0
        self.left: list[Tensor] = []
        """Those whose numbers left torch; held, so that no other tensor gets the number of one."""
        self.hooks: list[WatchedHook] = []
        self.node_hooks: list[tuple[str, Tensor]] = []
        self._calls: list[Call] = []
        self._random: dict[int, Tensor] = {}
        self._quiet: set[int] = set()
        self._own: dict[CodeType, int] = {}
        self._following = False
        self._inner: FrameType | None = None
        self._where: Where | None = None
        self._moved: Mapping[int, int] = {}
        self._wheres: dict[FrameType, Where] = {}
        self._called: dict[FrameType, Any] = {}

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call the function; record it if it returned or changed a tensor.
        Errors of the recording never reach the model."""
        number = id(func)
        if func is Tensor.register_hook:
            args = self._watched(args)
        elif type(func) is _METHOD and getattr(func, "__self__", None) is _GRAD_FN:
            self._node_taken(args[0])
        elif number in LEAVING and self.listening:
            self.left.append(args[0])
        random = _random_state(args, kwargs) if number in _DROPOUTS and self.listening else None
        out = func(*args, **kwargs) if kwargs else func(*args)
        handler = self.also.get(number)
        if handler is not None:
            handler(args, kwargs or {}, out)
        if self.listening:
            try:
                noted = self._note(func, args, kwargs, out)
                if noted and random is not None:
                    self._random[len(self._calls) - 1] = random
                if noted and self.editor is not None:
                    out = self._edited(func, out)
            except InputError:
                raise
            except Exception as fault:  # noqa: BLE001 - the user's model continues
                self.listening, self.broken = False, f"{type(fault).__name__}: {fault}"
        return out

    def _watched(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments of `register_hook` with a hook that notes whether it changes the gradient."""
        if len(args) != 2 or not callable(args[1]) or _kind(_getframe(2).f_code) == 2:
            return args
        hook = WatchedHook(*args)
        self.hooks.append(hook)
        return args[0], hook

    def _node_taken(self, tensor: Tensor) -> None:
        """Note that code of the user's which registers hooks takes the node of autograd's graph that made a tensor."""
        code = _getframe(2).f_code
        if _kind(code) == 0 and not HOOKING.isdisjoint(code.co_names):
            self.node_hooks.append((f"{code.co_qualname.rpartition('<locals>.')[2]}()", tensor))

    def begin(self, *, following: bool = True) -> None:
        """Record from now on. `following`: autograd will be on during the run, if it is now."""
        self._following = following and torch.is_grad_enabled()
        self.carry()
        self.on(True)

    def end(self) -> None:
        """Stop recording."""
        self.listening = False
        self.on(False)

    def forget(self) -> None:
        """Release everything that was stored."""
        self._inner = self._where = None
        self._wheres.clear()
        self._called.clear()
        self.left.clear()
        self._calls = []
        self._random.clear()
        self._own.clear()

    def table(self) -> Table:
        """The recorded calls, in order."""
        return Table(self._calls, self._random, self._quiet, Owners(self._called))

    def __len__(self) -> int:
        return len(self._calls)

    def _edited(self, func: Any, out: Any) -> Any:
        """The result with an edit's values put in; each change is recorded as an operation of its own."""
        assert self.editor is not None
        where, at = self._calls[-1][4:]
        outer, frame = where
        for target in self.editor.wants((*outer, (frame, at)), name_of(func), self._owner):
            values = list(out) if isinstance(out, (tuple, list)) else [out]
            function, given = clamp(values[target.output], target.edit, target.entry)
            new = function(*given)
            self._calls.append((function, given, None, new, where, at))
            values[target.output] = new
            out = type(out)(values) if isinstance(out, (tuple, list)) else new
        return out

    def _owner(self, frame: FrameType) -> Any:
        return owner_of(frame, self._called)

    def _note(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None, out: Any) -> bool:
        """Store one call, if it returned or changed tensors and comes from the user's code: False where it does not."""
        if type(out) is Tensor or isinstance(out, Tensor):
            self.bytes += out.nbytes
        elif type(out) is torch.Size or (not isinstance(out, (tuple, list)) and func is not Tensor.__setitem__):
            return False
        frame: FrameType | None = _getframe(2)
        inner, own = self._inner, self._own
        while frame is not inner:
            if frame is None:
                return False
            kind = own.get(frame.f_code)
            if kind is None:
                kind = own[frame.f_code] = _kind(frame.f_code)
            if kind != 1:
                if kind == 2 and frame.f_code is not RUN:  # a probe of this package; the run calls torch's modules
                    return False
                self._where, self._moved = self._where_is(frame), moved(frame.f_code)
                self._inner = None if frame.f_code.co_flags & MAY_BE_RESUMED else frame
                break
            frame = frame.f_back
        if frame is None or _task() != -1 or (_transform() is not None and self._leave_out(frame)):
            return False  # a backward pass may run parts of the model again
        calls = self._calls
        if self.bytes > MOST_BYTES or len(calls) >= MOST_OPS:
            self.full, self.listening = True, False
            return False
        if self._following and not torch.is_grad_enabled():
            self._quiet.add(len(calls))
        assert self._where is not None
        if args and type(args[0]) is list:  # the user's list of states, which may still grow or change
            args = (args[0][:], *args[1:])
        at = frame.f_lasti
        calls.append((func, args, kwargs, out, self._where, self._moved.get(at, at)))
        return True

    def _leave_out(self, frame: FrameType) -> bool:
        """True: inside a transform of torch.func tensors mean something in that transform only.

        What torch does around the function is not the code of the frame that calls the transform.
        """
        if self.transformed is None:
            at: FrameType | None = _getframe(3)
            while at is not None and at is not frame and not at.f_code.co_filename.startswith(FUNCTORCH):
                at = at.f_back
            if at is frame:
                self.transformed = frame.f_code.co_qualname, frame.f_lineno
        return True

    def _where_is(self, frame: FrameType) -> Where:
        """A frame and where it was called from; during one call its callers stay at the same instruction."""
        new: list[FrameType] = []
        at: FrameType | None = frame
        while at is not None and at not in self._wheres:
            kind = self._own.get(at.f_code)
            if kind is None:
                kind = self._own[at.f_code] = _kind(at.f_code)
            if kind == 0 or at is frame:
                new.append(at)
                module = None if usual(at.f_code) else called_module(at)
                if module is not None:
                    self._called[at] = module
            if kind == 2:  # this package: the run itself
                at = None
                break
            at = at.f_back
        where = None if at is None else self._wheres[at]
        for one in reversed(new):
            outer = () if where is None else (*where[0], (where[1], _offset(where[1])))
            where = outer, one
            if not one.f_code.co_flags & MAY_BE_RESUMED:
                self._wheres[one] = where
        assert where is not None
        return where


def _offset(frame: FrameType) -> int:
    """Of the instruction that a frame is at."""
    return moved(frame.f_code).get(frame.f_lasti, frame.f_lasti)


def _kind(code: CodeType) -> int:
    """0 the user's code, 1 torch's, 2 this package's. Modules written out as loops count as the user's."""
    if code.co_filename in AS_A_USER or code in AS_WRITTEN:
        return 0
    if code.co_name == "__torch_function__" or code.co_filename == PASSED_ON:  # they only pass the call on
        return 1
    return 2 if code.co_filename.startswith(OURS) else 1 if code.co_filename.startswith(TORCH) else 0


def _random_state(args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Tensor | None:
    """The state of the generator from which an active dropout is going to draw: that of its input's device."""
    given = args[0] if args else (kwargs or {}).get("input")
    return state_of(given.device) if isinstance(given, Tensor) and _training(args, kwargs) else None


def _training(args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> bool:
    """Whether a dropout is active: its third argument, called `training` by some and `train` by others."""
    named = kwargs or {}
    return bool(named.get("training", named.get("train", args[2] if len(args) > 2 else True)))
