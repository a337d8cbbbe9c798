"""The gradient of the parameters, module by module through the depth of the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from inspector.analysis.glances import smallest_and_largest
from inspector.capture.pyramid import with_nan
from inspector.gui.panel.labelled import find_row
from inspector.gui.panel.overview.pictures import PICTURES, SmallPicture
from inspector.gui.panel.overview.sketching import has, sketch_of_lines
from inspector.gui.widgets.sketch import Sketch
from inspector.records import Channel

find = has("depth", ("statistic", "module"), signals=("parameter/gradient",))


def read(view: Any, frame: int, channels: Sequence[Channel]) -> Sketch:
    """One line from the first module to the last."""
    channel = channels[0]
    values = with_nan(view.array(channel.name, frame)).astype(np.float64)
    row = find_row(channel, "rms")
    line = values[row if row is not None else 0]
    names = channel.labels.get("module") or view.labels(channel.domain("module"), frame)
    names = [names[n] if n < len(names) else f"module {n}" for n in range(len(line))]
    at = np.arange(len(line), dtype=np.float64)
    said = smallest_and_largest(names, line, "gradient")
    return sketch_of_lines(said, [("gradient", at, line)], channel, log=True, word="module")


PICTURES.register("depth")(SmallPicture("Gradient through depth", "depth", 68, find, read))
