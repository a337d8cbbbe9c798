"""Frames of a capture are in order whatever order they came in, and are not put in order once for each of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inspector.capture import Writer, open_capture, placing
from inspector.records import Channel, Frame, Page, RunStart, RunStop

ORDER = [*range(0, 60, 2), *range(59, 0, -2)]


def written(path: Path) -> Path:
    with Writer(path, RunStart(run="r", title="t")) as writer:
        writer.write(Channel(name="l:h", kind="state", dims=("step",), shape=(2,), dtype="float32", title="h"))
        for index in ORDER:
            writer.write(Frame(index=index, label="first"))
            writer.write(Page("l:h", index, (0,), np.full(2, index, np.float32)))
        writer.write(Frame(index=7, label="again"))
        writer.write(RunStop("done"))
    return path


def test_in_order_and_later_records_in_place(tmp_path: Path) -> None:
    with open_capture(written(tmp_path / "a.inspect")) as capture:
        assert [one.index for one in capture.frames] == list(range(60))
        assert [one.label for one in capture.frames if one.label != "first"] == ["again"]
        assert capture.array("l:h", 31).tolist() == [31, 31]


def test_put_in_order_when_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sorts: list[int] = []

    def counting(values: Any, **how: Any) -> Any:
        sorts.append(len(values))
        return sorted(values, **how)

    monkeypatch.setattr(placing, "sorted", counting, raising=False)
    with open_capture(written(tmp_path / "a.inspect")) as capture:
        assert capture.frames is capture.frames
        assert sorts == [60]
