"""The submenus of the menus that list all panels: a list of forty would fill the screen."""

from __future__ import annotations

from typing import Literal

MenuGroup = Literal["sequence", "inside", "gradients", "training", "other"]
MENU_GROUPS: dict[MenuGroup, str] = {
    "sequence": "&Sequence and output",
    "inside": "States, gates, &attention",
    "gradients": "&Gradients through time",
    "training": "&Training and checks",
    "other": "&Other panels",
}
"""Their titles, in their order. A group without a panel is left out."""
