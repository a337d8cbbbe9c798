"""The loss of the run, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from inspector.analysis.glances import mean_of
from inspector.gui.panel.overview.pictures import PICTURES, SmallPicture
from inspector.gui.panel.overview.sketching import has, lines_by_step, sketch_of_lines
from inspector.gui.widgets.sketch import Sketch
from inspector.records import Channel


def read(view: Any, frame: int, channels: Sequence[Channel]) -> Sketch:
    """One line."""
    channel = channels[0]
    ((name, x, y),) = lines_by_step(view, frame, [channel])
    at = view.frame_of(channel.name, frame)
    broken = sum(one.value for one in view.scalars if one.name == f"{channel.name}/nan" and one.frame == at)
    if not broken:  # NaN stands where the loss has no term
        x, y = x[np.isfinite(y)], y[np.isfinite(y)]
    word = channel.axis_word("step")
    return sketch_of_lines(mean_of(name, x, y, channel.unit, word), [(name, x, y)], channel, log=False, word=word)


PICTURES.register("loss-by-step")(
    SmallPicture("Loss by step", "outputs", 70, has("output", ("step",), signals=("loss",)), read)
)
