"""How much one step of the recurrence stretches a change, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inspector.analysis.glances import share_above
from inspector.gui.panel.overview.pictures import PICTURES, SmallPicture
from inspector.gui.panel.overview.sketching import has, lines_by_step, of_longest_axis, sketch_of_lines
from inspector.gui.widgets.sketch import Sketch
from inspector.records import Channel

SIGNAL = "jacobian/spectral_norm"


def find(view: Any, frame: int) -> Sequence[Channel]:
    """Spectral norms by step."""
    return of_longest_axis(view, frame, has("jacobian", ("step",), signals=(SIGNAL,))(view, frame))


def read(view: Any, frame: int, channels: Sequence[Channel]) -> Sketch:
    """One line a layer, with a logarithmic axis."""
    lines = lines_by_step(view, frame, channels)
    word = channels[0].axis_word("step")
    return sketch_of_lines(share_above(lines, 1.0, "σ₁"), lines, channels[0], log=True, word=word)


PICTURES.register("jacobians")(SmallPicture("Stretching of each step", "jacobians", 65, find, read))
