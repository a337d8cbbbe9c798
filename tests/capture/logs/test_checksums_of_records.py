"""CRC-32C against the vectors of RFC 3720 and against one byte by byte, in all lengths around a segment."""

from __future__ import annotations

import numpy as np
import pytest
from log_files import crc32c

from inspector.capture.logs.crc32c import SEGMENT, checksums

VECTORS = {
    bytes(32): 0x8A9136AA, b"\xff" * 32: 0x62A8AB43, bytes(range(32)): 0x46DD794E, bytes(range(31, -1, -1)): 0x113FDB5C,
    b"123456789": 0xE3069283,
}  # fmt: skip


def rows(*messages: bytes) -> np.ndarray:
    return np.stack([np.frombuffer(message, np.uint8) for message in messages])


@pytest.mark.parametrize("message", VECTORS)
def test_the_published_vectors(message: bytes) -> None:
    assert checksums(rows(message))[0] == VECTORS[message]


@pytest.mark.parametrize("length", [0, 1, 3, 4, 5, SEGMENT - 1, SEGMENT, SEGMENT + 1, 2 * SEGMENT, 3 * SEGMENT + 7])
def test_every_length(length: int) -> None:
    some = np.random.default_rng(length).integers(0, 256, (5, length)).astype(np.uint8)
    assert checksums(some).tolist() == [crc32c(bytes(row)) for row in some]
