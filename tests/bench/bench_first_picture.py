"""From the end of the forward pass to the first drawn panel, in a window with a worker process as a user has them.

The clock starts in the model: a hook on it notes the time at which its forward pass has ended, and the window when the
first panel is drawn and painted.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from harness import Row
from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtWidgets import QApplication

from inspector.gui.app import begin, make_window
from inspector.gui.window.main_window import Window
from inspector.records import InputSpec, Load

SUBJECT = """
import time
from pathlib import Path
from types import SimpleNamespace
import torch
from torch import nn

NOTE = Path(__file__).with_name("forward")

def noted(subject):
    subject.model.register_forward_hook(lambda *_: NOTE.write_text(repr(time.time())) and None)
    return subject

def sample():
    from sample_models.char_lstm import build
    return noted(build())

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.head = nn.LSTM(256, 256, batch_first=True), nn.Linear(256, 256)
    def forward(self, x):
        return self.head(self.rnn(x)[0])

def large():
    torch.manual_seed(0)
    return noted(SimpleNamespace(model=Net(), width=256, kind="vectors", loss=lambda out, _batch: out.square().mean(-1)))
"""
NOISE = InputSpec(kind="generated", value="noise", options={"steps": 512})
CASES = {"char-lstm": ("sample", InputSpec()), "nn.LSTM, T=512, H=256": ("large", NOISE)}
ROUNDS, PATIENCE = 3, 120_000


def wait(until: Callable[[], bool]) -> None:
    """Run the event loop until something holds."""
    loop, ticker = QEventLoop(), QTimer(interval=2)
    ticker.timeout.connect(lambda: loop.quit() if until() else None)
    ticker.start()
    QTimer.singleShot(PATIENCE, loop.quit)
    loop.exec()
    if not until():
        raise TimeoutError


def measured(window: Window, note: Path, spec: InputSpec, at_once: bool) -> tuple[float, float]:
    """Seconds from the end of a forward pass to (the first drawn panel, the end of the run)."""
    session, drawn = window.session, list[float]()
    before = session.capture

    def painted(*_: object) -> None:
        if session.capture is not before and not drawn:
            window.panels["states"].figure.grab()
            drawn.append(time.time())

    window.panels["states"].drawn.connect(painted)
    plain = session._now
    if at_once:
        session._now = lambda: None  # type: ignore[method-assign]
    try:
        session.run(spec)
    finally:
        session._now = plain  # type: ignore[method-assign]
    wait(lambda: not session.running and bool(drawn))
    ended = time.time()
    window.panels["states"].drawn.disconnect(painted)
    forward = float(note.read_text())
    if not at_once:
        wait(lambda: session.background.idle)
    return drawn[0] - forward, ended - forward


def rows() -> list[Row]:
    """Each model, what is looked at first and all at once in turns."""
    application = QApplication.instance() or QApplication([])
    folder = Path(tempfile.mkdtemp())
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        os.environ[name] = str(folder)
    (folder / "m.py").write_text(SUBJECT)
    found = []
    window = make_window()
    window.show()
    begin(window, [], demo=False)
    wait(lambda: window.session.catalog is not None)
    for name, (make, spec) in CASES.items():
        window.session.open_subject(Load(subject=f"{folder / 'm.py'}:{make}", trusted=True), spec)
        wait(lambda: window.session.loaded is not None and not window.session.busy and window.session.background.idle)
        first, whole = [], []
        for _ in range(ROUNDS):
            first.append(measured(window, folder / "forward", spec, at_once=False)[0])
            whole.append(measured(window, folder / "forward", spec, at_once=True)[1])
        ours, other = statistics.median(first), statistics.median(whole)
        title = f"{name}: end of forward to first drawn panel / to the end of a run that computes everything"
        note = f"its first run: {1000 * first[0]:.0f} ms" + (", which is the window's" if not found else "")
        found.append(Row(title, ours, other, ours / other, "≤ 0.3 s", note))
    window.close()
    del application
    return found


if __name__ == "__main__":
    for row in rows():
        print(row)
