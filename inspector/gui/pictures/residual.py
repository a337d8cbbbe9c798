"""The norm of the residual stream, by layer and step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from inspector.analysis.glances import number
from inspector.capture.pyramid import with_nan
from inspector.gui.panel.overview.pictures import PICTURES, SmallPicture
from inspector.gui.panel.overview.sketching import cells_of, has
from inspector.gui.widgets.sketch import Sketch
from inspector.records import Channel, counted


def find(view: Any, frame: int) -> Sequence[Channel]:
    """The norm over (layer, step)."""
    return [one for one in has("residual", ("layer", "step"))(view, frame) if one.signal.endswith("norm")]


def read(view: Any, frame: int, channels: Sequence[Channel]) -> Sketch:
    """A map, the first layer at the top as in the panel."""
    channel = channels[0]
    values = with_nan(view.array(channel.name, frame)).astype(np.float64)
    middle = [float(np.median(row[np.isfinite(row)])) if np.isfinite(row).any() else np.nan for row in values]
    said = f"median {number(middle[0])} at the first layer, {number(middle[-1])} at the last"
    return Sketch(
        said, cells=cells_of(values, channel.scale, channel.limits), scale=channel.scale,
        word=channel.axis_word("step"), ends=(0.0, values.shape[1] - 1.0), rows=f"↓ {counted(len(values), 'layer')}",
        place=channel.place, channel=channel.name,
    )  # fmt: skip


PICTURES.register("residual")(SmallPicture("Norm of the residual stream", "residual", 78, find, read))
