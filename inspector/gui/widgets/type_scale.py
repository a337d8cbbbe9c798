"""The sizes of texts: all others follow the application's font, these are for a system's font of usual size.

Where the user has chosen a font size, they grow and shrink with it (docs/one-look.md).
"""

from __future__ import annotations

from PySide6.QtWidgets import QApplication

TITLE_POINTS, SMALL_POINTS = 9.0, 8.0
"""Of the title of a plot; of legends and of the timeline."""
FIRST = "first points"
"""The property of the application with the points of the system's font, where another size was chosen."""


def share_of_usual() -> float:
    """The present size of texts as a share of the system's: 1 where nobody has chosen one."""
    application = QApplication.instance()
    if not isinstance(application, QApplication) or application.property(FIRST) is None:
        return 1.0
    return float(application.font().pointSizeF()) / float(application.property(FIRST))


def title_points() -> float:
    """Of the title of a plot."""
    return TITLE_POINTS * share_of_usual()


def small_points() -> float:
    """Of legends and of the timeline."""
    return SMALL_POINTS * share_of_usual()
