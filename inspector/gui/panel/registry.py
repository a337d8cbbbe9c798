"""The registry of panels: one file each in `gui/panels`; they match channels by kind and dims, never by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.registry import Registry

if TYPE_CHECKING:
    from inspector.gui.panel.base import Panel

PANELS: Registry[type[Panel]] = Registry("panels", "inspector.gui.panels")
ORDER = (
    "states", "units", "gates", "openers", "dynamics", "attention", "outputs", "jacobians", "spectra", "lags", "paths",
    "bptt", "truncation", "gradients", "influence", "depth", "clipping", "training", "health",
)  # fmt: skip
"""The order in which panels stand; panels of other packages follow by key."""


def ordered() -> list[tuple[str, type[Panel]]]:
    """All panels in the order in which they stand."""
    return sorted(PANELS.items(), key=lambda item: (ORDER.index(item[0]) if item[0] in ORDER else len(ORDER), item[0]))
