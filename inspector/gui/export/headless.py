"""Panels without a window: figures from the command line, on machines without a display."""

from __future__ import annotations

import os
from pathlib import Path

from inspector.capture import CaptureError, open_capture
from inspector.gui.runtime.display import has_display
from inspector.transport.terminal import say

SIZE = (1200, 760)


def _application() -> object:
    if not has_display():
        os.environ["QT_QPA_PLATFORM"] = "offscreen"
    from PySide6.QtCore import QMessageLogContext, QtMsgType, qInstallMessageHandler
    from PySide6.QtWidgets import QApplication

    def told(kind: QtMsgType, _where: QMessageLogContext, text: str) -> None:
        if kind != QtMsgType.QtDebugMsg and "propagateSizeHints" not in text:  # nothing is ever resized by hand here
            say(text, err=True)

    qInstallMessageHandler(told)
    return QApplication.instance() or QApplication(["inspector"])


def export_panel(path: Path | str, panel_key: str, frame: int, place: str, to: Path | str) -> Path:
    """Draw one panel of a capture into a file. Raises CaptureError in one sentence."""
    application = _application()
    from inspector.gui.export.figure_files import save_figure
    from inspector.gui.export.offscreen import Stage
    from inspector.gui.panel.registry import PANELS

    if panel_key not in PANELS:
        raise CaptureError(f"There is no panel {panel_key!r}; there are {', '.join(PANELS)}.")
    with open_capture(path) as capture:
        if frame >= 0 and frame not in {known.index for known in capture.frames}:
            raise CaptureError(f"The capture has no frame {frame}; it has {[known.index for known in capture.frames]}.")
        stage = Stage(capture, SIZE)
        panel = stage.panel(panel_key, frame=frame, place=place)
        if panel.state != "figure":
            raise CaptureError(f"{panel.title} has nothing to show in this capture: {panel.hint}")
        written = save_figure(panel, to)
        stage.close()
    del application
    return written


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
