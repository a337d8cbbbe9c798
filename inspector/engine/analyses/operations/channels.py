"""What was recorded of operations as channels of the place "operations".

Texts are whole numbers into label domains; shapes and dtypes belong to values, of which equal ones are stored once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from inspector.engine.analyses.fingerprints import NUMBERS
from inspector.engine.analyses.operations.recorder import INPUTS, MOST, OUTPUTS, OperationRecorder
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe
from inspector.records import OPERATIONS, Log

ABOUT = Describe(
    kind="operations", compare="separate", title="operations", formula="what each tensor operation read and made",
    method="below autograd, in the order in which they ran; views are left out",
)  # fmt: skip
RESPONSE = Describe(
    kind="operations", compare="separate", title="response to rounding", scale="log",
    formula="‖f(x̃) − f(x)‖₂, each entry of x̃ one unit of rounding from that of x", source="as in CESTAC, Vignes 1974",
    method="the operation run once more; NaN where it cannot be",
)  # fmt: skip
FINGERPRINT = Describe(
    kind="operations", compare="separate", title="fingerprints", formula="Σ_i ±x_i with fixed signs, in float64",
    source="Alon, Matias & Szegedy 1996", labels={"number": NUMBERS},
)  # fmt: skip


def write(recorded: OperationRecorder, emit: Emitter) -> None:
    """Write everything. Nothing where nothing was recorded."""
    operations, values = recorded.operations, recorded.values
    if recorded.full:
        emit.sink.write(Log(f"The first {MOST:,} operations are recorded; the model makes more.", "warning", "engine"))
    if recorded.broken:
        said = f"Recording operations ended after {len(operations):,} ({recorded.broken})."
        emit.sink.write(Log(said, "warning", "engine"))
    if not operations:
        return
    for word in ("name", "line", "module", "node", "arguments"):
        _texts(word, [getattr(one, word) for one in operations], "operation", emit)
    _rows("random", [[int(one.random)] for one in operations], 1, emit)
    _rows("inputs", [one.inputs for one in operations], INPUTS, emit)
    _rows("outputs", [one.outputs for one in operations], OUTPUTS, emit)
    _sources([one.sources for one in operations], emit)
    table = np.full((len(operations), OUTPUTS), np.nan)
    for n, one in enumerate(operations):
        table[n, : len(one.response)] = one.response
    emit.array(_channel(RESPONSE, "response", ("operation", "output"), table.shape, "float64"), table)
    emit.array(_channel(ABOUT, "bits", ("value",), (len(values.bits),), "uint64"), np.array(values.bits, np.uint64))
    _texts("shape", ["×".join(map(str, shape)) for shape in values.shapes], "value", emit)
    _texts("dtype", values.dtypes, "value", emit)
    numbers = np.stack(values.numbers)
    emit.array(_channel(FINGERPRINT, "fingerprint", ("value", "number"), numbers.shape, "float64"), numbers)
    emit.labels(f"{OPERATIONS} torch", (torch.__version__,))


def _channel(about: Describe, word: str, dims: tuple[str, ...], shape: Sequence[int], dtype: str, **more: Any) -> Any:
    return about.channel(f"{OPERATIONS}:{word}", dims, tuple(shape), dtype, **more)


def _texts(word: str, texts: Sequence[str], dim: str, emit: Emitter) -> None:
    """Texts as numbers into the domain of their word."""
    number = _numbered(word, emit, texts)
    channel = _channel(ABOUT, word, (dim,), (len(texts),), "int32", value_domain=_domain(word))
    emit.array(channel, np.array([number(text) for text in texts], np.int32))


def _numbered(word: str, emit: Emitter, texts: Sequence[str]) -> Callable[[str], int]:
    names = {text: n for n, text in enumerate(dict.fromkeys(texts))}
    emit.labels(_domain(word), tuple(names))
    return names.__getitem__


def _domain(word: str) -> str:
    return f"{OPERATIONS} {word}"


def _rows(word: str, rows: Sequence[Sequence[int]], width: int, emit: Emitter) -> None:
    """Whole numbers, −1 where a row has fewer."""
    table = np.full((len(rows), width), -1, np.int32)
    for n, row in enumerate(rows):
        table[n, : len(row)] = row
    emit.array(_channel(ABOUT, word, ("operation", "slot"), table.shape, "int32"), table)


def _sources(rows: Sequence[Sequence[int | str]], emit: Emitter) -> None:
    """Of each input: the number of an operation, or −1 − n for name n."""
    names = ["", *dict.fromkeys(one for row in rows for one in row if isinstance(one, str) and one)]
    number = {name: -1 - n for n, name in enumerate(names)}
    emit.labels(_domain("source"), tuple(names))
    _rows("sources", [[one if isinstance(one, int) else number[one] for one in row] for row in rows], INPUTS, emit)
