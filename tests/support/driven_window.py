"""A window in a process of its own, opened as `inspector` opens it and brought to a state.

    python driven_window.py STATE FOLDER [PATH …]

A line of JSON tells what became of it: {"ready": …} once the state is reached, with the captures that it shows and how
many steps of each; {"listening": …} where a training is to be sent to it. A line "close" on stdin closes it as its
frame's button does. FOLDER holds what a state needs, and gets what it writes.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

LOOK_MS = 20
THREADS = "threads"
"""File in the folder of a state: the names of the threads that were left at the end."""
DIALOGS = {
    "open": "open", "open model": "openmodel", "a folder of checkpoints": "runafolderofcheckpoints",
    "listen": "listenfortrainings", "add a run": "addrun", "compare with": "comparewith", "save as": "savecaptureas",
    "pack": "packcaptureintoonefile", "save the session": "savesession", "export": "exportfigures",
    "report": "report", "preferences": "preferences", "edit": "editandrun", "decode": "decodeananswer",
    "states of cells": "statesofhandwrittencells", "spikes": "spikesofthistraining",
    "documentation": "documentation", "keys": "keys", "palette": "findanythingbyitsname", "about": "aboutinspector",
}  # fmt: skip
"""What a dialog is called here → its action, without "action-"."""
Steps = Iterator[None]
told: dict[str, Any] = {}


def say(**words: Any) -> None:
    """A line to whoever drives."""
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


def later(action: Callable[[], object]) -> None:
    """Call it from the window's loop of events: a modal dialog does not return before it is closed."""
    from PySide6.QtCore import QTimer

    QTimer.singleShot(0, action)


def begun(window: Any) -> Steps:
    """Until panels are there and the worker has told what it offers."""
    while not (told.get("begun") and window.session.catalog is not None):
        yield


def opened(window: Any, folder: Path) -> Steps:
    """Until a capture is shown."""
    yield from begun(window)
    if window.session.capture is None and window.session.reading is None:
        window.open_path(str(folder / "kept.inspect"))
    while window.session.capture is None or not window.panels.made:
        yield


def has_model(window: Any, folder: Path, subject: str = "char-elman") -> Steps:
    """Until a sample's first example has been run."""
    yield from begun(window)
    window.open_sample(subject)
    while window.session.capture is None or window.session.running or window.session.loaded is None:
        agree(window)
        yield
    for _ in range(25):  # what comes to code that is not known yet comes to it soon
        agree(window)
        yield


def agree(window: Any) -> None:
    """Packages that lie beside the interpreter's own are asked about."""
    from inspector.gui.dialogs.trust_dialog import TrustDialog

    for one in window.findChildren(TrustDialog):
        if one.isVisible():
            one.accept()


def dialog(window: Any, folder: Path, name: str) -> Steps:
    """Until a dialog is seen. What asks for a run has one before."""
    from PySide6.QtGui import QAction
    from PySide6.QtWidgets import QApplication, QDialog

    needs = has_model if name in ("edit", "decode", "states of cells") else opened
    yield from needs(window, folder)
    while window.session.background.present:
        yield
    later(window.findChild(QAction, f"action-{DIALOGS[name]}").trigger)
    for _ in range(100):
        if any(isinstance(one, QDialog) and one.isVisible() for one in QApplication.topLevelWidgets()):
            return
        yield
    say(note=f"{name}: no dialog came: {window.session.sentence}")


def question(window: Any, folder: Path) -> Steps:
    """Whether code may run is asked."""
    from inspector.gui.dialogs.trust_dialog import TrustDialog
    from inspector.records import Load

    yield from begun(window)
    window.open_model(Load(subject=f"{folder / 'slow.py'}:Model"))
    while not any(one.isVisible() for one in window.findChildren(TrustDialog)):
        yield


def model(window: Any, folder: Path, file: str, *, loaded: bool = True) -> Steps:
    """A model of a file is being run, or opened."""
    from inspector.records import InputSpec, Load

    yield from begun(window)
    load = Load(subject=f"{folder / file}:Model", trusted=True)
    window.session.open_subject(load, InputSpec(kind="generated", value="noise", options={"steps": 60}))
    while not (window.session.running and (folder / "running").exists() if loaded else window.session.opening):
        yield


def cancelled(window: Any, folder: Path, file: str) -> Steps:
    """Its run was cancelled, and it has not stopped."""
    yield from model(window, folder, file)
    window.session.cancel()
    yield


def queued(window: Any, folder: Path) -> Steps:
    """A run waits for a model that is being opened, in a worker that is being started."""
    window.session.start_worker()
    window.open_sample("char-lstm")
    yield


def importing(window: Any, folder: Path) -> Steps:
    """The worker imports torch."""
    while not (window.session.worker is not None and window.session.worker.pid):
        yield
    maps = Path("/proc")
    while window.session.catalog is None:
        below = [int(one) for one in _children(window.session.worker.pid)]
        if any(
            b"libtorch_cpu" in (maps / str(one) / "maps").read_bytes() for one in below if (maps / str(one)).exists()
        ):
            return
        yield


def _children(process: int) -> list[str]:
    try:
        return Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii").split()
    except OSError:
        return []


def computing(window: Any, folder: Path, prefix: str = "", subject: str = "char-lstm") -> Steps:
    """More is computed for a run that is shown."""
    yield from has_model(window, folder, subject)
    entries = [entry for entry in window.session.catalog.quantities if not entry.cheap]
    keys = tuple(one.key for one in entries if one.key.startswith(prefix) and "cure" not in one.key)
    window.session.analyse(keys)
    while not (window.session.running and window.session.progress is not None):
        yield


def trying(window: Any, folder: Path) -> Steps:
    """Copies of the model are trained in the worker."""
    yield from has_model(window, folder, "char-elman-unclipped")
    window.session.analyse(("trial/cure@cure=clip_gradient",))
    for _ in range(20):
        yield


def trying_a_training(window: Any, folder: Path) -> Steps:
    """The same by a process of the window's own, for a training that was watched."""
    from inspector.records import Finding, Load

    yield from begun(window)
    window.session.open_subject(Load(subject="char-elman-unclipped"))
    while window.session.capture is None or window.session.running:
        yield
    window.open_path(str(folder / "training.inspect"))
    while window.session.capture.path.name != "training.inspect":
        yield
    finding = Finding(rule="spikes", id="IN301", severity="warning", place="", message="spikes", frame=-1)
    window.trials.begin(window.session.capture, finding, "clip_gradient")
    if not window.trials.busy:
        say(note=f"not tried: {window.session.sentence}")
    yield


def sweeping(window: Any, folder: Path) -> Steps:
    """A folder of checkpoints is run, and frames are there."""
    import sample_models
    from inspector.records import InputSpec, Load, Run, Sweep

    yield from begun(window)
    checkpoints = Path(sample_models.__file__).parent / "checkpoints" / "char_elman"
    run = Run(path=str(folder / "sweep.inspect"), input=InputSpec(kind="text", value="abc " * 200))
    sweep = Sweep(paths=(str(checkpoints),), load=Load(subject="char-elman"), run=run, workers=1)
    window.session.sweeping.begin(sweep)
    while not window.session.sweeping._frames:
        yield
    window.open_path(str(folder / "sweep.inspect"))
    yield


def searching(window: Any, folder: Path) -> Steps:
    """An answer is searched for."""
    from inspector.records import Decode

    yield from has_model(window, folder, "dates-transformer")
    window.session.run(window.session.spec, decode=Decode())
    while not window.session.running:
        yield


def following(window: Any, folder: Path, *, local: bool = True) -> Steps:
    """A training of another process is shown and grows."""
    from inspector.gui.state.listening import Place

    yield from begun(window)
    path = folder / "live.inspect"
    if local:
        say(training=str(path))
    else:
        problem = window.session.listening.begin(Place(str(folder / "arrived"), port=0))
        if problem:
            say(note=problem)
        place = window.session.listening.sentence.split()[2].rstrip(";")
        say(training=place, secret=str(folder / "arrived" / "secret"))
        while not window.session.listening.trainings():
            yield
        path = Path(window.session.listening.trainings()[0].path)
    while not (path / "index.sqlite").exists():
        yield
    window.open_path(str(path))
    while _steps(window.session.capture).get("training:iteration", 0) < 3:
        yield


def paused(window: Any, folder: Path) -> Steps:
    """It waits, as the window asked."""
    yield from following(window, folder)
    window.status.controls.pause()
    while window.session.steering.paused is None:
        yield


def reading(window: Any, folder: Path) -> Steps:
    """A large capture is being read."""
    yield from begun(window)
    window.open_path(str(folder / "large.inspect"))
    while window.session.reading is None:
        yield


def comparing(window: Any, folder: Path) -> Steps:
    """Two captures are compared."""
    yield from opened(window, folder)
    window.comparing.begin(str(folder / "other.inspect"))
    while window.comparing.pair is None:
        yield


def exporting(window: Any, folder: Path) -> Steps:
    """Figures are drawn by a process of the window's own."""
    from inspector.gui.dialogs.export_dialog import FIGURES, Chosen

    yield from opened(window, folder)
    window._menus.exporting.start(Chosen(FIGURES, ("states", "gates"), False, "png", ()), str(folder / "figures"))
    yield


def reporting(window: Any, folder: Path) -> Steps:
    """A report is written by a process of the window's own."""
    yield from opened(window, folder)
    window.report.write(str(folder / "report.html"))
    yield


def writing(window: Any, folder: Path, name: str, to: str) -> Steps:
    """A large capture is packed or copied, in the window's own thread."""
    from PySide6.QtGui import QAction
    from PySide6.QtWidgets import QFileDialog

    yield from begun(window)
    window.open_path(str(folder / "heavy.inspect"))
    while window.session.capture is None or window.session.reading is not None:
        yield
    QFileDialog.getSaveFileName = staticmethod(lambda *_: (str(folder / to), ""))  # type: ignore[method-assign]
    later(window.findChild(QAction, f"action-{DIALOGS[name]}").trigger)


def closing(window: Any, folder: Path) -> Steps:
    """It is being closed while its worker hangs."""
    yield from model(window, folder, "deaf.py")
    later(window.close)


def noting(window: Any, folder: Path) -> Steps:
    """A note waits for the end of a run."""
    yield from model(window, folder, "slow.py")


def making(window: Any, folder: Path) -> Steps:
    """Some panels are made, others not yet."""
    while not window.panels.made:
        yield


def welcome(window: Any, folder: Path) -> Steps:
    """The first page is shown."""
    while not (told.get("begun") and window.welcome.page.isVisible()):
        yield


STATES: dict[str, Callable[[Any, Path], Steps]] = {
    "starting": lambda _window, _folder: iter(()),
    "panels being made": making,
    "welcome page": welcome,
    **{f"dialog: {name}": (lambda w, f, name=name: dialog(w, f, name)) for name in DIALOGS},  # type: ignore[misc]
    "dialog: may this code run": question,
    "capture shown": opened,
    "worker imports torch": importing,
    "run queued": queued,
    "model being opened": lambda w, f: model(w, f, "import.py", loaded=False),
    "run in progress": lambda w, f: model(w, f, "slow.py"),
    "run that holds the interpreter": lambda w, f: model(w, f, "regex.py"),
    "run in native code": lambda w, f: model(w, f, "native.py"),
    "run that ignores SIGTERM": lambda w, f: model(w, f, "deaf.py"),
    "run with daemons": lambda w, f: model(w, f, "daemons.py"),
    "run being cancelled": lambda w, f: cancelled(w, f, "slow.py"),
    "run that cannot be cancelled": lambda w, f: cancelled(w, f, "regex.py"),
    "quantities being computed": computing,
    "preflight": lambda w, f: computing(w, f, "trial/", "char-elman"),
    "cure being tried": trying,
    "cure of a training being tried": trying_a_training,
    "sweep": sweeping,
    "search for an answer": searching,
    "training followed": following,
    "training followed over tcp": lambda w, f: following(w, f, local=False),
    "training paused": paused,
    "large capture being opened": reading,
    "two captures compared": comparing,
    "figures being exported": exporting,
    "report being written": reporting,
    "capture being packed": lambda w, f: writing(w, f, "pack", "packed.inspect.zip"),
    "capture being saved": lambda w, f: writing(w, f, "save as", "saved.inspect"),
    "window being closed": closing,
}


def _steps(capture: Any) -> dict[str, int]:
    """How many steps of each channel a capture has."""
    return {name: int(capture.extent(name)[0]) for name in capture.channels} if capture is not None else {}


def drive(window: Any, state: str, folder: Path) -> None:
    """Bring the window to its state, and say so."""
    from PySide6.QtCore import QSocketNotifier, QTimer

    steps, looks = STATES[state](window, folder), 0

    def look() -> None:
        nonlocal looks
        looks += 1
        timer.stop()
        if looks % 200 == 0:
            say(waiting=f"{window.session.worker_state}: {window.session.sentence}")
        try:
            next(steps)
        except StopIteration:
            shown = window.session.capture
            say(ready=state, shown={str(shown.path): _steps(shown)} if shown is not None else {})
            return
        timer.start(LOOK_MS)

    def asked() -> None:
        if os.read(0, 100).startswith(b"close"):
            window.close()
        notifier.setEnabled(False)

    notifier = QSocketNotifier(0, QSocketNotifier.Type.Read, window)
    notifier.activated.connect(asked)
    timer = QTimer(window)
    timer.timeout.connect(look)
    timer.start(LOOK_MS)


def install(state: str, folder: Path) -> None:
    """Drive the next window that is made."""
    from inspector.gui import app

    make, begin = app.make_window, app.begin

    def made(python: str | None = None) -> Any:
        window = make(python)
        drive(window, state, folder)
        return window

    def beginning(*given: Any) -> None:
        begin(*given)
        told["begun"] = True

    app.make_window, app.begin = made, beginning


def note_threads(folder: Path) -> None:
    """The threads that still work when the interpreter begins to end, for whoever drives: it may crash of them."""
    left = [one.name for one in threading.enumerate() if one is not threading.main_thread()]
    (folder / THREADS).write_text("\n".join(left), encoding="utf-8")


def main() -> int:
    """As the command `inspector`; killed with the suite that drives it."""
    from with_parent import ends_with_parent

    ends_with_parent()
    state, folder, paths = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
    sys.argv[1:] = paths
    say(started=state)
    atexit.register(note_threads, folder)  # first, so that it is called last, behind the interpreter's own waiting
    if state != "starting":
        install(state, folder)
    from inspector.__main__ import main as command

    return command()


if __name__ == "__main__":
    sys.exit(main())
