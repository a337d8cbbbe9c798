"""The learning rate over training."""

from __future__ import annotations

from inspector.gui.panel.over_iterations.by_role import find_roles, read_roles
from inspector.gui.panel.overview.pictures import PICTURES, SmallPicture

ROLES = ("learning rate",)

PICTURES.register("learning-rate")(
    SmallPicture("Learning rate", "training", 45, find_roles(*ROLES), read_roles(*ROLES))
)
