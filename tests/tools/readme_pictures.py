"""Make the pictures of README's story of a training again: `python tests/tools/readme_pictures.py [FOLDER]`.

They are of the real window, 1280 × 800, on the recorded trainings, drawn without a display.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtWidgets import QApplication

DOCS = Path(__file__).parents[2] / "docs"
SIZE = (1280, 800)
SETTLED = 1500
"""Milliseconds after which everything is drawn."""
PICTURES = {
    "story-vanishing": ("training-vanishing", "gradients", False),
    "story-horizon": ("training-vanishing", "lags", True),
    "story-learned": ("training-healthy", "training", False),
}
"""File → (recorded training, panel in front below, whether it shows one number of each frame over training)."""


def main() -> int:
    """Write all pictures into a folder, docs by default."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS
    application = QApplication(["inspector"])
    application.setStyle("Fusion")
    for name, (training, panel, over) in PICTURES.items():
        with tempfile.TemporaryDirectory() as settings:
            os.environ["XDG_CONFIG_HOME"] = settings  # a window as at its first start
            _take(folder / f"{name}.png", training, panel, over)
    return 0


def _take(path: Path, training: str, panel: str, over: bool) -> None:
    from inspector.gui.app import begin, make_window
    from inspector.workspace.trainings import path_or_training

    window = make_window()
    window.choose_theme("Light")
    window.resize(*SIZE)
    window.show()
    begin(window, [path_or_training(training)], demo=False)
    window.resize(*SIZE)  # Qt makes a window fit its screen, which is smaller, when it is first shown
    _until(lambda: window.session.capture is not None)
    window.docking.docks[panel].raise_()
    _until(lambda: window.session.catalog is not None)
    _wait(SETTLED)
    if over:
        window.panels.made[panel].over.switch.setChecked(True)
        _wait(SETTLED)
    window.grab().save(str(path))
    window.close()


def _wait(milliseconds: int) -> None:
    loop = QEventLoop()
    QTimer.singleShot(milliseconds, loop.quit)
    loop.exec()


def _until(ready: Callable[[], bool]) -> None:
    while not ready():
        _wait(50)


if __name__ == "__main__":
    sys.exit(main())
