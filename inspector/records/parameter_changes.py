"""How the parameters of two checkpoints differ: the request to the worker that reads both, and its answer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareCheckpoints:
    """Compare two checkpoint files or folders, tensor by tensor. No model is opened and nothing is unpickled."""

    first: str
    second: str
    generation: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterChange:
    """One tensor of two checkpoints.

    Attributes:
        first, second: its Frobenius norm on each side; change: the norm of second minus first, NaN where only norms are
            known; relative: change by first (infinite where first is 0 and change is not).
        largest: the largest size of a single difference; elements: how many there are.
        problem: why it is not compared: it is on one side only, or of another shape.
    """

    name: str
    shape: tuple[int, ...] = ()
    elements: int = 0
    first: float = 0.0
    second: float = 0.0
    change: float = 0.0
    relative: float = 0.0
    largest: float = 0.0
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterChanges:
    """The answer to CompareCheckpoints: the tensors that changed most come first, those with a problem last.

    `steps`: the training step that each file tells, -1 where it does not; `left_out`: how many tensors are not listed.
    """

    first: str
    second: str
    changes: tuple[ParameterChange, ...] = ()
    steps: tuple[int, ...] = (-1, -1)
    left_out: int = 0
    generation: int = 0
