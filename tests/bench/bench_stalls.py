"""How long the window's thread is held up at most, beside a bare Qt heartbeat in another process at the same time.

Each of the two has a timer of 5 ms; a gap is the time between two of its ticks. The bare one shows what the machine
does to any program in the same seconds; the CPU time of the window's thread within a gap shows what of it is the
window's own work, whatever else is running. The window starts, runs 20,000 steps, is walked through its panels, resized,
changes its theme, opens dialogs and a capture of many steps. `python tests/bench/bench_stalls.py` prints the gaps.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from harness import Row, markdown

STEPS, MANY = 20_000, 100_000
AIM = 0.1

BEATS = """
import json, sys, time
from PySide6.QtCore import QTimer
gaps, last, phase = {}, [time.monotonic(), time.thread_time()], ["start"]
def beat():
    now, spent = time.monotonic(), time.thread_time()
    gaps.setdefault(phase[0], []).append((last[0], now - last[0], spent - last[1]))
    last[:] = now, spent
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
    """
import time
began = time.monotonic()
import inspector.gui.window.first_frame as first
application = first.the_application(); frame = first.FirstFrame(first.wanted_theme(first.Settings()))
frame.show(); application.processEvents(); first_painted = time.monotonic() - began
"""
    + BEATS
    + """
import gc; gc.disable()
import inspector.gui.app as app
from inspector.gui.window.preparing import Preparing
from inspector.records import InputSpec
from PySide6.QtWidgets import QDialog
window = app.make_window(); window.welcome.open(); window.show(); application.processEvents(); frame.close()
painted = time.monotonic() - began
timer = QTimer(interval=5); timer.timeout.connect(beat); last[:] = time.monotonic(), time.thread_time(); timer.start()
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
phase[0] = "first opening of each panel"
for key in list(window.panels.kinds):
    window.docking.show_panel(key); rest(0.25)
phase[0] = "switching panels"
for key in list(window.panels.kinds):
    window.docking.show_panel(key); rest(0.1)
phase[0] = "resizing"
for width in (1000, 1400, 900, 1280):
    for part in range(6):
        window.resize(width - 10 * part, 760 + 5 * part); rest(0.05)
phase[0] = "other theme, all panels made"
for name in ("Dark", "Light"):
    window.choose_theme(name); rest(0.5)
phase[0] = "palette, preferences, open dialog"
wanted = ("Find anything", "Preferences", "Open model")
for action in [one for one in window.menu_actions if one.text().replace("&", "").startswith(wanted)]:
    QTimer.singleShot(400, lambda: [box.close() for box in window.findChildren(QDialog) if box.isVisible()])
    action.trigger(); rest(0.6)
phase[0] = "capture of 100,000 steps"
window.docking.show_panel("states"); rest(0.5)
window.open_capture(sys.argv[2])
until(lambda: window.session.capture.path.name == "many.inspect" and not window.session.reading, 60); rest(1.0)
for key in ("states", "gates", "gradients"):
    window.docking.show_panel(key); rest(0.3)
phase[0] = "closing"
preparing.close(); timer.stop(); window.close()
print(json.dumps({"first": first_painted, "painted": painted, "gaps": gaps}))
"""
)

Gap = tuple[float, float, float]
"""When it began, how long it was, and the CPU time of the window's thread within it; all in seconds."""


def written(path: Path) -> None:
    """A capture of MANY steps: states and gates of 64 units, and the norm of a gradient."""
    import numpy as np

    from inspector.capture import Writer
    from inspector.records import Channel, Frame, Page, RunStart, RunStop

    random = np.random.default_rng(0)
    channels = [
        Channel(name="rnn:h", kind="state", dims=("step", "unit"), shape=(None, 64), title="h"),
        Channel(name="rnn:i", kind="gate", dims=("step", "unit"), shape=(None, 64), title="i"),
        Channel(name="rnn:gradient", kind="gradient", dims=("step",), shape=(None,), title="gradient"),
    ]
    with Writer(path, RunStart(run="many", title="many steps")) as writer:
        writer.write(Frame(index=0))
        for channel in channels:
            writer.write(channel)
            for first in range(0, MANY, 32):
                shape = tuple(32 if n == "step" else 64 for n in channel.dims)
                start = (first,) + (0,) * (len(shape) - 1)
                writer.write(Page(channel.name, 0, start, random.random(shape).astype(np.float32)))
        writer.write(RunStop("done"))


def measured(steps: int = STEPS) -> tuple[dict[str, float], dict[str, list[Gap]], list[Gap]]:
    """(seconds to the first paint and to the window, gaps of the window by phase, gaps of the bare heartbeat)."""
    with tempfile.TemporaryDirectory() as home:
        written(Path(home) / "many.inspect")
        environment = {"QT_QPA_PLATFORM": "offscreen", **os.environ, "HOME": home, "XDG_DATA_HOME": f"{home}/d"}
        environment["XDG_CONFIG_HOME"] = str(Path(home) / "c")
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed program has its modules compiled
        environment["PYTHONPYCACHEPREFIX"] = str(Path(home) / "compiled")
        compiled = "import inspector.gui.app\nfrom inspector.gui.window.preparing import import_panels\nimport_panels()"
        subprocess.run([sys.executable, "-c", compiled], env=environment, check=True)
        bare = subprocess.Popen(
            [sys.executable, "-c", BARE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        done = subprocess.run(
            [sys.executable, "-c", WINDOW, str(steps), f"{home}/many.inspect"],
            stdout=subprocess.PIPE, text=True, env=environment, check=True,
        )  # fmt: skip
        beats, _ = bare.communicate()
    told = json.loads(done.stdout.splitlines()[-1])
    return {"first": told["first"], "painted": told["painted"]}, told["gaps"], json.loads(beats.splitlines()[-1])


def rows() -> list[Row]:
    """One row a phase: the longest gap beside that of the bare heartbeat in the same seconds."""
    painted, gaps, bare = measured()
    found = []
    for phase, told in gaps.items():
        start, end = told[0][0], told[-1][0] + told[-1][1]
        longest = max(gap for _, gap, _ in told)
        beside = max((gap for at, gap, _ in bare if start <= at <= end), default=0.0)
        over = sum(gap > AIM for _, gap, _ in told)
        own = sum(spent > AIM for _, _, spent in told)
        note = (
            f"{over} of {len(told):,} gaps above {AIM * 1000:.0f} ms, {own} by CPU time; most CPU time in one "
            f"{1000 * max(spent for _, _, spent in told):.0f} ms"
        )
        found.append(
            Row(f"longest gap, {phase} / bare heartbeat", longest, beside, longest / max(beside, 0.005), "", note)
        )
    seen = f"painted after {painted['first']:.2f} s, the window after {painted['painted']:.2f} s"
    first = found[0]
    found[0] = Row(first.name, first.ours, first.other, first.ratio, "", f"{first.note}; {seen}")
    return found


if __name__ == "__main__":
    print(markdown(rows()))
