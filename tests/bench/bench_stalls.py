"""How long the window's thread is held up at most, beside a bare Qt heartbeat in another process at the same time.

Each of the two has a timer of 5 ms; a gap is the time between two of its ticks. The bare one shows what the machine
does to any program in the same seconds; the CPU time of the window's thread within a gap shows what of it is the
window's own work, whatever else is running. The window starts, runs 20,000 steps, is walked through its panels, resized,
changes its theme, opens dialogs, a capture of many steps, one of many heads, two beside each other, and a training that
goes on. `python tests/bench/bench_stalls.py` prints the gaps.
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

from beats import Gap
from harness import Row, markdown

HERE = Path(__file__).parent
STEPS = 20_000
AIM = 0.1
YARD = 200_000
"""Turns of a loop of Python's that is timed beside: other programs make the same work take longer."""

BARE = """
import json, sys, threading, time
sys.path.insert(0, sys.argv[1])
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication, QLabel
from beats import Beats
application = QApplication([])
label = QLabel("x"); label.show()
beats, ended = Beats(application), threading.Event()
threading.Thread(target=lambda: (sys.stdin.buffer.read(), ended.set()), daemon=True).start()
watch = QTimer(interval=20); watch.timeout.connect(lambda: ended.is_set() and application.quit()); watch.start()
beats.begin()
application.exec()
print(json.dumps(beats.gaps["start"]))
"""


def yard() -> float:
    """CPU seconds of the loop, the median of nine."""
    taken = []
    for _ in range(9):
        began, total = time.thread_time(), 0
        for number in range(YARD):
            total += number * number
        taken.append(time.thread_time() - began)
    return statistics.median(taken)


def written(folder: Path) -> None:
    """The captures, each by a process of its own."""
    for what in ("many(f / 'many.inspect')", "heads(f / 'heads.inspect')", "two(f)"):
        code = f"import sys; sys.path.insert(0, {str(HERE)!r}); from pathlib import Path; f = Path({str(folder)!r}); "
        subprocess.run([sys.executable, "-c", f"{code}from stalls_captures import *; {what}"], check=True)


def measured(steps: int = STEPS) -> tuple[dict[str, float], dict[str, list[Gap]], list[Gap]]:
    """(seconds to the first paint and to the window, gaps of the window by phase, gaps of the bare heartbeat)."""
    with tempfile.TemporaryDirectory() as home:
        written(Path(home))
        environment = {"QT_QPA_PLATFORM": "offscreen", **os.environ, "HOME": home, "XDG_DATA_HOME": f"{home}/d"}
        environment["XDG_CONFIG_HOME"] = str(Path(home) / "c")
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed program has its modules compiled
        environment["PYTHONPYCACHEPREFIX"] = str(Path(home) / "compiled")
        compiled = "import inspector.gui.app\nfrom inspector.gui.window.preparing import import_panels\nimport_panels()"
        subprocess.run([sys.executable, "-c", compiled], env=environment, check=True)
        bare = subprocess.Popen(
            [sys.executable, "-c", BARE, str(HERE)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip
        done = subprocess.run(
            [sys.executable, str(HERE / "stalled_window.py"), home, str(steps)],
            stdout=subprocess.PIPE, text=True, env=environment, check=True,
        )  # fmt: skip
        beats, _ = bare.communicate()
    told = json.loads(done.stdout.splitlines()[-1])
    return {"first": told["first"], "painted": told["painted"]}, told["gaps"], json.loads(beats.splitlines()[-1])


def rows() -> list[Row]:
    """One row a phase: the longest gap beside that of the bare heartbeat in the same seconds, and the CPU time in it."""
    load, before = os.getloadavg()[0], yard()
    painted, gaps, bare = measured()
    found = [_row(phase, told, bare) for phase, told in gaps.items()]
    seen = f"painted after {painted['first']:.2f} s, the window after {painted['painted']:.2f} s"
    work = f"the same work took {before * 1000:.1f} ms before and {yard() * 1000:.1f} ms after, load {load:.0f}"
    first = found[0]
    found[0] = Row(first.name, first.ours, first.other, first.ratio, "", f"{first.note}; {seen}; {work}")
    return found


def _row(phase: str, told: list[Gap], bare: list[Gap]) -> Row:
    start, end = told[0][0], told[-1][0] + told[-1][1]
    longest = max(gap for _, gap, _, _ in told)
    beside = max((gap for at, gap, _, _ in bare if start <= at <= end), default=0.0)
    over = sum(gap > AIM for _, gap, _, _ in told)
    own = sum(spent > AIM for _, _, spent, _ in told)
    _, _, most, during = max(told, key=lambda gap: gap[2])
    note = (
        f"most CPU time in one gap {1000 * most:.0f} ms{f' ({during})' if during else ''}; {over} of {len(told):,} gaps "
        f"above {AIM * 1000:.0f} ms, {own} by CPU time"
    )
    return Row(f"longest gap, {phase} / bare heartbeat", longest, beside, longest / max(beside, 0.005), "", note)


if __name__ == "__main__":
    print(markdown(rows()))
