"""The main window: it stands at once, then the panels come, then torch in its worker."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QByteArray, Qt, QTimer, Slot
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QKeyEvent
from PySide6.QtWidgets import (
    QApplication,
    QComboBox,
    QDockWidget,
    QHBoxLayout,
    QMainWindow,
    QProgressBar,
    QPushButton,
    QTabBar,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from inspector.capture import PACKED_SUFFIX, SUFFIX, CaptureError
from inspector.gui.cursor import Cursor, Position
from inspector.gui.dialogs import OpenModelDialog, ReportDialog, ask_trust
from inspector.gui.inputbar import InputBar
from inspector.gui.session import Changes, Session
from inspector.gui.settings import LAYOUT_VERSION, Settings
from inspector.gui.sidebars import LogPane, ModelTree, Opener, Readout
from inspector.gui.steprange import StepRange
from inspector.gui.text import clean, plain_box, plain_label
from inspector.gui.theme import DARK, LIGHT, Theme, system_theme
from inspector.gui.tokenstrip import TokenStrip
from inspector.records import InputSpec, Load
from inspector.streams.samples import list_samples

if TYPE_CHECKING:
    from inspector.gui.panel import Panel

TICK_MS = 16
READOUT_MS = 60
PLAY_MS = 120
COLOURINGS = ("output:surprise", "output:loss")
SEQUENCES = (".txt", ".ids", ".npy", ".npz", ".csv", ".wav", ".flac")
CHECKPOINTS = (".safetensors", ".pt", ".pth", ".bin", ".ckpt")
SIDE = Qt.DockWidgetArea


class Window(QMainWindow):
    """One session on screen."""

    def __init__(self, session: Session, settings: Settings) -> None:
        super().__init__()
        self.session, self.settings = session, settings
        self.looking, self.steps = Cursor(self), StepRange(self)
        self.theme = self._wanted_theme()
        self.panels: dict[str, Panel] = {}
        self.docks: dict[str, QDockWidget] = {}
        self._default_state = QByteArray()
        self._colouring = ""
        self.setWindowTitle("inspector")
        self.setObjectName("window")
        self.setAcceptDrops(True)
        self.setDockNestingEnabled(True)
        self.resize(1440, 900)
        self._build_frame()
        from inspector.gui.actions import make_menus

        self.menu_actions = make_menus(self)
        self.apply_theme(self.theme)
        self._ticker = QTimer(self, interval=TICK_MS)
        self._ticker.timeout.connect(self.tick)
        self._reader = QTimer(self, interval=READOUT_MS, singleShot=True)
        self._reader.timeout.connect(self._read_out)
        self._player = QTimer(self, interval=PLAY_MS)
        self._player.timeout.connect(self._play_on)
        self.looking.moved.connect(self._moved)

    # -- building

    def _build_frame(self) -> None:
        self.opener, self.tree, self.readout, self.log = Opener(), ModelTree(), Readout(), LogPane()
        self.opener.fill(list_samples(), self.settings.recent())
        self.opener.sample_chosen.connect(self.open_sample)
        self.opener.path_chosen.connect(self.open_path)
        self.tree.place_chosen.connect(lambda place: self.looking.move(place=self._captured_place(place)))
        self.strip = TokenStrip(self.looking, self.theme)
        self.colour_by = QComboBox()
        self.colour_by.setAccessibleName("Colour the sequence by")
        self.colour_by.setToolTip("Colour the sequence by")
        self.colour_by.setMinimumContentsLength(16)
        self.colour_by.currentTextChanged.connect(self._recolour)
        self.colour_by.textActivated.connect(lambda name: self.settings.set_text("colour", name))
        self.input = InputBar()
        self.input.asked.connect(self.run)
        self.input.cancelled.connect(self.session.cancel)
        top = QWidget()
        layout = QVBoxLayout(top)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        row = QHBoxLayout()
        row.setContentsMargins(8, 2, 8, 2)
        row.addWidget(self.strip, 1)
        row.addWidget(self.colour_by)
        layout.addWidget(self.input)
        layout.addLayout(row)
        self.setCentralWidget(top)
        top.setFixedHeight(layout.sizeHint().height() + 6)
        self._dock("open", "Open", self.opener, SIDE.LeftDockWidgetArea)
        self._dock("model", "Model", self.tree, SIDE.LeftDockWidgetArea)
        self._dock("numbers", "Under the cursor", self.readout, SIDE.RightDockWidgetArea)
        self._dock("log", "Log", self.log, SIDE.BottomDockWidgetArea)
        self.setCorner(Qt.Corner.BottomLeftCorner, SIDE.LeftDockWidgetArea)
        self.setCorner(Qt.Corner.BottomRightCorner, SIDE.RightDockWidgetArea)
        self.setTabPosition(SIDE.AllDockWidgetAreas, QTabWidget.TabPosition.North)
        self._build_status()

    def _build_status(self) -> None:
        self.sentence, self.elapsed, self.worker_label = plain_label(), plain_label(), plain_label()
        self.bar = QProgressBar()
        self.bar.setMaximumWidth(180)
        self.bar.setTextVisible(False)
        self.bar.hide()
        self.stop = QPushButton("Cancel")
        self.stop.clicked.connect(self.session.cancel)
        self.stop.hide()
        self.restart = QPushButton("Start again")
        self.restart.clicked.connect(self.session.start_again)
        self.restart.hide()
        status = self.statusBar()
        status.addWidget(self.sentence, 1)
        for widget in (self.elapsed, self.bar, self.stop, self.restart, self.worker_label):
            status.addPermanentWidget(widget)

    def _dock(self, key: str, title: str, widget: QWidget, area: Qt.DockWidgetArea) -> QDockWidget:
        dock = QDockWidget(title, self)
        dock.setObjectName(f"dock-{key}")
        dock.setWidget(widget)
        self.addDockWidget(area, dock)
        self.docks[key] = dock
        return dock

    def load_panels(self) -> None:
        """Import the panels (and the plotting library) now that the window stands; then start the worker."""
        from inspector.gui.actions import add_panel_menus
        from inspector.gui.shelf import ordered

        for key, make in ordered():
            panel = make(self.looking, self.steps, self.theme)
            self.panels[key] = panel
            dock = self._dock(key, make.title, panel, SIDE.BottomDockWidgetArea)
            dock.visibilityChanged.connect(lambda seen, panel=panel: panel.redraw() if seen else None)
        self._arrange()
        add_panel_menus(self)
        self._default_state = self.saveState(LAYOUT_VERSION)
        remembered = self.settings.layout()
        if remembered is not None:  # before anything is painted: Qt leaves ghosts of tab bars otherwise
            self.restoreGeometry(remembered[0])
            self.restoreState(remembered[1], LAYOUT_VERSION)
        else:
            QApplication.processEvents()
            self._proportions()
        self.session.start_worker()
        self._ticker.start()

    def _arrange(self) -> None:
        """The first layout: states, gates and attention above; norms, lags, gradients, outputs, health below."""
        above = [key for key in ("states", "gates", "attention") if key in self.docks]
        below = [key for key in self.panels if key not in above]
        if above and below:
            self.splitDockWidget(self.docks[above[0]], self.docks[below[0]], Qt.Orientation.Vertical)
        for group in (above, below):
            for first, second in pairwise(group):
                self.tabifyDockWidget(self.docks[first], self.docks[second])
            if group:
                self.docks[group[0]].raise_()
        if below:
            self.splitDockWidget(self.docks[below[0]], self.docks["log"], Qt.Orientation.Vertical)
        self.docks["log"].hide()

    def _proportions(self) -> None:
        """How the room is shared out; only sizes that are on screen can be set, so this comes after the arranging."""
        rows = [self.docks[key] for key in ("states", "jacobians") if key in self.docks]
        self.resizeDocks(rows, [430, 300][: len(rows)], Qt.Orientation.Vertical)
        self.resizeDocks([self.docks["open"], self.docks["numbers"]], [250, 290], Qt.Orientation.Horizontal)
        self.resizeDocks([self.docks["open"], self.docks["model"]], [300, 400], Qt.Orientation.Vertical)

    def reset_layout(self) -> None:
        """The layout of the first start."""
        self.restoreState(self._default_state, LAYOUT_VERSION)
        for dock in self.docks.values():
            dock.setVisible(dock is not self.docks["log"])
        QApplication.processEvents()
        self._proportions()
        self._hide_ghosts()

    def _hide_ghosts(self) -> None:
        """Tab bars that Qt leaves where a group of docks stood before a layout was restored."""
        titles = {dock.windowTitle() for dock in self.docks.values()}
        seen: set[tuple[str, ...]] = set()
        bars = [bar for bar in self.findChildren(QTabBar) if bar.parent() is self and bar.isVisible()]
        for bar in sorted(bars, key=lambda bar: bar.y()):
            names = tuple(bar.tabText(i) for i in range(bar.count()))
            ghost = not names or names in seen or not set(names) <= titles
            seen.add(names)
            if ghost:
                bar.hide()

    # -- opening

    @Slot(str, str)
    def open_sample(self, name: str, checkpoint: str = "", then: InputSpec | None = None) -> None:
        """Open a sample and run its first example."""
        self.session.open_subject(Load(subject=name, checkpoint=checkpoint), then)
        self._show_state()

    def open_model(self, load: Load | None = None) -> None:
        """Ask which model; a file of code is asked about before it runs."""
        if load is None:
            dialog = OpenModelDialog(self)
            if not dialog.exec():
                return
            load = dialog.load()
        if ask_trust(self, load.subject):
            self.settings.set_text("subject", load.subject)
            self.session.open_subject(load)
            self._show_state()

    @Slot(str)
    def open_path(self, path: str) -> None:
        """Open whatever a file is: a capture, a model's code, a checkpoint, a sequence."""
        suffix = Path(path).suffix.lower()
        if path.rstrip("/").endswith((SUFFIX, PACKED_SUFFIX)):
            self.open_capture(path)
        elif suffix in SEQUENCES:
            self.input.show_file(path)
            self.run(InputSpec(kind="file", value=path))
        elif suffix == ".py" or suffix in CHECKPOINTS:
            dialog = OpenModelDialog(
                self, *((f"{path}:", "") if suffix == ".py" else (self.settings.text("subject"), path))
            )
            if dialog.exec():
                self.open_model(dialog.load())
        else:
            self.fail(
                f"{Path(path).name} is nothing that can be opened here: a capture, a .py, a checkpoint or a sequence."
            )

    def open_capture(self, path: str) -> None:
        """Show a capture from disk."""
        try:
            self.session.open_capture(path)
        except CaptureError as problem:
            self.fail(str(problem))
            return
        self.settings.add_recent(str(Path(path).absolute()))
        self.opener.fill(list_samples(), self.settings.recent())
        self._new_capture()

    @Slot(object)
    def run(self, spec: InputSpec) -> None:
        """Run a sequence on the open model."""
        self.session.run(spec)
        self._show_state()

    def fail(self, sentence: str, details: str = "") -> None:
        """Say what went wrong, in one sentence, where the user looks."""
        self.session.sentence = sentence
        self._show_state()
        box = plain_box(self, "inspector", sentence, details)
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        box.open()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Files may be dropped."""
        if event.mimeData().hasUrls():
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Open what was dropped."""
        for url in event.mimeData().urls():
            if url.isLocalFile():
                self.open_path(url.toLocalFile())

    # -- the tick

    @Slot()
    def tick(self) -> None:
        """Take in what is new; draw only what changed."""
        changes = self.session.tick()
        self.log.add(changes.lines)
        if changes.another_capture:
            self._new_capture()
        elif changes.channels:
            self._grown(changes.channels)
        if changes.loaded is not None and not changes.loaded.needs_consent:
            self.input.set_loaded(changes.loaded)
            self.input.show_spec(self.session.spec)
        if changes.state or self.session.running:
            self._show_state()
        if changes.state and not self.session.running:
            self._raise_useful()
        self._answer(changes)

    def _raise_useful(self) -> None:
        """Where the panel on top of a group of tabs is empty, one that is not comes to the top."""
        for key, panel in self.panels.items():
            dock = self.docks[key]
            if dock.visibleRegion().isEmpty() or panel.state != "empty" or dock.isFloating():
                continue
            group = {self.docks[k]: k for k in self.panels}
            others = [self.panels[group[d]] for d in self.tabifiedDockWidgets(dock) if d in group]
            for other in others:
                other.redraw()
            full = next((other for other in others if other.state == "figure"), None)
            if full is not None:
                self.docks[full.key].raise_()

    def _answer(self, changes: Changes) -> None:
        if changes.consent is not None and changes.consent.report is not None:
            dialog = ReportDialog(changes.consent.report, self)
            dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
            dialog.accepted.connect(self.session.agree)
            dialog.open()
        elif changes.failure is not None:
            self.fail(changes.failure.message, changes.failure.details)

    def _new_capture(self) -> None:
        capture = self.session.capture
        self.looking.move(frame=-1, place="", unit=None, head=None, key=None)
        self.steps.set_length(0)
        if capture is not None:
            self.setWindowTitle(f"{clean(capture.start.title)} — inspector")
        for panel in self.panels.values():
            panel.set_capture(capture)
        self._grown(frozenset(capture.channels) if capture is not None else frozenset())

    def _grown(self, changed: frozenset[str]) -> None:
        from inspector.gui.stage import sequence_length

        capture = self.session.capture
        if capture is None:
            return
        length = sequence_length(capture)
        self.steps.set_length(length)
        self.looking.set_length(length)
        self.tree.show_capture(capture)
        names = capture.labels("step", self.looking.position.frame)
        self.strip.set_sequence(names, len(names) or length)
        self._offer_colourings()
        for panel in self.panels.values():
            panel.refresh(changed)
        if self._colouring in changed:
            self._recolour(self.colour_by.currentText())
        self._reader.start()

    def _offer_colourings(self) -> None:
        capture = self.session.capture
        assert capture is not None
        names = [c.name for c in capture.channels.values() if c.dims == ("step",) and not c.value_domain]
        names.sort(key=lambda name: COLOURINGS.index(name) if name in COLOURINGS else len(COLOURINGS))
        from inspector.gui.panel import set_options

        set_options(self.colour_by, [*names, "no colour"])
        wanted = self.settings.text("colour")
        self.colour_by.setCurrentText(wanted if wanted in (*names, "no colour") else names[0] if names else "no colour")
        if self.colour_by.currentText() != self._colouring:
            self._recolour(self.colour_by.currentText())

    @Slot(str)
    def _recolour(self, name: str) -> None:
        capture = self.session.capture
        self._colouring = name
        if capture is None or name not in capture.channels:
            self.strip.set_values(None, "")
            return
        self.strip.set_values(capture.array(name, self.looking.position.frame), capture.channels[name].title)

    def _show_state(self) -> None:
        session = self.session
        progress = session.progress
        text = progress.text if session.running and progress is not None else session.sentence
        self.sentence.setText(clean(text))
        self.elapsed.setText(f"{session.seconds:.1f} s" if session.seconds else "")
        self.bar.setVisible(session.running)
        self.stop.setVisible(session.running)
        self.input.set_running(session.running)
        if progress is not None and progress.total:
            self.bar.setRange(0, 1000)
            self.bar.setValue(round(1000 * progress.done / progress.total))
        else:
            self.bar.setRange(0, 0)
        torch = f"torch {session.catalog.torch}" if session.catalog is not None else ""
        words = {"starting": "torch is loading …", "ready": f"{torch}, ready", "ended": "worker ended"}
        self.worker_label.setText(clean(words.get(session.worker_state, session.worker_state)))
        self.restart.setVisible(session.worker_state == "ended")

    # -- cursor

    def _captured_place(self, place: str) -> str:
        """A module's own channels, or those of its first layer (`rnn` → `rnn.l0`)."""
        capture = self.session.capture
        places = list(dict.fromkeys(c.place for c in capture.channels.values())) if capture is not None else []
        return next((p for p in places if p == place or p.startswith(f"{place}.l")), place)

    @Slot(object, object)
    def _moved(self, new: Position, old: Position) -> None:
        if new.step is not None and new.step != old.step:
            low, high = self.steps.bounds
            if not low <= new.step <= high:
                self.steps.set(new.step - (high - low) / 2, new.step + (high - low) / 2)
        self._reader.start()

    @Slot()
    def _read_out(self) -> None:
        rows: list[tuple[str, str]] = []
        position = self.looking.position
        if position.step is not None and self.looking.length:
            names = self.session.capture.labels("step") if self.session.capture is not None else ()
            rows.append(
                (
                    "step",
                    f"{position.step}  {names[position.step]!r}" if position.step < len(names) else str(position.step),
                )
            )
        for panel in self.panels.values():
            if panel.state == "figure":
                rows += panel.readout(position)
        self.readout.show_rows(rows)

    def play(self) -> None:
        """Walk the steps by itself, or stop."""
        if self._player.isActive():
            self._player.stop()
            return
        step = self.looking.position.step
        if step is None or step >= self.looking.length - 1:
            self.looking.move(step=0)
        self._player.start()

    @Slot()
    def _play_on(self) -> None:
        step = self.looking.position.step
        if step is None or step >= self.looking.length - 1:
            self._player.stop()
        else:
            self.looking.advance(1)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Space plays; arrows walk wherever no field takes them."""
        if event.key() == Qt.Key.Key_Space:
            self.play()
        elif event.key() in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            many = 10 if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else 1
            self.looking.advance(many if event.key() == Qt.Key.Key_Right else -many)
        else:
            super().keyPressEvent(event)

    # -- looks and the end

    def _wanted_theme(self) -> Theme:
        return {"Light": LIGHT, "Dark": DARK}.get(self.settings.text("theme", "Auto"), system_theme())

    def choose_theme(self, name: str) -> None:
        """Auto, Light or Dark; remembered."""
        self.settings.set_text("theme", name)
        self.apply_theme(self._wanted_theme())

    def apply_theme(self, theme: Theme) -> None:
        """Other colours everywhere."""
        self.theme = theme
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        application.setPalette(theme.palette())
        self.setStyleSheet(theme.style())
        self.strip.set_theme(theme)
        for panel in self.panels.values():
            panel.set_theme(theme)

    def closeEvent(self, event: QCloseEvent) -> None:
        """Remember the layout, end the worker; captures are on disk already."""
        self._ticker.stop()
        self._player.stop()
        if self._default_state.size():
            self.settings.set_layout(self.saveGeometry(), self.saveState(LAYOUT_VERSION))
        for panel in self.panels.values():
            panel.set_capture(None)
        self.session.close()
        super().closeEvent(event)
