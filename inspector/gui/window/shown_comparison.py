"""What is shown compared with another capture, or with another of its frames: as differences, or side by side."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from PySide6.QtCore import QObject, Slot

from inspector.capture import Capture, CaptureError, Pair, Side
from inspector.gui.state.compared_with import ComparedWith, in_short, told_of
from inspector.gui.state.first_difference import NO_TWO, RunAt, runs_of_log
from inspector.gui.state.followed_log import as_log
from inspector.gui.state.step_axes import lengths_of
from inspector.gui.window.comparing.beside import Beside
from inspector.gui.window.what_is_shown import frame_named
from inspector.records import CompareCheckpoints, ParameterChanges

if TYPE_CHECKING:
    from inspector.gui.window.parts import Parts

AGAIN_SECONDS = 2.0
"""Between two comparisons of all channels of a run that goes on."""
LOGS_ARE_ADDED = (
    "What is shown is a log, which has no frames: File ▸ Add run… draws the curves of several runs together."
)


class Comparing(QObject):
    """The comparison of a window. `pair` is None while there is none."""

    def __init__(self, window: Parts, show_frame: Callable[[bool], None]) -> None:
        """`show_frame(ending)`: show the chosen frame again, as `source` says now, or alone."""
        super().__init__(window)
        self.window, self.show_frame, self.other = window, show_frame, ComparedWith()
        self.pair: Pair | None = None
        self._sides: tuple[Side, Side] | None = None
        self._told: object = None
        self._stale, self._said = False, 0.0
        self.beside = Beside(window.docking.place_of, lambda kind: kind(window.looking, window.steps, window.theme))
        window.compare.chosen.connect(self._chosen)
        window.compare.ended.connect(self.end)
        window.compare.listed.connect(self.show_list)
        window.compare.parting.connect(self.find_first)
        window.comparison.first.asked.connect(self.find_first)
        window.comparison.parameters.asked.connect(self._ask_for_parameters)

    # -- beginning and ending

    def begin(self, path: str) -> None:
        """Compare what is shown with a capture from disk."""
        self._begin(lambda _shown: self.other.open(Path(path)))

    def begin_frames(self) -> None:
        """Compare the frame that is shown with another of the same capture."""
        self._begin(self.other.compare_frames)

    def _begin(self, choose: Any) -> None:
        shown = self.window.session.capture
        if shown is None or as_log(shown) is not None:
            self.window.fail(LOGS_ARE_ADDED if shown is not None else "Open or run something first, then compare it.")
            return
        try:
            choose(shown)
        except CaptureError as problem:
            self.window.fail(str(problem))
            return
        assert self.other.capture is not None
        self.window.docking.sides.note()
        capture = self.other.capture
        self.window.compare.offer(capture.path, capture.frames, self.other.frame, itself=self.other.itself)
        self.show_frame(False)

    @Slot()
    def end(self) -> None:
        """Show the capture alone again."""
        if self.other.capture is None:
            return
        self.pair = self._sides = None
        self.beside.end()
        self.window.compare.hide()
        self.window.comparison.forget_first()
        self.window.comparison.show_pair(None)
        self.show_frame(True)
        self.other.end()
        self.window.docking.sides.give_back()

    def another(self, capture: Capture | None) -> None:
        """Another capture is shown: a comparison with a capture from disk goes on, one of two frames is over."""
        self.window.comparison.forget_first()
        if self.other.capture is not None and (capture is None or as_log(capture) is not None or self.other.itself):
            self.pair = self._sides = None
            self.beside.end()
            self.window.compare.hide()
            self.window.comparison.show_pair(None)
            self.other.end()
            self.window.docking.sides.give_back()

    @Slot()
    def _chosen(self) -> None:
        self.other.frame = self.window.compare.frame
        self.show_frame(False)

    # -- what is shown

    def source(self, shown: Capture, frame: int) -> Any:
        """What the panels show of a frame: the comparison, or the second of two sides; None where there is none."""
        if self.other.capture is None:
            self.pair = None
            return None
        pair = self.other.pair(shown, frame)
        if pair is not self.pair:
            self.pair, self._sides = pair, (Side(pair.before, pair.after, first=True), Side(pair.after, pair.before))
            self.window.comparison.show_pair(pair)
        assert self._sides is not None
        return self._sides[1] if self.window.compare.sides else pair

    def settle(self) -> None:
        """Say what is compared, and show or remove the panels at the left."""
        if self.pair is None or self._sides is None:
            return
        told = told_of(self.pair)
        if told != self._told:
            self._told = told
            self.window.compare.tell(*told, in_short(self.pair))
        if self.window.compare.sides:
            self.show_beside()
        else:
            self.beside.end()

    @property
    def named(self) -> str:
        """With what is compared, in a few words: the name of a capture, and its frame where it has several; "" while
        nothing is compared."""
        capture = self.other.capture
        if capture is None or self.pair is None:
            return ""
        frame = frame_named(capture, self.other.frame)
        return frame if self.other.itself and frame else " ".join(one for one in (capture.path.name, frame) if one)

    def show_beside(self) -> None:
        """Every panel on screen has one at its left."""
        if self._sides is None or not self.window.compare.sides:
            return
        made = self.window.panels.made
        seen = [(key, made[key]) for key in made if key in self.window.docking.seen or key in self.beside.twins]
        self.beside.show(seen, self._sides)

    def seen(self, shown: Capture) -> Any:
        """What the rows of tokens show: the second side, along aligned steps where they were aligned."""
        return shown if self.pair is None else self.pair.after.view

    def lengths(self, shown: Capture) -> dict[str, int]:
        """The length of every axis, that of the longer side."""
        if self.pair is None:
            return lengths_of(shown)
        both = [lengths_of(cast(Capture, side.view), side.frame) for side in reversed(self.pair.sides)]
        return {axis: max(one.get(axis, 0) for one in both) for axis in dict.fromkeys((*both[0], *both[1]))}

    def more(self) -> None:
        """There are more numbers on one side or the other: what is said of them is said again soon."""
        self._stale = self.pair is not None

    def tick(self) -> None:
        """The other capture may grow too; what was said of a run that goes on is said again."""
        now = time.monotonic()
        if self._stale and now > self._said + AGAIN_SECONDS and not self.window.session.running:
            self._stale, self._said = False, now
            self.settle()
            self.window.comparison.show_again()
        shown = self.window.session.capture
        if shown is None or not self.other.grown():
            return
        self.more()
        if self.source(shown, self.window.frames.current) is not self.window.panels.source:
            self.show_frame(False)  # it has more tokens now, and they are aligned otherwise
        else:
            names = frozenset(self.other.capture.channels) if self.other.capture is not None else frozenset()
            for panel in (*self.window.panels.made.values(), *self.beside.panels):
                panel.refresh(names)

    # -- channels and parameters

    @Slot()
    def show_list(self) -> None:
        """The table of all channels comes to the front."""
        if self.window.docking.enlarged:
            self.window.docking.restore()
        self.window.docking.show_panel("comparison")
        self.window.comparison.table.setFocus()  # F9 then enlarges the list, and not a panel

    @Slot()
    def find_first(self) -> None:
        """Find where the two runs that are compared, or drawn together, begin to differ."""
        runs = self._two_runs()
        if runs is None:
            self.window.fail(NO_TWO)
            return
        self.show_list()
        self.window.comparison.find_first(*runs)

    def _two_runs(self) -> tuple[RunAt, RunAt] | None:
        shown = self.window.session.capture
        log = as_log(shown)
        if log is not None:
            runs = runs_of_log(log.whole)
            return (runs[0], runs[1]) if len(runs) == 2 else None
        if shown is None or self.pair is None or self.other.capture is None:
            return None
        before, after = self.pair.before, self.pair.after
        return (
            RunAt(self.other.capture.path, before.name, frame=before.frame),
            RunAt(shown.path, after.name, frame=after.frame),
        )

    def choose_step(self, step: int) -> None:
        """Compare with the other capture's first frame that is not before a step, where it has one."""
        other = self.other.capture
        if other is None or self.other.itself:
            return
        found = next((one for one in other.frames if one.step is not None and one.step >= step), None)
        if found is not None:
            self.other.frame = found.index
            self.window.compare.offer(other.path, other.frames, found.index, itself=False)

    @Slot(str, str)
    def _ask_for_parameters(self, first: str, second: str) -> None:
        session = self.window.session
        session.start_worker()
        session.connection.send(CompareCheckpoints(first=first, second=second))

    def take(self, answer: Any) -> None:
        """The worker's answer about two checkpoints."""
        if isinstance(answer, ParameterChanges):
            self.window.comparison.parameters.take(answer)
        else:
            self.window.comparison.parameters.refuse(answer.message)
