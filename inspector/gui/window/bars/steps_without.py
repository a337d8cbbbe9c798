"""Steps that carry no loss: their NaN is the definition of the quantity, not a number that the model made."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture import CaptureError, Pair
from inspector.gui.panel.labelled import find_row
from inspector.records import Channel

PER_STEP = ("loss", "surprise")
"""Signals that some steps do not have: nothing predicts the first token, and a loss may judge the last step only."""


def steps_without(capture: Any, channel: Channel, frame: int, values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """(t,) True where a loss is NaN because the step carries none.

    The run counted NaN among the losses that there are: without any, every NaN is a step without a loss. Else, and in
    older captures, the output's entropy tells; without one, whether the output has a NaN anywhere. Counter-example: a
    loss function that makes NaN of some finite outputs, log 0 for example, is taken for one that leaves out the step.
    Of a comparison (its `values` are changes) it is True where both sides have the same steps and one carries none.
    """
    if isinstance(capture, Pair):
        return _of_either(capture, channel, values)
    nan: npt.NDArray[np.bool_] = np.isnan(values)
    if channel.kind != "output" or channel.signal not in PER_STEP or not nan.any():
        return np.zeros(len(values), np.bool_)
    if channel.signal == "loss" and _nans(capture, f"{channel.place}:health/loss", frame) == 0:
        return nan
    entropy = _read(capture, f"{channel.place}:entropy", frame)
    if entropy is not None and entropy.shape == values.shape:
        found: npt.NDArray[np.bool_] = nan & np.isfinite(entropy)
        return found
    return np.zeros_like(nan) if _nans(capture, f"{channel.place}:health/output", frame) else nan


def _of_either(both: Pair, channel: Channel, values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    found = np.zeros(len(values), np.bool_)
    for side in () if both.alignments else both.sides:
        own = _read(side.view, channel.name, side.frame)
        if own is not None and own.shape == values.shape:
            found |= steps_without(side.view, side.view.channels[channel.name], side.frame, own)
    return found


def _nans(capture: Any, name: str, frame: int) -> int | None:
    """How many NaN were counted; None where that is not known."""
    counts = _read(capture, name, frame)
    row = None if counts is None else find_row(capture.channels[name], "nan", "count")
    return None if counts is None or row is None or row >= len(counts) else int(counts[row])  # described, not yet there


def _read(capture: Any, name: str, frame: int) -> npt.NDArray[Any] | None:
    if name not in capture.channels:
        return None
    try:
        return np.asarray(capture.array(name, frame))
    except CaptureError:
        return None
