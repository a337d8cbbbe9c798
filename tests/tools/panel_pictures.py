"""Pictures of every panel as the window shows it, to be judged by eye: `python tests/tools/panel_pictures.py CAPTURE …`.

For each capture, size, theme and scale of the screen a picture of each panel that has something to show, in
FOLDER/CAPTURE-WIDTHxHEIGHT-THEME-SCALE/PANEL.png, drawn without a display. A size is that of the screen in its own
pixels, which a window that fills it has less of the larger the scale is.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

SIZES = ("1280x800", "1920x1080", "3840x2160")
SCALES = (1.0, 1.25, 1.5, 2.0)
THEMES = ("Light", "Dark")
DRAWN, FIRST = 400, 1500
"""Milliseconds in which a panel, and a window, is drawn."""
CHILD = "--in-one-process"


def main() -> int:
    """Take all pictures, those of a scale in a process of its own: Qt reads it once."""
    asked = _parser().parse_args()
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    if asked.in_one_process:
        return _take_all(asked)
    failed = 0
    for scale in asked.scales:
        environment = {**os.environ, "QT_SCALE_FACTOR": str(scale)}
        arguments = [sys.executable, __file__, CHILD, *sys.argv[1:], "--scales", str(scale)]
        failed |= subprocess.run(arguments, env=environment, check=False).returncode
    return failed


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("captures", nargs="+", type=Path)
    parser.add_argument("--to", type=Path, default=Path("panel-pictures"))
    parser.add_argument("--panels", nargs="*", default=[])
    parser.add_argument("--sizes", nargs="+", default=SIZES)
    parser.add_argument("--scales", nargs="+", type=float, default=SCALES)
    parser.add_argument("--themes", nargs="+", default=THEMES)
    parser.add_argument("--whole", action="store_true", help="the whole window, not its panel alone")
    parser.add_argument(CHILD, action="store_true", help=argparse.SUPPRESS)
    return parser


def _take_all(asked: argparse.Namespace) -> int:
    from PySide6.QtWidgets import QApplication

    os.environ["XDG_CONFIG_HOME"] = tempfile.mkdtemp()  # the first start, each time
    application = QApplication(["inspector"])
    application.setStyle("Fusion")
    for capture in asked.captures:
        for theme in asked.themes:
            for size in asked.sizes:
                _take(asked, capture, theme, size)
    sys.stdout.flush()
    os._exit(0)  # a worker that is still starting is not waited for


def _take(asked: argparse.Namespace, capture: Path, theme: str, size: str) -> None:
    from PySide6.QtTest import QTest

    scale = asked.scales[0]
    width, height = (round(int(side) / scale) for side in size.split("x"))
    window = _opened(capture, theme, width, height)
    folder = asked.to / f"{capture.stem}-{size}-{theme.lower()}-{scale:g}"
    folder.mkdir(parents=True, exist_ok=True)
    for key in asked.panels or list(window.docking.bars):
        if not window.panels.has_data(key):
            continue
        window.docking.show_panel(key)
        QTest.qWait(DRAWN)
        panel = window.panels.made[key]
        (window if asked.whole else window.docks[key]).grab().save(str(folder / f"{key}.png"))
        sys.stdout.write(f"{folder / key}.png {panel.state} {panel.width()} x {panel.height()}\n")
    window.close()


def _opened(capture: Path, theme: str, width: int, height: int) -> Any:
    from PySide6.QtTest import QTest

    from inspector.gui.app import begin, make_window

    window = make_window()
    window.choose_theme(theme)
    window.resize(width, height)
    window.show()
    begin(window, [str(capture)], demo=False)
    while window.session.capture is None:
        QTest.qWait(25)
    window.resize(width, height)  # Qt makes a window fit its screen, which is smaller, when it is first shown
    QTest.qWait(FIRST)
    window.docking.reset()
    window.looking.move(step=100, unit=3)
    return window


if __name__ == "__main__":
    raise SystemExit(main())
