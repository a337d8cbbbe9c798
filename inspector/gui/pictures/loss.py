"""The loss over training."""

from __future__ import annotations

from inspector.gui.panel.over_iterations.by_role import find_roles, read_roles
from inspector.gui.panel.overview.pictures import PICTURES, SmallPicture

ROLES = ("loss", "validation loss")

PICTURES.register("loss")(SmallPicture("Loss over training", "training", 10, find_roles(*ROLES), read_roles(*ROLES)))
