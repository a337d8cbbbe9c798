"""The sizes of texts: all others follow the application's font, these are for a system's font of usual size.

Where the user has chosen a font size, they grow and shrink with it (docs/one-look.md).
"""

from __future__ import annotations

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication

TITLE_POINTS, SMALL_POINTS = 9.0, 8.0
"""Of the title of a plot; of legends and of the timeline."""
USUAL_DOTS = 96.0
FIRST = "first points"
"""The property of the application with the points of the system's font, where another size was chosen."""


def share_of_usual() -> float:
    """The present size of texts as a share of the system's: 1 where nobody has chosen one."""
    application = QApplication.instance()
    if not isinstance(application, QApplication) or application.property(FIRST) is None:
        return 1.0
    return float(application.font().pointSizeF()) / float(application.property(FIRST))


def dots_share() -> float:
    """Pixels of a text as a share of those on a screen of 96 dots an inch: 1 where Qt scales the whole window instead,
    as it does by itself."""
    screen = QGuiApplication.primaryScreen()
    return max(1.0, screen.logicalDotsPerInch() / USUAL_DOTS) if screen is not None else 1.0


def share_of_pixels() -> float:
    """The present height of texts in pixels as a share of the usual one."""
    return share_of_usual() * dots_share()


def title_points() -> float:
    """Of the title of a plot."""
    return TITLE_POINTS * share_of_usual()


def small_points() -> float:
    """Of legends and of the timeline."""
    return SMALL_POINTS * share_of_usual()
