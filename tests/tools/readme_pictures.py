"""Make the pictures of README and docs again: `python tests/tools/readme_pictures.py [FOLDER] [NAME …]`.

They are of the real window, 1280 × 800, at its first start, on the recorded trainings and on runs of samples, drawn
without a display. Only the windows of other programs (`beside-NAME.png`) are not made here. Files have 256 colours
each, chosen for each picture, which takes a third of the room.
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

import numpy as np
from PIL import Image
from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtWidgets import QApplication

DOCS = Path(__file__).parents[2] / "docs"
SIZE = (1280, 800)
SETTLED = 1500
"""Milliseconds in which a window whose picture stays the same has drawn everything; twice, for a busy machine."""
EXACT = 64
"""Colours of a picture that stay as they are."""
TRIES = 200
"""How often such a time is waited for."""
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
    characters: int = 0
    """How many characters of the book's beginning the model reads; 0: the first example of the sample."""


RUNS = {
    "window-light": Run("char-lstm", ("states", "lags"), {"step": 25, "unit": 1}),
    "window-dark": Run(
        "char-transformer", ("attention", "gradients"),
        {"place": "encoder.layers.1.self_attn", "head": 1, "step": 207, "key": 203}, theme="Dark",
    ),
    "gradients": Run("char-gru", ("gates", "bptt"), {"step": 100, "key": 92}, {"also": ["bptt"]}),
    "edited": Run(
        "char-lstm", ("gates", "lags"), {"step": 30, "unit": 1}, {"edits": ["rnn.l0:gate/forget=0@20:40"]},
        difference=True,
    ),
    "beside-ours": Run("char-lstm", ("states", "jacobians"), {"step": 144, "unit": 5}, characters=300),
}  # fmt: skip


def main() -> int:
    """Write all pictures into a folder, docs by default."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS
    folder.mkdir(parents=True, exist_ok=True)
    application = QApplication(["inspector"])
    application.setStyle("Fusion")
    every = [*PICTURES, OVERVIEW, *RUNS]
    wanted = sys.argv[2:] or every
    if unknown := set(wanted) - set(every):
        sys.stderr.write(f"no picture is called {', '.join(sorted(unknown))}; there are {', '.join(every)}\n")
        return 2
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
    _settled(window)  # the overview is in front
    window.docking.show_panel(panel)
    _settled(window)
    return window


def _take_run(path: Path, run: Run, folder: Path) -> None:
    import inspector
    from inspector.gui.window.bars.frame_bar import DIFFERENCE
    from sample_models.text import book

    capture = folder / f"{run.sample}.inspect"
    inspector.run(run.sample, book()[: run.characters] or None, out=capture, **run.options).close()
    window = _opened(str(capture), run.panels[0], run.theme)
    for panel in run.panels[1:]:
        window.docking.show_panel(panel)
    if run.difference:
        window.frames.choose(DIFFERENCE)
    window.looking.move(**run.cursor)
    _save(window, path)


def _take(path: Path, training: str, panel: str, over: bool) -> None:
    from inspector.workspace.trainings import path_or_training

    window = _opened(path_or_training(training), panel, "Light")
    if over:
        window.panels.made[panel].over.switch.setChecked(True)
    _save(window, path)


def _take_overview(path: Path, training: str) -> None:
    """Once every rule was asked."""
    from inspector.workspace.trainings import path_or_training

    window = _opened(path_or_training(training), "overview", "Light")
    panel = window.panels.made["overview"]
    _until(lambda: panel.look.complete and not panel.look.busy)
    _save(window, path)


def _settled(window: Any) -> Any:
    """The picture of the window once it stays the same."""
    before, same = window.grab().toImage(), 0
    for _ in range(TRIES):
        _wait(SETTLED)
        now = window.grab().toImage()
        same = same + 1 if now == before else 0
        if same == 2:
            return now
        before = now
    raise TimeoutError(f"the window still changes after {TRIES * SETTLED / 1000:.0f} s")


def _save(window: Any, path: Path) -> None:
    if not _settled(window).save(str(path)):
        raise OSError(f"{path} cannot be written")
    window.close()
    with Image.open(path) as picture:
        few = _in_few_colours(picture.convert("RGB"))
    few.save(path, optimize=True)
    sys.stdout.write(f"{path}\n")
    sys.stdout.flush()


def _in_few_colours(picture: Image.Image) -> Image.Image:
    """The same in 256 colours: the most frequent 64 as they are, grounds and texts, and others that cover the rest."""
    pixels = np.asarray(picture)
    colours, which, often = np.unique(pixels.reshape(-1, 3), axis=0, return_inverse=True, return_counts=True)
    order = np.argsort(-often, kind="stable")
    palette, rest = colours[order[:EXACT]], colours[order[EXACT:]]
    if len(rest):
        covered = Image.fromarray(rest[None]).quantize(
            256 - EXACT, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE
        )
        palette = np.concatenate([palette, np.reshape(covered.getpalette() or [], (-1, 3))[: 256 - EXACT]])
    nearest = np.abs(colours[:, None].astype(int) - palette).sum(-1).argmin(-1)
    few = Image.fromarray(nearest[which].reshape(pixels.shape[:2]).astype(np.uint8))
    few.putpalette(palette.astype(np.uint8).tobytes())
    return few


def _wait(milliseconds: int) -> None:
    loop = QEventLoop()
    QTimer.singleShot(milliseconds, loop.quit)
    loop.exec()


def _until(ready: Callable[[], bool]) -> None:
    while not ready():
        _wait(50)


if __name__ == "__main__":
    sys.exit(main())
