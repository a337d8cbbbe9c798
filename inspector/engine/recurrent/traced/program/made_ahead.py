"""Values that a loop's steps read and that were computed from parameters before it."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence

from torch import Tensor

from inspector.engine.recurrent.traced.loops.carried_state import Flow, Slot
from inspector.engine.recurrent.traced.record.gate_names import argument
from inspector.engine.recurrent.traced.record.source_names import assigned

MOST_CALLS = 2000
"""Calls before the loop through which one value is followed back to parameters. Counter-example: one that a network of
more operations makes is not named."""
MOST_NAMES = 4


ALONE = "the steps themselves use no parameter, so there is no gradient to itemise"
BESIDE = "the steps do not use these parameters themselves, so they have no items"


def made_ahead(flow: Flow, state: Sequence[Slot], names: Mapping[int, str], so: str = ALONE) -> str:
    """A sentence that names the variables, in the user's code, and the parameters they were computed from; "" where
    the steps read no such value. `names`: id of a weight that has items where steps read it → its name."""
    variables: dict[str, None] = {}
    parameters: dict[str, None] = {}
    for tensor in _given(flow, state):
        call = flow.twins.table.maker(id(tensor))
        own = [] if id(tensor) in names else list(_parameters(flow, tensor, names))
        if not own or call is None:
            continue
        op = flow.twins.table.op(call)
        found, _ = assigned(op.chain)
        number = op.output(tensor)
        variables[(found[number if len(found) > number else 0] if found else "") or argument(op.chain) or op.name] = (
            None
        )
        parameters |= dict.fromkeys(own)
    if not variables:
        return ""
    verb = "is" if len(variables) == 1 else "are"
    return f"{_listed(list(variables))} {verb} computed before the loop from {_listed(list(parameters))}; {so}."


def weights_ahead(flow: Flow, state: Sequence[Slot], names: Mapping[int, str], given: Container[int]) -> dict[int, str]:
    """Weights that the steps read and that were computed before the loop from parameters alone, by id: dropout of a
    weight, a normalised one. Each has the variable's name, or that of its parameter and operation ("W.dropout").

    `names`: id of a parameter → its name; `given`: ids of the model's inputs. What depends on them is no weight.
    """
    found: dict[int, str] = {}
    for tensor in _given(flow, state) if names else ():
        call = flow.twins.table.maker(id(tensor))
        if call is None or id(tensor) in names or not tensor.requires_grad:
            continue
        own = _only_parameters(flow, tensor, names, given)
        if own:
            op = flow.twins.table.op(call)
            assigned_to, whole = assigned(op.chain)
            name = assigned_to[op.output(tensor)] if whole and len(assigned_to) == len(op.outputs) else ""
            taken = {*names.values(), *(one.rpartition(".")[2] for one in names.values()), *found.values(), ""}
            name = f"{own[0]}.{op.operator.traits.name or op.name}" if name in taken else name
            while name in taken:
                name += "'"
            found[id(tensor)] = name
    return found


def _only_parameters(flow: Flow, tensor: Tensor, names: Mapping[int, str], given: Container[int]) -> list[str]:
    """The parameters that a tensor was computed from; none where an input or something unknown is among its origins."""
    table, waiting, seen = flow.twins.table, [tensor], {id(tensor)}
    found: dict[str, None] = {}
    while waiting:
        one = waiting.pop()
        call = None if id(one) in names else table.maker(id(one))
        if id(one) in names:
            found[names[id(one)]] = None
        elif id(one) in given or len(seen) > MOST_CALLS or (call is None and one.requires_grad):
            return []
        elif call is not None:
            new = [other for other in table.op(call).inputs if id(other) not in seen]
            seen |= set(map(id, new))
            waiting += new
    return list(found)


def _listed(names: list[str]) -> str:
    return ", ".join(names[:MOST_NAMES]) + (" and others" if len(names) > MOST_NAMES else "")


def _given(flow: Flow, state: Sequence[Slot]) -> list[Tensor]:
    """Tensors from outside the loop that the operations read that lead to the state, in the first two iterations; the
    state before the first step is none of them."""
    found: dict[int, Tensor] = {}
    first = {id(slot.values[0]) for slot in state}
    for i in range(min(2, len(flow.loop.iterations))):
        ops = flow.loop.iterations[i]
        wanted = [slot.made[i] for slot in state]
        seen: set[int] = set()
        while wanted:
            j = wanted.pop()
            if j in seen or j < 0:
                continue
            seen.add(j)
            for tensor in ops[j][1].inputs:
                made = flow.made_here(tensor, i, j)
                if made is not None:
                    wanted.append(made)
                elif _from_outside(flow, tensor, first):
                    found[id(tensor)] = tensor
    return list(found.values())


def _from_outside(flow: Flow, tensor: Tensor, first: set[int]) -> bool:
    return flow.source.get(id(tensor)) is None and id(tensor) not in first and tensor.is_floating_point()


def _parameters(flow: Flow, tensor: Tensor, names: Mapping[int, str]) -> Iterator[str]:
    """Names of the parameters from which a tensor was computed, one after the other."""
    table, waiting, seen = flow.twins.table, [tensor], {id(tensor)}
    while waiting and len(seen) < MOST_CALLS:
        one = waiting.pop()
        if id(one) in names:
            yield names[id(one)]
            continue
        call = table.maker(id(one))
        if call is None:
            continue
        for given in table.op(call).inputs:
            if id(given) not in seen:
                seen.add(id(given))
                waiting.append(given)
