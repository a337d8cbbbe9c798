"""The matrices by which a hand-written step multiplies its state, and the piecewise linear function whose result the
state is.

They are read off the operations of one iteration: F.linear and matrix products whose input is the state, a piece of it,
the state scaled by a gate (r ⊙ h), or a concatenation with one of these, of which the columns of the state are taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from inspector.engine.cells.gate_info import RecurrentWeight
from inspector.engine.recurrent.traced.loops.carried_state import Flow, Slot
from inspector.engine.recurrent.traced.program.gates import leading_to
from inspector.engine.recurrent.traced.record.operation import Op
from inspector.engine.recurrent.traced.record.operator_traits import Kind
from inspector.engine.recurrent.traced.record.source_names import assigned
from inspector.engine.recurrent.traced.record.values import Numbers, same_entries

PARAMETRISED = ".parametrizations."
MOST_GATES = 16
"""Square blocks, one below the other, that one matrix may have: an LSTM has 4, larger cells up to about 8.
Counter-example: a read-out of 20 H entries that is fed back is not listed; one of 16 H classes is, as 16 matrices."""


@dataclass(frozen=True, slots=True)
class Piecewise:
    """φ with φ′ = 1 where low < φ < high and `outside` elsewhere; its value decides which."""

    name: str
    low: float
    high: float
    outside: float = 0.0

    def derivative(self, value: Tensor) -> Tensor:
        """φ′ from φ's value, same shape."""
        inside = value > self.low
        if math.isfinite(self.high):
            inside &= value < self.high
        return torch.where(inside, value.new_ones(()), value.new_full((), self.outside))


def squashed_by(flow: Flow, state: Sequence[Slot]) -> Piecewise | None:
    """The piecewise linear function whose results are the state in every iteration, or None."""
    if len(state) != 1 or state[0].lags or min(state[0].made) < 0:
        return None
    last = len(state[0].made) - 1
    if _piecewise(flow.op((last, state[0].made[last])), state[0].values[-1]) is None:
        return None
    found = {_piecewise(flow.op((i, made)), state[0].values[i + 1]) for i, made in enumerate(state[0].made)}
    return found.pop() if len(found) == 1 else None


def _piecewise(op: Op, value: Tensor) -> Piecewise | None:
    if not any(out is value for out in op.outputs):
        return None
    name = op.traits.name
    if name == "relu":
        return Piecewise("relu", 0.0, math.inf)
    if name == "relu6":
        return Piecewise("relu6", 0.0, 6.0)
    if name == "hardtanh":
        return Piecewise("hardtanh", _number(op, 1, "min_val", -1.0), _number(op, 2, "max_val", 1.0))
    slope = _number(op, 1, "negative_slope", 0.01) if name == "leaky_relu" else -1.0
    return Piecewise("leaky_relu", 0.0, math.inf, slope) if slope >= 0 else None  # else φ does not determine φ′


def _number(op: Op, place: int, name: str, default: float) -> float:
    return float(op.args[place] if len(op.args) > place else op.kwargs.get(name, default))


def fed_back(
    flow: Flow, state: Sequence[Slot], names: Mapping[int, str], *, alike: bool
) -> tuple[RecurrentWeight, ...]:
    """The matrices of the last iteration that are also those of the one before; for layers those of every one.

    Counter-example: of alternating branches with a matrix each, none is in both, so none is listed; a matrix of the
    last two steps only is, without a gain.

    `names`: id of a parameter → its name. `alike`: all steps ran the same operations; only then there is a gain.
    """
    if flow.loop.depth:
        return of_each_layer(flow, state, names)
    last = len(flow.loop.iterations) - 1
    now, before = (_Iteration(flow, state, i, names) for i in (last, last - 1))
    known = {before.label(key): matrix for key, matrix in before.matrices()}
    gain = now.gain() if alike else None
    found: dict[str, RecurrentWeight] = {}
    for key, matrix in now.matrices():
        older = known.get(now.label(key))
        if (
            older is None
            or older.shape != matrix.shape
            or not (same_entries(older, matrix) or torch.equal(older, matrix))
        ):
            continue  # another one at each step: not a weight
        gain = gain if _everywhere(flow, now, key[0]) else None
        for signal, symbol, square in now.squares(key, matrix.detach()):
            other = signal if signal not in found else f"{now.name(key[0])}/{signal}"
            while other in found:
                other += "'"
            found[other] = RecurrentWeight(other, symbol, square)
    if gain is not None and len(found) == 1:
        only = next(iter(found.values()))
        return (RecurrentWeight(only.signal, only.symbol, only.matrix, gain),)
    return tuple(found.values())


def of_each_layer(flow: Flow, state: Sequence[Slot], names: Mapping[int, str]) -> tuple[RecurrentWeight, ...]:
    """The matrices of every iteration, where the iterations are layers with weights of their own."""
    found: dict[str, RecurrentWeight] = {}
    for i in range(len(flow.loop.iterations)):
        flow.tick()
        layer = _Iteration(flow, state, i, names)
        own = [
            (layer.name(key[0]), *square)
            for key, matrix in layer.matrices()
            for square in layer.squares(key, matrix.detach())
        ]
        gain = layer.gain() if len(own) == 1 else None
        for name, signal, symbol, square in own:
            other = signal if signal.startswith(name) else f"{name}/{signal}"
            while other in found:
                other += "'"
            found[other] = RecurrentWeight(other, symbol, square, gain, i)
    return tuple(found.values())


def _everywhere(flow: Flow, last: _Iteration, j: int) -> bool:
    """True where every iteration multiplies with what operation j of the last one multiplies with."""
    label, op = last.ops[j]
    matrices = [weight for _, weight, _ in _factors(op)]
    for i, members in flow.twins.members.items():
        if label not in flow.loop.iterations.labels[i]:
            return False
        k = flow.loop.iterations.labels[i].index(label)
        others = [weight for _, weight, _ in _factors(flow.loop.iterations[i][k][1])]
        pairs = zip(matrices, others, strict=False)
        if not any(_equal(one, two) and _unchanged(flow, members, k, two) for one, two in pairs):
            return False
    return True


def _equal(one: Tensor, two: Tensor) -> bool:
    return one is two or torch.equal(one, two)


def _unchanged(flow: Flow, members: Numbers, j: int, weight: Tensor) -> bool:
    """True where operation j of all these twins has a matrix equal to this one."""
    op = flow.loop.iterations[int(members[0])][j][1]
    n = next(n for n, given in enumerate(op.inputs) if given is weight)
    ids = flow.twins.given(members, j, n)
    if not (ids != ids[0]).any():
        return True
    return all(_equal(weight, other) for other in flow.twins.inputs(members, j, n))


Key = tuple[int, int, int]
"""Number of the operation, first and last + 1 of the columns that belong to the state."""


class _Iteration:
    """One iteration, searched for products with the state."""

    def __init__(self, flow: Flow, state: Sequence[Slot], i: int, names: Mapping[int, str]) -> None:
        self.flow, self.state, self.i, self.names = flow, state, i, names
        self.ops = flow.loop.iterations[i]
        self.near = sorted(leading_to(flow, state, i))
        self.own = {id(slot.values[i - lag]) for slot in state for lag in range(slot.lags + 1) if i >= lag}
        self.bits = sum(1 << slot.index for slot in state)

    def matrices(self) -> Iterator[tuple[Key, Tensor]]:
        """Every matrix, the columns of the state only: (g, h)."""
        for j in self.near:
            for given, weight, turned in _factors(self.ops[j][1]):
                matrix = weight.T if turned and weight.dim() == 2 else weight
                if self._depends(weight) or matrix.dim() != 2 or matrix.shape[1] != _width(given):
                    continue
                for start, stop in self._columns(given):
                    yield (j, start, stop), matrix[:, start:stop]

    def label(self, key: Key) -> Key:
        """The same, with the operation's label in every iteration."""
        return self.ops[key[0]][0], *key[1:]

    def squares(self, key: Key, matrix: Tensor) -> Iterator[tuple[str, str, Tensor]]:
        """(signal, symbol, square) of a matrix of one or more squares, one below the other."""
        rows, width = matrix.shape
        count = rows // width
        if rows % width or not 1 <= count <= MOST_GATES:
            return
        name = self.name(key[0])
        alone = width == self._given_width(key[0])
        symbol = name if alone else f"{name}[:, {key[1]}:{key[2]}]"
        if count == 1:
            yield name, symbol, matrix
            return
        gates = self._gates(key[0], count)
        for n, square in enumerate(matrix.chunk(count)):
            signal = gates[n] if gates else f"{name}[{n}]"
            yield signal, f"{symbol}, {gates[n] if gates else f'square {n + 1} of {count}'}", square

    def _given_width(self, j: int) -> int:
        return next(_width(given) for given, _, _ in _factors(self.ops[j][1]) if self._columns(given))

    def name(self, j: int) -> str:
        """The parameter that operation j multiplies with, a parametrised one by the name of its value; or "W"."""
        for _, weight, _ in _factors(self.ops[j][1]):
            found = self._made_of(weight)
            if len(found) == 1:
                return found.pop()
        return "W"

    def _made_of(self, tensor: Tensor) -> set[str]:
        """The parameters that a matrix is a view of, or that it is computed from where it is parametrised."""
        found: set[str] = set()
        todo, seen = [(tensor, True)], {id(tensor)}
        while todo:
            one, view = todo.pop()
            name = self.names.get(id(one), "")
            if name and (view or PARAMETRISED in name):
                module, _, rest = name.partition(PARAMETRISED)
                found.add(f"{module}.{rest.split('.')[0]}".removeprefix(".") if rest else name)
            place = self.flow.source.get(id(one))
            if place is None:
                continue
            op = self.flow.op(place)
            new = [given for given in op.inputs if id(given) not in seen]
            seen |= set(map(id, new))
            todo += [(given, view and op.traits.kind in (Kind.TURN, Kind.DETACH)) for given in new]
        return found

    def gain(self) -> float | None:
        """γ of h' = φ(W h + …), where the state reaches φ through sums and one product only; else None."""
        if len(self.state) != 1 or self.state[0].lags or self.state[0].made[self.i] < 0:
            return None
        top = self.ops[self.state[0].made[self.i]][1]
        gain = _gain(top)
        if gain is None or not any(out is self.state[0].values[self.i + 1] for out in top.outputs):
            return None
        value = top.inputs[0]
        while True:
            place = self.flow.source.get(id(value))
            if place is None or place[0] != self.i:
                return None
            op = self.flow.op(place)
            if op.traits.kind is not Kind.SUM:
                products = [given for given, weight, _ in _factors(op) if not self._depends(weight)]
                direct = [given for given in products if id(given) in self.own]
                return gain if len(direct) == 1 and sum(map(self._depends, op.inputs)) == 1 else None
            dependent = [given for given in op.inputs if self._depends(given)]
            if len(dependent) != 1 or op.kwargs:
                return None
            value = dependent[0]

    def _depends(self, tensor: Tensor) -> bool:
        """True for tensors that depend on the state."""
        if id(tensor) in self.own:
            return True
        place = self.flow.source.get(id(tensor))
        return place is not None and place[0] == self.i and bool(self.flow.reach[self.i][place[1]] & self.bits)

    def _columns(self, tensor: Tensor) -> list[tuple[int, int]]:
        """Which entries of a product's input are the state's own."""
        if id(tensor) in self.own:
            return [(0, _width(tensor))]
        place = self.flow.source.get(id(tensor))
        if place is None or place[0] != self.i:
            return []
        op = self.flow.op(place)
        kind = op.traits.kind
        if kind is Kind.JOIN:
            return self._joined(op, tensor)
        if op.traits.keeps_entries or kind in (Kind.PIECE, Kind.PRODUCT):
            whole = [given for given in op.inputs if self._columns(given) == [(0, _width(given))]]
            same = kind is Kind.PIECE or (len(whole) == 1 and _width(whole[0]) == _width(tensor))
            return [(0, _width(tensor))] if len(whole) == 1 and same else []
        return []

    def _joined(self, op: Op, tensor: Tensor) -> list[tuple[int, int]]:
        found, start = [], 0
        for given in op.inputs:
            width = _width(given)
            found += [(start + a, start + b) for a, b in self._columns(given)]
            start += width
        return found if start == _width(tensor) else []

    def _gates(self, j: int, count: int) -> tuple[str, ...]:
        """The names of the gates that the pieces of a product's result become;
        () where it is not split into named pieces."""
        follows = {id(out) for out in self.ops[j][1].outputs}
        for k in self.near:
            op = self.ops[k][1]
            if k <= j or not any(id(given) in follows for given in op.inputs):
                continue
            kind = op.traits.kind
            if kind is Kind.SUM or op.traits.keeps_entries:
                follows |= {id(out) for out in op.outputs}
            names, whole = assigned(op.chain)
            if kind is Kind.PIECE and whole and len(names) == len(op.outputs) == count:
                return tuple(self._becomes(k, piece) or name for piece, name in zip(op.outputs, names, strict=True))
        return ()

    def _becomes(self, j: int, piece: Tensor) -> str:
        """The variable of the first squashing function to which a piece goes, or ""."""
        follows = {id(piece)}
        for k in self.near:
            op = self.ops[k][1]
            if k <= j or not any(id(given) in follows for given in op.inputs):
                continue
            if op.traits.kind is Kind.SQUASH:
                names, whole = assigned(op.chain)
                return names[0] if whole and len(names) == 1 else ""
            if op.traits.kind in (Kind.SUM, Kind.PRODUCT):
                follows |= {id(out) for out in op.outputs}
        return ""


def _gain(op: Op) -> float | None:
    slope = _number(op, 1, "negative_slope", 0.01) if op.traits.name == "leaky_relu" else None
    return op.traits.gain if slope is None else max(1.0, abs(slope))


def _width(tensor: Tensor) -> int:
    """Entries of a row, or of a column where the tensor is one."""
    column = tensor.dim() == 2 and tensor.shape[1] == 1
    return tensor.shape[0] if column or tensor.dim() == 1 else tensor.shape[-1] if tensor.dim() else 1


def _factors(op: Op) -> Iterator[tuple[Tensor, Tensor, bool]]:
    """(what is multiplied, the matrix it is multiplied with, True where that is (r, g)) as an operation may be read."""
    if op.traits.factors is None:
        return
    given = dict(op.operands())
    left, right = (given.get(number) for number in op.traits.factors)
    if left is None or right is None:
        return
    if op.traits.name == "linear":
        yield left, right, False
        return
    if left.dim() == 2 and (right.dim() == 1 or (right.dim() == 2 and right.shape[1] == 1)):
        yield right, left, False
    if right.dim() == 2:
        yield left, right, True
