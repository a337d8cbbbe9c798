"""Every rule over a training of 100,000 iterations: a recorded one, each table of which is written with 100 columns."""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from harness import Row

from inspector.capture import Capture, Writer, open_capture
from inspector.diagnosis import diagnose
from inspector.records import Channel, Labels, Page
from inspector.workspace.trainings import path_or_training

ITERATIONS, COLUMNS, PIECE = 100_000, 100, 2_000
TRAINING = "training-spike"
OWN = "parameter"
"""The dim whose positions are multiplied; modules and states of a model are few."""


def rows() -> list[Row]:
    """Seconds of all rules, and the growth of the memory of the process."""
    folder = Path(tempfile.mkdtemp())
    try:
        path = folder / "a.inspect"  # written by another process: what that needed is no memory of the rules
        written = subprocess.run([sys.executable, __file__, path], check=True, capture_output=True, text=True)
        return _measure(path, int(written.stdout))
    finally:
        shutil.rmtree(folder)


def enlarge(path: Path) -> int:
    """Write the training again, its rows repeated to 100,000 and its parameters to 100; returns the bytes of numbers."""
    size = 0
    with open_capture(path_or_training(TRAINING)) as old, Writer(path, old.start) as writer:
        for axis in old.axes.values():
            writer.write(axis)
        names = tuple(f"layers.{n}.weight" for n in range(COLUMNS))
        for channel in old.channels.values():
            if "iteration" not in channel.dims:
                continue
            if OWN in channel.dims:
                writer.write(Labels(channel.domain(OWN), names))
            size += _put(writer, old, channel)
    return size


def _put(writer: Writer, old: Capture, channel: Channel) -> int:
    values: np.ndarray[Any, Any] = np.ma.filled(np.ma.asarray(old.array(channel.name)), 0)
    for dim in channel.dims:
        if dim not in (OWN, "iteration"):
            writer.write(Labels(channel.domain(dim), old.labels(channel.domain(dim))))
    if OWN in channel.dims:
        wide = channel.dims.index(OWN)
        values = np.take(values, np.arange(COLUMNS) % values.shape[wide], axis=wide)
    writer.write(channel)
    for first in range(0, ITERATIONS, PIECE):
        at = np.arange(first, first + PIECE)
        part = at.astype(values.dtype) if channel.signal == "iteration" else values[at * len(values) // ITERATIONS]
        writer.write(Page(channel.name, 0, (first, *[0] * (values.ndim - 1)), part))
    return int(values.nbytes / len(values) * ITERATIONS)


def _peak() -> float:
    """Megabytes that this process had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _measure(path: Path, size: int) -> list[Row]:
    with open_capture(path) as capture:
        before, began = _peak(), time.process_time()
        found = diagnose(capture, capture.frames)
        taken, peak = time.process_time() - began, _peak() - before
    assert found.asked and not found.broken
    what = f"every rule over {ITERATIONS:,} iterations × {COLUMNS} parameters, {size >> 20} MB of numbers"
    return [
        Row(what, taken, 1.0, taken, "< 5 s", "CPU seconds"),
        Row("memory that they take, in MB", peak, 1.0, peak, "< 280", "at most, beyond what was there before"),
    ]


if __name__ == "__main__":
    sys.stdout.write(str(enlarge(Path(sys.argv[1]))))
