"""The panels of a window: each is made when it is first visible or asked for, since plots take long to build."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QApplication, QHBoxLayout, QPlainTextEdit, QSizePolicy, QVBoxLayout, QWidget

from inspector.gui.state.cursor import Cursor
from inspector.gui.widgets.plain_text import clean_block

if TYPE_CHECKING:
    from inspector.gui.panel.base import Panel

Make = Callable[[str, "type[Panel]"], "Panel | None"]


class Panels(Mapping[str, "Panel"]):
    """Panels by key, from left to right. Asking for one by its key makes it.

    One that could not be made is no longer in here: `panels[key]` raises KeyError and `panels.get(key)` is None.
    """

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self.source: Any = None
        """What the panels show: a capture, the difference of two of its frames, or None."""
        self.kinds: Mapping[str, type[Panel]] = {}
        """The class of every panel that has a dock, also of those that could not be made."""
        self.left: frozenset[str] = frozenset()
        """Keys of the quantities that the run that is shown has not computed."""
        self._made: dict[str, Panel] = {}
        self._broken: set[str] = set()
        self._make: Make = lambda _key, _kind: None

    def begin(self, kinds: Mapping[str, type[Panel]], make: Make) -> None:
        """Set the classes, and what makes a panel of one; it returns None for one that cannot be made."""
        self.kinds, self._make = kinds, make

    @property
    def made(self) -> dict[str, Panel]:
        """Those that have been made, from left to right; what is behind others is not drawn (`Panel.stale`)."""
        return {key: self._made[key] for key in self.kinds if key in self._made}

    def all(self) -> dict[str, Panel]:
        """Every panel; those that were never visible are made now, and those that cannot be made are left out."""
        found = ((key, self.get(key)) for key in self)
        return {key: panel for key, panel in found if panel is not None}

    def has_data(self, key: str) -> bool:
        """Whether a panel has anything to show; one that raises instead has, and shows its own error."""
        panel = self._made.get(key)
        try:
            if panel is not None and panel.channels():
                return True  # until it is drawn it may be turned to an axis along which this source has nothing
            return has_data_for(self.kinds[key], self.source, self.cursor.position.frame)
        except Exception:  # noqa: BLE001 - a failure of one panel must not affect the window
            return True

    def told(self, key: str) -> str:
        """What a panel is for, and the formulas of what it has to show, or would compute."""
        from inspector.gui.panel.explained import of_entries, of_panel

        kind, panel = self.kinds[key], self._made.get(key)
        known = getattr(self.source, "channels", None) or {}
        everything = getattr(kind, "of_everything", False)  # whose formulas say nothing of it
        formulas = "" if everything else of_panel(one for one in known.values() if kind.accepts(one))
        if not formulas and panel is not None:
            formulas = of_entries((*kind.shows, *kind.extra), panel.entries)
        return "\n".join(part for part in (kind.hint, formulas) if part)

    def expects(self, key: str) -> bool:
        """Whether a panel may still get something to show of the run that is shown."""
        return not self.left.isdisjoint(self.kinds[key].shows)

    def __getitem__(self, key: str) -> Panel:
        if key in self._broken:
            raise KeyError(f"The panel {key!r} could not be made; the log says why.")
        if not self.make(key):
            return self[key]
        self._made[key].dress_now()
        self._made[key].take_turn_now()  # what is asked of it next is done at once
        if self._made[key].stale:  # whoever asks for it may look at what it shows
            self._made[key].redraw()
        return self._made[key]

    def make(self, key: str) -> bool:
        """Make a panel that is not there yet, without asking what it shows: it is drawn in its turn. False where it
        cannot be made."""
        if key not in self._made and key not in self._broken:
            panel = self._make(key, self.kinds[key])
            if panel is None:
                self._broken.add(key)
            else:
                self._made[key] = panel
        return key in self._made

    def __iter__(self) -> Iterator[str]:
        return iter([key for key in self.kinds if key not in self._broken])

    def __len__(self) -> int:
        return len(self.kinds) - len(self._broken)

    def __contains__(self, key: object) -> bool:
        return key in self.kinds and key not in self._broken


def has_data_for(kind: type[Panel], source: Any, frame: int) -> bool:
    """Whether a panel of this class would have anything to show of a capture, or of the difference of two frames."""
    from inspector.gui.panel.run_toggle import readable

    capture, second = readable(source, kind.accepts)
    return bool(kind.found_in(capture, frame if second is None else second))


class PanelPlace(QWidget):
    """The contents of a panel's dock: nothing until the panel is made, then the panel, or why there is none."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = False
        """Whether the panel has been on screen, and so has a size of its own; Qt keeps docks behind others tiny."""
        self._panel: QWidget | None = None
        self._row: QWidget | None = None
        """The panel and what is beside it."""
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)

    def put(self, panel: QWidget) -> None:
        """Show the panel here."""
        self._panel = panel
        self._layout.addWidget(panel)

    def put_beside(self, column: QWidget, name: QWidget) -> None:
        """Show a column of equal width at the left of the panel, and a name above the panel: always the same two."""
        assert self._panel is not None
        if self._row is None:
            self._row, right = QWidget(), QWidget()
            self._right = QVBoxLayout(right)
            self._right.setContentsMargins(0, 0, 0, 0)
            self._right.setSpacing(0)
            self._right.addWidget(name)
            row = QHBoxLayout(self._row)
            row.setContentsMargins(0, 0, 0, 0)
            for each in (column, right):
                policy = each.sizePolicy()
                policy.setHorizontalPolicy(QSizePolicy.Policy.Ignored)
                each.setSizePolicy(policy)
                row.addWidget(each, 1)
            self._layout.addWidget(self._row)
        self._right.addWidget(self._panel, 1)
        self._row.show()
        self._panel.show()

    def take_beside(self) -> None:
        """The panel alone again; the column is hidden, since plots that are released in the wrong order crash."""
        assert self._panel is not None and self._row is not None
        self._row.hide()  # first: the window never grows to hold both
        self._layout.addWidget(self._panel)
        self._panel.show()

    def lay_out(self, panel: QWidget, size: QSize) -> None:
        """Lay out a panel at a size without showing it."""
        panel.setParent(None)
        panel.setAttribute(Qt.WidgetAttribute.WA_DontShowOnScreen)
        panel.resize(size)
        panel.show()
        QApplication.processEvents()
        panel.setAttribute(Qt.WidgetAttribute.WA_DontShowOnScreen, False)
        self._layout.addWidget(panel)

    def say(self, text: str) -> None:
        """Show a text instead of a panel."""
        while (item := self._layout.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.deleteLater()
        page = QPlainTextEdit()
        page.setReadOnly(True)
        page.setPlainText(clean_block(text))
        self._layout.addWidget(page)
