"""TensorFlow's TensorProto as numbers, in both of its encodings: raw bytes, and a list of values by type."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture.logs.wire import (
    BadMessageError,
    fields,
    fixed_numbers,
    signed,
    text,
    varint_numbers,
)  # fmt: skip

MOST = 1 << 20
"""Numbers of the largest tensor that is decoded."""
STRING, BFLOAT16, HALF = 7, 14, 19
DTYPES = {
    1: "<f4", 2: "<f8", 3: "<i4", 4: "<u1", 5: "<i2", 6: "<i1", 9: "<i8", 10: "|b1", BFLOAT16: "<u2", 17: "<u2",
    HALF: "<f2", 22: "<u4", 23: "<u8",
}  # fmt: skip
"""TensorFlow's number of a type, and its elements in `tensor_content`."""
FIXED = {1: (5, "<f4"), 2: (6, "<f8")}
VARINTS = {3: 7, 4: 7, 5: 7, 6: 7, 17: 7, 9: 10, 10: 11, 22: 16, 23: 17, HALF: 13, BFLOAT16: 13}
"""The field that holds the values of a type."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """Numbers (flat) and their shape, or the first string; `numbers` is None for what is neither."""

    shape: tuple[int, ...]
    numbers: npt.NDArray[np.float64] | None
    words: str = ""


def tensor_of(data: bytes, first: int, stop: int) -> Tensor:
    """The tensor in some bytes. Raises BadMessageError."""
    found: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    dtype = 0
    shape: tuple[int, ...] = ()
    for number, kind, at, end in fields(data, first, stop):
        if number == 1 and kind == 0:
            dtype = at
        elif number == 2 and kind == 2:
            shape = _shape(data, at, end)
        else:
            found[number].append((kind, at, end))
    if dtype == STRING:
        words = text(data, *found[8][0][1:]) if found[8] else ""
        return Tensor(shape, None, words)
    numbers = _numbers(data, dtype, found)
    count = int(np.prod(shape, dtype=object)) if shape else 1
    if numbers is not None and 0 < len(numbers) < count <= MOST:
        numbers = np.concatenate((numbers, np.full(count - len(numbers), numbers[-1])))  # the last one is repeated
    return Tensor(shape, numbers)


def _shape(data: bytes, first: int, stop: int) -> tuple[int, ...]:
    lengths = []
    for number, _, at, end in fields(data, first, stop):
        if number == 2 and end:
            sizes = [signed(value) for inner, kind, value, _ in fields(data, at, end) if (inner, kind) == (1, 0)]
            lengths.append(sizes[-1] if sizes else 0)
    if len(lengths) > 8 or any(length < 0 for length in lengths):
        raise BadMessageError("a tensor has an impossible shape")
    return tuple(lengths)


def _numbers(data: bytes, dtype: int, found: dict[int, list[tuple[int, int, int]]]) -> npt.NDArray[np.float64] | None:
    if dtype not in DTYPES:
        return None
    raw: npt.NDArray[Any]
    if found[4]:
        raw = fixed_numbers(data, found[4][-1:], DTYPES[dtype])[:MOST]
    elif dtype in FIXED:
        field, kind = FIXED[dtype]
        raw = fixed_numbers(data, found[field], kind)[:MOST]
    else:
        values = varint_numbers(data, found[VARINTS[dtype]], MOST)
        if dtype in (HALF, BFLOAT16):
            raw = np.array([value & 0xFFFF for value in values], "<u2")
            raw = raw.view("<f2") if dtype == HALF else raw
        elif dtype in (10, 17, 22, 23):
            raw = np.array(values, np.uint64)
        else:
            raw = np.array([signed(value) for value in values], np.int64)
    if dtype == BFLOAT16:
        raw = (raw.astype(np.uint32) << 16).view(np.float32)
    return raw.astype(np.float64)
