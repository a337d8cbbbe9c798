"""A page that claims fewer or more bytes than its numbers have is damage, though every checksum fits."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import pytest
from captures import NAME, change, numbers, place_of, seal, write

from inspector.capture import open_capture


@pytest.mark.parametrize("nbytes", [0, 64, 256])
def test_the_rest_is_never_what_memory_held(tmp_path: Path, nbytes: int) -> None:
    values = numbers()
    path = write(tmp_path / "a.inspect", values)
    file, offset, own = place_of(path, 2)
    claimed = file.read_bytes()[offset : offset + nbytes]
    assert own == 128 and len(claimed) == nbytes
    change(path, "UPDATE pages SET nbytes = ?, crc = ? WHERE id = 2", (nbytes, zlib.crc32(claimed)))
    seal(path)
    with open_capture(path) as capture:
        array = capture.array(NAME)
        assert capture.damaged and np.isnan(array[8:16]).all()
        np.testing.assert_array_equal(array[16:], values[16:])
