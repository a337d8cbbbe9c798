"""Writing and reading captures against raw files; the time from commit to seen by a reader."""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from harness import Row, interleave

from inspector.capture import Writer, open_capture
from inspector.records import Channel, Page, RunStart

TOTAL = 96 << 20


def rows() -> list[Row]:
    """96 MB in pages of 256 KB and 1 MB."""
    found = []
    folder = Path(tempfile.mkdtemp())
    for size in (256 << 10, 1 << 20):
        page = np.random.default_rng(0).random((size // 1024, 256)).astype(np.float32)
        count = TOTAL // size

        def ours(page: np.ndarray = page, count: int = count) -> None:
            shutil.rmtree(folder / "a.inspect", ignore_errors=True)
            with Writer(folder / "a.inspect", RunStart(run="r", title="t")) as writer:
                writer.write(Channel(name="a:h", kind="state", dims=("step", "unit"), shape=(None, 256)))
                for i in range(count):
                    writer.write(Page("a:h", 0, (i * len(page), 0), page))

        def raw(page: np.ndarray = page, count: int = count) -> None:
            with (folder / "raw.bin").open("wb") as file:
                for _ in range(count):
                    file.write(page.data)

        def saved(page: np.ndarray = page, count: int = count) -> None:
            for i in range(count):
                np.save(folder / f"p{i % 64}.npy", page)

        times = interleave({"ours": ours, "raw": raw, "npy": saved}, 5)
        note = f"{TOTAL / 2**20 / times['ours']:.0f} MB/s, checksums included"
        found.append(
            Row(
                f"writing pages of {size >> 10} KB: capture / raw append",
                times["ours"],
                times["raw"],
                times["ours"] / times["raw"],
                "",
                note,
            )
        )
        found.append(
            Row(
                f"writing pages of {size >> 10} KB: capture / np.save a page",
                times["ours"],
                times["npy"],
                times["ours"] / times["npy"],
            )
        )
    with open_capture(folder / "a.inspect") as capture:
        capture.array("a:h")
        times = interleave(
            {
                "ours": lambda: capture.block("a:h", region=(slice(5000, 6000),)),
                "raw": lambda: np.fromfile(folder / "raw.bin", np.float32, 256_000),
            },
            9,
        )
    found.append(
        Row("reading 1,000 steps: capture / np.fromfile", times["ours"], times["raw"], times["ours"] / times["raw"])
    )
    found.append(_seen(folder))
    shutil.rmtree(folder)
    return found


def _seen(folder: Path) -> Row:
    delays, waits = [], []
    with Writer(folder / "b.inspect", RunStart(run="r", title="t")) as writer:
        writer.write(Channel(name="a:h", kind="state", dims=("step", "unit"), shape=(None, 256)))
        writer.flush()
        with open_capture(folder / "b.inspect") as capture:
            for i in range(60):
                writer.write(Page("a:h", 0, (64 * i, 0), np.zeros((64, 256), np.float32)))
                writer.flush()
                began = time.perf_counter()
                while not capture.changed():
                    pass
                capture.refresh()
                delays.append(time.perf_counter() - began)
                began = time.perf_counter()
                capture.changed()
                waits.append(time.perf_counter() - began)
    ours, look = statistics.median(delays), statistics.median(waits)
    return Row(
        "from commit to seen by a reader; a look that finds nothing", ours, look, ours / look, "", "median of 60"
    )
