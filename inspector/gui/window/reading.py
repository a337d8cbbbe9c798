"""The documentation beside a window: one reader, brought to the front where it is open."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from inspector.gui.dialogs.help.reader import Reader
from inspector.workspace.documentation import FIRST


def show_documentation(window: QWidget, name: str = FIRST, heading: str = "") -> Reader:
    """Show a page of the documentation, by its name (`watching.md`), at one of its headings."""
    reader = next((one for one in window.findChildren(Reader) if one.isVisible()), None) or Reader(window)
    reader.open(name, heading)
    reader.show()
    reader.activateWindow()
    return reader
