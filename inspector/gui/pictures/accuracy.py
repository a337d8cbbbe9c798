"""What a training is measured by besides its loss."""

from __future__ import annotations

from inspector.gui.panel.over_iterations.by_role import find_roles, read_roles
from inspector.gui.panel.overview.pictures import PICTURES, SmallPicture

ROLES = ("accuracy", "validation accuracy", "perplexity")

PICTURES.register("accuracy")(SmallPicture("Accuracy", "training", 15, find_roles(*ROLES), read_roles(*ROLES)))
