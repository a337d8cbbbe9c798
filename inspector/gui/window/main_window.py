"""The main window: it appears at once, then the panels are loaded, then torch in its worker."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from traceback import format_exc
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDragLeaveEvent, QDropEvent, QKeyEvent, QResizeEvent

from inspector.gui.dialogs.trust_dialog import ask_trust
from inspector.gui.state.exchange import Changes
from inspector.gui.state.pauses import beat, no_more_beats
from inspector.gui.state.session import Session
from inspector.gui.state.settings import Settings
from inspector.gui.widgets.theme import Theme
from inspector.gui.window.asking import Asking
from inspector.gui.window.menus import add_panel_menus, make_menus
from inspector.gui.window.muting import change_mute
from inspector.gui.window.panel_asks import answer, remember_colours, show_chosen_steps
from inspector.gui.window.saving import save_script
from inspector.gui.window.tour import Tour
from inspector.gui.window.trying import try_cure
from inspector.gui.window.waiting_notes import may_close, remember_waiting, take_waiting
from inspector.gui.window.welcome.welcome import Welcome
from inspector.gui.window.welcome.where_left import remember_run, remember_view
from inspector.records import Catalog, Log

if TYPE_CHECKING:
    from inspector.gui.panel.base import Panel
    from inspector.gui.panels.overview import Overview

TICK_MS = 16
REMEMBER_MS = 3000
"""What was chosen is written so often."""
DOCKS_AT_A_TIME = 8
"""Docks that are made before events are answered again."""
CRASHED = "The window crashed the last time it was open; {} says where, and can be sent."
LOW = 640
"""Pixels of height below which a window is low."""


class Window(Asking):
    """One session on screen. `closed` when it closes."""

    closed = Signal()

    def __init__(self, session: Session, settings: Settings) -> None:
        super().__init__(session, settings)
        self._known: Catalog | None = None
        self._loaded = False
        self._asks = True
        """Whether it may ask something as it closes."""
        self._broken: tuple[str, ...] = ()
        """Files of panels that could not be loaded, with the reason."""
        self._menus = make_menus(self)
        self.tour = Tour(self)
        self.welcome = Welcome(self, self.open_at)
        self.welcoming.connect(self.welcome.open)
        self.touring.connect(self.tour.begin)
        self.apply_theme(self.theme)
        self._ticker = QTimer(self, interval=TICK_MS)
        self._ticker.timeout.connect(self.tick)
        self._remembering = QTimer(self, interval=REMEMBER_MS)
        self._remembering.timeout.connect(self.check_settings)

    def load_panels(self) -> None:
        """Import the panels (and the plotting library) now that the window is shown; then start the worker."""
        for _ in self.loading():
            pass

    def loading(self) -> Iterator[None]:
        """The same in steps, between which events may be answered; once only."""
        if self._loaded:
            return
        self._loaded = True
        from inspector.gui.panel.registry import PANELS, ordered

        remember_colours(self)
        show_chosen_steps(self)
        self.panels.begin(dict(ordered()), self._made)
        for number, (key, kind) in enumerate(self.panels.kinds.items()):
            self.docking.prepare_panel(key, kind)
            if number % DOCKS_AT_A_TIME == DOCKS_AT_A_TIME - 1:
                yield
        for key in self.panels.kinds:
            self.docking.add_panel(key)
        self._broken = tuple(f"{bad.origin}: {bad.reason}" for bad in PANELS.broken)
        for line in self._broken:
            self.session.note(Log(f"Broken: {line}", "warning"))
        self.docking.set_theme(self.theme)
        self.docking.settle(self.panels, self.settings)  # at once: docks that stand side by side widen the window
        self.welcome.page.raise_()  # above the docks
        yield
        add_panel_menus(self, self._menus)
        for key in self.panels.kinds:  # while docks are arranged, each of them is visible for a moment
            self.docks[key].visibilityChanged.connect(lambda seen, key=key: self._turned(key, seen))
            if key in self.docking.seen:
                yield  # making a panel takes long
            self._turned(key, key in self.docking.seen)
        self.session.start_worker()
        self._ticker.start()
        self._remembering.start()
        self.welcome.may_look_up()

    def new_capture(self) -> None:
        """Another capture is shown, or none."""
        self.welcome.close()
        super().new_capture()
        remember_view(self)  # for the start after a crash

    def apply_theme(self, theme: Theme) -> None:
        """Other colours everywhere."""
        super().apply_theme(theme)
        self.welcome.set_theme(theme)
        self.tour.set_theme(theme)

    def _turned(self, key: str, seen: bool) -> None:
        """A panel has become visible, or is no longer."""
        self.read_soon()
        self.comparing.beside.say_on_screen(key, seen)
        if not seen:
            return
        self.panels.make(key)
        self.say_what_remains()
        self.comparing.show_beside()

    def _made(self, key: str, kind: type[Panel]) -> Panel | None:
        """A panel, in its dock; where one of another package cannot be made, its dock and the log say why."""
        try:
            panel = kind(self.looking, self.steps, self.theme)
            panel.wanted.connect(self.compute_also)
            panel.editing.connect(self.edit)
            panel.searching.connect(self.searches.ask)
            panel.opening.connect(self.open_sequence)
            panel.leading.connect(self.go_to)
            panel.note_written.connect(self.show_notes)
            panel.note_written.connect(self.holding.say_kept)
            panel.reproducing.connect(lambda finding: save_script(self, finding))
            panel.trying.connect(lambda finding, cure: try_cure(self, finding, cure))
            panel.muting.connect(lambda mute, on: change_mute(self, mute, on=on))
            panel.drawn.connect(self.read_soon)
            answer(self, key, panel)
            if key == "overview":
                take_waiting(self.settings, cast("Overview", panel))
            self.docking.put(key, panel)
            self.sessions.choose(key, panel)
            if self.session.catalog is not None:
                panel.know(self.session.catalog.quantities, self.session.catalog.cures)
            panel.say_computed(self.has_computed(panel.extra))
            if self.panels.source is not None:
                if panel.on_screen:
                    panel.stack.blank()
                    panel.draw_in_turn()
                panel.set_capture(self.panels.source)
            return panel
        except Exception as fault:  # noqa: BLE001 - a failure of one panel must not affect the window
            why = f"{type(fault).__name__}: {fault}"
            self.session.note(Log(f"Broken: the panel {key}: {why}", "warning"))
            self.docking.say(key, f"This panel could not be made; the others still work.\n\n{why}\n\n{format_exc()}")
            return None

    def say_crashed(self, file: Path) -> None:
        """Where the window that was open before has crashed: the log has the whole path, the status row shows the
        folder."""
        self.session.note(Log(CRASHED.format(file), "warning", "window"))
        self.session.sentence = CRASHED.format(file.name)
        self.status.offer_folder(self.session.sentence, file)
        self.status.show_state()

    # -- the tick

    @Slot()
    def check_settings(self) -> None:
        """Say once that what is chosen cannot be remembered (a full disk)."""
        if why := self.settings.newly_lost():
            self.session.note(Log(why, "warning", "window"))
            self.say(why)

    @Slot()
    def tick(self) -> None:
        """Take the changes; draw only what changed."""
        beat()
        changes = self.session.tick()
        self.damage.show_capture(self.session.capture)
        self.rebuilt.show_loaded(self.session.loaded)
        catalog = self.session.catalog
        self.broken.show_broken((*self._broken, *(catalog.broken if catalog is not None else ())))
        self.log.add(changes.lines, changes.begun)
        if changes.another_capture:
            (self.show_opened if changes.opened else self.new_capture)()
            self.searches.appeared()
            remember_run(self)
        elif changes.channels:
            self.grown(changes.channels)
        self.comparing.tick()
        if changes.parameters is not None:
            self.comparing.take(changes.parameters)
        if changes.computed or changes.state:
            self.say_what_was_computed()
        if changes.state or changes.channels or changes.another_capture or self.session.background.present:
            self.say_what_remains()
        if changes.state:
            self._know(self.session.catalog)
            self.runs.show_capture(self.session.capture)
        if changes.loaded is not None and not changes.loaded.needs_consent:
            self.welcome.close()
            self.input.set_loaded(changes.loaded)
            self.input.show_spec(self.session.spec)
        if changes.state or self.session.busy or self.session.background.present:
            self.show_state()
        if changes.state and not self.session.busy:
            self.docking.give_way(self.session.capture)
            self.docking.label_tabs()
        self._answer(changes)
        if changes.looked is not None:
            self.go_on(changes.looked)
        self.open_at.go()
        self.sessions.tick()

    def _know(self, catalog: Catalog | None) -> None:
        """Offer the entries of the worker's catalogue, once it has arrived."""
        if catalog is not None and catalog is not self._known:
            self._known = catalog
            self.offer(catalog)

    def _answer(self, changes: Changes) -> None:
        if changes.consent is not None and changes.consent.report is not None:
            self.models.report(changes.consent.report, self.session.agree, self._refuse)
        elif changes.untrusted is not None:
            ask_trust(self, changes.untrusted, self.session.agree_to_code, self._refuse)
        elif changes.refused is not None and self.input.is_of(changes.refused):
            assert changes.failure is not None
            self.input.say(changes.failure.message)
        elif changes.failure is not None and not (self.models.came_back(changes) or self.weights.came_back(changes)):
            self.tell(changes.failure.message, changes.failure.details)

    def _refuse(self) -> None:
        """What waited for an answer is not done, which the status row says."""
        self.session.refuse()
        self.show_state()

    # -- keys, files that are dropped, and the end

    def show_fault(self, line: Log, sentence: str, file: Path | None = None) -> None:
        """An internal error of the window: the log has the details, the status row one line at once, and a button that
        shows the file to send in its folder."""
        self.session.log.append(line)
        self.log.add([line])
        self.session.sentence = sentence
        if file is not None:
            self.status.offer_folder(sentence, file)
        with contextlib.suppress(Exception):  # the row itself may be what went wrong
            self.show_state()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Files may be dropped, which the first page shows; they are copied, in the words of file managers: one that is
        told of a move may remove its file."""
        if event.mimeData().hasUrls():
            event.setDropAction(Qt.DropAction.CopyAction)
            event.accept()
            urls = event.mimeData().urls()
            self.welcome.page.zone.expect([Path(url.path()).name or url.toString() for url in urls])

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        """They are held elsewhere."""
        self.welcome.page.zone.expect([])
        super().dragLeaveEvent(event)

    def dropEvent(self, event: QDropEvent) -> None:
        """Open what was dropped; several captures and logs together."""
        self.welcome.page.zone.expect([])
        event.setDropAction(Qt.DropAction.CopyAction)
        event.accept()
        urls = event.mimeData().urls()
        self.open_paths([url.toLocalFile() for url in urls if url.isLocalFile()])
        if far := [url.toDisplayString() for url in urls if not url.isLocalFile()]:
            self.fail(f"{far[0]} is no file of this machine, so it is not opened: nothing is downloaded.")

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Bars that were squeezed at the sides get their widths again; in a low window some give way to panels."""
        super().resizeEvent(event)
        self.docking.resized()
        self.timeline.view.allow(self.height())
        self.frames.give_way(self.height() < LOW)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Space plays; arrows move along the axis in focus wherever no field uses them."""
        if event.key() == Qt.Key.Key_Space:
            self.play()
        elif event.key() in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            many = 10 if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else 1
            self.looking.advance(many if event.key() == Qt.Key.Key_Right else -many, self.looking.focused)
        elif event.key() in (Qt.Key.Key_Home, Qt.Key.Key_End):
            axis = self.looking.focused
            last = max(0, self.looking.length_of(axis) - 1)
            self.looking.move(steps={axis: last if event.key() == Qt.Key.Key_End else 0})
        else:
            super().keyPressEvent(event)

    def close_unasked(self) -> None:
        """Close it where nobody may be there to answer: a signal asks for that."""
        self._asks = False
        self.close()

    def closeEvent(self, event: QCloseEvent) -> None:
        """Remember the layout, end the worker; captures are on disk already."""
        overview = cast("Overview | None", self.panels.made.get("overview"))
        if self._asks and overview is not None and not may_close(self, self.settings, overview):
            event.ignore()
            return
        self.closed.emit()
        self._ticker.stop()
        no_more_beats()
        self._remembering.stop()
        self.player.stop()
        remember_view(self)
        self.docking.remember(self.settings)
        self.welcome.end()
        self.tour.end()
        self.timeline.show_capture(None, -1, follow=True)
        self.comparing.end()
        self.report.close()
        self.trials.close()
        self._menus.exporting.close()
        for panel in self.panels.made.values():
            panel.set_capture(None)
        if self._listen is not None:
            self._listen.close()
        self.hide()  # a worker that hangs takes a while to end
        self.session.close()
        if overview is not None:
            remember_waiting(self.settings, overview)
        super().closeEvent(event)
