"""A window that is started, run, walked through, compared and followed, while its thread's heartbeat is noted.

`python stalled_window.py FOLDER STEPS` prints the gaps as JSON; the captures in the folder are made by `bench_stalls`.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from beats import Beats

WORDS = "Alice was beginning to get very tired of sitting by her sister on the bank, "
LONGEST_RUN = 40.0
BEGAN = time.monotonic()


def card() -> tuple[Any, Any, float]:
    """Qt's application, the card that is seen first, and after how many seconds it was painted."""
    import inspector.gui.window.first_frame as first

    application = first.the_application()
    frame = first.FirstFrame(first.wanted_theme(first.Settings()))
    frame.show()
    application.processEvents()
    return application, frame, time.monotonic() - BEGAN


class Walk:
    """One window, and what is done with it."""

    def __init__(self, folder: Path, steps: int) -> None:
        application, frame, self.first = card()
        gc.disable()  # as the window does, which collects by a timer
        import inspector.gui.app as app

        self.folder, self.steps = folder, steps
        self.beats = Beats(application)
        self.window: Any = app.make_window()
        self.window.welcome.open()
        self.window.show()
        application.processEvents()
        frame.close()
        self.painted = time.monotonic() - BEGAN

    def all(self) -> None:
        """Everything, one phase after the other."""
        for phase, do in (
            ("start", self.start), ("20,000 steps", self.run), ("first opening of each panel", self.walk),
            ("switching panels", self.walk), ("resizing", self.resize), ("other theme, all panels made", self.dress),
            ("palette, preferences, open dialog", self.ask), ("capture of 100,000 steps", self.open_many),
            ("12 layers × 12 heads", self.open_heads), ("comparison of two captures", self.compare),
            ("following a training", self.follow),
        ):  # fmt: skip
            self.beats.phase, self.beats.during = phase, ""
            do()
        self.preparing.close()
        self.window.close()

    def start(self) -> None:
        """Panels and worker, until it is ready."""
        import inspector.gui.app as app
        from inspector.gui.window.preparing import Preparing

        ready: list[int] = []
        self.beats.begin()
        self.window.session.start_worker()
        self.preparing = Preparing(
            self.window, self.window.loading(), lambda: (app.begin(self.window, [], False), ready.append(1))
        )
        self.beats.until(lambda: ready and self.window.session.worker_state == "ready", 180)
        self.beats.settle()

    def run(self) -> None:
        """A sample on a long text, for a while."""
        from inspector.records import InputSpec

        text = (WORDS * (self.steps // len(WORDS) + 1))[: self.steps]
        self.window.open_sample("char-lstm", "", InputSpec(kind="text", value=text))
        session, end = self.window.session, time.monotonic() + LONGEST_RUN

        def over() -> bool:
            return session.capture is not None and not session.busy and session.capture.stop is not None

        self.beats.until(lambda: over() or time.monotonic() > end, LONGEST_RUN + 30)
        session.cancel()
        self.beats.rest(3.0)
        self.beats.settle()

    def walk(self, keys: tuple[str, ...] = ()) -> None:
        """Each panel comes to the front."""
        for key in keys or tuple(self.window.panels.kinds):
            self.beats.act(key, lambda key=key: self.window.docking.show_panel(key), 0.05)

    def resize(self) -> None:
        """As somebody drags a corner."""
        for width in (1000, 1400, 900, 1280):
            for part in range(6):
                self.window.resize(width - 10 * part, 760 + 5 * part)
                self.beats.rest(0.05)

    def dress(self) -> None:
        """Dark and light."""
        for name in ("Dark", "Light"):
            self.beats.act(name, lambda name=name: self.window.choose_theme(name), 0.3)

    def ask(self) -> None:
        """Dialogs, each closed again."""
        wanted = ("Find anything", "Preferences", "Open model")
        for action in [one for one in self.window.menu_actions if one.text().replace("&", "").startswith(wanted)]:
            self.beats.later(400, self._close_dialogs)
            self.beats.act(action.text(), action.trigger, 0.6)

    def _close_dialogs(self) -> None:
        from PySide6.QtWidgets import QDialog

        for box in self.window.findChildren(QDialog):
            if box.isVisible():
                box.close()

    def open(self, name: str) -> None:
        """A capture of the folder, until it is read."""
        session = self.window.session
        self.beats.act("opening", lambda: self.window.open_capture(str(self.folder / name)))
        self.beats.until(lambda: session.capture is not None and session.capture.path.name == name, 60)
        self.beats.until(lambda: not session.reading, 60)
        self.beats.settle()

    def open_many(self) -> None:
        """States, gates and a gradient of very many steps."""
        self.walk(("states",))
        self.open("many.inspect")
        self.walk(("states", "gates", "openers", "units", "inputs", "gradients"))

    def open_heads(self) -> None:
        """A transformer: its maps and what is beside them, with another head."""
        self.walk(("attention",))
        self.open("heads.inspect")
        self.walk(("attention", "heads", "residual", "depth", "attention"))
        for head in (5, 11):
            self.beats.act(f"head {head}", lambda head=head: self.window.looking.move(head=head))

    def compare(self) -> None:
        """Two runs, one against the other."""
        paths = [str(self.folder / name) for name in ("one.inspect", "two.inspect")]
        self.beats.act("opening", lambda: self.window.open_paths(paths), 1.0)
        self.walk(("states", "gates", "gradients", "units", "overview"))

    def follow(self) -> None:
        """A training that another process writes."""
        writer = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("stalls_captures.py")), str(self.folder)]
        )
        try:
            live = self.folder / "live.inspect"
            self.beats.until(live.exists, 30)
            self.beats.rest(0.5)
            self.open("live.inspect")
            self.walk(("training", "health", "overview", "states", "gradients"))
            self.beats.during = "following"
            self.beats.rest(5.0)
        finally:
            writer.kill()
            writer.wait()


if __name__ == "__main__":
    walk = Walk(Path(sys.argv[1]), int(sys.argv[2]))
    walk.all()
    print(json.dumps({"first": walk.first, "painted": walk.painted, "gaps": walk.beats.gaps}))
