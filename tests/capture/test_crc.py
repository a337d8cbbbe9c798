"""The checksum of pages is zlib's CRC-32, whichever library makes it."""

from __future__ import annotations

import importlib
import sys
import zlib

import numpy as np
import pytest

from inspector.capture import crc
from inspector.capture.crc import KEPT, SMALL, crc32_at_once


@pytest.mark.parametrize("size", [0, 1, 3, 15, 16, 17, 4096, 100_003, 1 << 20])
def test_it_is_the_crc_of_zlib_whole_and_in_pieces(size: int) -> None:
    data = np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8)
    assert crc.crc32(data.data) == zlib.crc32(data.tobytes())
    cut = size // 3
    assert crc.crc32(memoryview(data)[cut:], crc.crc32(memoryview(data)[:cut])) == zlib.crc32(data.tobytes())


def test_arrays_of_several_axes_are_read_in_order() -> None:
    data = np.random.default_rng(0).normal(size=(3, 5, 7)).astype(np.float16)
    assert crc.crc32(data.data) == zlib.crc32(data.tobytes())


def test_without_the_library_zlib_makes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "isal", None)
    monkeypatch.setitem(sys.modules, "isal.isal_zlib", None)
    try:
        assert importlib.reload(crc).crc32 is zlib.crc32
    finally:
        monkeypatch.undo()
        importlib.reload(crc)


@pytest.mark.parametrize("size", [0, 1, KEPT - 1, KEPT, KEPT + 1, 3 * KEPT, 16 << 10, SMALL, SMALL + 1, 1 << 20])
def test_at_once_it_is_that_of_the_whole(size: int) -> None:
    numbers = np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8)
    assert crc32_at_once(numbers.data) == zlib.crc32(numbers.tobytes())


def test_at_once_of_arrays_of_any_shape_and_type() -> None:
    for array in (np.ones((4, 0, 3), np.float32), np.array(2.5), np.arange(24.0).reshape(2, 3, 4), np.ones(3, "<c16")):
        assert crc32_at_once(array.data) == zlib.crc32(array.tobytes())


def test_of_little_no_call_gives_up_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    real, asked = crc.crc32, list[int]()

    def told(data: memoryview, start: int = 0) -> int:
        asked.append(data.nbytes)
        return real(data, start)

    monkeypatch.setattr(crc, "crc32", told)
    crc32_at_once(memoryview(bytes(16 << 10)))
    assert max(asked) <= KEPT and sum(asked) == 16 << 10
