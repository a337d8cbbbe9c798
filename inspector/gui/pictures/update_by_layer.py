"""How large each step of the optimizer is beside its parameter, over training."""

from __future__ import annotations

from inspector.gui.panel.over_iterations.by_parameter import find_table, read_table
from inspector.gui.panel.overview.pictures import PICTURES, SmallPicture

PICTURES.register("update-by-layer")(
    SmallPicture("Update by layer", "training", 40, find_table("update/ratio"), read_table("update / weight"))
)
