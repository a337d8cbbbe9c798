"""The parts of the window, put together: bars, rows, docks and the line at the bottom; its colours and messages."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, QTimer, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QDockWidget, QMainWindow, QSizePolicy, QToolBar, QVBoxLayout, QWidget

from inspector.gui.state.cursor import Cursor
from inspector.gui.state.session import Session
from inspector.gui.state.settings import Settings
from inspector.gui.state.step_range import StepRange
from inspector.gui.widgets.described import describe_widgets
from inspector.gui.widgets.theme import Theme
from inspector.gui.window.bars.broken_bar import BrokenBar
from inspector.gui.window.bars.damage_bar import DamageBar
from inspector.gui.window.bars.frame_bar import FrameBar
from inspector.gui.window.bars.input_bar import InputBar
from inspector.gui.window.bars.rebuilt_bar import RebuiltBar
from inspector.gui.window.bars.run_bar import RunBar
from inspector.gui.window.bars.sequence_row import SequenceRow
from inspector.gui.window.bars.sequence_rows import SequenceRows
from inspector.gui.window.comparing.compare_bar import CompareBar
from inspector.gui.window.comparing.comparison_pane import ComparisonPane
from inspector.gui.window.compute_menu import ComputeMenu
from inspector.gui.window.docking.docks import AT_FIRST_HIDDEN, SIDE, Docking
from inspector.gui.window.docking.panels_on_demand import Panels
from inspector.gui.window.docking.screen import first_size
from inspector.gui.window.docking.side_docks import ModelTree, Opener, Readout
from inspector.gui.window.dressing import Dressing
from inspector.gui.window.first_frame import wanted_theme
from inspector.gui.window.log_pane import LogPane
from inspector.gui.window.status_row import StatusRow
from inspector.gui.window.told import Told
from inspector.gui.window.training.timeline_bar import TimelineBar
from inspector.workspace.samples import list_samples
from inspector.workspace.trainings import list_trainings


class Parts(QMainWindow):
    """A window with all its parts, not yet connected; no panel is loaded."""

    def __init__(self, session: Session, settings: Settings) -> None:
        describe_widgets()  # before the first: Qt keeps the interface that it has given once
        super().__init__()
        self.session, self.settings = session, settings
        self.looking, self.steps = Cursor(self), StepRange(self)
        self.theme = wanted_theme(settings)
        self.panels, self.told = Panels(self.looking), Told(self)
        self.menu_actions: list[QAction] = []
        """Every action of the menus, for the palette."""
        self.docking, self.dressing = Docking(self), Dressing(self, self.panels)
        self.compute_menu = ComputeMenu(settings, self)
        self.setWindowTitle("inspector")
        self.setObjectName("window")
        self.setAcceptDrops(True)
        self.resize(first_size(self))
        self._build_rows()
        self._build_docks()
        self.status = StatusRow(self.statusBar(), self.session)
        self._build_timeline()

    def _build_timeline(self) -> None:
        """The timeline, in a bar between the panels and the status row; bars reach over the whole width."""
        self.timeline = TimelineBar()
        bar = QToolBar("Timeline", self)
        bar.setObjectName("timeline")
        bar.setMovable(False)
        bar.setFloatable(False)
        bar.toggleViewAction().setVisible(False)
        bar.setContentsMargins(0, 0, 0, 0)
        bar.addWidget(self.timeline)
        bar.hide()
        self.addToolBar(Qt.ToolBarArea.BottomToolBarArea, bar)
        self.timeline_row = bar
        self._needs_timeline = False
        self.timeline.needed.connect(self._need_timeline)
        again = QTimer(self, interval=0, singleShot=True)
        again.timeout.connect(lambda: bar.setVisible(self._needs_timeline))
        bar.visibilityChanged.connect(lambda _: again.start())  # a remembered layout has it visible or not

    @Slot(bool)
    def _need_timeline(self, needed: bool) -> None:
        self._needs_timeline = needed
        self.timeline_row.setVisible(needed)

    def _build_rows(self) -> None:
        """The rows above the panels."""
        self.damage, self.input, self.frames, self.runs = DamageBar(), InputBar(), FrameBar(), RunBar()
        self.rebuilt, self.broken = RebuiltBar(), BrokenBar()
        self.compare = CompareBar()
        self.sequences = SequenceRows(self.looking, self.theme, self.settings)
        top = QWidget()
        layout = QVBoxLayout(top)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        above = (self.broken, self.damage, self.rebuilt)
        for widget in (*above, self.input, self.runs, self.frames, self.compare, self.sequences):
            layout.addWidget(widget)
        layout.addStretch(1)  # until there are panels below
        self.setCentralWidget(top)
        top.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def _build_docks(self) -> None:
        """The docks at the sides and below."""
        self.opener, self.tree, self.readout, self.log = Opener(), ModelTree(), Readout(), LogPane()
        self.list_what_opens()
        self.docking.add("open", "Open", self.opener, SIDE.LeftDockWidgetArea)
        self.docking.add("model", "Model", self.tree, SIDE.LeftDockWidgetArea)
        self.docking.add("numbers", "Under the cursor", self.readout, SIDE.RightDockWidgetArea)
        self.docking.add("log", "Log", self.log, SIDE.BottomDockWidgetArea)
        self.comparison = ComparisonPane()
        self.docking.add("comparison", "Comparison", self.comparison, SIDE.BottomDockWidgetArea)
        for key in AT_FIRST_HIDDEN:  # also while no panel is there yet
            self.docks[key].hide()

    @property
    def docks(self) -> dict[str, QDockWidget]:
        """Every dock by its key: open, model, numbers, log, and one for each panel."""
        return self.docking.docks

    @property
    def sequence(self) -> SequenceRow:
        """The row of the input."""
        return self.sequences.input

    def list_what_opens(self) -> None:
        """List samples, recorded trainings and recent files."""
        self.opener.fill(list_samples(), self.settings.recent(), list_trainings())

    def list_recent(self, path: str) -> None:
        """List one more recent file, before the others."""
        self.settings.add_recent(str(Path(path).absolute()))
        self.opener.show_recent(self.settings.recent())

    # -- messages

    def show_state(self) -> None:
        """Show the state of the session, wherever it is displayed."""
        self.status.show_state()
        self.input.set_busy(self.session.waited_for, self.session.cancelling)
        self.input.say_whose(self.session.runs_another)

    def say(self, sentence: str) -> None:
        """Show a sentence in the status row, at once."""
        self.session.sentence = sentence
        self.show_state()

    def say_saved(self, sentence: str, path: Path) -> None:
        """Say what was written where, with a button that shows it in its folder."""
        self.status.offer_folder(sentence, path)
        self.say(sentence)

    def fail(self, sentence: str, details: str = "") -> None:
        """Show what went wrong, in one line, in a dialog or the status row."""
        self.session.sentence = sentence
        self.tell(sentence, details)

    def tell(self, sentence: str, details: str = "") -> None:
        """A message in a box, with details to copy; one that comes while the box is open joins it."""
        self.show_state()
        self.told.tell(sentence, details)

    # -- appearance

    def choose_theme(self, name: str) -> None:
        """Auto, Light or Dark; remembered."""
        self.settings.set_text("theme", name)
        self.apply_theme(wanted_theme(self.settings))

    def apply_theme(self, theme: Theme) -> None:
        """Other colours everywhere; panels behind others get them one after the other, or when they are seen."""
        self.theme = theme
        self.dressing.begin(theme)
        for part in (self.broken, self.damage, self.rebuilt, self.sequences, self.timeline, self.comparison):
            part.set_theme(theme)
        self.docking.set_theme(theme)
