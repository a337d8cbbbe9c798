"""The table of operators: name → how it is said in torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from inspector.engine.programs.onnx.operands import Calls, Operand, Operator

Translation = Callable[[Calls, Operator, list[Operand | None]], Any]
TABLE: dict[str, Translation] = {}
"""(how torch is called, the operator, its inputs, None where one is left out) → its result, or a tuple of several."""


def operator(*names: str) -> Callable[[Translation], Translation]:
    """Decorator: enter a translation under the names of operators."""

    def enter(function: Translation) -> Translation:
        for name in names:
            TABLE[name] = function
        return function

    return enter


def first(inputs: list[Operand | None]) -> Operand:
    """The first input, which every operator here needs."""
    one = inputs[0]
    assert one is not None
    return one


def at(inputs: list[Operand | None], number: int) -> Operand | None:
    """An input that may be left out."""
    return inputs[number] if number < len(inputs) else None
