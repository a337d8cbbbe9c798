"""Small pictures of the curves over training that stand for something, whatever a training or a log calls them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inspector.analysis.glances import course
from inspector.gui.panel.overview.pictures import Find, Read
from inspector.gui.panel.overview.sketching import curves_with, lines_over_training, sketch_of_lines
from inspector.gui.widgets.sketch import Sketch
from inspector.records import Channel, counted


def find_roles(*roles: str) -> Find:
    """Finds the channels of curves of some roles (capture/logs/roles.py)."""

    def find(view: Any, frame: int) -> Sequence[Channel]:
        return [curve.channel for curve in curves_with(view, roles)]

    return find


def read_roles(*roles: str) -> Read:
    """Reads them as lines, those of the first role first; the sentence is about the first line."""

    def read(view: Any, frame: int, channels: Sequence[Channel]) -> Sketch:
        curves = curves_with(view, roles)
        lines = lines_over_training(view, curves)
        more = f"; {counted(len(curves) - 1, 'more curve')}" if len(curves) > 1 else ""
        return sketch_of_lines(course(*lines[0]) + more, lines, channels[0], log=False, word="iteration")

    return read
