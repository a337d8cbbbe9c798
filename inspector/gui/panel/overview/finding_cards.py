"""The findings of a capture as cards, the worst first; a click leads to the evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget

from inspector.analysis.cures import Tried
from inspector.analysis.iterations_in_view import iterations_around
from inspector.capture import CaptureError
from inspector.diagnosis import is_trend
from inspector.diagnosis.settings import Mute
from inspector.diagnosis.words import WORDS, Repeated, in_frames
from inspector.gui.panel.overview.finding_menu import FindingMenu, cures_for
from inspector.gui.panel.signals import Lead
from inspector.gui.widgets.cards import TextCard
from inspector.gui.widgets.theme import LIGHT, Theme
from inspector.records import ITERATION_DOMAIN, Entry, Finding, counted

COLOURS = {"error": "error", "warning": "warning", "info": "muted"}
FIRST = 5
"""Findings that are shown before the rest is asked for; errors and warnings always are."""
MOST = 60
"""Cards at most: what is beyond them is counted."""


class FindingCards(QWidget):
    """`chosen(finding)` when a card is clicked, `reproducing(finding)` when its script is wanted,
    `trying(finding, key)` when a cure is, `muting(mute, on)` when the project is to mute it, or no longer.

    Findings that it mutes are shown below the others when they are asked for."""

    chosen = Signal(object)
    reproducing = Signal(object)
    trying = Signal(object, str)
    muting = Signal(object, bool)
    forgetting = Signal(str)
    """The key of a cure whose result is to go."""

    def __init__(self) -> None:
        super().__init__()
        self.theme = LIGHT
        self.mutes: Sequence[Mute] = ()
        """Those of the project."""
        self._muted: list[Repeated] = []
        self._with_muted = False
        self.cards: list[TextCard] = []
        self.menus: list[FindingMenu] = []
        """One in the corner of each card."""
        self.cures: Sequence[Entry] = ()
        """Those that the worker offers."""
        self._tried: Mapping[int, Sequence[Tried]] = {}
        self._shown: list[Repeated] = []
        self._labels: dict[int, str] = {}
        self._all = False
        self.more = QPushButton()
        self.more.setFlat(True)
        self.more.setAccessibleName("Show all findings")
        self.more.clicked.connect(self._show_all)
        self.quiet = QPushButton()
        self.quiet.setFlat(True)
        self.quiet.setAccessibleName("Show findings that the project mutes, or hide them")
        self.quiet.clicked.connect(self._show_muted)
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(6)
        self._layout.addWidget(self.more)
        self._layout.addWidget(self.quiet)
        self.more.hide()
        self.quiet.hide()

    def forget(self) -> None:
        """Another capture."""
        self._all = self._with_muted = False
        self.show_findings([], {})

    def show_findings(
        self, found: Sequence[Repeated], labels: dict[int, str], tried: Mapping[int, Sequence[Tried]] | None = None,
        muted: Sequence[Repeated] = (),
    ) -> None:  # fmt: skip
        """These findings, and those that are muted; `labels` are the names of frames, where there are several, and
        `tried` the cures that were tried, by frame (-1: the newest)."""
        new = list(found), labels, tried or {}, list(muted)
        if new != (self._shown, self._labels, self._tried, self._muted):
            self._shown, self._labels, self._tried, self._muted = new
            self._fill()

    def know(self, cures: Sequence[Entry]) -> None:
        """The cures that the worker offers."""
        self.cures = tuple(cures)
        self._fill()

    def said_of(self, finding: Finding) -> list[str]:
        """What the trials of its cures say."""
        return [one.sentence for one in self.tried_of(finding)]

    def tried_of(self, finding: Finding) -> list[Tried]:
        """The trials of its cures."""
        own = {cure.key for cure in cures_for(finding, self.cures)}
        return [one for one in self._tried.get(finding.frame, ()) if one.cure in own]

    def findings(self) -> list[Finding]:
        """Those that have cards, in their order."""
        return [one.finding for one in self._visible()]

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.theme = theme
        for card in self.cards:
            card.set_theme(theme)

    def _visible(self) -> list[Repeated]:
        grave = sum(one.finding.severity != "info" for one in self._shown)
        shown = self._shown[: MOST if self._all else min(MOST, max(FIRST, grave))]
        return shown + self._muted[: MOST - len(shown)] if self._with_muted else shown

    def _show_muted(self) -> None:
        self._with_muted = not self._with_muted
        self._fill()

    def _show_all(self) -> None:
        self._all = True
        self._fill()

    def _fill(self) -> None:
        visible = self._visible()
        shown_muted = sum(any(one is quiet for quiet in self._muted) for one in visible)
        while len(self.cards) < len(visible):
            self._add()
        for number, card in enumerate(self.cards):
            card.setVisible(number < len(visible))
            if number < len(visible):
                one, quiet = visible[number], number >= len(visible) - shown_muted
                _fill(card, one, self._labels, self.said_of(one.finding), muted=quiet)
        self.setVisible(bool(visible or self._muted))
        self.quiet.setVisible(bool(self._muted))
        word = "Hide" if self._with_muted else "Show"
        self.quiet.setText(f"{word} {counted(len(self._muted), 'muted finding')}")
        left = len(self._shown) - (len(visible) - shown_muted)
        self.more.setVisible(left > 0)
        self.more.setText(counted(left, "more finding"))
        self.more.setEnabled(not self._all)

    def _add(self) -> None:
        card, number = TextCard(), len(self.cards)
        card.set_theme(self.theme)
        card.clicked.connect(lambda _checked=False: self.chosen.emit(self._visible()[number].finding))
        menu = FindingMenu(
            lambda: self._visible()[number].finding, lambda: self.cures, lambda: self.mutes,
            lambda: {one.cure: one.title for one in self.tried_of(self._visible()[number].finding)},
        )  # fmt: skip
        menu.reproducing.connect(self.reproducing)
        menu.trying.connect(self.trying)
        menu.muting.connect(self.muting)
        menu.forgetting.connect(self.forgetting)
        card.asked.connect(menu.open_at)
        self.cards.append(card)
        self.menus.append(menu)
        card.put_in_corner(menu)
        self._layout.insertWidget(number, card)


def _fill(card: TextCard, one: Repeated, labels: dict[int, str], tried: Sequence[str], *, muted: bool) -> None:
    finding = one.finding
    parts = [
        "Muted" if muted else "",
        WORDS[finding.severity],
        finding.place,
        _when(one, labels),
        f"{finding.id} {finding.rule}".strip(),
    ]
    details = [
        f"{word}: {text}"
        for word in ("sure", "unless", "remedy", "code", "reference")
        if (text := getattr(finding, word))
    ]
    whole = "\n".join([finding.message, *details, f"evidence: {', '.join(finding.evidence) or 'none'}"])
    small = "\n".join(text for text in (finding.remedy, *(f"Tried: {said}" for said in tried)) if text)
    heading = "  ·  ".join(part for part in parts if part)
    colour = "muted" if muted else COLOURS[finding.severity]
    card.show_text(heading, finding.message, small, colour, whole)


def _when(one: Repeated, labels: dict[int, str]) -> str:
    """In which frames or iterations, where that says anything."""
    finding = one.finding
    if finding.iterations:
        more = f" and {len(finding.iterations) - 1} more" if len(finding.iterations) > 1 else ""
        return f"iteration {finding.iterations[0]:,}{more}"
    if when := in_frames(one, labels):
        return when
    if finding.steps:
        more = f" and {len(finding.steps) - 1} more" if len(finding.steps) > 1 else ""
        return f"step {finding.steps[0]:,}{more}"
    return ""


def lead_to(finding: Finding, view: Any) -> Lead:
    """Where the evidence of a finding is: its first channel that the view has, its frame, steps and iterations."""
    channel = next((name for name in finding.evidence if name in view.channels), "")
    return Lead(
        channel=channel, place=finding.place, frame=finding.frame, steps=finding.steps,
        iterations=finding.iterations, around=_around(finding, channel, view), curves=_curves(finding, view),
    )  # fmt: skip


def _curves(finding: Finding, view: Any) -> tuple[str, ...]:
    """The evidence that is a curve over iterations."""
    known = (name for name in finding.evidence if name in view.channels)
    return tuple(name for name in known if ITERATION_DOMAIN in view.channels[name].dims)


def _around(finding: Finding, channel: str, view: Any) -> tuple[int, ...] | None:
    """The iterations in view, as on the command line."""
    if not channel or ITERATION_DOMAIN not in view.channels[channel].dims:
        return None
    if is_trend(finding.rule):
        return ()
    try:
        around = iterations_around(view, view.channels[channel], finding.frame, finding.iterations)
    except CaptureError:
        return None  # a damaged page of where they were; the panel says so
    return around or ()
