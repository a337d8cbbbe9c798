"""What can be done with a finding beside looking at it: a small button at its card, with a menu."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from PySide6.QtCore import QPoint, Signal
from PySide6.QtWidgets import QMenu, QToolButton

from inspector.diagnosis import has_case, untried
from inspector.diagnosis.muting import exactly
from inspector.diagnosis.settings import Mute, places_of
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
QUIET, QUIET_AT, ALL = "Mute this rule ({})", "Mute at {}", "Mute at"
FORGET = "Forget what was tried: {}"
HOW_FORGET = "The result is taken out of the capture again"
LOUD = "No longer mute {}"
HOW_QUIET = "It is not shown any more in this project: an entry in inspector.toml, which says where"
MOST_PLACES = 20
LATER = "What can be tried is known as soon as the worker is ready"


class FindingMenu(QToolButton):
    """`reproducing(finding)` when its script is wanted, `trying(finding, key of the cure)` when a cure is,
    `muting(mute, on)` when it is to be muted, or no longer, and `forgetting(key)` when the result of a cure is to go;
    `mutes` are those that the project has, `tried` {key: title} of cures with a result.

    The menu is made anew each time it opens, for the finding that the card has then.
    """

    reproducing = Signal(object)
    trying = Signal(object, str)
    muting = Signal(object, bool)
    forgetting = Signal(str)

    def __init__(
        self, finding: Callable[[], Finding], cures: Callable[[], Sequence[Entry]],
        mutes: Callable[[], Sequence[Mute]] = tuple, tried: Callable[[], Mapping[str, str]] = dict,
    ) -> None:  # fmt: skip
        super().__init__()
        self._finding, self._cures, self._mutes, self._tried = finding, cures, mutes, tried
        self.setText("⋯")
        self.setStyleSheet("QToolButton::menu-indicator { image: none; }")  # Qt's own lies over the text
        self.setAutoRaise(True)
        self.setAccessibleName("More about this finding")
        self.setToolTip(tooltip("More about this finding"))
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.places = menu = QMenu(self)
        """Where the places are at which a finding can be muted: the menu itself, or one below it."""
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
        for key, title in self._tried().items():
            action = menu.addAction(FORGET.format(clean(title)).replace("&", "&&"))
            action.setToolTip(tooltip(HOW_FORGET))
            action.triggered.connect(lambda _checked=False, key=key: self.forgetting.emit(key))
        menu.addSeparator()
        script, known = menu.addAction(SCRIPT), has_case(finding.id or finding.rule)
        script.setEnabled(known)
        script.setToolTip(tooltip(ABOUT if known else NO_SCRIPT))
        script.triggered.connect(lambda: self.reproducing.emit(finding))
        menu.addSeparator()
        self._fill_mutes(menu, finding)

    def _fill_mutes(self, menu: QMenu, finding: Finding) -> None:
        own = [one for one in self._mutes() if one.rule in (finding.id, finding.rule)]
        places = [one for one in places_of(finding) if one and not any(mute.at(one) for mute in own)]
        self.places = below = QMenu(ALL, menu) if len(places) > 1 else menu
        if below is not menu:
            menu.addMenu(below)
            below.setToolTipsVisible(True)
        for place in places[:MOST_PLACES]:
            text = clean(place) if len(places) > 1 else QUIET_AT.format(clean(place))
            self._offer(below, text, HOW_QUIET, Mute(finding.id or finding.rule, exactly(place)), on=True)
        if not any(one.place == "*" for one in own):
            self._offer(menu, QUIET.format(finding.id), HOW_QUIET, Mute(finding.id or finding.rule), on=True)
        for one in own:
            named = finding.id if one.place == "*" else f"{finding.id} at {clean(one.place)}"
            self._offer(menu, LOUD.format(named), one.reason, one, on=False)

    def _offer(self, menu: QMenu, text: str, tip: str, mute: Mute, *, on: bool) -> None:
        action = menu.addAction(text.replace("&", "&&"))
        action.setToolTip(tooltip(tip))
        action.triggered.connect(lambda: self.muting.emit(mute, on))

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
