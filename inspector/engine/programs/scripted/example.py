"""What a scripted program reads: nothing in it says so, so that inputs are tried until it runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any

import torch
from torch import Tensor

from inspector.engine.errors import InputError
from inspector.engine.programs.signature import ANY, STEPS, Given, Size

MOST_TRIALS = 128
STATES = ("h", "c", "hx", "cx", "h0", "c0", "h_0", "c_0", "hidden", "state", "cell", "memory")
"""Names of inputs that are states before the first step: (1, 1, h)."""
NOT_FOUND = (
    "{} runs neither on token ids (1 × 12) nor on vectors of {} numbers (1 × 12 × …); it was {}. Wrap it in a "
    "callable of your own that says what it reads: file.py:callable."
)


def examples_of(scripted: Any, name: str, arguments: Mapping[str, Any]) -> Iterator[list[Given]]:
    """Inputs that the program runs on, the likeliest first. Raises InputError where there are none.

    The first need not be right: the operator behind nn.LSTM takes states of any size, and reads beyond them.
    """
    needed = [one for one in scripted.forward.schema.arguments[1:] if not one.has_default_value()]
    weights = [*scripted.parameters(), *scripted.buffers()]
    dtype = next((one.dtype for one in weights if one.is_floating_point()), torch.float32)
    widths = _widths([tuple(one.shape) for one in weights if one.dim() >= 2])
    kinds = [list(_kinds(one.name, widths, str(arguments.get("kind", "")))) for one in needed]
    found = False
    why = "not run at all: it reads nothing"
    for tried in islice(product(*kinds), MOST_TRIALS):
        values = [_value(shape, dtype) for shape in tried]
        try:
            with torch.no_grad():
                scripted(*values)
        except Exception as problem:  # noqa: BLE001 - a program may raise anything on inputs that are not its own
            why = f"stopped by {_in_short(problem)}"
            continue
        found = True
        yield [_given(one.name, value) for one, value in zip(needed, values, strict=True)]
    if not found:
        raise InputError(NOT_FOUND.format(name, " or ".join(map(str, widths)) or "any", why.rstrip(".")))


def _widths(shapes: Sequence[tuple[int, ...]]) -> list[int]:
    """How many numbers a step may have: as many as a weight reads, or what is left beside a state as wide as the
    weight's gates, since cells written by hand read both in one vector."""
    read = [shape[n] for n in (-1, 1) for shape in shapes]
    left = [
        shape[1] - shape[0] // gates
        for shape in shapes
        if len(shape) == 2
        for gates in (1, 4, 3, 2)
        if shape[0] % gates == 0 and shape[1] > shape[0] // gates
    ]
    return [*dict.fromkeys(read)][:12] + [one for one in dict.fromkeys(left) if one not in read][:12]


def _in_short(problem: Exception) -> str:
    """What the program's own error says, without the code that TorchScript prints above it."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()] or [type(problem).__name__]
    said = next((line for line in reversed(lines) if "Error: " in line), lines[-1])
    return said if len(said) <= 160 else f"{said[:160]}…"


def _kinds(name: str, widths: list[int], asked: str) -> Iterator[tuple[int, ...]]:
    """Shapes: (1, t) ids, (1, t, i) vectors, (1, 1, h) states."""
    if name.lower() in STATES:
        yield from ((1, 1, width) for width in widths)
        return
    if asked != "vectors":
        yield 1, STEPS
    if asked != "tokens":
        yield from ((1, STEPS, width) for width in widths)


def _value(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    if len(shape) == 2:
        return torch.arange(STEPS)[None] % 2
    return torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(dtype)


def _given(name: str, value: Tensor) -> Given:
    sizes = [ANY] * value.dim()
    if value.dim() == 3:
        sizes[:2] = [Size(1, 1)] * 2 if value.shape[1] == 1 else sizes[:2]
        sizes[2] = Size(value.shape[2], value.shape[2])
    return Given(name if name.isidentifier() else "x", tuple(sizes), value.dtype, value)
