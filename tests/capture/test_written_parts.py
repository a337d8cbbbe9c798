"""Parts of a page file go to the system whole and in order, a megabyte a call at most."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inspector.capture.appending import CALL_BYTES, PARTS, write_all

SIZES = {
    "small ones": [16 << 10] * 300,
    "a large one behind a small one": [300 << 10, 8_000_000, 1, 63],
    "many tiny ones": [1, 0, 3] * 2 * PARTS,
    "just as much as a call takes": [CALL_BYTES, CALL_BYTES // 2, CALL_BYTES // 2, CALL_BYTES + 1],
    "one of no bytes": [0],
}


@pytest.mark.skipif(not hasattr(os, "writev"), reason="Windows writes part by part")
@pytest.mark.parametrize("taken", [1.0, 0.4], ids=["whole", "the system takes a part"])
@pytest.mark.parametrize("name", SIZES)
def test_all_is_written_and_no_call_is_large(
    name: str, taken: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = os.writev, list[int]()

    def writev(descriptor: int, parts: Any) -> int:
        views = [memoryview(part).cast("B") for part in parts if memoryview(part).nbytes]
        calls.append(sum(view.nbytes for view in views))
        if taken == 1.0 or not views:
            return real(descriptor, views)
        return real(descriptor, [b"".join(views)[: max(1, int(taken * calls[-1]))]])

    random = np.random.default_rng(0)
    parts = [random.integers(0, 256, size, dtype=np.uint8) for size in SIZES[name]]
    monkeypatch.setattr(os, "writev", writev)
    with (tmp_path / "pages").open("wb", buffering=0) as file:
        write_all(file, list(parts))
    assert (tmp_path / "pages").read_bytes() == b"".join(part.tobytes() for part in parts)
    assert max(calls) <= CALL_BYTES
    assert taken < 1 or len(calls) <= 2 + 2 * sum(SIZES[name]) / CALL_BYTES + len(parts) / PARTS
