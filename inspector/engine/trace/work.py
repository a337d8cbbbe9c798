"""How much work a quantity is, counted before it is done from the sizes of what was recorded, kind by kind.

A `Work` says what is done: multiplications of products, numbers that elementwise operations go through, factorisations
by the size of the matrix, and calls of torch. engine/session/rates.py has the seconds that each kind takes here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from inspector.engine.trace.findings import Findings
from inspector.engine.trace.trace import Recurrence, Trace

Factorisation = Literal["eigenvalues", "symmetric", "singular", "triangular", "solved"]
"""Eigenvalues of any and of a symmetric matrix, singular values, QR, LU with its solutions (or a determinant)."""
CHEAP_ORDER = 50
"""Quantities of a smaller `order` that declare no work are a few passes over what was recorded."""
BLOCK = 64
"""Steps of a block, whose operations are calls of their own."""
BUILT_NUMBERS, BUILT_CALLS = 19.0, 60.0
"""Numbers, for every entry of a Jacobian, that elementwise derivatives of a recorded step go through where it is built
row by row, and calls a block: as counted of a gated step. A step of many more operations takes longer."""


@dataclass(frozen=True, slots=True)
class Work:
    """What is done, each kind counted by itself.

    Attributes:
        products: multiplications of products of float32 matrices.
        wide: of products of float64 matrices.
        numbers: that elementwise operations, sums and copies go through, or products of one vector with a large matrix.
        calls: of torch, however small their tensors.
        factors: {(kind, n): how many factorisations of an n × n matrix}.
    """

    products: float = 0.0
    wide: float = 0.0
    numbers: float = 0.0
    calls: float = 0.0
    factors: Mapping[tuple[Factorisation, int], float] = field(default_factory=dict)

    def __add__(self, other: Work) -> Work:
        factors = Counter(self.factors)
        factors.update(other.factors)
        return Work(
            self.products + other.products, self.wide + other.wide, self.numbers + other.numbers,
            self.calls + other.calls, factors,
        )  # fmt: skip

    def __mul__(self, times: float) -> Work:
        factors = {key: times * count for key, count in self.factors.items()}
        return Work(times * self.products, times * self.wide, times * self.numbers, times * self.calls, factors)

    def __bool__(self) -> bool:
        return bool(self.products or self.wide or self.numbers or self.calls or any(self.factors.values()))


NONE = Work()


@dataclass(frozen=True, slots=True)
class Size:
    """The sizes of one recurrence.

    Attributes:
        steps: of the sample that is shown.
        state: entries of the whole state.
        row: multiplications that pull one gradient through one step, with what its parameters need.
        built: whether there is no closed form, so that each Jacobian is built row by row.
        kept: whether the Jacobians of all steps are kept once they are built.
        known: whether they were built and kept by now.
        parameters: numbers of all its parameters.
        units: entries of the part of the state that the rest of the model sees.
        weights: the square matrices through which the state is fed back.
        beside: entries of the largest other part of the state, which may be a memory; 0 where there is one part.
        diagonal: whether the eigenvalues of every Jacobian are known in closed form.
    """

    steps: int
    state: int
    row: float
    built: bool = False
    kept: bool = False
    known: bool = False
    parameters: int = 0
    units: int = 0
    weights: tuple[int, ...] = ()
    beside: int = 0
    diagonal: bool = False

    @property
    def entries(self) -> float:
        """Of one Jacobian."""
        return float(self.state) ** 2

    @property
    def entrywise(self) -> Work:
        """Of a few passes over the entries of all states."""
        return Work(numbers=8.0 * self.steps * self.state, calls=20.0 * self.blocks())

    @property
    def push(self) -> float:
        """Multiplications of one Jacobian with one vector."""
        return self.entries if self.built else float(self.row)

    @property
    def dense(self) -> float:
        """The same without the columns that are diagonal: of a memory that gates carry over."""
        return self.entries if self.built else float(self.state) * (self.units or self.state)

    @property
    def building(self) -> Work:
        """Of the Jacobians of all steps, where no closed form gives them."""
        if not self.built or self.known:
            return NONE
        rows = self.steps * float(self.state)
        one = max(0.0, self.row - self.entries) or float(self.parameters)
        return Work(rows * one, numbers=BUILT_NUMBERS * rows * self.state, calls=BUILT_CALLS * self.blocks())

    def blocks(self, size: int = BLOCK) -> int:
        """Blocks of so many steps."""
        return -(-self.steps // size)

    def matrices(self, kind: Factorisation, count: float, passes: float = 10.0, calls: float = 60.0) -> Work:
        """So many of the Jacobians are built, converted, and factorised."""
        numbers = passes * count * self.entries
        return Work(numbers=numbers, calls=calls * self.blocks(), factors={(kind, self.state): count})


@dataclass(frozen=True, slots=True)
class RunSize:
    """The sizes of a run: of its recurrences, and the work of one call of the whole model; `findings` are those of its
    trace, for quantities that have nothing to do without one."""

    recurrences: tuple[Size, ...]
    call: Work
    steps: int
    findings: Findings = field(default_factory=Findings)


OfRecurrence = Callable[[Size], Work]
OfRun = Callable[[RunSize], Work]


def over_each(work: OfRecurrence | None) -> OfRun | None:
    """The work of a quantity of each recurrence whose state has numbers, for the whole run."""
    return None if work is None else lambda run: total(work(one) for one in run.recurrences if one.state)


def total(works: Iterable[Work]) -> Work:
    """The sum."""
    return sum(works, start=NONE)


def building(run: RunSize, *, kept: bool) -> Work:
    """Of all Jacobians that are to be built row by row, of recurrences that keep them or of those that do not."""
    return total(one.building for one in run.recurrences if one.kept == kept)


CALLS_OF_A_STEP = 8.0
"""Of one step of a model in Python."""


def run_size(trace: Trace) -> RunSize:
    """The sizes of a run that was recorded. A parameter is taken to be multiplied once in every step of every sample.

    Counter-example: an embedding is only looked up, so that a model with a large vocabulary counts for too much.
    """
    sizes = tuple(_size(one, trace.look_at) for one in trace.recurrences if one.length(trace.look_at))
    numbers = sum(value.numel() for value in trace.subject.model.parameters())
    steps = trace.batch.steps
    return RunSize(
        sizes, Work(float(numbers) * steps * trace.batch.size, calls=CALLS_OF_A_STEP * steps), steps, trace.findings
    )


def _size(recurrence: Recurrence, sample: int) -> Size:
    cell = recurrence.cell
    numbers = sum(value.numel() for value in cell.parameters().values())
    part = cell.parts[cell.main]
    weights = tuple(len(one.matrix) for one in cell.recurrent_weights())
    beside = max((p.stop - p.start for name, p in cell.parts.items() if name != cell.main), default=0)
    return Size(
        recurrence.length(sample), cell.state_size, cell.row_cost(), bool(cell.method), recurrence.keeps(sample),
        recurrence.built(sample), numbers, part.stop - part.start, weights, beside, cell.diagonal,
    )  # fmt: skip
