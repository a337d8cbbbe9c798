"""Make the pictures of README and docs again: `python tests/tools/readme_pictures.py [FOLDER] [NAME …]`.

They are of the real window, 1280 × 800, on the recorded trainings and on runs of samples, drawn without a display.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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
OVERVIEW = "overview"
"""File of the picture of the overview of a recorded training."""


@dataclass(frozen=True)
class Run:
    """A run of a sample: how it is run, the panels in front above and below, where the cursor is, and the theme."""

    sample: str
    panels: tuple[str, ...]
    cursor: dict[str, Any]
    options: dict[str, Any] = field(default_factory=dict)
    difference: bool = False
    theme: str = "Light"


RUNS = {
    "window-light": Run("char-lstm", ("states", "lags"), {"step": 25, "unit": 1}),
    "window-dark": Run(
        "char-transformer", ("attention",), {"place": "encoder.layers.1.self_attn", "head": 1, "step": 207, "key": 203},
        theme="Dark",
    ),
    "gradients": Run("char-gru", ("gates", "bptt"), {"step": 100, "key": 92}, {"also": ["bptt"]}),
    "edited": Run(
        "char-lstm", ("gates", "lags"), {"step": 30, "unit": 1}, {"edits": ["rnn.l0:gate/forget=0@20:40"]},
        difference=True,
    ),
}  # fmt: skip


def main() -> int:
    """Write all pictures into a folder, docs by default."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS
    application = QApplication(["inspector"])
    application.setStyle("Fusion")
    wanted = sys.argv[2:] or [*PICTURES, OVERVIEW, *RUNS]
    for name, (training, panel, over) in PICTURES.items():
        if name in wanted:
            with _first_start():
                _take(folder / f"{name}.png", training, panel, over)
    if OVERVIEW in wanted:
        with _first_start():
            _take_overview(folder / f"{OVERVIEW}.png", "training-vanishing")
    for name, run in RUNS.items():
        if name in wanted:
            with _first_start() as made:
                _take_run(folder / f"{name}.png", run, made)
    return 0


@contextlib.contextmanager
def _first_start() -> Iterator[Path]:
    """A window as at its first start; gives a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory() as settings:
        os.environ["XDG_CONFIG_HOME"] = settings
        yield Path(settings)


def _opened(path: str, panel: str, theme: str) -> Any:
    """The window on a capture, a panel in front of those beside it."""
    from inspector.gui.app import begin, make_window

    window = make_window()
    window.choose_theme(theme)
    window.resize(*SIZE)
    window.show()
    begin(window, [path], demo=False)
    window.resize(*SIZE)  # Qt makes a window fit its screen, which is smaller, when it is first shown
    _until(lambda: window.session.capture is not None)
    _until(lambda: window.session.catalog is not None)
    _wait(SETTLED)  # until the overview is in front
    window.docking.show_panel(panel)
    _wait(SETTLED)
    return window


def _take_run(path: Path, run: Run, folder: Path) -> None:
    import inspector
    from inspector.gui.window.frame_bar import DIFFERENCE

    capture = folder / f"{run.sample}.inspect"
    inspector.run(run.sample, out=capture, **run.options).close()
    window = _opened(str(capture), run.panels[0], run.theme)
    for panel in run.panels[1:]:
        window.docking.show_panel(panel)
    if run.difference:
        choice = window.frames.frames
        choice.setCurrentIndex(choice.findData(DIFFERENCE))
        choice.activated.emit(choice.currentIndex())
    window.looking.move(**run.cursor)
    _wait(SETTLED)
    window.grab().save(str(path))
    window.close()


def _take(path: Path, training: str, panel: str, over: bool) -> None:
    from inspector.workspace.trainings import path_or_training

    window = _opened(path_or_training(training), panel, "Light")
    if over:
        window.panels.made[panel].over.switch.setChecked(True)
        _wait(SETTLED)
    window.grab().save(str(path))
    window.close()


def _take_overview(path: Path, training: str) -> None:
    """Once every rule was asked."""
    from inspector.workspace.trainings import path_or_training

    window = _opened(path_or_training(training), "overview", "Light")
    panel = window.panels.made["overview"]
    _until(lambda: panel.look.complete and not panel.look.busy)
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
