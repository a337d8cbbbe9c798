"""Time to window of a fresh process, and a whole `inspector run` against the bare forward."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness import Row

WINDOW = """
from PySide6.QtWidgets import QApplication
import inspector.gui.app as app
a = QApplication([]); w = app.make_window(); w.show(); a.processEvents(); print("x")
"""
PLOT = """
import pyqtgraph as pg
a = pg.mkQApp(); w = pg.plot([1, 2]); w.show(); a.processEvents(); print("x")
"""
TORCH = "import torch\n" + PLOT


def _time(code: str) -> float:
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
    )
    return time.perf_counter() - began


def rows() -> list[Row]:
    """Medians of five fresh processes each."""
    times: dict[str, list[float]] = {"window": [], "plot": [], "torch": []}
    for number in range(6):
        for name, code in (("window", WINDOW), ("plot", PLOT), ("torch", TORCH)):
            taken = _time(code)
            if number:
                times[name].append(taken)
    window, plot, torch = (statistics.median(times[name]) for name in ("window", "plot", "torch"))
    return [
        Row("time to window / a minimal pyqtgraph plot", window, plot, window / plot),
        Row("time to window / the same plot with torch imported", window, torch, window / torch),
        _whole_run(),
    ]


def _whole_run() -> Row:
    import torch

    from inspector.engine.opening.open_subject import open_subject
    from inspector.engine.session.service import Service
    from inspector.records import Finished, InputSpec, Load, Run

    said: list[object] = []
    service = Service(said.append)
    service.serve(Load(subject="char-lstm"))
    opened = open_subject(Load(subject="char-lstm"))
    subject = opened.subject
    name = next(name for name in subject.examples if name.startswith("long"))
    text = subject.examples[name]
    ids = subject.encode(text)[None]
    taken, bare = [], []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(4):
            began = time.perf_counter()
            service.serve(
                Run(
                    path=str(Path(folder) / f"{number}.inspect"),
                    input=InputSpec(kind="example", value=name),
                    only=("states", "gates", "gradients", "output/loss", "saturation"),
                )
            )
            taken.append(time.perf_counter() - began)
            assert isinstance(said[-1], Finished) and said[-1].stop.status == "done", said[-1]
            began = time.perf_counter()
            with torch.no_grad():
                subject.model(ids)
            bare.append(time.perf_counter() - began)
    ours, other = statistics.median(taken[1:]), statistics.median(bare[1:])
    note = f"{len(text)} characters: states, gates, outputs and gradients, to the last page in the file"
    return Row("a whole run / the bare forward", ours, other, ours / other, "", note)
