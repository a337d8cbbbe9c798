"""CRC-32C (Castagnoli) of many records at once: event files have one over every length and every record.

The checksum is linear over GF(2): that of a message is the XOR of what each of its bytes contributes, which depends on
the byte and on its distance from the end only. A table of these contributions makes it a look-up and a reduction in
numpy; in plain Python it would take longer than all the rest of reading.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
POLYNOMIAL = 0x82F63B78
"""Reversed bits of x³² + x²⁸ + x²⁷ + x²⁶ + x²⁵ + x²³ + x²² + x²⁰ + x¹⁹ + x¹⁸ + x¹⁴ + x¹³ + x¹¹ + x¹⁰ + x⁹ + x⁸ + x⁶ + 1
(RFC 3720)."""
SEGMENT = 512
"""Bytes to a row of the table; longer messages are folded segment by segment."""
CELLS = 1 << 18
"""Bytes that are looked up at once."""
MASK_DELTA = 0xA282EAD8
"""What TFRecord adds to a rotated checksum, so that a record of checksums has another one."""


@cache
def _bytes() -> Array:
    """(256,) the checksum register after one byte."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(POLYNOMIAL), table >> 1).astype(np.uint32)
    return table


@cache
def _contributions() -> Array:
    """(SEGMENT, 256): what a byte contributes at each place of a segment, its first byte first."""
    rows = [_bytes()]
    for _ in range(SEGMENT - 1):
        rows.append((rows[-1] >> 8) ^ _bytes()[rows[-1] & 0xFF])
    return np.stack(rows[::-1])


@cache
def _shifts() -> Array:
    """(4, 256): what each byte of the register becomes after a segment of zeros."""
    table = np.zeros((4, 256), np.uint32)
    for place in range(4):
        register = np.arange(256, dtype=np.uint32) << np.uint32(8 * place)
        for _ in range(SEGMENT):
            register = (register >> 8) ^ _bytes()[register & 0xFF]
        table[place] = register
    return table


def masked(checksums: Array) -> Array:
    """As TFRecord stores them: rotated by 15 bits, plus a constant, modulo 2³²."""
    rotated = (checksums >> np.uint32(15)) | (checksums << np.uint32(17))
    return (rotated + np.uint32(MASK_DELTA)).astype(np.uint32)


def checksums(messages: Array) -> Array:
    """(n,) of (n, length) bytes. Messages of fewer than four bytes, which logs do not have, take the slow way."""
    n, length = messages.shape
    if length < 4:
        return np.array([_plain(bytes(row)) for row in messages], np.uint32)
    found = np.empty(n, np.uint32)
    many = max(1, CELLS // length)
    for first in range(0, n, many):
        found[first : first + many] = _some(messages[first : first + many])
    return found


def _some(messages: Array) -> Array:
    """The register starts with all ones, which inverts the first four bytes; zeros in front do not change it then."""
    n, length = messages.shape
    segments = -(-length // SEGMENT)
    wide = length if segments == 1 else segments * SEGMENT
    padded = np.zeros((n, wide), np.uint8)
    padded[:, wide - length :] = messages
    padded[:, wide - length : wide - length + 4] ^= 0xFF
    rows = padded.reshape(n * segments, wide // segments)
    table = _contributions()[SEGMENT - rows.shape[1] :]
    parts = np.bitwise_xor.reduce(table[np.arange(rows.shape[1]), rows], axis=1).reshape(n, segments)
    register = parts[:, 0]
    for place in range(1, segments):
        after = _shifts()
        register = (
            after[0][register & 0xFF] ^ after[1][(register >> 8) & 0xFF] ^ after[2][(register >> 16) & 0xFF]
            ^ after[3][register >> 24] ^ parts[:, place]
        )  # fmt: skip
    found: Array = ~register
    return found


def _plain(message: bytes) -> int:
    register = 0xFFFFFFFF
    for byte in message:
        register = (register >> 8) ^ int(_bytes()[(register ^ byte) & 0xFF])
    return register ^ 0xFFFFFFFF
