"""An index of very many pages, frames and log lines opens in time in proportion to them: 300,000 in seconds."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from captures import NAME, START, channel

from inspector.capture import Writer, open_capture
from inspector.records import Frame, Log, Page, RunStop, Scalar

FEW, TIMES = 2_000, 6
ALLOWED = 3.0 * TIMES
"""Where each row is compared with all others it takes the square of TIMES."""


def made(path: Path, count: int) -> Path:
    row = np.ones((1, 4), np.float32)
    with Writer(path, START) as writer:
        writer.write(channel())
        for n in range(count):
            writer.write(Frame(index=n, label=f"frame {n}"))
            writer.write(Page(NAME, 0, (n, 0), row))
            writer.write(Log(f"line {n}"))
            writer.write(Scalar("loss", n, 1.0))
        writer.write(RunStop("done"))
    return path


def seconds(path: Path, count: int) -> float:
    """Of the processor, the least of three; other work on the machine makes it dearer, not ten times as dear."""
    found = []
    for _ in range(3):
        began = time.thread_time()
        with open_capture(path) as capture:
            assert len(capture.frames) == len(capture.logs) == len(capture.scalars) == count
            assert capture.extent(NAME, 0) == (count, 4) and not capture.damage
            assert capture.block(NAME, 0, (slice(count - 1, count),)).all()
        found.append(time.thread_time() - began)
    return min(found)


def test_time_to_open_grows_with_the_rows_and_not_with_their_square(tmp_path: Path) -> None:
    few = seconds(made(tmp_path / "few.inspect", FEW), FEW)
    many = seconds(made(tmp_path / "many.inspect", FEW * TIMES), FEW * TIMES)
    assert many < ALLOWED * few, (few, many)
