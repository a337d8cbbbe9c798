"""The gradient at the states, step by step and layer by layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inspector.analysis.glances import extremes
from inspector.gui.panel.overview.pictures import PICTURES, SmallPicture
from inspector.gui.panel.overview.sketching import has, lines_by_step, of_longest_axis, sketch_of_lines
from inspector.gui.widgets.sketch import Sketch
from inspector.records import Channel

OF_STATES, OF_INPUTS = "gradient/state_norm", "gradient/embedding_norm"


def find(view: Any, frame: int) -> Sequence[Channel]:
    """Norms at the states; where there are none, at the embeddings."""
    for signal in (OF_STATES, OF_INPUTS):
        found = has("gradient", ("step",), signals=(signal,))(view, frame)
        if found:
            return of_longest_axis(view, frame, found)
    return []


def read(view: Any, frame: int, channels: Sequence[Channel]) -> Sketch:
    """One line a layer, with a logarithmic axis."""
    lines = lines_by_step(view, frame, channels)
    word = channels[0].axis_word("step")
    return sketch_of_lines(extremes(lines, channels[0].unit, word), lines, channels[0], log=True, word=word)


PICTURES.register("gradient-by-step")(SmallPicture("Gradient by step", "gradients", 60, find, read))
