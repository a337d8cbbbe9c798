"""The norm of each parameter's gradient over training."""

from __future__ import annotations

from inspector.gui.panel.over_iterations.by_parameter import find_table, read_table
from inspector.gui.panel.overview.pictures import PICTURES, SmallPicture

PICTURES.register("gradient-by-layer")(
    SmallPicture("Gradient by layer", "training", 30, find_table("gradient/norm"), read_table("norm"))
)
