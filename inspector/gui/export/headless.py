"""Panels without a window: figures from the command line, on machines without a display."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.capture import CaptureError, DamagedError, not_computed, open_capture, summary, write_atomically
from inspector.gui.runtime.display import has_display
from inspector.transport.terminal import say

if TYPE_CHECKING:
    from inspector.gui.panel.base import Panel

SIZE = (1200, 760)


def _application() -> object:
    if not has_display():
        os.environ["QT_QPA_PLATFORM"] = "offscreen"
    from PySide6.QtCore import QMessageLogContext, QtMsgType, qInstallMessageHandler
    from PySide6.QtWidgets import QApplication

    def on_message(kind: QtMsgType, _where: QMessageLogContext, text: str) -> None:
        if kind != QtMsgType.QtDebugMsg and "propagateSizeHints" not in text:  # no window is resized here
            say(text, err=True)

    qInstallMessageHandler(on_message)
    return QApplication.instance() or QApplication(["inspector"])


def key_of(name: str) -> str:
    """The key of the panel that a person names by its key or by its title, in letters of any case. Raises CaptureError.

    A key goes before a title: a panel of another package may have a title that is the key of one of these.
    """
    from inspector.gui.panel.registry import ordered

    wanted = name.strip().casefold()
    known = [(key, panel.title) for key, panel in ordered()]
    for names in ([key for key, _ in known], [title for _, title in known]):
        for (key, _), own in zip(known, names, strict=True):
            if own.casefold() == wanted:
                return key
    listed = [key if key.casefold() == title.casefold() else f"{key} ({title})" for key, title in known]
    raise CaptureError(f"There is no panel {name!r}; there are {', '.join(listed)}.")


def export_panel(
    path: Path | str, panel_key: str, frame: int, place: str, to: Path | str, *, damaged: bool = False
) -> tuple[Path, str]:
    """Draw one panel of a capture into a file: (the file, what the figure lacks of the capture, as one line).

    Raises DamagedError where something that is drawn is damaged and `damaged` does not allow that, else CaptureError.
    """
    application = _application()
    from inspector.gui.export.offscreen import Stage

    panel_key = key_of(panel_key)
    with open_capture(path) as capture:
        if frame >= 0 and frame not in {known.index for known in capture.frames}:
            raise CaptureError(f"The capture has no frame {frame}; it has {[known.index for known in capture.frames]}.")
        stage = Stage(capture, SIZE)
        try:
            panel = stage.panel(panel_key, frame=frame, place=place)
            lost = _draw(panel, Path(to), damaged=damaged)
        finally:
            stage.close()
    del application
    return Path(to), lost


def lacks(path: Path | str, panel_key: str) -> str:
    """What the run has not computed of what a panel shows, as one sentence, or ""."""
    from inspector.gui.panel.registry import PANELS

    panel = PANELS[key_of(panel_key)]
    with open_capture(path) as capture:
        return not_computed(capture, {*panel.shows, *panel.extra})


def _draw(panel: Panel, target: Path, *, damaged: bool) -> str:
    """Write a panel's figure; returns what it lacks, as one line, or "". Raises DamagedError or CaptureError."""
    from inspector.gui.export.figure_files import figure_bytes
    from inspector.gui.panel.damaged import damage_in

    assert panel.capture is not None
    if panel.state != "figure":
        lost = summary([one for one in panel.capture.damage if one.anywhere])
        if lost and not damaged:
            raise DamagedError(f"{panel.title} has nothing to show, perhaps because of damaged data: {lost}")
        lacking = not_computed(panel.capture, {*panel.shows, *panel.extra})
        raise CaptureError(f"{panel.title} has nothing to show in this capture: {panel.hint} {lacking}".rstrip())
    figure = figure_bytes(panel, target)
    lost = summary(damage_in(panel))
    if lost and not damaged:
        raise DamagedError(f"{panel.title} shows damaged data: {lost}")
    if lost:  # once more, since some damage may have been found only while it was painted
        panel.redraw()
        figure = figure_bytes(panel, target)
    write_atomically(target, figure)
    return lost


def export_all(path: Path | str, folder: Path | str) -> list[Path]:
    """A PNG of every panel that has something to show; the paths, in the order of the panels."""
    application = _application()
    from inspector.gui.export.figure_files import save_figure
    from inspector.gui.export.offscreen import Stage
    from inspector.gui.panel.registry import ordered

    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    written = []
    with open_capture(path) as capture:
        stage = Stage(capture, SIZE)
        for key, _ in ordered():
            panel = stage.panel(key)
            if panel.state == "figure":
                written.append(save_figure(panel, target / f"{key}.png"))
        stage.close()
    del application
    return written
