"""The operations that lead from a state to the next one, as a program that can be run again on other values.

Everything that does not depend on the state — inputs of the step, weights, masks — stays as recorded. Detaching counts
as the identity (the derivative of the dynamics is computed, not that of the training graph), and dropout in training
uses its recorded mask.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload, OpOverloadPacket
from torch.utils._pytree import tree_flatten

from inspector.engine.errors import Unsupported
from inspector.engine.recurrent.traced.loops.carried_state import Flow
from inspector.engine.recurrent.traced.loops.iteration_classes import Place
from inspector.engine.recurrent.traced.program.cell_functions import (
    at_memory,
    memory_of,
    sequences_written_out,
    written_out,
)
from inspector.engine.recurrent.traced.program.dropout_masks import dropped, dropped_, masks_of
from inspector.engine.recurrent.traced.program.instructions import Instruction, Program, Ref
from inspector.engine.recurrent.traced.program.sequence_functions import MOST_STEPS, runs_again
from inspector.engine.recurrent.traced.record.operation import Op
from inspector.engine.recurrent.traced.record.operator_traits import Kind
from inspector.engine.recurrent.traced.record.values import storage_of

OFTEN = 256
"""Iterations between checks for cancellation: each costs up to a millisecond."""
OWN = frozenset({"aten", "prim", "prims", "quantized", "rngprims"})
"""Namespaces of torch's operators."""
NOT_WRITTEN_OUT = (
    f"a fused module with more than {MOST_STEPS} steps a call, with packed sequences, or with dropout between its "
    "layers, is in them"
)


@dataclass(slots=True)
class _Building:
    flow: Flow
    inputs: Mapping[int, Hashable]
    within: bool = False
    numbers: dict[Place, int] = field(default_factory=dict)
    outside: list[Tensor] = field(default_factory=list)
    outside_at: dict[int, int] = field(default_factory=dict)

    def ref(self, tensor: Tensor) -> Ref:
        """Where a tensor comes from, seen from inside the program."""
        if id(tensor) in self.inputs:
            return "given", self.inputs[id(tensor)], 0
        place = self.flow.source.get(id(tensor))
        if place is not None and place in self.numbers:
            return "made", self.numbers[place], self.flow.op(place).output(tensor)
        if id(tensor) not in self.outside_at:
            self.outside_at[id(tensor)] = len(self.outside)
            self.outside.append(tensor)
        return "outside", self.outside_at[id(tensor)], 0

    def memory(self, op: Op) -> tuple[Tensor, ...]:
        """The output of a cell that is an input of the program, where others of its outputs are computed from it."""
        return _memory_given(op, self.inputs) if self.within else ()


class Slicer:
    """Extracts programs from the iterations of a loop; steps that run the same operations share one.

    `stops`: ids of tensors that are inputs from outside, whatever operation made them; `constants`: also where they are
    the result; `within`: inputs may be outputs of a cell in the same step, from which its other outputs are computed.
    """

    def __init__(
        self, flow: Flow, stops: Collection[int] = (), constants: Collection[int] = (), *, within: bool = False
    ) -> None:
        self.flow, self.within = flow, within
        self.stops, self.constants = frozenset((*stops, *constants)), constants
        self.masks: list[Tensor] = []
        self._known: dict[tuple[Hashable, ...], tuple[list[int], Program, list[tuple[bool, bool]]]] = {}

    def __call__(
        self, i: int, inputs: Mapping[int, Hashable], results: Sequence[Tensor]
    ) -> tuple[Program, list[Tensor]]:
        """The program from the inputs (id of a tensor → name) to the results in iteration i, and the outside tensors.

        Raises Unsupported where the step writes into memory that is not its own.
        """
        return self.cut(i, inputs, results)[:2]

    def cut(
        self, i: int, inputs: Mapping[int, Hashable], results: Sequence[Tensor]
    ) -> tuple[Program, list[Tensor], list[int]]:
        """The same, and the numbers of the operations of the program's instructions."""
        if i % OFTEN == 0:
            self.flow.tick()
        key = tuple(label for label, _ in self.flow.loop.iterations[i]), self._stopped(i), self._made_inside(i, inputs)
        known = self._known.get(key)
        if known is not None:
            outside = self._same(i, inputs, results, *known[:2])
            # The first iterations may read another value where the later ones read a state.
            if outside is not None and self._reached(i, outside) == known[2]:
                return known[1], outside, known[0]
        wanted = [tensor for tensor in results if id(tensor) not in self.constants]
        chosen = _Between(self.flow, i, inputs, self.stops, self.within).operations(wanted)
        program, outside = self._cut(i, chosen, inputs, results)
        self._known[key] = chosen, program, self._reached(i, outside)
        return program, outside, chosen

    def _made_inside(self, i: int, inputs: Mapping[int, Hashable]) -> tuple[Hashable, ...]:
        """Which inputs iteration i itself makes, and where: a value inside the steps may be one at some of them only,
        and elsewhere nothing depends on it."""
        if not self.within:
            return ()
        places = ((self.flow.source.get(number), name) for number, name in inputs.items())
        return tuple((place[1], name) for place, name in places if place is not None and place[0] == i)

    def _stopped(self, i: int) -> tuple[tuple[int, ...], ...]:
        """Where iteration i reads or makes constants: the program of a step that begins after a stopped gradient is not
        that of the same operations elsewhere. For each operation the numbers of its constants, inputs before outputs.
        """
        if not self.constants:
            return ()
        return tuple(
            tuple(n for n, tensor in enumerate((*op.inputs, *op.outputs)) if id(tensor) in self.constants)
            for _, op in self.flow.loop.iterations[i]
        )

    def _reached(self, i: int, outside: Sequence[Tensor]) -> list[tuple[bool, bool]]:
        """Which tensors from outside iteration i computed from a state, and which of them are constants."""
        makers = [self.flow.made_here(tensor, i) for tensor in outside]
        return [
            (j is not None and bool(self.flow.reach[i][j]), id(tensor) in self.constants)
            for j, tensor in zip(makers, outside, strict=True)
        ]

    def _same(
        self, i: int, inputs: Mapping[int, Hashable], results: Sequence[Tensor], chosen: list[int], program: Program
    ) -> list[Tensor] | None:
        """The outside tensors where iteration i runs a known program, else None."""
        building = _Building(self.flow, inputs, self.within)
        ops = self.flow.loop.iterations[i]
        for n, j in enumerate(chosen):
            op = ops[j][1]
            if op.random is not None or op.traits.kind is Kind.DETACH or op.custom:
                return None
            if self.constants and any(id(out) in self.constants for out in op.outputs):
                return None
            leaves, _ = _leaves((*building.memory(op), *op.args), op.kwargs)
            if [building.ref(x) if isinstance(x, Tensor) else ("is", x, 0) for x in leaves] != program.instructions[
                n
            ].leaves:
                return None
            building.numbers[i, j] = n
        if [building.ref(tensor) for tensor in results] != program.results:
            return None
        same = program.signature[-1] == _shapes(building.outside)
        return building.outside if same and not self.flow.changed else None

    def _cut(
        self, i: int, chosen: list[int], inputs: Mapping[int, Hashable], results: Sequence[Tensor]
    ) -> tuple[Program, list[Tensor]]:
        building = _Building(self.flow, inputs, self.within)
        instructions: list[Instruction] = []
        signature: list[Hashable] = []
        cut = writes = False
        for j in chosen:
            op = self.flow.loop.iterations[i][j][1]
            if op.custom:
                raise Unsupported("a custom autograd function is in them")
            if is_registered(op.function):
                raise Unsupported(f"an operator that is not torch's own is in them: {op.function}")
            writes |= op.in_place
            cut |= op.traits.kind is Kind.DETACH
            instruction = _instruction(building, op, self.masks)
            building.numbers[i, j] = len(instructions)
            instructions.append(instruction)
            signature.append((op.name, id(op.function), *map(_plain, instruction.leaves)))
        if writes:
            _check_writes(self.flow, i, chosen, inputs)
        refs = [building.ref(tensor) for tensor in results]
        whole = (*signature, *map(_plain, refs), _shapes(building.outside))
        return Program(instructions, refs, whole, writes, cut), building.outside


def is_registered(function: Any) -> bool:
    """Whether a function is an operator that torch does not bring (torch.library, an extension), whose derivatives
    torch.func may have no rule for."""
    if isinstance(function, OpOverload):
        return function.namespace not in OWN
    return isinstance(function, OpOverloadPacket) and function._qualified_op_name.partition("::")[0] not in OWN


def _shapes(tensors: Sequence[Tensor]) -> tuple[Hashable, ...]:
    return tuple((tuple(tensor.shape), tensor.dtype) for tensor in tensors)


def _leaves(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], Any]:
    """(arguments as a flat list, their nesting or None)."""
    if not kwargs and not any(isinstance(x, (tuple, list, dict)) for x in args):
        return list(args), None
    leaves, spec = tree_flatten((args, kwargs))
    return leaves, spec


@dataclass(slots=True)
class _Between:
    """The operations of iteration i that lie between the inputs of a program and its results."""

    flow: Flow
    i: int
    inputs: Mapping[int, Hashable]
    stops: Collection[int]
    within: bool

    def operations(self, results: Sequence[Tensor]) -> list[int]:
        """Their numbers, in order: of those that depend on the inputs, the ones that the results depend on."""
        depending = self._depending()
        chosen: set[int] = set()
        todo = self._makers(results)
        while todo:
            j = todo.pop()
            if j in depending and j not in chosen:
                chosen.add(j)
                again = _memory(self.flow, self.i, j)  # since what was recorded has been written over
                depending.update(again)
                todo += [*self._sources(j), *again]
        return sorted(chosen)

    def _depending(self) -> set[int]:
        """The operations that an input reaches."""
        found: set[int] = set()
        for j, (_, op) in enumerate(self.flow.loop.iterations[self.i]):
            reads = any(id(given) in self.inputs for given in op.inputs)
            reads = reads or not found.isdisjoint(self._sources(j))
            reads = reads or (self.within and bool(_memory_given(op, self.inputs)))
            if reads and not op.traits.forgets:
                found.add(j)
        return found

    def _makers(self, results: Sequence[Tensor]) -> list[int]:
        """The operations that made the results, and those that wrote into them."""
        made = [self.flow.made_here(tensor, self.i) for tensor in results if id(tensor) not in self.inputs]
        end = self.i, len(self.flow.loop.iterations[self.i])
        written = [place[1] for tensor in results for place in self.flow.writers(tensor, end)]
        return [*(j for j in made if j is not None), *written]

    def _sources(self, j: int) -> list[int]:
        """The operations whose results operation j reads."""
        found = []
        for given in self.flow.loop.iterations[self.i][j][1].inputs:
            made = self.flow.made_here(given, self.i, j)
            if id(given) in self.stops or (id(given) in self.inputs and made is not None):  # an input, left unchanged
                continue
            found += [] if made is None else [made]
            found += [written[1] for written in self.flow.writers(given, (self.i, j))]
        return found


def _memory_given(op: Op, inputs: Mapping[int, Hashable]) -> tuple[Tensor, ...]:
    memory = memory_of(op)
    return () if memory is None or id(memory) not in inputs else (memory,)


def _memory(flow: Flow, i: int, j: int) -> list[int]:
    """Operations of the iteration that made the memory into which an operation writes, views of it included."""
    op = flow.loop.iterations[i][j][1]
    found: list[int] = []
    target: Tensor | None = op.target if op.in_place else None
    while target is not None:
        made = flow.made_here(target, i, j)
        if made is None:
            break
        found.append(made)
        one = flow.loop.iterations[i][made][1]
        shared = [given for given in one.inputs if storage_of(given) == storage_of(target)]
        target, j = (shared[0] if shared else None), made
    return found


def _instruction(building: _Building, op: Op, masks: list[Tensor]) -> Instruction:
    function: Callable[..., Any] = written_out().get(op.name, op.function)
    args, kwargs = op.args, op.kwargs
    if memory := building.memory(op):
        function, args = at_memory(op.outputs[1].device)[op.name], (*memory, *args)
    if op.traits.kind is Kind.FUSED:
        if not runs_again(op):
            raise Unsupported(NOT_WRITTEN_OUT)
        function = sequences_written_out()[op.name]
    if op.traits.kind is Kind.DETACH:
        function, args, kwargs = torch.Tensor.view_as, (op.inputs[0], op.inputs[0]), {}
    elif op.random is not None:
        own = masks_of(op)
        masks += own
        function, args, kwargs = (dropped_ if op.in_place else dropped), (op.inputs[0], *own), {}
    leaves, spec = _leaves(args, kwargs)
    refs: list[Ref] = [building.ref(leaf) if isinstance(leaf, Tensor) else ("is", leaf, 0) for leaf in leaves]
    return Instruction(op.name, function, spec, refs, _direct(op, leaves))


def _direct(op: Op, leaves: Sequence[Any]) -> frozenset[int]:
    """Which of an instruction's leaves reach its result elementwise."""
    if op.traits.kind in (Kind.PIECE, Kind.JOIN) and _is_all(op):
        return frozenset(k for k, leaf in enumerate(leaves) if leaf is op.inputs[0])
    numbers: dict[int, list[int]] = {}
    for n, tensor in op.operands():
        numbers.setdefault(id(tensor), []).append(n)
    entrywise = op.traits.entrywise
    return frozenset(
        k for k, leaf in enumerate(leaves)
        if isinstance(leaf, Tensor) and id(leaf) in numbers and all(n in entrywise for n in numbers[id(leaf)])
    )  # fmt: skip


def _is_all(op: Op) -> bool:
    """Whether a piece is all of a tensor (`state[0]` of one layer), or a tensor is joined with no other."""
    if len(op.inputs) != 1 or len(op.outputs) != 1 or op.inputs[0].numel() != op.outputs[0].numel():
        return False
    given, made = op.inputs[0], op.outputs[0]
    strides = [[n for n, size in zip(one.stride(), one.shape, strict=True) if size > 1] for one in (given, made)]
    return op.traits.kind is Kind.JOIN or (given.data_ptr() == made.data_ptr() and strides[0] == strides[1])


def _plain(ref: Ref) -> Hashable:
    kind, what, n = ref
    if kind != "is":
        return kind, what, n
    return kind, what if isinstance(what, (int, float, str, bool, torch.dtype, type(None))) else repr(what)


def _check_writes(flow: Flow, i: int, chosen: Sequence[int], inputs: Mapping[int, Hashable]) -> None:
    own = {storage_of(out) for j in chosen for out in flow.loop.iterations[i][j][1].outputs
           if not flow.loop.iterations[i][j][1].in_place}  # fmt: skip
    given = {storage_of(t) for j in chosen for t in flow.loop.iterations[i][j][1].inputs if id(t) in inputs}
    for j in chosen:
        op = flow.loop.iterations[i][j][1]
        if op.in_place and storage_of(op.target) not in own | given:
            raise Unsupported("the step writes into a tensor that is not its own")
