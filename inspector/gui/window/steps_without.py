"""Steps that carry no loss: their NaN is the definition of the quantity, not a number that the model made."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture import Capture, CaptureError
from inspector.gui.panel.labelled import find_row
from inspector.records import Channel

PER_STEP = ("loss", "surprise")
"""Signals that some steps do not have: nothing predicts the first token, and a loss may judge the last step only."""


def steps_without(capture: Any, channel: Channel, frame: int, values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """(t,) True where a loss is NaN although the model's output at the step is finite.

    The output's entropy tells; without one, whether the output has a NaN anywhere. Counter-example: a loss function
    that itself makes NaN of finite outputs, log 0 for example, is taken for one that does not judge the step.
    """
    nan: npt.NDArray[np.bool_] = np.isnan(values)
    if channel.kind != "output" or channel.signal not in PER_STEP or not nan.any():
        return np.zeros(len(values), np.bool_)
    entropy = _read(capture, f"{channel.place}:entropy", frame)
    if entropy is not None and entropy.shape == values.shape:
        found: npt.NDArray[np.bool_] = nan & np.isfinite(entropy)
        return found
    return np.zeros_like(nan) if _has_nan(capture, channel, frame) else nan


def _has_nan(capture: Capture, channel: Channel, frame: int) -> bool:
    name = f"{channel.place}:health/output"
    counts = _read(capture, name, frame)
    row = None if counts is None else find_row(capture.channels[name], "nan", "count")
    return counts is not None and row is not None and int(counts[row]) > 0


def _read(capture: Capture, name: str, frame: int) -> npt.NDArray[Any] | None:
    if name not in capture.channels:
        return None
    try:
        return np.asarray(capture.array(name, frame))
    except CaptureError:
        return None
