"""Trainings as they are watched, and logs, to be drawn together."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from inspector.capture import Writer
from inspector.records import Axis, Channel, Labels, Page, RunStart, RunStop

LOSS = Channel(name="training:loss", kind="series", dims=("iteration",), shape=(None,), dtype="float64", title="loss")
NORMS = Channel(name="parameters:gradient/norm", kind="series", dims=("iteration", "parameter"), shape=(None, None),
                dtype="float64", title="gradient norm")  # fmt: skip
STEPS = Channel(name="training:iteration", kind="coordinate", dims=("iteration",), shape=(None,), dtype="float64",
                title="iteration")  # fmt: skip


def watched(
    path: Path, loss: np.ndarray, every: int = 1, first: int = 0, done: bool = True, **settings: object
) -> Path:
    """A training as it is watched: loss, gradient norms of two parameters, iterations."""
    start = RunStart(run=path.name, title="net: training", meta={"training": {"optimizers": [settings]}})
    with Writer(path, start) as writer:
        writer.write(Axis(name="iteration", title="iteration"))
        writer.write(Labels("parameter", ("w", "b")))
        for channel, array in ((STEPS, first + np.arange(len(loss)) * float(every)), (LOSS, loss),
                               (NORMS, np.stack((loss, 2 * loss), 1))):  # fmt: skip
            writer.write(channel)
            writer.write(Page(channel.name, 0, (0,) * array.ndim, array))
        if done:
            writer.write(RunStop("done"))
    return path


def logged(path: Path, count: int, **config: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps({"step": n, "train/loss": 1 / (n + 1)}) + "\n" for n in range(count)))
    return path
