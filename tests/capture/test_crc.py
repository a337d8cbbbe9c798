"""The checksum of pages is zlib's CRC-32, whichever library makes it."""

from __future__ import annotations

import importlib
import sys
import zlib

import numpy as np
import pytest

from inspector.capture import crc


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
