"""What can be done with a finding beside looking at it: a small button at its card, with a menu."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QPoint, Signal
from PySide6.QtWidgets import QMenu, QToolButton

from inspector.diagnosis import has_case, untried
from inspector.gui.widgets.plain_text import clean, tooltip
from inspector.records import Entry, Finding

SCRIPT = "Reproduce as a script…"
ABOUT = "A small training with this fault, and the same without it and with the remedy, as a Python script"
NO_SCRIPT = "There is no script yet that shows what this rule finds"
TRY, NOTHING = "Try it: {}", "Try it"
HOW = (
    "Copies of the model are trained from where it is now, on the same sequences, as it is and with this change; the "
    "model stays as it is"
)
CANNOT = "Cannot be tried: {}"
UNNAMED = "no cure names this rule; see its remedy"
LATER = "What can be tried is known as soon as the worker is ready"


class FindingMenu(QToolButton):
    """`reproducing(finding)` when its script is wanted, `trying(finding, key of the cure)` when a cure is.

    The menu is made anew each time it opens, for the finding that the card has then.
    """

    reproducing = Signal(object)
    trying = Signal(object, str)

    def __init__(self, finding: Callable[[], Finding], cures: Callable[[], Sequence[Entry]]) -> None:
        super().__init__()
        self._finding, self._cures = finding, cures
        self.setText("⋯")
        self.setStyleSheet("QToolButton::menu-indicator { image: none; }")  # Qt's own lies over the text
        self.setAutoRaise(True)
        self.setAccessibleName("More about this finding")
        self.setToolTip(tooltip("More about this finding"))
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        menu = QMenu(self)
        menu.setToolTipsVisible(True)
        menu.aboutToShow.connect(self.fill)
        self.setMenu(menu)

    def fill(self) -> None:
        """The entries for the finding that is shown now."""
        finding, menu = self._finding(), self.menu()
        menu.clear()
        cures = cures_for(finding, self._cures())
        for cure in cures:
            action = menu.addAction(TRY.format(clean(cure.title)))
            action.setToolTip(tooltip(f"{cure.summary} {HOW}."))
            action.triggered.connect(lambda _checked=False, key=cure.key: self.trying.emit(finding, key))
        if not cures:
            action = menu.addAction(NOTHING)
            action.setEnabled(False)
            action.setToolTip(tooltip(why_not(finding, self._cures())))
        menu.addSeparator()
        script, known = menu.addAction(SCRIPT), has_case(finding.id or finding.rule)
        script.setEnabled(known)
        script.setToolTip(tooltip(ABOUT if known else NO_SCRIPT))
        script.triggered.connect(lambda: self.reproducing.emit(finding))

    def open_at(self, position: QPoint) -> None:
        """The same menu, from the card's context menu."""
        self.fill()
        self.menu().popup(position)


def cures_for(finding: Finding, cures: Sequence[Entry]) -> list[Entry]:
    """The cures that name the finding's rule."""
    return [cure for cure in cures if finding.id in cure.rules]


def why_not(finding: Finding, cures: Sequence[Entry]) -> str:
    """Why nothing can be tried for a finding."""
    said = untried(finding.rule)
    return CANNOT.format(clean(said or UNNAMED)) if said or cures else LATER
