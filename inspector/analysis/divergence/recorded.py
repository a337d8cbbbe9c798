"""Operations as they were recorded, read from a view; and two fingerprints compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture.layout import CaptureError
from inspector.capture.view import View
from inspector.records import OPERATIONS

FIRST_PROJECTION = 5
"""Numbers of a fingerprint before its projections: not finite, sum, norm, sum of sizes, largest."""
Floats = npt.NDArray[np.float64]
TEXTS = ("name", "line", "module", "node", "arguments")
EXACT = 1e-12
"""Sums of the same numbers in float64 in another order agree to this."""


@dataclass(frozen=True, slots=True)
class Value:
    """What one tensor held."""

    bits: int
    shape: str
    dtype: str
    numbers: Floats

    @property
    def norm(self) -> float:
        """‖x‖₂ of its finite entries."""
        return float(self.numbers[2])

    @property
    def entries(self) -> int:
        """How many there are."""
        return int(np.prod([int(n) for n in self.shape.split("×")])) if self.shape else 1

    @property
    def floating(self) -> bool:
        """Whether its numbers are rounded."""
        return "float" in self.dtype or "complex" in self.dtype


@dataclass(frozen=True, slots=True)
class Made:
    """One operation. `sources` of each input: the number of the operation that wrote it, or the name of what was there
    before."""

    number: int
    name: str
    line: str
    module: str
    node: str
    arguments: str
    random: bool
    inputs: tuple[Value, ...]
    sources: tuple[int | str, ...]
    outputs: tuple[Value, ...]
    response: tuple[float, ...]

    @property
    def key(self) -> tuple[str, ...]:
        """What says that two operations of two runs may be the same one. Not the line: a change in it is what is looked
        for."""
        return self.name, self.module, self.node

    @property
    def text(self) -> tuple[str, ...]:
        """The same with the text of the line; not its number, which a change above moves."""
        return *self.key, self.line.partition(": ")[2]

    @property
    def where(self) -> str:
        """For a sentence: the operation, the module, the line."""
        how = f"{self.name}, in the backward pass" if self.node else self.name
        module = f" in {self.module}" if self.module and self.module != "model" else ""
        return f"{how}{module}" + (f" ({self.line})" if self.line else "")


def operations_of(view: View, frame: int = -1) -> list[Made]:
    """All operations that were recorded in a frame, in order; none where none were. Raises CaptureError, also where
    tables do not fit each other."""
    if f"{OPERATIONS}:name" not in view.channels or not view.revision(f"{OPERATIONS}:name", frame):
        return []
    try:
        return _read(view, frame)
    except (IndexError, KeyError, ValueError, TypeError):
        raise CaptureError(
            f"What {view.start.title} has of operations is not whole, so it cannot be compared."
        ) from None


def _read(view: View, frame: int) -> list[Made]:

    def array(word: str) -> npt.NDArray[Any]:
        numbers = view.array(f"{OPERATIONS}:{word}", frame)
        if not view.known(f"{OPERATIONS}:{word}", frame).all():
            raise ValueError(f"{word} is damaged or was not written to its end")
        return np.ma.getdata(numbers)

    def texts(word: str) -> list[str]:
        names = view.labels(f"{OPERATIONS} {word}", frame)
        return [names[n] for n in array(word).tolist()]

    columns = zip(
        array("bits").tolist(), texts("shape"), texts("dtype"), array("fingerprint").astype(np.float64), strict=True
    )  # fmt: skip
    values = [Value(*row) for row in columns]
    if any(value.entries < 0 for value in values):
        raise ValueError("a shape is negative")
    names = view.labels(f"{OPERATIONS} source", frame)
    rows = list(zip(*(texts(word) for word in TEXTS), strict=True))
    tables = [array(word) for word in ("random", "inputs", "sources", "outputs", "response")]
    return [_made(n, row, [table[n] for table in tables], values, names) for n, row in enumerate(rows)]


def _made(
    n: int, texts: Sequence[str], row: list[npt.NDArray[Any]], values: Sequence[Value], names: Sequence[str]
) -> Made:
    random, inputs, sources, outputs, response = (one.tolist() for one in row)
    read = [i for i in inputs if i >= 0]
    made = [o for o in outputs if o >= 0]
    told = dict(zip(TEXTS, texts, strict=True))
    return Made(
        number=n, name=told["name"], line=told["line"], module=told["module"], node=told["node"],
        arguments=told["arguments"], random=bool(random[0]), inputs=tuple(values[i] for i in read),
        sources=tuple(s if s >= 0 else names[-1 - s] for s in sources[: len(read)]),
        outputs=tuple(values[o] for o in made), response=tuple(response[: len(made)]),
    )  # fmt: skip


def distance(a: Value, b: Value) -> float:
    """‖a − b‖₂, estimated from the fingerprints: 0 where the bits are equal, infinite where shapes, or the numbers of
    entries that are not finite, differ."""
    if a.bits == b.bits:
        return 0.0
    if a.shape != b.shape or a.numbers[0] != b.numbers[0]:
        return float("inf")
    change = a.numbers[FIRST_PROJECTION:] - b.numbers[FIRST_PROJECTION:]
    return float(np.sqrt(np.mean(np.square(change))))


def rearranged(a: Value, b: Value) -> bool:
    """Whether both seem to hold the same entries in another order: sums that do not depend on it agree."""
    if a.shape != b.shape or distance(a, b) <= EXACT * max(a.norm, b.norm):
        return False
    one, other = a.numbers[:FIRST_PROJECTION], b.numbers[:FIRST_PROJECTION]
    return bool(np.all(np.abs(one - other) <= EXACT * np.maximum(1e-300, np.maximum(a.numbers[3], np.abs(one)))))
