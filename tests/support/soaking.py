"""Programs that do one thing for long, in fast time: `python soaking.py WHAT NUMBER FOLDER`.

A line of JSON for each of some forty samples: how often it was done, megabytes of memory, megabytes that are in use,
open descriptors, threads and references to None of this process.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

SAMPLES = 40
COMMITS = 1_000
"""Of a long training, which commits every ten seconds; a short one has as many iterations in each as one of a million."""


def sample(number: int) -> None:
    """One more line."""
    megabytes = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    told = {
        "number": number, "megabytes": round(megabytes, 2), "used": round(used(), 3), "descriptors": _entries("fd"),
        "threads": _entries("task"), "none": sys.getrefcount(None),
    }  # fmt: skip
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


class Allocated(ctypes.Structure):
    """What glibc tells of its arenas (`mallinfo2`): bytes."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
        )
    ]  # fmt: skip


def used() -> float:
    """Megabytes that were asked for and not given back, with PYTHONMALLOC=malloc of Python's objects too: an allocator
    that keeps room, or takes another arena for another thread, does not change it. 0 where the C library cannot tell."""
    ask = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if ask is None:
        return 0.0
    ask.restype = Allocated
    found = ask()
    return (found.uordblks + found.hblkhd) / 1e6


def _entries(name: str) -> int:
    return sum(1 for _ in Path("/proc/self", name).iterdir())


def sampled(number: int, every: int = 1) -> Iterator[int]:
    """Count to a number, with a sample at each fortieth of it. What waits for a collection is no growth: it goes up and
    down by a megabyte, and how often it is collected within a sample's distance differs from run to run."""
    step = max(1, number // SAMPLES)
    for n in range(number):
        yield n
        if (n + 1) % step == 0:
            gc.collect()
            sample((n + 1) * every)


def window(folder: Path) -> tuple[Any, Callable[[], None]]:
    """A window without a screen, and what lets it live for a tick, without the wait between two ticks."""
    from PySide6.QtWidgets import QApplication

    from inspector.gui import app
    from inspector.gui.runtime.gc_timer import collect

    for name in ("CONFIG", "DATA", "CACHE", "STATE"):
        os.environ[f"XDG_{name}_HOME"] = str(folder / name.lower())
    application = QApplication(["inspector"])
    application.setStyle("Fusion")
    shown = app.make_window()
    shown.resize(1280, 800)
    shown.show()
    gc.disable()
    app.begin(shown, [], demo=False)
    shown._ticker.stop()
    ticks = 0

    def tick() -> None:
        nonlocal ticks
        ticks += 1
        shown.tick()
        application.processEvents()
        if ticks % 1000 == 0:
            collect()

    return shown, tick


def closed(shown: Any) -> None:
    """The end of a window."""
    shown.close()
    shown.session.wait_for_end()


def following(number: int, folder: Path) -> None:
    """A window follows a training of so many iterations and draws each commit, mostly in Training."""
    path, each = folder / "run.inspect", max(100, number // COMMITS)
    program = Path(__file__).with_name("fast_training.py")
    kept = min(200, number // each // 4)  # no more of them once it is warm, and no panel for the first time
    turn = min(50, max(1, number // each // 20))
    training = subprocess.Popen(
        [sys.executable, str(program), str(path), str(kept)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert training.stdin is not None and training.stdout is not None

    def more() -> None:
        assert training.stdin is not None and training.stdout is not None
        training.stdin.write(f"{each}\n")
        training.stdin.flush()
        training.stdout.readline()

    more()
    shown, tick = window(folder)
    shown.open_path(str(path))
    shown.docking.docks["training"].raise_()
    for _ in range(20):
        tick()
    for n in sampled(number // each, each):
        more()
        tick()
        tick()
        if n % turn == 0:  # what is seen by somebody who looks at other panels too
            shown.docking.docks["states" if n // turn % 2 else "training"].raise_()
    seen = shown.session.capture.extent("training:iteration")[0]
    assert seen == number // each * each + each, (seen, number)
    assert not shown.session.capture.damage and not list(folder.rglob("error-*.txt"))
    training.stdin.write("\n")
    training.stdin.flush()
    training.wait(60)
    closed(shown)


def ticks(number: int, folder: Path) -> None:
    """A window that shows a capture, and nothing happens: as many ticks as in so many sixtieths of a second."""
    from captures import numbers, write

    shown, tick = window(folder)
    shown.open_path(str(write(folder / "kept.inspect", numbers(400, 8))))
    for _ in sampled(number):
        tick()
    closed(shown)


def drawing(number: int, folder: Path) -> None:
    """So many pictures of panels: the cursor moves, frames are turned, and each is painted."""
    import numpy as np
    from captures import channel

    from inspector.capture import Writer
    from inspector.records import Frame, Page, RunStart, RunStop

    path, random = folder / "kept.inspect", np.random.default_rng(0)
    with Writer(path, RunStart(run="r", title="t")) as writer:
        writer.write(channel(units=8))
        for frame in range(10):
            writer.write(Frame(index=frame))
            writer.write(Page("rnn.l0:h", frame, (0, 0), random.random((200, 8)).astype(np.float32)))
        writer.write(RunStop("done"))
    shown, tick = window(folder)
    shown.open_path(str(path))
    shown.docking.show_panel("states")
    for n in sampled(number):
        shown.looking.move(steps={"step": n % 200})
        shown.frames.choose(n // 7 % 10)
        tick()
        shown.panels.made["states"].repaint()
    closed(shown)


def watching(number: int, folder: Path) -> None:
    """A training of so many iterations is watched, every one of them recorded. The cache of places in pages, of which
    thousands of iterations fill a part, is full from the start."""
    import torch

    import inspector
    from inspector.capture import rows

    for n in range(rows._listed.cache_parameters()["maxsize"] or 0):
        rows._listed((-n - 1,))
    torch.set_num_threads(1)
    model = torch.nn.RNN(2, 2, batch_first=True)
    optimizer = torch.optim.SGD(model.parameters(), 1e-4)
    x, probe = torch.randn(1, 2, 2), torch.randn(1, 4, 2)
    options: dict[str, Any] = {"every": 1, "probe": probe, "probe_every": 100, "frames_gb": 0.002}
    with inspector.watch(model, optimizer, folder / "run.inspect", **options) as watcher:
        for _ in sampled(number):
            model(x)[0].square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    assert watcher.error is None, watcher.error
    with inspector.open_capture(folder / "run.inspect") as capture:
        assert capture.extent("training:iteration")[0] == number and not capture.verify()


def attaching(number: int, folder: Path) -> None:
    """One model is watched again and again, into a capture of its own each time."""
    import torch

    import inspector

    torch.set_num_threads(1)
    model = torch.nn.LSTM(3, 8, batch_first=True)
    optimizer = torch.optim.Adam(model.parameters(), 1e-4)
    for n in sampled(number):
        with inspector.watch(model, optimizer, folder / f"{n}.inspect", probe=torch.randn(1, 4, 3)) as watcher:
            for _ in range(5):
                model(torch.randn(2, 4, 3))[0].square().mean().backward()
                optimizer.step()
                optimizer.zero_grad()
        assert watcher.error is None, watcher.error
        hooks = [one for module in model.modules() for one in (*module._forward_hooks, *module._forward_pre_hooks)]
        assert not hooks, hooks
        gc.collect()


def workers(number: int, folder: Path) -> None:
    """A window whose worker is killed again and again, and started again with the model that was open, which runs."""
    import signal

    from driven_window import agree

    shown, tick = window(folder)
    session = shown.session

    def until(what: Callable[[], Any]) -> None:
        end = time.monotonic() + 120
        while not what():
            assert time.monotonic() < end, session.sentence
            agree(shown)
            tick()
            time.sleep(0.002)

    shown.open_sample("char-elman")
    until(lambda: session.capture is not None and not session.busy and session.loaded is not None)
    for _ in sampled(number):
        before = session.capture
        os.kill(session.worker.pid, signal.SIGKILL)
        until(lambda: session.worker_state == "ended" or not session.connection.alive)
        shown.run_again()
        until(lambda before=before: session.capture is not before and not session.busy)
        assert session.capture.status == "done", session.sentence
        gc.collect()  # what waits for a collection, 0.1 MB a worker, is not kept
    closed(shown)


PROGRAMS: dict[str, Callable[[int, Path], None]] = {
    "following": following, "ticks": ticks, "drawing": drawing, "watching": watching, "attaching": attaching,
    "workers": workers,
}  # fmt: skip


def main() -> None:
    """Do it."""
    what, number, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    began = time.monotonic()
    PROGRAMS[what](number, folder)
    sys.stdout.write(json.dumps({"seconds": round(time.monotonic() - began, 1)}) + "\n")


if __name__ == "__main__":
    main()
