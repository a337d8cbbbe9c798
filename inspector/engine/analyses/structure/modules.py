"""Where a change came in: the outputs of all modules in two calls, in the order in which they returned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from inspector.engine.analyses.structure.calls import Answer, Calls, along
from inspector.engine.errors import Unsupported
from inspector.engine.hooks.module_stack import ROOT, ModuleStack
from inspector.engine.model.batch import Batch

MOST_MODULES = 256
"""Calls of modules whose outputs are compared: those that return first."""
MOST_NUMBERS = 1 << 26
"""Numbers of outputs that are held for that (256 MB of float32)."""


@dataclass(frozen=True, slots=True)
class Called:
    """One call of a module: its name, its class, and its first output along sequences and steps.

    `inputs`: what it was given, as far as that lies along sequences and steps.
    """

    name: str
    module: str
    answer: Answer
    inputs: tuple[Answer, ...]


@dataclass(frozen=True, slots=True)
class Moved:
    """How much the output of each call of a module moved where it should not, in the order in which they returned."""

    names: tuple[str, ...]
    change: tuple[float, ...]
    first: str
    """Where the change came in, in words; "" where no output of a module moved."""


def outputs(calls: Calls, batch: Batch, steps: int | None = None) -> list[Called]:
    """The outputs of all modules in one call of the subject, those over so many steps (the primary input's)."""
    found: list[Called] = []
    held = 0

    def left(module: nn.Module, args: Any, kwargs: Any, result: Any) -> None:
        nonlocal held
        if len(found) >= MOST_MODULES or held > MOST_NUMBERS:
            return
        made = _answers(result, batch, steps)
        if made:
            given = _answers((args, kwargs), batch, steps)
            held += sum(one.values.numel() for one in (made[0], *given))
            found.append(Called(stack.name(module), type(module).__name__, made[0], tuple(given)))

    stack = ModuleStack(calls.model, lambda _module: None, left)
    try:
        calls.output(batch)
    finally:
        stack.close()
    return found


def _answers(value: Any, batch: Batch, steps: int | None) -> list[Answer]:
    """The tensors of floating-point numbers in a value that have the batch's sequences and steps."""
    tensors = [one for one in tree_leaves(value) if isinstance(one, Tensor) and one.is_floating_point()]
    laid = (_laid(one.detach().cpu(), batch.size, steps or batch.steps) for one in tensors)
    return [Answer(one, steps=True) for one in laid if one is not None]


def _laid(value: Tensor, sequences: int, steps: int) -> Tensor | None:
    """(b, t, f) of a tensor (b, t, …), (t, b, …), or (b, f, t) as convolutions and batch normalisation have it."""
    found = along(value, sequences, steps)
    if found is None and value.dim() == 3 and (value.shape[0], value.shape[2]) == (sequences, steps):
        return value.mT.clone()
    return found


def moved(
    calls: Calls, before: Batch, after: Batch, pick: Callable[[Tensor], Tensor], steps: int | None = None
) -> Moved:
    """Compare the outputs of all modules for two inputs.

    `pick` takes of the (b, t) changes of an output those that should be none. A module that contains another returns
    after it, so the first in the order of returning is the innermost.
    """
    try:
        first, second = outputs(calls, before, steps), outputs(calls, after, steps)
    except Unsupported:
        return Moved((), (), "")
    pairs = list[tuple[Called, Called]]()
    for one, other in zip(first, second, strict=False):
        if one.name != other.name or one.answer.values.shape != other.answer.values.shape:
            break  # the model took another way through its modules
        pairs.append((one, other))
    return found_in(pairs, lambda a, b: _largest(pick(a.change(b))))


def found_in(
    pairs: Sequence[tuple[Called, Called]], distance: Callable[[Answer, Answer], float], slack: float = 1.0
) -> Moved:
    """What moved between two calls of each module by more than `slack` times its rounding, and where it came in.

    That is the first module whose output moved; if what it was given had moved already, the code of the module around
    it, before the call, and in a loop that calls it several times, the code between two calls.
    """
    changes = [distance(one.answer, other.answer) for one, other in pairs]
    names = [one.name for one, _ in pairs]
    first = next((n for n, (one, _) in enumerate(pairs) if changes[n] > slack * one.answer.rounding), None)
    calls = 0 if first is None else names[: first + 1].count(names[first])
    where = "" if first is None else _place(*pairs[first], calls, distance, slack)
    return Moved(_told_apart(names), tuple(changes), where)


def _place(one: Called, other: Called, calls: int, distance: Callable[[Answer, Answer], float], slack: float) -> str:
    before = [distance(a, b) > slack * a.rounding for a, b in zip(one.inputs, other.inputs, strict=False)]
    named = f"{one.name} ({one.module})"
    if not any(before):
        return named
    if calls > 1:  # earlier calls were given what had not moved
        return f"between call {calls - 1} and call {calls} of {named}"
    return f"the code of {one.name.rpartition('.')[0] or ROOT}, before {named}"


def _largest(change: Tensor) -> float:
    return float(change.max()) if change.numel() else 0.0


def _told_apart(names: list[str]) -> tuple[str, ...]:
    """Further calls of a module are numbered."""
    seen: dict[str, int] = {}
    told = list[str]()
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        told.append(name if seen[name] == 1 else f"{name} (call {seen[name]})")
    return tuple(told)


def largest(change: Tensor) -> tuple[float, int, int]:
    """(value, sequence or changed position, step) of the largest entry of a matrix."""
    at = int(torch.argmax(change))
    return float(change.flatten()[at]), at // change.shape[1], at % change.shape[1]
