"""Curves over training, offscreen: opening 100,000 iterations of 500 series, and frames while iterations arrive."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import numpy as np
import pyqtgraph as pg
from harness import Row
from PySide6.QtWidgets import QApplication

from inspector.capture import Writer, open_capture
from inspector.gui.export.offscreen import Stage
from inspector.records import Axis, Channel, Page, RunStart

ITERATIONS, SERIES, ROUNDS = 100_000, 500, 60
TABLE = Channel(name="parameters:gradient/norm", kind="series", dims=("iteration", "parameter"), shape=(None, None),
                title="gradient norm", scale="log")  # fmt: skip


def rows() -> list[Row]:
    """CPU seconds, software raster, 1200 × 800."""
    application = QApplication.instance() or QApplication([])
    folder = Path(tempfile.mkdtemp())
    try:
        return _measure(folder)
    finally:
        shutil.rmtree(folder)
        del application


def _write(writer: Writer, first: int, stop: int, random: np.random.Generator) -> None:
    numbers = np.arange(first, stop, dtype=np.float64)
    writer.write(Page("training:iteration", 0, (first,), numbers))
    for name in ("loss", "lr"):
        writer.write(Page(f"training:{name}", 0, (first,), np.exp(random.normal(size=stop - first))))
    writer.write(Page(TABLE.name, 0, (first, 0), random.random((stop - first, SERIES), np.float32)))
    writer.flush()


def _measure(folder: Path) -> list[Row]:
    random = np.random.default_rng(0)
    with Writer(folder / "a.inspect", RunStart(run="r", title="t")) as writer:
        writer.write(Axis(name="iteration", title="iteration", unit="iteration"))
        for name, kind in (("iteration", "coordinate"), ("loss", "series"), ("lr", "series")):
            writer.write(Channel(name=f"training:{name}", kind=kind, dims=("iteration",), shape=(None,),
                                 dtype="float64", title=name))  # fmt: skip
        writer.write(TABLE)
        for first in range(0, ITERATIONS, 1000):
            _write(writer, first, first + 1000, random)
        began = time.process_time()
        with open_capture(folder / "a.inspect") as capture:
            stage = Stage(capture, (1200, 800))
            panel = stage.panel("training")
            panel.grab()
            opened = time.process_time() - began
            plain = pg.GraphicsLayoutWidget(size=(1000, 800))
            curves = [plain.addPlot(row=n, col=0).plot() for n in range(2)]
            ours, other = [], []
            for n in range(ROUNDS):
                _write(writer, ITERATIONS + 10 * n, ITERATIONS + 10 * n + 10, random)
                began = time.process_time()
                changed = capture.refresh()
                panel._soon.stop()  # it draws ten times a second at most; here each time
                panel.refresh(changed)
                panel.figure.grab()
                ours.append(time.process_time() - began)
                began = time.process_time()
                x = capture.array("training:iteration")
                for curve, name in zip(curves, ("loss", "lr"), strict=True):
                    curve.setData(x, capture.array(f"training:{name}"))
                plain.grab()
                other.append(time.process_time() - began)
            stage.close()
    a, b = (float(np.percentile(values[10:], 95)) for values in (ours, other))
    return [
        Row(
            f"Training opened: {ITERATIONS:,} iterations × {SERIES} series", opened, 1.0, opened, "< 1 s", "CPU seconds"
        ),
        Row("a frame of it while 10 iterations arrive, p95 / PlotDataItem of the same", a, b, a / b, "< 16 ms"),
    ]
