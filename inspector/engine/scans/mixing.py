"""Stretches of a recorded run in which values of different steps are mixed without a loop over the steps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from inspector.engine.recurrent.traced.record.op_table import Table
from inspector.engine.recurrent.traced.record.operation import Call, given_to, name_of, results_of

FEWEST = 4
"""Steps. Counter-example: a scan over three steps is not looked for; its equations would hold for many other values."""
AFTER = 32
"""Operations after the last one that mixes steps among which h is looked for."""
APART = 512
"""Operations of one module between two that mix the same number of steps and belong to one stretch: a scan by halves of
a thousand steps has some three hundred."""
RUNNING = frozenset({"cumsum", "cumprod", "logcumsumexp", "cumsum_", "cumprod_"})
INVERSE = frozenset({"fft_irfft", "fft_ifft"})
SLICES = frozenset({"__getitem__", "narrow", "slice"})
JOINED = frozenset({"stack", "cat", "concat", "concatenate"})
LOOKED_AT = RUNNING | INVERSE | SLICES | JOINED


@dataclass(slots=True)
class Stretch:
    """The operations of a module that mix `steps` positions, by their numbers, and by how many some of them shift."""

    steps: int
    owner: Any
    calls: list[int]
    shifts: set[int] = field(default_factory=set)
    kinds: set[str] = field(default_factory=set)

    @property
    def mixes(self) -> bool:
        """Whether it may be a scan: a shift alone is a difference or a convolution of width two."""
        return len(self.shifts) >= 2 or bool(self.kinds - {"shifted"})

    @property
    def making(self) -> range:
        """The numbers of the operations that may make its states."""
        return range(self.calls[0], self.calls[-1] + AFTER + 1)


def stretches(table: Table, lengths: Collection[int]) -> list[Stretch]:
    """The stretches of a run in their order. `lengths`: numbers of steps that sequences of this run have."""
    found: list[Stretch] = []
    wanted = {length + more for length in lengths for more in (0, 1) if length >= FEWEST}
    for n in calls_named(table, LOOKED_AT.__contains__):
        call = table.calls[n]
        for steps, kind, shift in _mixed(call, name_of(call[0]), wanted):
            own = _stretch_of(found, n, steps, table.op(n).owner)
            own.kinds.add(kind)
            if shift:
                own.shifts.add(shift)
    return [one for one in found if one.mixes]


def calls_named(table: Table, wanted: Callable[[str], bool]) -> list[int]:
    """The numbers of the calls of functions whose name is wanted."""
    known: dict[int, bool] = {}
    found = []
    for n, call in enumerate(table.calls):
        number = id(call[0])
        if number not in known:
            known[number] = wanted(name_of(call[0]))
        if known[number]:
            found.append(n)
    return found


def _stretch_of(found: list[Stretch], n: int, steps: int, owner: Any) -> Stretch:
    near = (
        one for one in reversed(found)
        if one.owner is owner and abs(one.steps - steps) <= 1 and n - one.calls[-1] <= APART
    )  # fmt: skip
    own = next(near, None)
    if own is None:
        own = Stretch(steps, owner, [])
        found.append(own)
    own.calls.append(n)
    own.steps = min(own.steps, steps)
    return own


def _mixed(call: Call, name: str, lengths: set[int]) -> Iterator[tuple[int, str, int]]:
    """(steps, kind, shift) where a call mixes steps."""
    if name in RUNNING:
        yield from _running(call, lengths)
    elif name in INVERSE:
        size = max((size for one in given_to(call) for size in one.shape), default=0)
        out = results_of(call[3])
        own = [length for length in sorted(lengths) if out and length <= max(out[0].shape) and size > 1]
        yield from ((length, "transform", 0) for length in own[:1])
    elif name in SLICES:
        yield from _shifted(call, lengths)
    elif name in JOINED and call[1] and isinstance(call[1][0], (list, tuple)) and len(call[1][0]) in lengths:
        yield len(call[1][0]), "joined", 0


def _running(call: Call, lengths: set[int]) -> Iterator[tuple[int, str, int]]:
    (first, *rest), named = call[1] or (call[3],), call[2] or {}
    dim: Any = named.get("dim", rest[0] if rest else named.get("axis", -1))
    if isinstance(first, Tensor) and isinstance(dim, int) and _numbers(first) and first.dim() > 1:
        steps = int(first.shape[dim])
        if steps in lengths:
            yield steps, "running", 0


def _shifted(call: Call, lengths: set[int]) -> Iterator[tuple[int, str, int]]:
    """A part of the axis of the steps: all but some at one end, or every other one."""
    source, out = call[1][0], call[3]
    if not (isinstance(source, Tensor) and isinstance(out, Tensor) and out.dim() == source.dim() and _numbers(source)):
        return
    changed = [n for n, (before, after) in enumerate(zip(source.shape, out.shape, strict=True)) if before != after]
    if len(changed) != 1 or source.shape[changed[0]] not in lengths or not out.shape[changed[0]]:
        return
    steps, left = source.shape[changed[0]], out.shape[changed[0]]
    halved = left > 1 and out.stride(changed[0]) == 2 * source.stride(changed[0])
    yield steps, "halved" if halved else "shifted", 0 if halved else steps - left


def _numbers(tensor: Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()
