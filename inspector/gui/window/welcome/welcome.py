"""The first page in its window: when it is seen, what is on it, and what a click on it does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QTimer
from PySide6.QtWidgets import QHBoxLayout, QMessageBox, QPushButton, QWidget

from inspector.analysis.sizes import bytes_text
from inspector.capture import CaptureError
from inspector.capture.regular import is_there
from inspector.gui.state.remembered import Opened, Place, last_place, recent_models
from inspector.gui.state.shown import Made
from inspector.gui.widgets.plain_text import plain_box
from inspector.gui.widgets.theme import Theme
from inspector.gui.window.welcome.cards import OpenCard
from inspector.gui.window.welcome.looked_up import Kept, LookUp
from inspector.gui.window.welcome.page import WelcomePage, heading
from inspector.records import Run, counted
from inspector.workspace.sample_kinds import by_kind
from inspector.workspace.samples import list_samples
from inspector.workspace.trainings import list_trainings

if TYPE_CHECKING:
    from inspector.gui.window.asking import Asking
    from inspector.gui.window.open_at import OpenAt

MOST_MODELS, MOST_FILES, MOST_KEPT = 4, 4, 3
LOOK_MS = 60
MOVED = (QEvent.Type.Resize, QEvent.Type.LayoutRequest, QEvent.Type.ChildAdded, QEvent.Type.Show)
SURE = "Remove {} that this app keeps ({})? What a window shows stays, and so does whatever you saved elsewhere."


class Welcome(QObject):
    """Shows the page over the panels until something is open."""

    def __init__(self, window: Asking, open_at: OpenAt) -> None:
        super().__init__(window)
        self.window, self.open_at = window, open_at
        self.page = WelcomePage(window)
        self.page.hide()
        self.page.asked.connect(self._ask)
        self.page.closed.connect(self.close)
        self.page.escaped.connect(self._escape)
        self.kept: Kept | None = None
        self._ready = False
        self._look: LookUp | None = None
        self._trainings: dict[str, OpenCard] = {}
        self._timer = QTimer(self, interval=LOOK_MS)
        self._timer.timeout.connect(self._take)
        self._raiser = QTimer(self, interval=0, singleShot=True)
        """Started where docks come or move: Qt puts them, and the bars of their tabs, above all that is there."""
        self._raiser.timeout.connect(self.page.raise_)
        window.installEventFilter(self)

    # -- seen or not

    def open(self) -> None:
        """Show the page, with what is recent now."""
        if not self._trainings:
            self._list_samples()
        self._list_recent()
        self.page.set_theme(self.window.theme)
        self._cover()
        self.page.show()
        self.page.raise_()
        next(iter(self.page.buttons.values())).setFocus()
        self.look_up()

    def close(self) -> None:
        """Show the panels."""
        self.page.hide()

    def _escape(self) -> None:
        """Cancel what is being opened; where nothing is, show the panels."""
        if self.window.session.waited_for or self.window.session.reading is not None:
            self.window.session.cancel()
        else:
            self.close()

    @property
    def seen(self) -> bool:
        """Whether the page covers the panels."""
        return not self.page.isHidden()

    def end(self) -> None:
        """The window closes."""
        self._timer.stop()
        self._raiser.stop()
        if self._look is not None:
            self._look.close()
            self._look = None

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """The page is as large as what it covers."""
        if event.type() in MOVED and self.seen:
            self._cover()
            self._raiser.start()
        return False

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.page.set_theme(theme)

    def _cover(self) -> None:
        """All between the menu and the status row."""
        top, bottom = self.window.menuBar().geometry().bottom() + 1, self.window.statusBar().height()
        self.page.setGeometry(0, top, self.window.width(), self.window.height() - top - bottom)

    # -- what is looked up beside the window

    def may_look_up(self) -> None:
        """The panels are loaded, whose readers are used."""
        self._ready = True
        self.look_up()

    def look_up(self) -> None:
        """Read titles and sizes, and curves that are not known yet, in a thread, for a page that is seen."""
        if self._ready and self.seen and self._look is None:
            without = [one for one in list_trainings() if self._trainings[one.name].sketch is None]
            self._look = LookUp(self.window.session.shown.kept, without, MOST_KEPT)
            self._timer.start()

    def _take(self) -> None:
        if self._look is None:
            return
        finished = self._look.finished
        for found in self._look.take():
            if isinstance(found, Kept):
                self.kept = found
                self._list_recent()
            elif found[0] in self._trainings:
                self._trainings[found[0]].show_sketch(found[1])
        if finished:
            self._timer.stop()
            self._look = None

    # -- contents

    def _list_samples(self) -> None:
        groups = []
        window = self.window
        for training in list_trainings():
            whole = f"{training.name}: {training.title}: {training.task}. Look for: {training.shows}"
            card = OpenCard(training.title, training.task, whole)
            card.clicked.connect(lambda _=False, path=str(training.capture): window.open_path(path))
            self._trainings[training.name] = card
        if self._trainings:
            groups.append(("Recorded trainings", list(self._trainings.values())))
        for kind, samples in by_kind(list_samples()):
            cards = []
            for sample in samples:
                whole = f"{sample.title}: {sample.task}. Look for: {sample.shows}"
                card = OpenCard(sample.name, sample.shows, whole, kind.key)
                card.clicked.connect(lambda _=False, name=sample.name: window.open_sample(name))
                cards.append(card)
            groups.append((kind.title, cards))
        self.page.fill_samples(groups)

    def _list_recent(self) -> None:
        parts: list[tuple[QWidget, list[OpenCard]]] = [
            (heading("Go on", 1.0), self._last()),
            (heading("Recent models", 1.0), self._models()),
            (heading("Recent captures and logs", 1.0), self._files()),
        ]
        if self.kept is not None and self.kept.count:
            parts.append((self._kept_head(self.kept), self._kept_cards(self.kept)))
        self.page.fill_lists(parts)

    def _last(self) -> list[OpenCard]:
        place = last_place(self.window.settings)
        if place is None:
            return []
        card = OpenCard("Continue where I was", place.title or Path(place.path).name, place.path)
        card.clicked.connect(lambda: self.go_on(place))
        return [card]

    def _models(self) -> list[OpenCard]:
        cards = []
        for model in recent_models(self.window.settings)[:MOST_MODELS]:
            card = OpenCard(model.title or model.subject, model.words, f"{model.subject}\n{model.checkpoint}".strip())
            card.clicked.connect(lambda _=False, model=model: self.open_model(model))
            cards.append(card)
        return cards

    def _files(self) -> list[OpenCard]:
        there = [path for path in self.window.settings.recent() if is_there(path)]
        return [self._of_path(path, Path(path).name, str(Path(path).parent)) for path in there[:MOST_FILES]]

    def _of_path(self, path: str, name: str, line: str) -> OpenCard:
        card = OpenCard(name, line, path)
        card.clicked.connect(lambda: self.window.open_path(path))
        return card

    def _kept_cards(self, kept: Kept) -> list[OpenCard]:
        return [self._of_path(str(path), title, path.name) for path, title in kept.newest]

    def _kept_head(self, kept: Kept) -> QWidget:
        """How many runs there are, how much they take, and the button that removes them."""
        head = QWidget()
        row = QHBoxLayout(head)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(heading(f"Kept: {counted(kept.count, 'run')}, {bytes_text(kept.size)}", 1.0))
        row.addStretch(1)
        clear = QPushButton("Clear…")
        clear.setToolTip(str(self.window.session.runs))
        clear.clicked.connect(self.ask_to_clear)
        row.addWidget(clear)
        return head

    # -- what is done

    def open_model(self, model: Opened) -> None:
        """Open a model as it was opened before, and run what ran on it last."""
        self.window.models.then = model.input
        self.window.open_model(model.load)

    def go_on(self, place: Place) -> None:
        """Show what was shown when the window was closed, at its place; its model is opened too, and does not run."""
        window = self.window
        self.open_at.ask(place.view, after=window.session.capture)
        window.sessions.bring_back(place.session)
        if not place.model.subject:
            window.open_path(place.path)
            return
        made = Made(Run(path=place.path, input=place.model.input), place.model.subject)
        try:
            window.session.show_again(made)
        except CaptureError as problem:
            window.fail(str(problem))
            return
        window.new_capture()
        window.session.start_worker()
        window.session.begin_opening(place.model.load, None)
        window.show_state()

    def ask_to_clear(self) -> None:
        """Remove the kept runs, after a question that is answered with No by Enter and Escape."""
        if self.kept is None:
            return
        words = SURE.format(counted(self.kept.count, "run"), bytes_text(self.kept.size))
        box = plain_box(self.window, "Clear", words)
        remove = box.addButton("Remove them", QMessageBox.ButtonRole.AcceptRole)
        box.setDefaultButton(box.addButton(QMessageBox.StandardButton.Cancel))
        box.exec()
        if box.clickedButton() is remove:
            self.clear()

    def clear(self) -> None:
        """Remove the kept runs that no window shows, and look again."""
        self.window.session.shown.clear_kept()
        self.kept = None
        self._list_recent()
        self.look_up()

    def _ask(self, kind: str) -> None:
        from inspector.gui.window.menus import open_file

        if kind == "model":
            self.window.open_model()
        else:
            open_file(self.window, kind)
