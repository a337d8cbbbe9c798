"""The norm of the gradient over training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inspector.analysis.glances import course
from inspector.capture import Curve, curves_of
from inspector.gui.panel.overview.pictures import PICTURES, SmallPicture
from inspector.gui.panel.overview.sketching import curves_with, lines_over_training, sketch_of_lines
from inspector.gui.widgets.sketch import Sketch
from inspector.records import Channel

SIGNAL = "gradient_norm"


def curves(view: Any) -> list[Curve]:
    """Those of the whole gradient: as a watched training has them, else what is logged under such a name."""
    own = [curve for curve in curves_of(view) if curve.channel.signal == SIGNAL]
    return own or [curve for curve in curves_with(view, ("gradient norm",)) if not curve.shared]


def find(view: Any, frame: int) -> Sequence[Channel]:
    """The channel of the whole gradient's norm."""
    return [curve.channel for curve in curves(view)][:1]


def read(view: Any, frame: int, channels: Sequence[Channel]) -> Sketch:
    """One line, or two where it is clipped, with a logarithmic axis."""
    lines = lines_over_training(view, curves(view))
    return sketch_of_lines(course("norm", *lines[0][1:]), lines, channels[0], log=True, word="iteration")


PICTURES.register("gradient-norm")(SmallPicture("Gradient over training", "training", 20, find, read))
