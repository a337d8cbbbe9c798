"""`inspector demo`, from the command to the first paint, to the window and to the complete picture of its passage,
beside a bare Qt window and beside a program that only loads torch, in turns.

Modules are compiled, as they are once installed. `python tests/bench/run.py demo`.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness import Row

ROUNDS = 5
AIM, FIRST_AIM = 3.0, 0.3

DEMO = """
import json, os, sys, time
began = float(os.environ["BENCH_BEGAN"])
seen = {}
def note(what):
    seen.setdefault(what, time.time() - began)
import inspector.gui.runtime.display as display
display.has_display = lambda: True
import inspector.gui.window.first_frame as first
first.has_display = display.has_display
paint = first.FirstFrame.paintEvent
first.FirstFrame.paintEvent = lambda self, event: (paint(self, event), note("card"))[0]
first.import_behind_it(demo=True)
note("imported")
import inspector.gui.app as app
from PySide6.QtCore import QTimer
real = app.begin
def begin(window, *rest):
    note("panels")
    real(window, *rest)
    states = window.panels.made["states"]
    def look():
        session = window.session
        if session.worker_state == "ready":
            note("worker")
        if session.capture is not None:
            note("capture")
        whole = session.capture is not None and session.capture.stop is not None and not session.busy
        if whole and states.state == "figure" and not states.stale and not states.growing:
            note("complete")
            print(json.dumps(seen), flush=True)
            window.close()
    timer = QTimer(window, interval=5)
    timer.timeout.connect(look)
    timer.start()
app.begin = begin
take_away = app.take_away
app.take_away = lambda: (note("window"), take_away())
app.run([], demo=True)
"""
BARE = """
import os, time
began = float(os.environ["BENCH_BEGAN"])
from PySide6.QtWidgets import QApplication, QLabel
class Seen(QLabel):
    def paintEvent(self, event):
        super().paintEvent(event)
        print(time.time() - began, flush=True)
        os._exit(0)
application = QApplication([])
label = Seen("x"); label.show()
application.exec()
"""
TORCH = "import os, time\nimport torch\nprint(time.time() - float(os.environ['BENCH_BEGAN']))"


def rows() -> list[Row]:
    """Medians of rounds in turns."""
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "HOME": home, "XDG_DATA_HOME": f"{home}/d"}
        environment["XDG_CONFIG_HOME"] = str(Path(home) / "c")
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        environment["PYTHONPYCACHEPREFIX"] = str(Path(home) / "compiled")
        found: list[dict[str, float]] = []
        for number in range(ROUNDS + 1):
            told = json.loads(_said(DEMO, environment))
            told |= {"bare": float(_said(BARE, environment)), "torch": float(_said(TORCH, environment))}
            if number:
                found.append(told)
    middle = {name: statistics.median(each[name] for each in found) for name in found[0]}
    load = f"load {os.getloadavg()[0]:.0f}"
    steps = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in sorted(middle.items(), key=lambda one: one[1]))
    return [
        _row("demo: the first paint / a bare Qt window", middle["card"], middle["bare"], f"≤ {FIRST_AIM} s", load),
        _row("demo: the picture complete / torch alone", middle["complete"], middle["torch"], f"≤ {AIM:g} s", steps),
    ]


def _row(name: str, ours: float, other: float, aim: str, note: str) -> Row:
    return Row(name, ours, other, ours / other, aim, note)


def _said(code: str, environment: dict[str, str]) -> str:
    told = {**environment, "BENCH_BEGAN": repr(time.time())}
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True, env=told)
    return done.stdout.strip().splitlines()[-1]


if __name__ == "__main__":
    from harness import markdown

    print(markdown(rows()))
