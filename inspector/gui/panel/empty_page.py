"""The page of a panel that has nothing to show: what it would show, why it does not, and what can be done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QLabel, QPushButton, QVBoxLayout, QWidget

from inspector.analysis.warnings_of_shown import is_remark
from inspector.gui.state.background import Rest
from inspector.gui.widgets.plain_text import clean, plain_label, tooltip
from inspector.records import Refusal, duration

MOST_REASONS, MOST_NAMES = 4, 4
WHAT = "Computes this for the run that is shown and for later ones; Run ▸ Compute also lists all such quantities"

OPENS = "You are asked before any of its code runs; the capture that is shown stays as it is"


class EmptyPage(QWidget):
    """Lines of text in the middle, and a button where something more can be computed. `asked()` when it is pressed."""

    asked = Signal()

    def __init__(self, hint: str) -> None:
        super().__init__()
        self.label: QLabel = plain_label(hint)
        self.label.setWordWrap(True)
        self.label.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.button = QPushButton("Compute it")
        self.cost = ""
        """What the computation costs, in words."""
        self.button.setToolTip(WHAT)
        self.button.clicked.connect(self.asked)
        self.button.hide()
        middle = Qt.AlignmentFlag.AlignHCenter
        layout = QVBoxLayout(self)
        layout.setContentsMargins(32, 8, 32, 8)
        layout.addStretch(1)
        layout.addWidget(self.label)
        layout.addSpacing(8)
        layout.addWidget(self.button, alignment=middle)
        self.action = QPushButton("Open its model")
        self.action.hide()
        layout.addWidget(self.action, alignment=middle)
        layout.addStretch(1)

    def show_cost(self, cost: str) -> None:
        """Show the cost of the computation on the button."""
        self.cost = cost
        self.button.setToolTip(_told(WHAT, cost))

    def show_rest(self, rest: Rest) -> None:
        """Show on the button what it does, and about how long that takes where it is known."""
        show_button(self.button, rest, self.cost)

    def offer(self, text: str, tip: str, then: Callable[[], None]) -> None:
        """A button that begins what fills this panel, where that is no quantity."""
        self.action.setText(text)
        self.action.setToolTip(tooltip(tip))
        self.action.clicked.connect(lambda _checked=False: then())
        self.action.show()

    def text(self) -> str:
        """The text that is shown."""
        return self.label.text()

    def show_reasons(self, hint: str, reasons: Sequence[str], *, offer: bool) -> None:
        """The hint, then the reasons why channels are missing; `offer` shows the button."""
        self.label.setText("\n\n".join([hint, *map(clean, reasons)]))
        self.button.setVisible(offer)


def show_button(button: QPushButton, rest: Rest, cost: str = "") -> None:
    """The text and the tooltip of a button that computes what a panel lacks, or opens the model that it needs."""
    button.setText(rest.needed.button or compute_text(rest.seconds, len(rest.offered) > 1, rest=bool(rest.partly)))
    button.setToolTip(_told(OPENS if rest.needed.button else WHAT, cost))


def _told(what: str, cost: str) -> str:
    return tooltip(f"{what}. Cost: {cost}" if cost else what)


def compute_text(seconds: float, many: bool = False, *, rest: bool = False) -> str:
    """What a button says that computes one quantity, or many, or those that are not refused: an estimate of its seconds
    says "about"."""
    what = "Compute the rest" if rest else "Compute them" if many else "Compute it"
    if not seconds:
        return what
    return f"{what} (less than 1 s)" if seconds < 1 else f"{what} (about {duration(seconds)})"


def refused(refusals: Iterable[Refusal]) -> list[str]:
    """One line for each reason, with the first channels that are missing because of it."""
    found: dict[str, list[str]] = {}
    for refusal in refusals:
        place = refusal.channel.rpartition(":")[0]
        found.setdefault(refusal.reason, []).append(place if is_remark(refusal) else refusal.channel)
    return [f"{', '.join(names[:MOST_NAMES])}: {reason}" for reason, names in found.items()][:MOST_REASONS]
