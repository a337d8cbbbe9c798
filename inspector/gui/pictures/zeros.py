"""The share of zeros in what each module puts out, over training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from inspector.analysis.glances import smallest_and_largest
from inspector.capture import curves_of
from inspector.gui.panel.overview.pictures import PICTURES, SmallPicture
from inspector.gui.panel.overview.sketching import lines_over_training, sketch_of_lines
from inspector.gui.widgets.sketch import Sketch
from inspector.records import Channel

SIGNAL = "activation/zero"


def find(view: Any, frame: int) -> Sequence[Channel]:
    """The table by module, where any output was ever 0."""
    known = (one for one in view.channels.values() if one.kind == "series" and one.signal == SIGNAL)
    return [one for one in known if view.revision(one.name) and np.nanmax(view.array(one.name), initial=0.0) > 0]


def read(view: Any, frame: int, channels: Sequence[Channel]) -> Sketch:
    """A line for each of the modules with most zeros at the end."""
    lines = lines_over_training(
        view, [one for one in curves_of(view) if one.channel.name == channels[0].name], most=None
    )
    last = [float(y[np.isfinite(y)][-1]) if np.isfinite(y).any() else np.nan for _, _, y in lines]
    order = np.argsort(-np.nan_to_num(np.asarray(last), nan=-1.0), kind="stable")
    said = smallest_and_largest([name for name, _, _ in lines], np.asarray(last), "at the end share of zeros")
    return sketch_of_lines(said, [lines[n] for n in order], channels[0], log=False, word="iteration")


PICTURES.register("zeros")(SmallPicture("Zeros by module", "training", 48, find, read))
