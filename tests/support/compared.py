"""Captures of known arrays, to be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from captures import START, channel

from inspector.capture import Writer
from inspector.records import Channel, Frame, Labels, Page, RunStop

STATE = channel("rnn.l0:h", units=3, unit="mV")
NORM = channel(
    "rnn.l0:jacobian/spectral_norm", dims=("step",), shape=(None,), kind="jacobian", compare="ratio", title="norm"
)
SPECTRUM = channel("rnn.l0:spectrum", dims=("rank",), shape=(None,), kind="spectrum", compare="separate")
Arrays = Mapping[str, npt.NDArray[np.generic]]


def states(seed: int, steps: int = 12, units: int = 3) -> npt.NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=(steps, units)).astype(np.float32)


def norms(seed: int, steps: int = 12) -> npt.NDArray[np.float32]:
    return np.random.default_rng(seed).lognormal(size=steps).astype(np.float32)


def capture_of(
    path: Path, *frames: Arrays, tokens: Sequence[str] = "abcdefghijkl", channels: Sequence[Channel] = (STATE, NORM),
    title: str = "a run", steps: Sequence[int] = (), labels: Sequence[str] = (),
) -> Path:  # fmt: skip
    """A capture with these arrays in each frame, whose training steps are `steps` and names `labels`."""
    with Writer(path, replace(START, title=title, run=path.name)) as writer:
        for index, arrays in enumerate(frames):
            label = labels[index] if labels else f"moment {index}"
            writer.write(Frame(index=index, label=label, step=steps[index] if steps else None))
            writer.write(Labels("step", tuple(tokens), index))
            for described in channels:
                if described.name in arrays:
                    array = arrays[described.name]
                    writer.write(described)
                    writer.write(Page(described.name, index, (0,) * array.ndim, array))
        writer.write(RunStop("done"))
    return path


def frame_of(seed: int, count: int = 12) -> Arrays:
    return {STATE.name: states(seed, count), NORM.name: norms(seed, count)}
