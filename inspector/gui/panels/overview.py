"""Overview: what the model is, what was run, what the rules find, small pictures with their sentences, and notes."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QPoint, QRectF, QSize, Qt, QTimer
from PySide6.QtGui import QColor, QPainter, QRegion
from PySide6.QtWidgets import QWidget

from inspector.analysis.about import model_lines, run_lines
from inspector.analysis.cures import KIND, Tried, tried
from inspector.capture import Capture, CaptureError, Pair, Side, change_note, notes
from inspector.capture.added import forget_trials
from inspector.capture.noted import why_read_only
from inspector.diagnosis import RULES
from inspector.diagnosis.scarce import scarce
from inspector.diagnosis.words import by_reason, in_a_sentence, not_looked, told_once
from inspector.gui.panel.base import Panel
from inspector.gui.panel.overview.finding_cards import lead_to
from inspector.gui.panel.overview.look_over import LookOver
from inspector.gui.panel.overview.page import OverviewPage
from inspector.gui.panel.overview.pending_notes import PendingNotes
from inspector.gui.panel.overview.pictures import PICTURES
from inspector.gui.panel.pages import FIGURE
from inspector.gui.panel.registry import PANELS
from inspector.gui.panel.signals import Lead
from inspector.gui.state.background import Rest
from inspector.gui.state.cursor import Position
from inspector.gui.state.remembered_notes import Pending
from inspector.gui.widgets.theme import Theme
from inspector.records import Channel, Entry, Finding, Note, Noted

Array = npt.NDArray[Any]
POLL_MS = 60
NOT_ASKED = "The rules are not evaluated yet."


@PANELS.register("overview")
class Overview(Panel):
    """Everything of a capture at a glance. Rules and pictures are read in a thread (panel/look_over.py)."""

    tab_order, tab_row = 1, "upper"
    menu_group = "sequence"
    key, title = "overview", "Overview"
    hint = (
        "What the model is, what was run, what the rules find, and a small picture of everything. Run a model, or open "
        "a capture or a log."
    )
    shows = (
        "states",
        "gates",
        "saturation",
        "gradients",
        "jacobian/lag",
        "jacobian/spectral_norm",
        "output/loss",
        "attention/maps",
    )
    by_steps = False

    @classmethod
    def accepts(cls, channel: Channel) -> bool:
        """Everything: it shows what a capture has."""
        return True

    def picture(self) -> QWidget:
        """A page instead of a figure."""
        self.page = OverviewPage()
        return self.page

    def build(self) -> None:
        """The page was made by `picture`."""
        self.look = LookOver()
        self.pending = PendingNotes(self._show_written)
        self._poll = QTimer(self, interval=POLL_MS)
        self._poll.timeout.connect(self._take)
        self.page.pictured.connect(self._to_picture)
        self.page.findings.chosen.connect(self._to_finding)
        self.page.findings.reproducing.connect(self.reproducing)
        self.page.findings.trying.connect(self.trying)
        self.page.findings.muting.connect(self.muting)
        self.page.findings.forgetting.connect(self.forget_trial)
        self.page.notes.chosen.connect(self._to_note)
        self.page.notes.written.connect(self.write_note)
        self.page.notes.changed.connect(self.change_note)
        self.remaining_changed.connect(lambda: self.refresh(frozenset()))

    def know(self, entries: Sequence[Entry], cures: Sequence[Entry] = ()) -> None:
        """Findings offer the cures that may be tried for them."""
        super().know(entries, cures)
        self.page.findings.know(cures)

    def forget_trial(self, cure: str) -> None:
        """Take what came of trying a cure out of the capture again; the page says why where that cannot be."""
        view: Any = self.capture
        try:
            forget_trials(view, [cure])
        except CaptureError as problem:
            self.page.notes.say(str(problem))
            return
        self._show_written(view.path)
        self.redraw()

    def read_project(self) -> None:
        """The project's file has changed."""
        self.look.read_project()
        self.redraw()

    # -- what is shown

    def set_capture(self, capture: Any) -> None:
        """Of two runs that are compared the first one is told about; of two beside each other each at its side."""
        shown: Any = capture.capture if isinstance(capture, Pair) else capture
        if isinstance(capture, Side):
            shown = capture.reference.view
        if shown is not self.capture or shown is None:
            self._poll.stop()
            self.look.show(shown, self.looking.position.frame)
            self.page.findings.forget()
            self.page.notes.forget()
        self.source = self.capture = shown
        self.draw_if_seen()

    def refresh(self, changed: frozenset[str]) -> None:
        """More was captured, or what is left to be computed has changed."""
        if self.capture is None:
            return
        self.look.grown()
        self.draw_if_seen()

    def say_remaining(self, rest: Rest) -> None:
        """A run that breaks off changes what is said of it and of the rules, though nothing was captured."""
        before = self.remaining.broken_off
        super().say_remaining(rest)
        if rest.broken_off != before:
            self.draw_if_seen()

    def channels(self) -> list[Channel]:
        """Whatever the capture has."""
        return list(self.capture.channels.values()) if self.capture is not None else []

    def redraw(self) -> None:
        """Show what is known now, and go on reading."""
        self._drawn, self.stale = self._drawn + 1, False
        if self.capture is None:
            self._show_empty()
            return
        try:
            self.look.turn(self.looking.position.frame)
            self.update_contents()
            self.stack.setCurrentIndex(FIGURE)
            self.control_row.setVisible(False)
            if self.look.busy:
                self._poll.start()
            self.drawn.emit()
        except Exception as fault:  # noqa: BLE001 - a failure of one panel must not affect the window
            self._show_error(str(fault), traceback.format_exc())

    def update_contents(self) -> None:
        """What the capture is of, findings, pictures, notes."""
        view = self.capture
        assert view is not None
        self.page.show_about(view.start.title, [*model_lines(view), *run_lines(view)])
        self._show_findings(view)
        self.page.show_pictures({key: (one.sketch, one.problem) for key, one in self.look.pictures.items()})
        self.read = self.look.read
        self._show_notes(view)
        self.page.order_keys()

    def _show_findings(self, view: Any) -> None:
        if not self.look.asked:  # and so the rules need not be imported here, which takes a tenth of a second
            self.page.show_summary(f"{NOT_ASKED} {self.look.problem}".strip())
            self.page.findings.show_findings([], {})
            self.page.show_looked([])
            return
        said = self.look.diagnosis
        lacking = not_looked(said, view, self.look.asked, again=self.look.busy, coming=self.remaining.question)
        labels = {frame.index: frame.label or f"frame {frame.index}" for frame in view.frames}
        few = "" if self.look.busy else scarce(view, said)
        self.page.show_summary(" ".join(filter(None, [f"{in_a_sentence(said, lacking)}.", few, self.look.problem])))
        self.page.findings.mutes = self.look.mutes
        self.page.findings.show_findings(
            told_once(said.findings), labels if len(labels) > 1 else {}, _tried(view), told_once(said.muted)
        )
        titles = [RULES[key].title for key in said.asked]
        lines = [f"Looked for ({len(titles)}): {'; '.join(titles)}."] if titles else []
        for why, names in by_reason(sorted(lacking, key=lambda one: not one.pending)):
            lines.append(f"Not looked for, {why} ({len(names)}): {'; '.join(names)}.")
        self.page.show_looked(lines)

    def _show_notes(self, view: Any) -> None:
        position, frames = self.looking.position, view.frames
        frame = position.frame if position.frame >= 0 else frames[-1].index if frames else -1
        offered = [("About the whole", Noted())]
        if len(frames) > 1:
            offered.append((f"About frame {frame}", Noted(frame=frame)))
        for axis, step in position.steps.items():
            about = Noted(frame=frame, step=step, axis=axis)
            offered.append((f"About {about.words}", about))
        for finding in self.page.findings.findings():
            about = note_about(finding)
            offered.append((f"About {about.words}", about))
        self.page.notes.offer(offered)
        self.page.notes.show_notes(notes(view), why_read_only(view))
        if said := self.pending.said:
            self.page.notes.say(said)

    def _take(self) -> None:
        """What was read since."""
        if self.pending.write_first():
            self.redraw()
            self.note_written.emit()
        if not self.on_screen and not self.pending.all:
            self._poll.stop()
            return
        if self.look.tick() and self.capture is not None:
            self.update_contents()
            self.drawn.emit()
        if not self.look.busy and not self.pending.all:
            self._poll.stop()

    def complete(self) -> None:
        """Read all that is left: a figure in a file shows the whole."""
        self.look.wait()
        if self.capture is not None:
            self.update_contents()

    # -- notes

    def write_note(self, where: Noted, text: str) -> None:
        """Keep a note; while a run writes the capture it waits for the end of that."""
        try:
            self.keep_note(self.capture, where, text)
        except CaptureError as problem:
            self.page.notes.say(str(problem))
            return
        self.page.notes.written_down()
        self.redraw()

    def keep_note(self, view: Any, where: Noted, text: str) -> bool:
        """The same for a capture that is open in the window; whether the note is there now. Raises CaptureError."""
        there = self.pending.keep(view, where, text)
        self.pending.forget_lost()
        if not there:
            self._poll.start()
        return there

    def change_note(self, note: Note, text: str) -> None:
        """Give a note other words, or remove it where there are none; the page says why where that cannot be."""
        view: Any = self.capture
        try:
            change_note(view, note, text)
        except CaptureError as problem:
            self.page.notes.say(str(problem))
            return
        self._show_written(view.path)
        if text.strip():
            self.page.notes.written_down()
        self.redraw()

    def wait_for(self, pending: Sequence[Pending]) -> None:
        """Notes that are to be written when the run that writes their capture has ended, also of an earlier window."""
        self.pending.add(pending)
        if self.pending.all:
            self._poll.start()

    def _show_written(self, path: Path) -> None:
        """A note was written into a capture, which may be the one that is shown."""
        if isinstance(self.capture, Capture) and self.capture.path == path:
            self.capture.refresh()
        self.note_written.emit()

    # -- where it leads

    def _to_picture(self, key: str) -> None:
        sketch = self.look.pictures[key].sketch
        channel = sketch.channel if sketch is not None else ""
        place = sketch.place if sketch is not None else ""
        self.leading.emit(
            Lead(panel=PICTURES[key].panel, channel=channel, place=place, frame=self.looking.position.frame)
        )

    def _to_finding(self, finding: Finding) -> None:
        self.leading.emit(lead_to(finding, self.capture))

    def _to_note(self, where: Noted) -> None:
        known = [one for one in self.page.findings.findings() if note_about(one) == where]
        if known:
            self._to_finding(known[0])
            return
        if where.unit >= 0:
            self.looking.move(unit=where.unit)
        steps = (where.step,) if where.step >= 0 else ()
        iterations = (where.iteration,) if where.iteration >= 0 else ()
        self.leading.emit(
            Lead(place=where.place, frame=where.frame, steps=steps, iterations=iterations, axis=where.axis)
        )

    # -- the rest of a panel

    def follow(self, new: Position, old: Position) -> None:
        """Notes are offered about the step under the cursor."""
        if self.capture is not None:
            self._show_notes(self.capture)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.page.set_theme(theme)
        super().set_theme(theme)

    def data(self) -> dict[str, Array]:
        """The curves of the pictures that have lines, as (2, n): places and values."""
        found = {}
        sketches = ((key, one.sketch) for key, one in self.look.pictures.items() if one.sketch is not None)
        for key, sketch in sketches:
            for line in sketch.lines:
                values = 10.0**line.y if sketch.log else line.y
                found[f"{key}:{line.name}"] = np.stack((line.x, values))
        return found

    def picture_size(self) -> QSize:
        """The whole page, also what is scrolled out of view; in a file of a certain size, that."""
        if self.testAttribute(Qt.WidgetAttribute.WA_DontShowOnScreen):
            self.page.without_controls()
        return self.stack.size() if self.figure.fixed else self.page.laid_out().size()

    def paint(self, painter: QPainter, rect: QRectF) -> None:
        """The whole page, also what is scrolled out of view."""
        painter.fillRect(rect, QColor(self.theme.window))
        size = rect.size().toSize()
        inside = self.page.laid_out_in(size.width(), size.height()) if self.figure.fixed else self.page.laid_out()
        painter.save()
        painter.translate(rect.topLeft())
        scale = min(1.0, rect.width() / max(1, inside.width()), rect.height() / max(1, inside.height()))
        painter.scale(scale, scale)
        for tile in self.page.tiles.values():
            tile.cached = False  # a picture of it has the pixels of the screen
        inside.render(painter, QPoint(), QRegion(), QWidget.RenderFlag.DrawChildren)
        for tile in self.page.tiles.values():
            tile.cached = True
        painter.restore()


def _tried(view: Any) -> dict[int, list[Tried]]:
    """What cures did that were tried, by frame; -1 is the newest. What cannot be read is told in its panel.

    Of a training that was watched they are tried once for all frames, and so told with findings of any.
    """
    if not any(channel.kind == KIND for channel in view.channels.values()):
        return {}
    found: dict[int, list[Tried]] = {}
    for frame in (-1, *(one.index for one in view.frames)):
        with suppress(CaptureError):
            found[frame] = tried(view, -1 if "training" in view.start.meta else frame)
    return found


def note_about(finding: Finding) -> Noted:
    """What a note on a finding is about."""
    return Noted(frame=finding.frame, finding=finding.id or finding.rule, place=finding.place)
