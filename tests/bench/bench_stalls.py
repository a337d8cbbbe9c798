"""How long the window's thread is held up at most, beside a bare Qt heartbeat in another process at the same time.

Each of the two has a timer of 5 ms; a gap is the time between two of its ticks. The bare one shows what the machine
does to any program in the same seconds. The window starts, runs 20,000 steps, is walked through its panels and
resized. `python tests/bench/bench_stalls.py` prints the gaps above AIM too, with what held the window up.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from harness import Row, markdown

STEPS = 20_000
AIM = 0.1

BEATS = """
import json, sys, time
from PySide6.QtCore import QTimer
gaps, last, phase = {}, [time.monotonic()], ["start"]
def beat():
    now = time.monotonic()
    gaps.setdefault(phase[0], []).append((last[0], now - last[0]))
    last[0] = now
"""

BARE = (
    BEATS
    + """
from PySide6.QtWidgets import QApplication, QLabel
application = QApplication([])
label = QLabel("x"); label.show()
timer = QTimer(interval=5); timer.timeout.connect(beat); last[0] = time.monotonic(); timer.start()
import threading
ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.buffer.read(), ended.set()), daemon=True).start()
watch = QTimer(interval=20); watch.timeout.connect(lambda: ended.is_set() and application.quit()); watch.start()
application.exec()
print(json.dumps(gaps["start"]))
"""
)

WINDOW = (
    BEATS
    + """
began = time.monotonic()
from PySide6.QtWidgets import QApplication
import inspector.gui.app as app
from inspector.gui.window.preparing import Preparing
from inspector.records import InputSpec
application = QApplication(["inspector"]); application.setStyle("Fusion"); application.setApplicationName("inspector")
window = app.make_window(); window.welcome.open(); window.show(); application.processEvents()
painted = time.monotonic() - began
timer = QTimer(interval=5); timer.timeout.connect(beat); last[0] = time.monotonic(); timer.start()
window.session.start_worker()
ready = []
preparing = Preparing(window, window.loading(), lambda: (app.begin(window, [], False), ready.append(1)))
def until(done, seconds):
    end = time.monotonic() + seconds
    while not done() and time.monotonic() < end:
        application.processEvents(); time.sleep(0.001)
    assert done(), phase[0]
def rest(seconds):
    end = time.monotonic() + seconds
    until(lambda: time.monotonic() >= end, seconds + 1)
until(lambda: ready and window.session.worker_state == "ready", 120); rest(1.0)
phase[0] = "20,000 steps"
text = ("Alice was beginning to get very tired of sitting by her sister on the bank, " * 300)[:int(sys.argv[1])]
window.open_sample("char-lstm", "", InputSpec(kind="text", value=text))
def over():
    session = window.session
    return session.capture is not None and not session.busy and session.capture.stop is not None
end = time.monotonic() + 40
until(lambda: over() or time.monotonic() > end, 60)
window.session.cancel(); rest(3.0)
phase[0] = "switching panels"
for key in list(window.panels.kinds):
    window.docking.show_panel(key); rest(0.25)
phase[0] = "resizing"
for width in (1000, 1400, 900, 1280):
    for part in range(6):
        window.resize(width - 10 * part, 760 + 5 * part); rest(0.05)
phase[0] = "closing"
preparing.close(); timer.stop(); window.close()
print(json.dumps({"painted": painted, "gaps": gaps}))
"""
)


def measured(steps: int = STEPS) -> tuple[float, dict[str, list[tuple[float, float]]], list[tuple[float, float]]]:
    """(seconds to the first paint, gaps of the window by phase, gaps of the bare heartbeat), each as (when, seconds)."""
    with tempfile.TemporaryDirectory() as home:
        environment = {"QT_QPA_PLATFORM": "offscreen", **os.environ, "HOME": home, "XDG_DATA_HOME": f"{home}/d"}
        environment["XDG_CONFIG_HOME"] = str(Path(home) / "c")
        bare = subprocess.Popen(
            [sys.executable, "-c", BARE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        done = subprocess.run(
            [sys.executable, "-c", WINDOW, str(steps)], stdout=subprocess.PIPE, text=True, env=environment, check=True
        )
        beats, _ = bare.communicate()
    told = json.loads(done.stdout.splitlines()[-1])
    return told["painted"], told["gaps"], json.loads(beats.splitlines()[-1])


def rows() -> list[Row]:
    """One row a phase: the longest gap beside that of the bare heartbeat in the same seconds."""
    painted, gaps, bare = measured()
    found = []
    for phase, told in gaps.items():
        start, end = told[0][0], told[-1][0] + told[-1][1]
        longest = max(gap for _, gap in told)
        beside = max((gap for at, gap in bare if start <= at <= end), default=0.0)
        over = sum(gap > AIM for _, gap in told)
        note = f"{over} of {len(told):,} gaps above {AIM * 1000:.0f} ms"
        found.append(
            Row(f"longest gap, {phase} / bare heartbeat", longest, beside, longest / max(beside, 0.005), "", note)
        )
    found[0] = Row(
        found[0].name,
        found[0].ours,
        found[0].other,
        found[0].ratio,
        "",
        f"{found[0].note}; painted after {painted:.2f} s",
    )
    return found


if __name__ == "__main__":
    print(markdown(rows()))
