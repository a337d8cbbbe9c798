"""Which entries of the values of one iteration are results of a tanh, followed through all that only moves entries.

Every value has marks of its shape. A tanh marks all that it makes; a view, a piece, a concatenation or an assignment is
run once more on the marks of what it was given, so that each entry keeps its own, also in memory that several values
share. Everything else makes values without a mark: what is not understood is never taken for a tanh.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from types import CodeType
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map_only

from inspector.engine.recurrent.traced.loops.carried_state import Flow
from inspector.engine.recurrent.traced.program.tanh_by_value import Formulas
from inspector.engine.recurrent.traced.record.operation import Op, results_of
from inspector.engine.recurrent.traced.record.operator_traits import Kind
from inspector.engine.recurrent.traced.record.recorder import CLAMPS
from inspector.engine.recurrent.traced.record.values import storage_of

OTHER, TANH, NOTHING = 0.0, 1.0, 2.0
"""Marks of an entry: of any number, of a tanh's result, and of an exact 0 that a mask made, to which may be added."""
MOVED = frozenset({Kind.PIECE, Kind.LAYOUT, Kind.TURN, Kind.JOIN})
SPREAD = frozenset({"expand", "expand_as", "repeat"})
"""Moving operations that the table of operators does not have."""
CELLS = frozenset({"rnn_tanh_cell", "rnn_tanh"})
"""torch's own steps whose results are those of a tanh."""
OWN = frozenset({torch.tanh, torch.tanh_, Tensor.tanh, Tensor.tanh_, torch.nn.functional.tanh})


class Marks:
    """The marks of every value that the operations of iteration i make.

    Attributes:
        functions: code inside which nothing counts as a tanh, see `functions_forward`.
        by_value: whether a mark depends on numbers of this very iteration (masks, tensors of indices).
        moved: the operations whose constant arguments have to be the same in its twins.
    """

    def __init__(self, flow: Flow, i: int, functions: Container[CodeType]) -> None:
        self.flow, self.i, self.functions = flow, i, functions
        self.by_value = False
        self.moved: list[int] = []
        self._own: dict[int, Tensor] = {}
        self._in_memory: dict[int, list[Tensor]] = {}
        self._formulas = Formulas()
        with torch.no_grad():
            for j in range(len(flow.loop.iterations[i])):
                self._follow(j)

    def of(self, value: Tensor) -> Tensor:
        """The marks of a value, in its shape."""
        found = self._own.get(id(value))
        if found is None or found.shape != value.shape:
            found = self._keep(value, torch.zeros_like(value, dtype=torch.float32, requires_grad=False))
        return found

    def _keep(self, value: Tensor, marks: Tensor) -> Tensor:
        self._own[id(value)] = marks
        self._in_memory.setdefault(storage_of(value), []).append(marks)
        return marks

    def _follow(self, j: int) -> None:
        op = self.flow.loop.iterations[self.i][j][1]
        own = op.custom or any(frame.f_code in self.functions for frame, _ in op.chain)
        same = not own and self._formulas.take(op)
        if same or self._formulas.has(op) or _idle(op):
            self.moved.append(j)
        if op.in_place:
            self._write(op, j, same=same, own=own)
            return
        found = None if own else self._made(op, j)
        if found is None and same:
            found = [torch.ones_like(out, dtype=torch.float32) for out in op.outputs]
        for n, out in enumerate(op.outputs):
            if not any(out is given for given in op.inputs):
                self._own.pop(id(out), None)
                if found is not None and found[n].shape == out.shape and out.is_floating_point():
                    self._keep(out, found[n])

    def _write(self, op: Op, j: int, *, same: bool, own: bool) -> None:
        """An operation that writes into memory of values that are there; `own`: inside of a function of the user's."""
        target, marks = op.target, self._own.get(id(op.target))
        for other in self._in_memory.get(storage_of(target), ()):
            if marks is None or storage_of(other) != storage_of(marks):
                other.zero_()  # it is not known which of its entries were written
        marks = self.of(target)
        if same or (op.traits.name == "tanh" and not own and genuine(op)):
            marks.fill_(TANH)
        elif own or op.kwargs or not self._assigned(op, j, marks):
            marks.zero_()

    def _assigned(self, op: Op, j: int, marks: Tensor) -> bool:
        """Whether an assignment was made to the marks, too."""
        if op.traits.name == "setitem" and len(op.args) == 3:
            _, where, value = op.args
            if not self._reads(where):
                return False
            given = self.of(value) if isinstance(value, Tensor) and value.is_floating_point() else OTHER
            self.moved.append(j)
            return _done(lambda: marks.__setitem__(where, given))
        if op.replaces and len(op.inputs) == 2 and op.inputs[1].is_floating_point():
            given = self.of(op.inputs[1])
            return _done(lambda: marks.copy_(given))
        return False

    def _made(self, op: Op, j: int) -> list[Tensor] | None:
        """The marks of an operation's results; None where they have none."""
        kind, name = op.traits.kind, op.traits.name
        if name == "tanh" or name in CELLS:
            return [torch.ones_like(out, dtype=torch.float32) for out in op.outputs] if genuine(op) else None
        if self._edited(op, j) or _idle(op) or kind is Kind.CAST:
            return [self.of(op.inputs[0]).clone()]
        if kind is Kind.DETACH:
            return [self.of(op.inputs[0])]
        if kind in MOVED or op.name in SPREAD:
            self.moved.append(j)
            return self._again(op)
        if name == "where" and len(op.args) == 3:
            return self._chosen(*op.args)
        return self._masked(op) if kind in (Kind.PRODUCT, Kind.SUM) else None

    def _again(self, op: Op) -> list[Tensor] | None:
        """What an operation that only moves entries makes of the marks."""
        if not self._reads((op.args, op.kwargs)):
            return None
        args, kwargs = tree_map_only(Tensor, lambda t: self.of(t) if t.is_floating_point() else t, (op.args, op.kwargs))
        try:
            return list(results_of(op.function(*args, **kwargs)))
        except (RuntimeError, TypeError, ValueError, IndexError):
            return None

    def _reads(self, given: Any) -> bool:
        """Whether tensors of indices or truth values among these, which decide what goes where, are as they were."""
        deciding = [one for one in tree_leaves(given) if isinstance(one, Tensor) and not one.is_floating_point()]
        self.by_value |= bool(deciding)
        return not any(map(self._written_over, deciding))

    def _chosen(self, which: Any, one: Any, other: Any) -> list[Tensor] | None:
        if not isinstance(which, Tensor) or self._written_over(which):
            return None
        self.by_value = True
        nothing = which.new_zeros((), dtype=torch.float32)
        own = [self.of(t) if isinstance(t, Tensor) and t.is_floating_point() else nothing for t in (one, other)]
        return [torch.where(which, own[0], own[1])]

    def _masked(self, op: Op) -> list[Tensor] | None:
        """m h + (1 − m) h₀ with a mask m of zeros and ones: each entry is one of the two."""
        if len(op.inputs) != 2 or len(op.args) != 2 or op.kwargs or not op.outputs:
            return None
        one, other = op.inputs
        if op.traits.name == "add":
            a, b = self.of(one), self.of(other)
            if not bool((a == NOTHING).any() or (b == NOTHING).any()):
                return None
            return [torch.where(a == NOTHING, b, torch.where(b == NOTHING, a, a.new_full((), OTHER)))]
        for mask, value in ((one, other), (other, one)):
            if op.traits.name == "mul" and value.is_floating_point() and self._is_mask(mask):
                self.by_value = True
                marks = self.of(value)
                return [torch.where(mask == 1, marks, marks.new_full((), NOTHING))]
        return None

    def _is_mask(self, mask: Tensor) -> bool:
        """Zeros and ones that no gradient could move: a scale that is trained is 1 only for now."""
        if mask.requires_grad or self._written_over(mask) or mask.is_complex():
            return False
        return bool(((mask == 0) | (mask == 1)).all())

    def _written_over(self, tensor: Tensor) -> bool:
        """Whether something wrote into its memory: the numbers that were read then are no longer known."""
        return storage_of(tensor) in self.flow.changed

    def _edited(self, op: Op, j: int) -> bool:
        """Whether an edit of the user's replaced entries: what it was made for keeps its bounds. The recorder stores it
        directly after the operation whose result it changes, at the same instruction."""
        before = self.flow.loop.iterations[self.i][j - 1][1] if j else None
        return op.function in CLAMPS and before is not None and before.chain == op.chain and any(
            op.inputs[0] is out for out in before.outputs
        )  # fmt: skip


def functions_forward() -> frozenset[CodeType]:
    """The code of every function that has a derivative of its own: its result may pass gradients as no tanh does."""
    found: set[CodeType] = set()
    todo = list(torch.autograd.Function.__subclasses__())
    while todo:
        one = todo.pop()
        todo += one.__subclasses__()
        code = getattr(one.forward, "__code__", None)
        found |= set() if code is None else {code}
    return frozenset(found)


def genuine(op: Op) -> bool:
    """Whether what is called tanh is torch's own; of a function of another library its numbers decide."""
    if not all(out.is_floating_point() for out in op.outputs):
        return False
    if op.function in OWN or op.traits.name in CELLS:
        return True
    if op.in_place or len(op.inputs) != 1 or len(op.outputs) != 1:
        return False
    given, made = op.inputs[0].double(), op.outputs[0].double()
    return given.shape == made.shape and torch.allclose(made, torch.tanh(given), atol=1e-2, rtol=0, equal_nan=True)


def _idle(op: Op) -> bool:
    """Whether an operation returns what it is given: dropout outside of training, bounds that a tanh never passes."""
    if op.traits.kind is Kind.DROPOUT:
        return op.random is None and torch.equal(op.inputs[0], op.outputs[0])
    if op.traits.name == "hardtanh" or op.name in ("clamp", "clip"):
        hard = op.traits.name == "hardtanh"
        low, high = (
            op.args[n] if len(op.args) > n else op.kwargs.get(name, default)
            for n, name, default in ((1, "min_val" if hard else "min", -1.0), (2, "max_val" if hard else "max", 1.0))
        )
        return all(one is None or isinstance(one, (int, float)) for one in (low, high)) and (
            (low is None or low <= -1) and (high is None or high >= 1)
        )
    return False


def _done(write: Callable[[], object]) -> bool:
    try:
        write()
    except (RuntimeError, TypeError, ValueError, IndexError):
        return False
    return True
