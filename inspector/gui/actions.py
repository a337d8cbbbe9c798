"""Menus: every action has a text, a key where one is usual, and stands in the palette too."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QApplication, QFileDialog, QMenu

from inspector.capture import SUFFIX, CaptureError, pack
from inspector.gui.choices import choose_states
from inspector.gui.dialogs import Palette, show_keys
from inspector.gui.text import clean

if TYPE_CHECKING:
    from inspector.gui.panel import Panel
    from inspector.gui.window import Window

Standard = QKeySequence.StandardKey


def make_menus(window: Window) -> list[QAction]:
    """The menu bar; the actions, for the palette."""
    made: list[QAction] = []

    def add(menu: QMenu, text: str, do: Callable[[], object], key: QKeySequence | Standard | str = "") -> QAction:
        action = QAction(text, window)
        action.setObjectName("action-" + "".join(c for c in text.lower() if c.isalnum()))
        action.setStatusTip(text.replace("&", ""))
        if key:
            action.setShortcut(QKeySequence(key))
        action.triggered.connect(lambda _checked=False: do())
        menu.addAction(action)
        made.append(action)
        return action

    bar = window.menuBar()
    file = bar.addMenu("&File")
    add(file, "&Open capture…", lambda: _open_capture(window), Standard.Open)
    add(file, "Open &model…", window.open_model, "Ctrl+M")
    file.addSeparator()
    add(file, "&Save capture as…", lambda: save_as(window), Standard.SaveAs)
    add(file, "&Pack capture into one file…", lambda: pack_as(window))
    add(file, "&Export all figures…", lambda: _export_all(window))
    file.addSeparator()
    add(file, "&Close window", window.close, Standard.Close)
    add(file, "&Quit", window.close, Standard.Quit)
    run = bar.addMenu("&Run")
    add(run, "&Run again", window.session.again, "F5")
    add(run, "&Edit and run…", window.edit, "Ctrl+E")
    run.addMenu(window.compute_menu)
    add(run, "&States of hand-written cells…", lambda: choose_states(window))
    add(run, "&Cancel run", window.session.cancel, "Esc")
    add(run, "&Play the steps", window.play)
    view = bar.addMenu("&View")
    add(view, "&Whole sequence", window.show_all_steps, "Ctrl+0")
    add(view, "Zoom &in", lambda: _zoom(window, 0.5), Standard.ZoomIn)
    add(view, "Zoom &out", lambda: _zoom(window, 2.0), Standard.ZoomOut)
    add(view, "&Full screen", lambda: window.showNormal() if window.isFullScreen() else window.showFullScreen(), "F11")
    add(view, "&Enlarge one panel", window.docking.enlarge_front, "F9")
    themes, group = view.addMenu("&Theme"), QActionGroup(window)
    for name in ("Auto", "Light", "Dark"):
        action = add(themes, f"&{name}", lambda name=name: window.choose_theme(name))  # type: ignore[misc]
        action.setCheckable(True)
        action.setChecked(window.settings.text("theme", "Auto") == name)
        group.addAction(action)
    window.panel_menu = bar.addMenu("&Panels")  # type: ignore[attr-defined]
    windows = bar.addMenu("&Window")
    window.dock_menu = windows  # type: ignore[attr-defined]
    add(windows, "&Reset layout", window.docking.reset)
    windows.addSeparator()
    help_ = bar.addMenu("&Help")
    add(help_, "&Keys", lambda: show_keys(window), "F1")
    add(help_, "&Do anything by its name…", lambda: Palette(window.menu_actions, window).exec(), "Ctrl+Shift+P")
    return made


def add_panel_menus(window: Window) -> None:
    """A menu a panel for its exports, and the list of docks to show or hide."""
    from inspector.gui import export

    for key, panel in window.panels.items():
        menu = window.panel_menu.addMenu(clean(panel.title))  # type: ignore[attr-defined]
        for text, do in (
            ("Copy figure", lambda panel=panel: _copy(window, panel)),
            (
                "Save figure…",
                lambda panel=panel, key=key: _save(
                    window, panel, key, export.save_figure, "PNG (*.png);;SVG (*.svg);;PDF (*.pdf)"
                ),
            ),
            (
                "Save numbers…",
                lambda panel=panel, key=key: _save(window, panel, key, export.save_data, "NPZ (*.npz);;CSV (*.csv)"),
            ),
        ):
            action = menu.addAction(text)
            action.setObjectName(f"action-{key}-{text.split()[0].lower()}-{text.split()[1].rstrip('…')}")
            action.triggered.connect(lambda _checked=False, do=do: do())
            named = QAction(f"{panel.title}: {text}", window)
            named.triggered.connect(lambda _checked=False, do=do: do())
            window.menu_actions.append(named)
    for dock in window.docks.values():
        window.dock_menu.addAction(dock.toggleViewAction())  # type: ignore[attr-defined]


def _copy(window: Window, panel: Panel) -> None:
    from inspector.gui.export import copy_figure, forget_clipboard

    try:
        copy_figure(panel)
    except CaptureError as problem:
        window.fail(str(problem))
        return
    application = QApplication.instance()
    assert application is not None
    application.aboutToQuit.connect(forget_clipboard)


def _save(window: Window, panel: object, key: str, save: Callable[..., Path], kinds: str) -> None:
    first = kinds.partition("(*")[2].partition(")")[0]
    path, chosen = QFileDialog.getSaveFileName(window, "Save", f"{key}{first}", kinds)
    if not path:
        return
    if not Path(path).suffix:
        path += chosen.partition("(*")[2].partition(")")[0]
    try:
        written = save(panel, path)
    except CaptureError as problem:
        window.fail(str(problem))
        return
    window.session.sentence = f"Wrote {written}"


def _open_capture(window: Window) -> None:
    path = QFileDialog.getExistingDirectory(window, f"Open a capture (a folder NAME{SUFFIX})")
    if path:
        window.open_capture(path)


def save_as(window: Window) -> None:
    """Copy the capture that is shown to a place of the user's choice."""
    capture = window.session.capture
    if capture is None or not capture.path.is_dir():
        window.fail("There is no capture to save yet; run a model first.")
        return
    path, _ = QFileDialog.getSaveFileName(window, "Save capture as", f"run{SUFFIX}", f"Capture (*{SUFFIX})")
    if path:
        target = Path(path if path.endswith(SUFFIX) else path + SUFFIX)
        try:
            shutil.copytree(capture.path, target)
        except OSError as problem:
            window.fail(f"Cannot save to {target}: {problem.strerror or problem}.")
            return
        window.settings.add_recent(str(target))


def pack_as(window: Window) -> None:
    """Write the capture as one file."""
    capture = window.session.capture
    if capture is None or not capture.path.is_dir():
        window.fail("There is no capture to pack yet; run a model first.")
        return
    path, _ = QFileDialog.getSaveFileName(window, "Pack capture", "run.inspect.zip", "Packed capture (*.inspect.zip)")
    if path:
        try:
            pack(capture.path, path)
        except CaptureError as problem:
            window.fail(str(problem))


def _export_all(window: Window) -> None:
    from inspector.gui.export import save_figure

    folder = QFileDialog.getExistingDirectory(window, "Folder for the figures")
    if not folder:
        return
    try:
        for key, panel in window.panels.items():
            if panel.state == "figure":
                save_figure(panel, Path(folder) / f"{key}.png")
    except CaptureError as problem:
        window.fail(str(problem))


def _zoom(window: Window, factor: float) -> None:
    step = window.looking.position.step
    low, high = window.steps.bounds
    window.steps.zoom(factor, float(step) if step is not None and low <= step <= high else (low + high) / 2)
