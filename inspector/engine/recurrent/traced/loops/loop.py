"""A loop: its frame and the operations of each of its iterations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import FrameType

from inspector.engine.recurrent.traced.record.op_table import Table
from inspector.engine.recurrent.traced.record.operation import Op

FEWEST = 3
"""Iterations that make a loop: the first, the last, and one that has both neighbours. Two are as often an encoder and a
decoder, or both directions. Counter-example: a sequence of two steps, or a stack of two layers, shows nothing."""

Label = int
"""An operation of the loop's body: a number for its key and its ordinal among operations with that key in its
iteration."""


class Iterations(Sequence[list[tuple[Label, Op]]]):
    """The operations of each iteration with their labels. They are computed on request."""

    def __init__(self, table: Table, numbers: list[list[int]], labels: list[list[Label]]) -> None:
        self.table, self.numbers, self.labels = table, numbers, labels
        self._known: dict[int, list[tuple[Label, Op]]] = {}

    def __len__(self) -> int:
        return len(self.numbers)

    def drop_last(self) -> None:
        """Leave the last iteration out."""
        self.numbers.pop()
        self.labels.pop()
        self._known.clear()

    def put_first(self, numbers: list[int]) -> None:
        """A further iteration before all others, with the operations of the first."""
        self.numbers.insert(0, numbers)
        self.labels.insert(0, self.labels[0])
        self._known.clear()

    def put_last(self, numbers: list[int]) -> None:
        """A further iteration after all others, with the operations of the last, or the first ones of them."""
        own = self.labels[-1]
        self.numbers.append(numbers)
        self.labels.append(own if len(numbers) == len(own) else own[: len(numbers)])
        self._known.clear()

    def __getitem__(self, i: int) -> list[tuple[Label, Op]]:  # type: ignore[override]  # never sliced
        i = range(len(self.numbers))[i]
        found = self._known.get(i)
        if found is None:
            ops = map(self.table.op, self.numbers[i])
            found = self._known[i] = list(zip(self.labels[i], ops, strict=True))
        return found


class Labelling:
    """Labels of iterations, from the keys of their operations; iterations with the same keys share one list."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, int], Label] = {}
        self._known: dict[tuple[int, ...], list[Label]] = {}

    def __call__(self, keys: tuple[int, ...]) -> list[Label]:
        """The labels of one iteration."""
        found = self._known.get(keys)
        if found is None:
            seen: Counter[int] = Counter()
            found = self._known[keys] = []
            for key in keys:
                found.append(self._numbers.setdefault((key, seen[key]), len(self._numbers)))
                seen[key] += 1
        return found


@dataclass(slots=True)
class Loop:
    """One loop: the frame in which it runs, and for each iteration the operations with their labels.

    Attributes:
        depth: True where the iterations call different modules (a stack of layers), False for the same code.
        steps: numbers of the calls that lead from a state to the next one, where the loop is shown.
    """

    frame: FrameType
    level: int
    iterations: Iterations
    depth: bool
    steps: set[int] = field(default_factory=set)


def where_of(loop: Loop) -> str:
    """ "The loop of 12 iterations in decode(), line 40": the line is that of the first call of its last iteration."""
    table, first = loop.iterations.table, loop.iterations.numbers[-1][:1]
    lines = [line for _, _, line in loop.frame.f_code.co_lines() if line is not None]
    for start, stop, line in loop.frame.f_code.co_lines():
        if line is not None and any(start <= at < stop for at in table.offsets(first, loop.level)):
            lines = [line]
    name = loop.frame.f_code.co_name
    at = f", line {lines[0]}" if lines else ""
    return f"The loop of {len(loop.iterations)} iterations in {name}(){at}"
