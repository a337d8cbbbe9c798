"""Protocol buffers as they travel: fields of a message by number, decoded without a description and without recursion.

Only what logs use: varints, fixed 32 and 64 bits, and runs of bytes. Every length is checked against the message that
it lies in, so a hostile length takes no memory.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_DOUBLE, _FLOAT = struct.Struct("<d"), struct.Struct("<f")


class BadMessageError(ValueError):
    """Bytes that are not a message."""


def varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """(an unsigned number of at most 64 bits, where it ends). Raises BadMessageError."""
    value = shift = 0
    while at < end and shift < 64:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (1 << 64) - 1, at
        shift += 7
    raise BadMessageError("a number has no end")


def signed(value: int) -> int:
    """The 64-bit two's complement that int32 and int64 fields hold."""
    return value - (1 << 64) if value >> 63 else value


def fields(data: bytes, start: int = 0, end: int | None = None) -> Iterator[tuple[int, int, int, int]]:
    """(number, wire type, first, stop) of each field; of a varint `first` is its value and `stop` 0.

    Raises BadMessageError where the bytes are no message; what came before was yielded.
    """
    at, end = start, len(data) if end is None else end
    while at < end:
        key, at = varint(data, at, end)
        number, kind = key >> 3, key & 7
        if kind == VARINT:
            value, at = varint(data, at, end)
            yield number, kind, value, 0
            continue
        if kind == BYTES:
            length, at = varint(data, at, end)
        elif kind in (FIXED64, FIXED32):
            length = 8 if kind == FIXED64 else 4
        else:
            raise BadMessageError(f"a field has wire type {kind}")
        if not number or length > end - at:
            raise BadMessageError(f"field {number} has {length} bytes, of which {end - at} are there")
        yield number, kind, at, at + length
        at += length


def double(data: bytes, at: int) -> float:
    """A fixed64 field as a number."""
    return float(_DOUBLE.unpack_from(data, at)[0])


def single(data: bytes, at: int) -> float:
    """A fixed32 field as a number."""
    return float(_FLOAT.unpack_from(data, at)[0])


def text(data: bytes, first: int, stop: int) -> str:
    """A string; what is not UTF-8 is replaced."""
    return data[first:stop].decode("utf-8", "replace")


def fixed_numbers(data: bytes, found: list[tuple[int, int, int]], dtype: str) -> npt.NDArray[Any]:
    """The numbers of a repeated fixed field, given (wire type, first, stop) of each part, packed or not."""
    size = np.dtype(dtype).itemsize
    parts = [np.frombuffer(data, dtype, (stop - first) // size, first) for _, first, stop in found]
    return np.concatenate(parts) if parts else np.zeros(0, dtype)


def varint_numbers(data: bytes, found: list[tuple[int, int, int]], most: int) -> list[int]:
    """The numbers of a repeated varint field, packed or not, at most `most` of them. Raises BadMessageError."""
    numbers: list[int] = []
    for kind, first, stop in found:
        if kind == VARINT:
            numbers.append(first)
            continue
        while first < stop and len(numbers) < most:
            value, first = varint(data, first, stop)
            numbers.append(value)
    return numbers[:most]
