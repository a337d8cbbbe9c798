"""The gradient at the states, step by step and layer by layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inspector.analysis.glances import extremes
from inspector.analysis.replaced_states import replacing, without_gradient
from inspector.gui.panel.overview.pictures import PICTURES, SmallPicture
from inspector.gui.panel.overview.sketching import has, lines_by_step, of_longest_axis, sketch_of_lines
from inspector.gui.widgets.sketch import Sketch
from inspector.records import Channel, counted

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
    word, none, edits = channels[0].axis_word("step"), 0, dict[str, None]()
    for number, (channel, (name, x, y)) in enumerate(zip(channels, lines, strict=False)):
        own = replacing(view, channel, frame)
        lost = without_gradient(own, x, y)
        lines[number] = name, x[~lost], y[~lost]
        none += int(lost.sum())
        edits |= dict.fromkeys(map(str, own if lost.any() else ()))
    said = extremes(lines, channels[0].unit, word)
    if none:
        said += f"; none at {counted(none, word)} whose state was replaced ({', '.join(edits)})"
    return sketch_of_lines(said, lines, channels[0], log=True, word=word)


PICTURES.register("gradient-by-step")(SmallPicture("Gradient by step", "gradients", 60, find, read))
