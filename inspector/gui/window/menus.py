"""Menus: every action has a text, a key where one is usual, and is in the palette too."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QFileDialog, QMenu

from inspector.capture import PACKED_SUFFIX, SUFFIX, CaptureError, pack
from inspector.capture.pack import copy_capture
from inspector.gui.dialogs.about import show_error_files
from inspector.gui.dialogs.dialogs import NAME
from inspector.gui.dialogs.keys import show_keys
from inspector.gui.panel.menu_groups import MENU_GROUPS
from inspector.gui.state.followed_log import as_log
from inspector.gui.widgets.plain_text import clean
from inspector.gui.window.asking import Asking
from inspector.gui.window.docking.closed_docks import ClosedDocks
from inspector.gui.window.docking.dock_title import REOPEN
from inspector.gui.window.figure_export import FigureExport
from inspector.gui.window.model_opening import OpenDialog, is_capture
from inspector.gui.window.named import show_palette
from inspector.gui.window.named_layouts import NamedLayouts
from inspector.gui.window.panel_asks import TITLES, export_of
from inspector.gui.window.preferences import show_preferences
from inspector.gui.window.reading import show_documentation
from inspector.gui.window.saving import complete
from inspector.gui.window.states_choice import choose_states

if TYPE_CHECKING:
    from inspector.gui.panel.base import Panel

Standard = QKeySequence.StandardKey
OPENS = "a capture, a packed one, a session, a model, a checkpoint, a sequence or a log"
OF_ANOTHER = (
    "This is a log that another tool wrote, not a capture: it stays where it is, and Training saves its numbers."
)
BUDGETS = {
    "What takes up to 1 s": 1.0, "What takes up to 10 s": 10.0, "What takes up to a minute": 60.0,
    "Everything": math.inf,
}  # fmt: skip
DECODE = "Search for the answer to this sequence token by token, and show the tree of what was tried"
AS_LOG = "Show the curves of a file as those of a training, also where the model that is open could read it"
SWEEP = "Run a model at every checkpoint of a folder, each as a frame of one capture"
WEIGHTS = "Every tensor of the model that is open: numbers, map, histogram, singular values, norms"
COMPARE_WEIGHTS = "The weights of the model that is open beside those of a checkpoint, tensor by tensor"
REBUILT = "What was guessed of a model that was rebuilt from a file of weights, to be changed"
TENSORS = "Every tensor of a checkpoint, without its model; nothing is run"
ADD_RUN = "Draw the curves of another run together with those that are shown"
SESSION = "Write the model, its run, the layout and where you look into one small text file, to be opened again"
EXPORT = "Figures of some or all panels, of one frame or all, or an animation, in a size and colours of your choice"
REPORT = "Write what the rules find, with figures and numbers, as one HTML file"
COMPARE = "Compare what is shown with another capture"
COMPARE_FRAMES = "Compare the frame that is shown with another one of this capture"
FIRST_DIFFERENCE = "Where the two runs that are compared begin to differ by more than rounding explains"
CANCEL = "Cancel the run, or the opening of a model"
ASK = "Find a text, and the units, gates and heads that track it"
FIX = "The cursor stays where it is while the mouse moves over plots; a click does the same"
PIN = "Keep this place: its numbers stand beside those under the cursor; Shift and a click do the same"
WHOLE = "The whole sequence, and every plot as it was"
BACK = "Back to the data set from which a sequence was opened"
NEXT_PANEL = "The next panel comes to the front, also one behind others in its tabs"
FIND = "A panel, an action, a sample, a checkpoint, a quantity, a setting, or text of the sequence"
ERROR_FILES = "The folder of files that errors of the window left: what to send"
PREFERENCES = "Theme, font size, threads, device, where runs are kept, what is computed"
PLAY, STOP_PLAYING = "&Play the steps\tSpace", "Stop &playing\tSpace"
"""The window takes the key where no field or button uses it: it is no shortcut, which would come before those."""
CLOSED = "What was closed last, where it was"
ENLARGE = "One panel gets the room of all, or all again"


class Menus:
    """Fills the menu bar: one method for each menu. Its actions go to the window, for the palette."""

    def __init__(self, window: Asking) -> None:
        self.window, self.bar = window, window.menuBar()
        self.cancel = QAction(window)
        self.panels, self.windows = QMenu("&Panels", window), QMenu("&Window", window)
        self.layouts, self.exporting = NamedLayouts(window), FigureExport(window)
        self.closed = ClosedDocks(window.docking, window.say)

    def add(
        self, menu: QMenu, text: str, do: Callable[[], object], key: QKeySequence | Standard | str = "", says: str = ""
    ) -> QAction:
        """One more entry, with a key where one is usual; `says` what it does, where its text is too short for that."""
        action = QAction(text, self.window)
        action.setObjectName("action-" + "".join(c for c in text.partition("\t")[0].lower() if c.isalnum()))
        action.setStatusTip(says or text.replace("&", "").rstrip("…"))
        if key:
            action.setShortcut(QKeySequence(key))
        action.triggered.connect(lambda _checked=False: do())
        menu.addAction(action)
        self.window.menu_actions.append(action)
        return action

    def file(self) -> None:
        """Opening and writing."""
        window, menu = self.window, self.bar.addMenu("&File")
        self.add(menu, "&Open…", lambda: open_file(window), Standard.Open, "Open " + OPENS)
        self.add(menu, "Open &model…", window.open_model, "Ctrl+M")
        self.add(menu, "Open as a lo&g…", lambda: open_file(window, "log"), says=AS_LOG)
        self.add(menu, "Run a &folder of checkpoints…", window.sweeps.ask, says=SWEEP)
        self.add(menu, "Look at a chec&kpoint's tensors…", window.weights.look_at_file, says=TENSORS)
        self.add(menu, "&Listen for trainings…", window.listen, says="Show trainings on other machines as they arrive")
        self.add(menu, "&Add run…", lambda: _add_run(window), "", ADD_RUN)
        self.add(menu, "Compare &with…", lambda: _compare(window), "Ctrl+Shift+D", COMPARE)
        menu.addSeparator()
        self.add(menu, "&Save capture as…", lambda: save_as(window), Standard.SaveAs)
        self.add(menu, "&Pack capture into one file…", lambda: pack_as(window))
        self.add(menu, "Save sess&ion…", window.sessions.ask, says=SESSION)
        self.add(menu, "&Export figures…", self.exporting.ask, says=EXPORT)
        self.add(menu, "&Report…", window.report.ask, says=REPORT)
        menu.addSeparator()
        self.add(menu, "Prefere&nces…", lambda: show_preferences(window), "Ctrl+,", PREFERENCES)
        menu.addSeparator()
        self.add(menu, "&Close window", window.close, Standard.Close)
        self.add(menu, "&Quit", window.close, "Ctrl+Q")

    def run(self) -> None:
        """Running the model."""
        window, menu = self.window, self.bar.addMenu("&Run")
        self.add(menu, "&Run again", window.run_again, "F5", "Run again, or what was typed")
        self.add(menu, "&Edit and run…", window.edit, "Ctrl+E")
        self.add(menu, "&Decode an answer…", window.searches.ask, "Ctrl+Shift+A", DECODE)
        menu.addMenu(window.compute_menu)
        self._budget(menu.addMenu("Compute by &itself"))
        self.add(menu, "&Look at the weights", window.weights.look, says=WEIGHTS)
        self.add(menu, "Compare the wei&ghts with…", window.weights.compare, says=COMPARE_WEIGHTS)
        self.add(menu, "&Model that was rebuilt…", window.weights.change, says=REBUILT)
        self.add(menu, "&States of hand-written cells…", lambda: choose_states(window))
        self.cancel = self.add(
            menu, "&Cancel", window.trials.stop, "Esc", "Cancel the run, the opening of a model, or trying a cure"
        )
        self.add(menu, "&Back to the sequences", window.back_to_sequences, "Alt+Left", BACK)
        play = self.add(menu, PLAY, window.play, says="Move the cursor on, step by step, or stop; Space does the same")
        window.player.playing.connect(lambda on: play.setText(STOP_PLAYING if on else PLAY))
        menu.addSeparator()
        self.add(menu, "Spi&kes of this training…", window.spikes.list)
        self.add(menu, "Back to the &training", window.spikes.back, says="Back from an iteration that was run again")
        controls = window.status.controls
        for text, do in (
            ("Pa&use the training", controls.pause), ("Training: o&ne iteration", controls.step),
            ("Training: go &on", controls.go_on), ("Pause the training &when…", controls.ask_condition),
        ):  # fmt: skip
            self.add(menu, text, do)

    def _budget(self, menu: QMenu) -> None:
        """How long a quantity may take that is computed without being asked for."""
        group = QActionGroup(self.window)
        for text, seconds in BUDGETS.items():
            action = self.add(menu, text, lambda seconds=seconds: self.window.choose_budget(seconds))  # type: ignore[misc]
            action.setProperty(NAME, f"Compute by itself: {text.lower()}")
            action.setCheckable(True)
            action.setChecked(self.window.session.background.budget == seconds)
            group.addAction(action)

    def view(self) -> None:
        """The view and its appearance."""
        window, menu = self.window, self.bar.addMenu("&View")
        self.add(menu, "&Whole sequence", window.show_all_steps, "Ctrl+0", WHOLE)
        self.add(menu, "Zoom &in", lambda: _zoom(window, 0.5), Standard.ZoomIn)
        self.add(menu, "Zoom &out", lambda: _zoom(window, 2.0), Standard.ZoomOut)
        self.add(menu, "&Ask the text…", lambda: _ask(window), Standard.Find, ASK)
        self._holding(menu)
        self.add(menu, "&Compare frames", window.comparing.begin_frames, "Ctrl+D", COMPARE_FRAMES)
        self.add(menu, "Fin&d the first difference", window.comparing.find_first, "", FIRST_DIFFERENCE)
        self.add(menu, "&Stop comparing", window.comparing.end)
        self.add(menu, "&Full screen", lambda: _full_screen(window), "F11")
        self.add(menu, "&Enlarge one panel", window.docking.enlarge_front, "F9", ENLARGE)
        first = self.add(menu, "Open on t&he overview", lambda: window.choose_overview(on=first.isChecked()))
        first.setCheckable(True)
        first.setChecked(window.opens_on_overview)
        themes, group = menu.addMenu("&Theme"), QActionGroup(window)
        for name in ("Auto", "Light", "Dark"):
            action = self.add(themes, f"&{name}", lambda name=name: window.choose_theme(name))  # type: ignore[misc]
            action.setProperty(NAME, f"Theme: {name}")
            action.setCheckable(True)
            action.setChecked(window.settings.text("theme", "Auto") == name)
            group.addAction(action)

    def _holding(self, menu: QMenu) -> None:
        """Fixing the cursor, pins, and notes on what is under it."""
        holding = self.window.holding
        menu.addSeparator()
        self.add(menu, "Fi&x the cursor", holding.fix, "Ctrl+K", FIX)
        free = self.add(menu, "F&ree the cursor", holding.free, "", "Let the mouse move the cursor again")
        holding.share_escape(self.cancel, free)
        self.add(menu, "&Pin this place", holding.pin, "Ctrl+P", PIN)
        self.add(menu, "Re&move the pins", holding.pins.clear)
        self.add(menu, "&Bookmark this place", holding.bookmark, "Ctrl+B", "Mark step and unit in the capture")
        self.add(menu, "&Note on this place…", holding.note, "Ctrl+Shift+N", "Write a note; it is kept in the capture")
        self.add(menu, "Next note or bookmar&k", lambda: holding.next_note(1), "F2")
        self.add(menu, "Pre&vious note or bookmark", lambda: holding.next_note(-1), "Shift+F2")
        menu.addSeparator()

    def docks(self) -> None:
        """Panels and docks, filled when they exist."""
        self.bar.addMenu(self.panels)
        self.bar.addMenu(self.windows)
        stops, menu = self.window.stops, self.windows
        self.add(menu, "&Next part", lambda: stops.go(1), "F6", "The keyboard goes to the next part of the window")
        self.add(menu, "&Part before", lambda: stops.go(-1), "Shift+F6", "The keyboard goes to the part before")
        self.add(menu, "Next pan&el", lambda: stops.turn(1), "Ctrl+Tab", NEXT_PANEL)
        self.add(
            menu, "Panel &before", lambda: stops.turn(-1), "Ctrl+Shift+Tab", NEXT_PANEL.replace("next", "previous")
        )
        menu.addSeparator()
        reopen = self.add(menu, "Reopen &closed panel", self.closed.reopen, REOPEN, CLOSED)
        reopen.setEnabled(False)
        self.closed.there.connect(reopen.setEnabled)
        self.add(menu, "&Reset layout", self.window.docking.reset)
        menu.addMenu(self.layouts.menu)
        menu.addSeparator()

    def help(self) -> None:
        """Keys, and the palette of all actions."""
        window, menu = self.window, self.bar.addMenu("&Help")
        self.add(menu, "&Welcome", window.welcoming.emit, says="What can be opened, what was open, and samples")
        self.add(menu, "&Tour in three stops", window.touring.emit, says="Run a sample, and lead through what it shows")
        self.add(menu, "&Documentation", lambda: show_documentation(window), says="All pages, searched by words")
        self.add(menu, "&Keys", lambda: show_keys(window, window.menu_actions), "F1")
        self.add(menu, "&Find anything by its name…", lambda: show_palette(window), "Ctrl+Shift+P", FIND)
        menu.addSeparator()
        self.add(menu, "Show &error files", show_error_files, says=ERROR_FILES)
        self.add(menu, "&About inspector…", window.show_about, says="Versions, and where things are kept")


def make_menus(window: Asking) -> Menus:
    """The menu bar, filled except for the entries of panels."""
    menus = Menus(window)
    for fill in (menus.file, menus.run, menus.view, menus.docks, menus.help):
        fill()
    return menus


def add_panel_menus(window: Asking, menus: Menus) -> None:
    """A menu for each panel for its exports, and docks to show or hide: panels by groups, then the sides."""
    exports = {TITLES[what]: export_of(window, what) for what in TITLES}
    groups = _grouped(window, menus.panels)
    for key, kind in window.panels.kinds.items():
        menu = groups[key].addMenu(clean(kind.title))
        for text, do in exports.items():
            action = menu.addAction(text)
            action.setObjectName(f"action-{key}-{text.split()[0].lower()}-{text.split()[1].rstrip('…')}")
            named = QAction(f"{kind.title}: {text}", window)
            for each in (action, named):
                each.triggered.connect(lambda _checked=False, key=key, do=do: _of_panel(window, key, do))
            window.menu_actions.append(named)
    groups = _grouped(window, menus.windows)
    menus.windows.addSeparator()
    for key, dock in window.docks.items():
        action = dock.toggleViewAction()
        action.triggered.connect(
            lambda shown, key=key: window.docking.show_panel(key) if shown else None
        )  # else it is hidden
        groups.get(key, menus.windows).addAction(action)
    menus.closed.watch(window.docks)


def _grouped(window: Asking, menu: QMenu) -> dict[str, QMenu]:
    """For each panel its submenu of this menu, which gets one for each group that has a panel."""
    kinds = window.panels.kinds
    there = {kind.menu_group for kind in kinds.values()}
    made = {group: menu.addMenu(title) for group, title in MENU_GROUPS.items() if group in there}
    return {key: made[kind.menu_group] for key, kind in kinds.items()}


def _of_panel(window: Asking, key: str, do: Callable[[str, Panel], None]) -> None:
    panel = window.panels.get(key)
    if panel is None:
        window.fail(f"{window.panels.kinds[key].title} could not be made; the log says why.")
    else:
        window.docking.lay_out(key, panel)
        do(key, panel)


def _ask(window: Asking) -> None:
    """Ask in front, its field in focus."""
    if "ask" in window.docks:
        window.docking.show_panel("ask")
        panel = window.panels.get("ask")
        if panel is not None and hasattr(panel, "begin"):
            panel.control_row.setVisible(panel.state != "empty")
            panel.begin()


def open_file(window: Asking, kind: str = "") -> None:
    """Ask which file or capture to open; `kind` ("capture", "checkpoint", "log") chooses what is listed first. What is
    asked for as a log, and is none, is refused: it is run on no model and taken for no checkpoint instead."""
    dialog = OpenDialog(window, window.offered)
    dialog.list_first(kind)
    if dialog.exec() and dialog.chosen:
        a_capture = is_capture(dialog.chosen) or dialog.chosen.endswith(PACKED_SUFFIX)
        (window.open_log if kind == "log" and not a_capture else window.open_path)(dialog.chosen)


def _add_run(window: Asking) -> None:
    dialog = OpenDialog(window, window.offered)
    dialog.setWindowTitle("Add the curves of a run: a capture or a log")
    if dialog.exec() and dialog.chosen:
        window.add_run(dialog.chosen)


def _compare(window: Asking) -> None:
    dialog = OpenDialog(window, window.offered)
    dialog.setWindowTitle("Compare with a capture")
    if dialog.exec() and dialog.chosen:
        window.comparing.begin(dialog.chosen)


def save_as(window: Asking) -> None:
    """Copy the capture that is shown to a place of the user's choice."""
    capture = window.session.capture
    if capture is None or as_log(capture) is not None or not capture.path.is_dir():
        window.fail(
            OF_ANOTHER if as_log(capture) is not None else "There is no capture to save yet; run a model first."
        )
        return
    if not complete(window, "This capture"):
        return
    path, _ = QFileDialog.getSaveFileName(window, "Save capture as", f"run{SUFFIX}", f"Capture (*{SUFFIX})")
    if path:
        target = Path(path if path.endswith(SUFFIX) else path + SUFFIX)
        try:
            copy_capture(capture.path, target)
        except CaptureError as problem:
            window.fail(str(problem))
            return
        window.settings.add_recent(str(target))
        window.say_saved(f"Saved the capture to {target}.", target)


def pack_as(window: Asking) -> None:
    """Write the capture as one file."""
    capture = window.session.capture
    if capture is None or as_log(capture) is not None or not capture.path.is_dir():
        window.fail(
            OF_ANOTHER if as_log(capture) is not None else "There is no capture to pack yet; run a model first."
        )
        return
    if not complete(window, "This capture"):
        return
    path, _ = QFileDialog.getSaveFileName(window, "Pack capture", "run.inspect.zip", "Packed capture (*.inspect.zip)")
    if path:
        try:
            packed = pack(capture.path, path, overwrite=True)  # the dialog has asked
        except CaptureError as problem:
            window.fail(str(problem))
            return
        window.say_saved(f"Packed the capture into {packed}.", Path(packed))


def _zoom(window: Asking, factor: float) -> None:
    step = window.looking.position.step
    low, high = window.steps.bounds
    window.steps.zoom(factor, float(step) if step is not None and low <= step <= high else (low + high) / 2)


def _full_screen(window: Asking) -> None:
    if window.isFullScreen():
        window.showNormal()
    else:
        window.showFullScreen()
