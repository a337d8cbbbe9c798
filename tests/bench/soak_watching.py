"""A long watched training with the window following it: memory of both by time.

    python tests/bench/soak_watching.py [ITERATIONS] [--gigabytes G] [--reader]

The training is a process of its own: an LSTM of 16 units, every iteration recorded (`cost="normal"`), a frame asked for
at every 50th, all frames together within G gigabytes (0.02). The window (or a reader alone) follows in this process,
without a display. A line for each twentieth of the iterations: seconds, megabytes of the training's process and of the
one that follows, of the capture on disk, and the number of frames.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

TRAINING = """
import sys
import torch
from torch import nn
import inspector

torch.set_num_threads(1)
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.head = nn.LSTM(3, 16, batch_first=True), nn.Linear(16, 2)
    def forward(self, x):
        return self.head(self.rnn(x)[0])
model = Net()
optimizer = torch.optim.Adam(model.parameters(), 1e-4)
options = {"every": 1, "probe": torch.randn(1, 16, 3), "probe_every": 50, "frames_gb": float(sys.argv[3]),
           "quantities": ("input", "states", "gates", "jacobian/spectral_norm")}
with inspector.watch(model, optimizer, sys.argv[1], **options) as watcher:
    for n in range(int(sys.argv[2])):
        x = torch.randn(8, 16, 3)
        nn.functional.mse_loss(model(x), x.cumsum(1)[..., :2]).backward()
        optimizer.step()
        optimizer.zero_grad()
assert watcher.error is None, watcher.error
"""


def resident(process: int | str) -> float:
    """Megabytes of memory of a process; NaN where it has ended."""
    try:
        pages = Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1]
    except (OSError, IndexError):
        return float("nan")
    return int(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6


def on_disk(path: Path) -> float:
    """Megabytes of all files of a capture."""
    return sum(one.stat().st_size for one in path.rglob("*") if one.is_file()) / 1e6


def reader(path: Path) -> Callable[[], tuple[int, int]]:
    """Follows with a reader: each call takes what is new and returns (iterations, frames)."""
    from inspector.capture import open_capture

    capture = open_capture(path)

    def look() -> tuple[int, int]:
        if capture.changed():
            capture.refresh()
        extent = capture.extent("training:iteration") if "training:iteration" in capture.channels else (0,)
        return extent[0], len(capture.frames)

    return look


def window(path: Path) -> Callable[[], tuple[int, int]]:
    """Follows with the window, Training in front, its timeline below."""
    from PySide6.QtWidgets import QApplication

    from inspector.gui.app import begin, make_window

    os.environ["XDG_CONFIG_HOME"] = str(path.parent)
    application = QApplication(["inspector"])
    application.setStyle("Fusion")
    shown = make_window()
    shown.resize(1280, 800)
    shown.show()
    begin(shown, [str(path)], demo=False)
    shown.docking.docks["training"].raise_()

    def look() -> tuple[int, int]:
        application.processEvents()
        capture = shown.session.capture
        if capture is None or "training:iteration" not in capture.channels:
            return 0, 0
        return capture.extent("training:iteration")[0], len(capture.frames)

    return look


def main() -> int:
    """Train, follow, print."""
    parser = argparse.ArgumentParser(description="A long watched training with the window following it.")
    parser.add_argument("iterations", type=int, nargs="?", default=100_000)
    parser.add_argument("--gigabytes", type=float, default=0.02)
    parser.add_argument("--reader", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        path = Path(folder) / "run.inspect"
        command = [sys.executable, "-c", TRAINING, str(path), str(given.iterations), str(given.gigabytes)]
        training = subprocess.Popen(command)
        while not (path / "index.sqlite").exists() and training.poll() is None:
            time.sleep(0.05)
        time.sleep(1)
        follow(training, path, (reader if given.reader else window)(path), given.iterations)
        return training.wait()


def follow(training: subprocess.Popen[bytes], path: Path, look: Callable[[], tuple[int, int]], iterations: int) -> None:
    """Print a line whenever another twentieth of the iterations has been seen, until the training has ended."""
    print("iteration  seconds  training MB  follower MB  capture MB  frames", flush=True)
    began, following = time.monotonic(), 0
    while True:
        ended = training.poll() is not None
        seen, frames = look()
        if seen >= following or ended:
            sizes = resident(training.pid), resident("self"), on_disk(path)
            seconds = time.monotonic() - began
            print(
                f"{seen:9,}  {seconds:7.0f}  {sizes[0]:11.0f}  {sizes[1]:11.0f}  {sizes[2]:10.1f}  {frames:6}",
                flush=True,
            )
            following = (seen // max(1, iterations // 20) + 1) * max(1, iterations // 20)
        if ended:
            return
        time.sleep(0.02)


if __name__ == "__main__":
    sys.exit(main())
