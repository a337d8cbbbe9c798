"""The registry of panels: one file each in `gui/panels`; they match channels by kind and dims, never by name.

A panel declares its position on its class: `tab_order` among all, and `tab_row`, the upper or the lower one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.registry import Registry

if TYPE_CHECKING:
    from inspector.gui.panel.base import Panel

PANELS: Registry[type[Panel]] = Registry("panels", "inspector.gui.panels")


def ordered() -> list[tuple[str, type[Panel]]]:
    """All panels in the order that they declare; equal ones by key."""
    return sorted(PANELS.items(), key=lambda item: (item[1].tab_order, item[0]))
