"""The main window: it stands at once, then the panels come, then torch in its worker."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Qt, QTimer, Slot
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QKeyEvent
from PySide6.QtWidgets import QApplication, QDockWidget, QMainWindow, QSizePolicy, QVBoxLayout, QWidget

from inspector.capture import PACKED_SUFFIX, SUFFIX, CaptureError, Difference
from inspector.gui.dialogs.edit_dialog import INPUT
from inspector.gui.dialogs.trust_dialog import ask_trust
from inspector.gui.state.cursor import Cursor, Position
from inspector.gui.state.exchange import Changes
from inspector.gui.state.offered import Offered
from inspector.gui.state.player import Player
from inspector.gui.state.session import Session
from inspector.gui.state.settings import Settings
from inspector.gui.state.step_axes import lengths_of, places_along
from inspector.gui.state.step_range import StepRange
from inspector.gui.widgets.plain_text import clean, plain_box
from inspector.gui.widgets.theme import DARK, LIGHT, Theme, system_theme
from inspector.gui.window.damage_bar import DamageBar
from inspector.gui.window.docks import SIDE, Docking
from inspector.gui.window.frame_bar import DIFFERENCE, FrameBar
from inspector.gui.window.input_bar import InputBar
from inspector.gui.window.model_opening import ModelOpening, is_capture
from inspector.gui.window.run_options import ComputeMenu, compute_also, remembered_states
from inspector.gui.window.screen import first_size
from inspector.gui.window.sequence_row import SequenceRow
from inspector.gui.window.sequence_rows import SequenceRows
from inspector.gui.window.side_docks import LogPane, ModelTree, Opener, Readout
from inspector.gui.window.status_row import StatusRow
from inspector.records import STEP_DOMAIN, Catalog, InputSpec, Load, Log
from inspector.workspace.samples import list_samples

if TYPE_CHECKING:
    from inspector.gui.panel.base import Panel

NOT_MADE_BY_IT = (
    "The model that is open did not make this capture: open the capture's model and run it, then change that."
)
TICK_MS = 16
READOUT_MS = 60


class Window(QMainWindow):
    """One session on screen."""

    def __init__(self, session: Session, settings: Settings) -> None:
        super().__init__()
        self.session, self.settings = session, settings
        self.looking, self.steps = Cursor(self), StepRange(self)
        self.theme = self._wanted_theme()
        self.panels: dict[str, Panel] = {}
        self._known: Catalog | None = None
        self.offered = Offered()
        self._waiting_path = ""
        """A file that was to be opened before the worker had told what it reads."""
        self.docking = Docking(self)
        self.models = ModelOpening(self, self.open_model)
        self.setWindowTitle("inspector")
        self.setObjectName("window")
        self.setAcceptDrops(True)
        self.resize(first_size(self))
        self._build_frame()
        from inspector.gui.window.menus import make_menus

        self.compute_menu = ComputeMenu(settings, self)
        self.compute_menu.chosen.connect(self._also)
        session.also = self.compute_menu.wanted
        session.states_of = lambda subject: remembered_states(settings, subject)
        self.menu_actions = make_menus(self)
        self.apply_theme(self.theme)
        self._ticker = QTimer(self, interval=TICK_MS)
        self._ticker.timeout.connect(self.tick)
        self._reader = QTimer(self, interval=READOUT_MS, singleShot=True)
        self._reader.timeout.connect(self._read_out)
        self._player = Player(self.looking, self)
        self.looking.moved.connect(self._moved)

    # -- building

    def _build_frame(self) -> None:
        self.opener, self.tree, self.readout, self.log = Opener(), ModelTree(), Readout(), LogPane()
        self.opener.fill(list_samples(), self.settings.recent())
        self.opener.sample_chosen.connect(self.open_sample)
        self.opener.path_chosen.connect(self.open_path)
        self.tree.place_chosen.connect(lambda place: self.looking.move(place=self._captured_place(place)))
        self.sequences = SequenceRows(self.looking, self.theme, self.settings)
        self.sequences.editing.connect(lambda: self.edit(INPUT))
        self.input = InputBar()
        self.input.asked.connect(self.run)
        self.input.cancelled.connect(self.session.cancel)
        top = QWidget()
        layout = QVBoxLayout(top)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        self.damage = DamageBar()
        self.frames = FrameBar()
        self.frames.chosen.connect(self._choose_frame)
        self.frames.forgotten.connect(self.run_without_edits)
        for widget in (self.damage, self.input, self.frames, self.sequences):
            layout.addWidget(widget)
        self.setCentralWidget(top)
        top.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.docking.add("open", "Open", self.opener, SIDE.LeftDockWidgetArea)
        self.docking.add("model", "Model", self.tree, SIDE.LeftDockWidgetArea)
        self.docking.add("numbers", "Under the cursor", self.readout, SIDE.RightDockWidgetArea)
        self.docking.add("log", "Log", self.log, SIDE.BottomDockWidgetArea)
        self.status = StatusRow(self.statusBar(), self.session)

    @property
    def sequence(self) -> SequenceRow:
        """The row of the input."""
        return self.sequences.input

    @property
    def docks(self) -> dict[str, QDockWidget]:
        """Every dock by its key: open, model, numbers, log, and one for each panel."""
        return self.docking.docks

    def load_panels(self) -> None:
        """Import the panels (and the plotting library) now that the window stands; then start the worker."""
        from inspector.gui.panel.registry import PANELS, ordered
        from inspector.gui.window.menus import add_panel_menus

        for key, make in ordered():
            panel = self._made(key, make)
            if panel is None:
                continue
            self.panels[key] = panel
            panel.wanted.connect(self.compute_also)
            panel.editing.connect(self.edit)
            panel.drawn.connect(lambda: self._reader.isActive() or self._reader.start())
            dock = self.docking.add_panel(key, panel)
            dock.visibilityChanged.connect(lambda seen, panel=panel: panel.redraw() if seen else None)
        for bad in PANELS.broken:
            self.session.note(Log(f"Broken: {bad.origin}: {bad.reason}", "warning"))
        add_panel_menus(self)
        self.docking.settle(self.panels, self.settings)
        self.docking.set_theme(self.theme)
        self.session.start_worker()
        self._ticker.start()

    def _made(self, key: str, make: type[Panel]) -> Panel | None:
        """A panel; one of another package that cannot be made is left out, with a line in the log."""
        try:
            return make(self.looking, self.steps, self.theme)
        except Exception as fault:  # noqa: BLE001 - one panel may not keep the window from standing
            self.session.note(Log(f"Broken: the panel {key}: {type(fault).__name__}: {fault}", "warning"))
            return None

    # -- opening

    @Slot(str, str)
    def open_sample(self, name: str, checkpoint: str = "", then: InputSpec | None = None) -> None:
        """Open a sample and run its first example."""
        self.session.open_subject(Load(subject=name, checkpoint=checkpoint), then)
        self._show_state()

    def open_model(self, load: Load | None = None) -> None:
        """Open a model, or ask which; where its code was not agreed to, the worker asks before any of it runs."""
        if load is None:
            self.models.ask()
            return
        self.settings.set_text("subject", load.subject)
        self.session.open_subject(load)
        self._show_state()

    @Slot(str)
    def open_path(self, path: str) -> None:
        """Open whatever a file is: a capture, a model's code, a checkpoint, a sequence."""
        suffix, kind = Path(path).suffix.lower(), self.offered.kind_of(path)
        if path.rstrip("/").endswith((SUFFIX, PACKED_SUFFIX)) or is_capture(path):
            self.open_capture(path)
        elif kind == "sequence" and not self.session.subject and self.session.opening is None:
            self.fail(f"{Path(path).name} is a sequence: open the model that is to read it first, then this file.")
        elif kind == "sequence":
            self.input.show_file(path)
            self.run(InputSpec(kind="file", value=path))
        elif suffix == ".py":
            self.models.ask(path)
        elif kind == "checkpoint":
            self.models.ask(self.session.subject or self.settings.text("subject"), path)
        elif self.session.catalog is None:
            self._waiting_path = path  # whether anything reads it is known when the worker has told
            self.session.sentence = f"{Path(path).name} is opened as soon as the worker is ready."
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
        begun = self.session.run(spec)
        self.input.typed = self.input.typed and not self.session.running
        self.input.say("" if begun else self.session.sentence)
        self._show_state()

    @Slot()
    def run_again(self) -> None:
        """Run what was typed since, or the same once more."""
        if self.input.typed:
            self.input.ask()
        else:
            self.session.again()
        self._show_state()

    @Slot(tuple)
    def compute_also(self, keys: tuple[str, ...]) -> None:
        """Compute more from now on, and run again."""
        compute_also(self, keys)
        self._show_state()

    def _also(self, keys: tuple[str, ...]) -> None:
        self.session.also = keys
        self.session.sentence = "Computed from the next run on; F5 runs again."
        self._show_state()

    def edit(self, name: str = "") -> None:
        """Ask for changes, begun with a channel or the "input" where one is named; run as it is and with them."""
        from inspector.gui.dialogs.edit_dialog import EditDialog

        capture, made = self.session.capture, self.session.again_possible
        if capture is None:
            self.fail("Run a model first; then a token, a unit or a gate of that run can be changed.")
            return
        if made is None:
            self.fail(NOT_MADE_BY_IT)
            return
        place = name.rpartition(":")[0] or self.looking.position.place
        axis = STEP_DOMAIN if name == INPUT else places_along(capture).get(place, STEP_DOMAIN)
        refused = self.session.shown.refused
        dialog = EditDialog(capture, self.looking.position.along(axis), refused.edits or made.request.edits, self, name)
        dialog.say(refused.sentence)
        if dialog.exec():
            self.session.run_with(made, dialog.edits())
            self._show_state()

    @Slot()
    def run_without_edits(self) -> None:
        """Run the sequence that is shown as it is."""
        made = self.session.again_possible
        if made is None:
            self.fail(NOT_MADE_BY_IT)
        else:
            self.session.run_with(made, ())
            self._show_state()

    @Slot(int)
    def _choose_frame(self, frame: int) -> None:
        capture = self.session.capture
        if capture is None:
            return
        shown: Any = capture
        if frame == DIFFERENCE:
            shown = Difference(capture, capture.frames[0].index, capture.frames[1].index)
        for panel in self.panels.values():
            if panel.source is not shown and (frame == DIFFERENCE or isinstance(panel.source, Difference)):
                panel.set_capture(shown)
        self.looking.move(frame=frame if frame >= 0 else -1)
        self._reader.start()

    def fail(self, sentence: str, details: str = "") -> None:
        """Say what went wrong, in one sentence, where the user looks."""
        self.session.sentence = sentence
        self._tell(sentence, details)

    def _tell(self, sentence: str, details: str) -> None:
        self._show_state()
        box = plain_box(self, "inspector", sentence, details)
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        box.open()

    def show_fault(self, line: Log, sentence: str) -> None:
        """A fault of the window itself: the log has the details, the status row a sentence."""
        self.session.log.append(line)
        self.log.add([line])
        self.session.sentence = sentence

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
        self.damage.show_capture(self.session.capture)
        self.log.add(changes.lines, changes.begun)
        if changes.another_capture:
            self._new_capture()
        elif changes.channels:
            self._grown(changes.channels)
        if changes.computed:
            self._say_what_was_computed()
        if changes.state:
            self._know(self.session.catalog)
        if changes.loaded is not None and not changes.loaded.needs_consent:
            self.input.set_loaded(changes.loaded)
            self.input.show_spec(self.session.spec)
        if changes.state or self.session.busy:
            self._show_state()
        if changes.state and not self.session.busy:
            self.docking.raise_useful(self.panels)
            self.docking.label_tabs(self.panels)
        self._answer(changes)

    def _know(self, catalog: Catalog | None) -> None:
        """Offer what the worker can do, once it has told."""
        if catalog is None or catalog is self._known:
            return
        self._known, self.offered = catalog, Offered(catalog)
        self.input.set_offered(self.offered)
        self.models.offered = self.offered
        self.menu_actions += self.compute_menu.offer(catalog)
        for panel in self.panels.values():
            panel.know(catalog.quantities)
        path, self._waiting_path = self._waiting_path, ""
        if path:
            self.open_path(path)

    def _answer(self, changes: Changes) -> None:
        if changes.consent is not None and changes.consent.report is not None:
            self.models.report(changes.consent.report, self.session.agree, self.session.refuse)
        elif changes.untrusted is not None:
            ask_trust(self, changes.untrusted, self.session.agree_to_code, self.session.refuse)
        elif changes.refused is not None and self.input.is_of(changes.refused):
            assert changes.failure is not None
            self.input.say(changes.failure.message)
        elif changes.failure is not None and not self.models.came_back(changes):
            self._tell(changes.failure.message, changes.failure.details)

    def _new_capture(self) -> None:
        capture = self.session.capture
        self.looking.move(
            frame=-1, place="", unit=None, head=None, key=None, steps=dict.fromkeys(self.looking.position.elsewhere)
        )
        self.steps.set_lengths({})
        self.sequences.forget()
        if capture is not None:
            self.setWindowTitle(f"{clean(capture.start.title)} — inspector")
        for panel in self.panels.values():
            panel.set_capture(capture)
        self._say_what_was_computed()
        self._grown(frozenset(capture.channels) if capture is not None else frozenset())

    def _say_what_was_computed(self) -> None:
        for panel in self.panels.values():
            panel.say_computed(bool(panel.extra) and set(panel.extra) <= set(self.session.computed))

    def _grown(self, changed: frozenset[str]) -> None:
        capture = self.session.capture
        if capture is None:
            return
        lengths = lengths_of(capture)
        self.steps.set_lengths(lengths)
        self.looking.set_lengths(lengths)
        before = self.frames.current
        self.frames.show_capture(capture)
        if self.frames.current != before:
            self._choose_frame(self.frames.current)
        self.tree.show_capture(capture)
        self.sequences.grown(capture, lengths, changed)
        for panel in self.panels.values():
            panel.refresh(changed)
        self._reader.start()

    def _show_state(self) -> None:
        self.status.show_state()
        self.input.set_busy(self.session.waited_for, self.session.cancelling)

    # -- cursor

    def _captured_place(self, place: str) -> str:
        """A module's own channels, or those of its first layer (`rnn` → `rnn.l0`)."""
        capture = self.session.capture
        places = list(dict.fromkeys(c.place for c in capture.channels.values())) if capture is not None else []
        return next((p for p in places if p == place or p.startswith(f"{place}.l")), place)

    @Slot(object, object)
    def _moved(self, new: Position, old: Position) -> None:
        for axis, step in new.steps.items():
            steps = self.steps.along(axis)
            low, high = steps.bounds
            if step != old.at(axis) and not low <= step <= high:
                steps.set(step - (high - low) / 2, step + (high - low) / 2)
        self._reader.start()

    @Slot()
    def _read_out(self) -> None:
        from inspector.gui.window.cursor_readout import rows_of

        rows = rows_of(self.session.capture, self.panels, self.docking.seen, self.sequences)
        self.readout.show_rows(rows)

    def show_all_steps(self) -> None:
        """The whole of every axis."""
        for steps in self.steps.every.values():
            steps.show_all()
        for key in self.docking.seen & set(self.panels):  # maps and curves with axes of their own
            self.panels[key].redraw()

    def play(self) -> None:
        """Walk the axis in focus by itself, or stop."""
        self._player.toggle()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Space plays; arrows walk the axis in focus wherever no field takes them."""
        if event.key() == Qt.Key.Key_Space:
            self.play()
        elif event.key() in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            many = 10 if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else 1
            self.looking.advance(many if event.key() == Qt.Key.Key_Right else -many, self.looking.focused)
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
        for part in (self.damage, self.sequences):
            part.set_theme(theme)
        for panel in self.panels.values():
            panel.set_theme(theme)
        self.docking.set_theme(theme)
        self.docking.label_tabs(self.panels)

    def closeEvent(self, event: QCloseEvent) -> None:
        """Remember the layout, end the worker; captures are on disk already."""
        self._ticker.stop()
        self._player.stop()
        self.docking.remember(self.settings)
        for panel in self.panels.values():
            panel.set_capture(None)
        self.session.close()
        super().closeEvent(event)
