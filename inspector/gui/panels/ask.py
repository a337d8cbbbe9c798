"""Ask: where a text stands in the sequence, and which units, gates and heads track it, after how many steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QTimer, Slot
from PySide6.QtWidgets import QSpinBox, QSplitter, QWidget

from inspector.analysis.text_matches import KINDS, TEXT, Ranges, marked, matches
from inspector.analysis.tracking import Track, Tracked, series, track
from inspector.capture import Capture
from inspector.capture.pyramid import reduce_rows
from inspector.gui.panel.axes_of_data import DataAxes
from inspector.gui.panel.base import Panel, caption, chooser, measured
from inspector.gui.panel.registry import PANELS
from inspector.gui.state.asked import asked_of
from inspector.gui.state.cursor import Position
from inspector.gui.state.side_reader import SideReader, Task
from inspector.gui.widgets.line_field import LineField
from inspector.gui.widgets.numbers import short
from inspector.gui.widgets.plots.stepplot import POINTS, StepPlot, curve, decimated
from inspector.gui.widgets.tables.sorted_table import Rows, SortedTable
from inspector.gui.widgets.theme import Theme
from inspector.records import Channel

Array = npt.NDArray[Any]
DRAWN, LISTED = 3, 60
"""Tracks that are drawn, and listed, at most."""
LEAST_PLOT = 80
"""Pixels of height that each of them needs, with its title; where there is less, fewer are drawn."""
WAIT_MS, POLL_MS = 350, 60
"""Milliseconds after the last letter that was typed before it is searched for, and between looks for results."""
HEADINGS = ("in", "r", "delay", "by\nchance")
TIPS = (
    "The layer",
    "Correlation of the match (0 or 1) at step t with the value at t + delay; of a head, with the weight that key t is "
    "given by the query `delay` steps later",
    "Steps from the match to the value with which |r| is largest",
    "The |r| that the best of this channel exceeds in one of twenty shifts of the match around the sequence; NaN: the "
    "sequence is too short to say",
)
SIGNS = frozenset("[]()*+?|^$\\")
"""A text with one of them may have been meant as a regular expression."""
PERHAPS = "no match as a text; is it a regular expression?"
WAITING = "Type what to look for: a text (\\n is a line break), a regular expression, or steps (12-20, 40)."


@dataclass(slots=True)
class Job:
    """One search: written by the thread that does it, read by the window."""

    ranges: Ranges = ()
    searched: bool = False
    """Whether `ranges` are all that there are."""
    found: list[Tracked] = field(default_factory=list)
    series: dict[Track, Array] = field(default_factory=dict)


@PANELS.register("ask")
class Ask(Panel):
    """States and gates over (step, unit), and attention of a sequence to itself."""

    tab_order, tab_row = 25, "upper"
    menu_group = "sequence"
    key, title = "ask", "Ask"
    hint = "Where a text stands in the sequence, and which units, gates and heads track it. Needs states or attention."
    shows = ("attention/maps", "states", "scans", "gates")
    needs_height = 300
    asks_first = True

    @classmethod
    def accepts(cls, channel: Channel) -> bool:
        """What has a number a step."""
        if channel.kind == "attention" and channel.dims == ("head", "query", "key"):
            return channel.domain("query") == channel.domain("key")
        return channel.kind in ("state", "gate") and channel.dims == ("step", "unit")

    def picture(self) -> QWidget:
        """The ranking beside the curves of the best."""
        self.table = SortedTable("unit or\nhead", "Units, gates and heads that track the match, best first", by=1)
        self.table.chosen.connect(self._chosen)
        self.parts = QSplitter()
        self.parts.addWidget(self.table)
        self.parts.addWidget(self.figure)
        self.parts.setSizes([540, 460])
        return self.parts

    def build(self) -> None:
        """What is asked for, the longest delay, three plots."""
        self.field, self.kind, self.delay = LineField(), chooser(list(KINDS), "How it is asked for"), QSpinBox()
        self.field.setAccessibleName("Find in the sequence")
        self.field.setPlaceholderText(WAITING.partition(":")[0])
        self.field.setToolTip(WAITING)
        self.field.setClearButtonEnabled(True)
        self.field.setMinimumWidth(200)
        self.delay.setRange(0, 512)
        self.delay.setValue(16)
        self.delay.setAccessibleName("Longest delay in steps")
        self.delay.setKeyboardTracking(False)
        for label, widget in (("Find", self.field), ("", self.kind), ("Delay up to", self.delay)):
            if label:
                self.controls.addWidget(caption(label))
            self.controls.addWidget(widget)
        self.curves = [curve(self.theme, n) for n in range(DRAWN)]
        self.plots = [StepPlot(self.steps, self.theme, label="value") for _ in range(DRAWN)]
        for row, (plot, line) in enumerate(zip(self.plots, self.curves, strict=True)):
            plot.addItem(line)
            self.figure.addItem(plot, row=row, col=0)
        self.reader = SideReader()
        self._wait = QTimer(self, interval=WAIT_MS, singleShot=True)
        self._wait.timeout.connect(self.ask)
        self._poll = QTimer(self, interval=POLL_MS)
        self._poll.timeout.connect(self._take)
        self.field.textChanged.connect(lambda _text: self._wait.start())
        self.field.returnPressed.connect(self.ask)
        self.kind.currentTextChanged.connect(lambda _kind: self.ask())
        self.delay.valueChanged.connect(lambda _delay: self.ask())
        self.steps.changed.connect(self._in_view)
        again = QTimer(self, interval=0, singleShot=True)
        again.timeout.connect(lambda: self._in_view(*self.steps.bounds))
        self.plots[0].vb.sigResized.connect(lambda _: again.start())
        self._forget()

    def _forget(self) -> None:
        self.job = Job()
        self.listed: list[Track] = []
        self.picked: Track | None = None
        self._task: Task | None = None
        self._key: Any = None
        self._marked: Any = None

    def reset(self) -> None:
        """Another capture: nothing is found in it yet."""
        self._poll.stop()
        if self.capture is None:
            self.reader.close()
        elif self._task is not None:  # which is not waited for
            self.reader.forget(self._task.key)
        self._forget()
        asked_of(self.looking).show(())

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.table.set_theme(theme)
        for n, line in enumerate(self.curves):
            line.setPen(theme.series[n], width=1.4)
        super().set_theme(theme)

    # -- asking

    def begin(self) -> None:
        """Wait for a text."""
        self.field.setFocus()
        self.field.selectAll()

    @Slot()
    def ask(self) -> None:
        """Search for what is typed, beside the window."""
        self._wait.stop()
        self._key = None
        self.redraw()

    def _request(self) -> None:
        """Begin a search, unless the same one was begun for the same numbers."""
        capture = self.capture
        assert capture is not None
        own = [(one, capture.revision(one.name, self.frame)) for one in self.channels()]
        asked = (self.field.text(), self.kind.currentText(), self.delay.value(), self.frame, self.looking.axis)
        key = (*asked, tuple((one.name, revision) for one, revision in own))
        growing = capture.stop is None and self._key is not None and asked == self._key[: len(asked)]
        if key == self._key or growing:  # what grows is searched when it is asked for again, or has ended
            return
        if self._task is not None:
            self.reader.forget(self._task.key)
        job = self.job = Job()
        self._key, self.picked = key, None
        text, kind, delay, frame, _ = asked
        names, channels, length = self.step_names(), [one for one, _ in own], self.looking.length

        def steps(view: Any) -> Iterator[None]:
            job.ranges, job.searched = matches(names, length, kind, text), True
            yield
            mark = marked(job.ranges, length)
            if not mark.any() or mark.all():
                return
            for channel in channels:
                job.found.append(track(view, channel, frame, mark, delay))
                yield
            for best in best_of(job.found)[:DRAWN]:
                job.series[best] = series(view, best, frame, length)
                yield

        self._task = Task(("ask", key), steps, 1)
        self.reader.do(capture, self._task, at_once=False)
        self._poll.start()

    def draw_if_seen(self) -> None:
        """Draw now, or behind others find at least the matches: other panels show them."""
        super().draw_if_seen()
        if self.stale and self.capture is not None and self.field.text():
            self._find_matches(self.capture)

    def _find_matches(self, capture: Capture) -> None:
        """The matches alone, without what tracks them: as soon as the run begins, and once more when it has ended."""
        text, kind, axis = self.field.text(), self.kind.currentText(), self.looking.axis
        asked = (text, kind, axis, capture.stop is None)
        if self._key is not None or asked == self._marked:
            return
        names, length, job = self.step_names(), self.looking.length, Job()

        def steps(_view: Any) -> Iterator[None]:
            job.ranges, job.searched = matches(names, length, kind, text), True
            yield

        self._marked, self.job = asked, job
        self._task = Task(("matches", asked), steps, 1)
        self.reader.do(capture, self._task, at_once=False)
        self._poll.start()

    @Slot()
    def _take(self) -> None:
        """Show what was found since."""
        if self._task is None or self._task.done:
            self._poll.stop()
        if self.capture is None:
            return
        if self.on_screen:
            self.redraw()
        else:
            self._mark()

    def _mark(self) -> None:
        """Mark the matches, once all are known; until then what is marked stays."""
        if self.job.searched or self._task is None or self._task.done:
            asked_of(self.looking).show(self.job.ranges, self.looking.axis)

    def complete(self) -> None:
        """Wait for all of it: a figure in a file shows the whole."""
        self.reader.wait()
        self._take()

    # -- drawing

    def update_contents(self) -> None:
        """What was found so far."""
        assert self.capture is not None
        for channel in self.channels():  # it is read by a thread that opens the file once more: damage is told here
            self.capture.block(channel.name, self.frame, (slice(0, 1),) * len(channel.dims))
        self._request()
        self._mark()
        self.listed = best_of(list(self.job.found))[:LISTED]
        chance = {one.channel: one.chance for one in list(self.job.found)}
        self.table.show_table(
            Rows(
                [self.name_of(one) for one in self.listed],
                HEADINGS,
                [(self.place_of(one), round(one.r, 4), float(one.delay), chance[one.channel]) for one in self.listed],
                TIPS,
            )
        )
        for plot in self.plots:
            plot.step_axis.set_names(self.step_names())
        self._draw()

    def place_of(self, one: Track) -> str:
        """The layer that it belongs to."""
        channel = self.capture.channels.get(one.channel) if self.capture is not None else None
        return channel.place if channel is not None else ""

    def name_of(self, one: Track) -> str:
        """A unit of a state or gate, or a head."""
        channel = self.capture.channels.get(one.channel) if self.capture is not None else None
        signal = channel.signal if channel is not None else one.channel
        return f"{signal} {'head ' if channel is not None and channel.kind == 'attention' else ''}{one.number}"

    def said(self) -> str:
        """How many matches there are, what was read, or what is wrong with what is asked for."""
        if not self.field.text():
            return WAITING
        if self._task is not None and self._task.error:
            return self._task.error
        done = self._task is None or self._task.done
        if not self.job.ranges:
            none = PERHAPS if self.kind.currentText() == TEXT and SIGNS & set(self.field.text()) else "no match"
            return none if done else "searching …"
        covered = int(marked(self.job.ranges, self.looking.length).sum())
        count, length = len(self.job.ranges), self.looking.length
        said = f"{count:,} {'match' if count == 1 else 'matches'}, {covered:,} of {length:,} steps"
        if covered == length:
            return f"{said}: nothing can track what is everywhere"
        less = [
            one
            for one in list(self.job.found)
            if one.why or one.steps < min(self.looking.length, self._extent(one.channel))
        ]
        said += "".join(f"; {one.channel}: {one.why or f'its first {one.steps:,} steps'}" for one in less[:2])
        return said if done else f"{said}; {len(self.job.found)} of {len(self.channels())} channels read …"

    def _extent(self, name: str) -> int:
        assert self.capture is not None
        return self.capture.extent(name, self.frame)[0 if self.capture.channels[name].kind != "attention" else 1]

    def how_well(self, one: Track) -> str:
        """The correlation of a track with its delay, and what chance reaches."""
        chance = next((found.chance for found in list(self.job.found) if found.channel == one.channel), np.nan)
        told = f"by chance {short(chance, 2)}" if np.isfinite(chance) else "too short to tell from chance"
        return f"r {short(one.r, 4)} ({told}), delay {one.delay}"

    def drawn_tracks(self) -> list[Track]:
        """The one that was chosen, then the best, as many as there is room for."""
        return self._tracks()[: max(1, self.figure.height() // LEAST_PLOT)]

    def _tracks(self) -> list[Track]:
        best = [one for one in self.listed if one in self.job.series]
        first = [self.picked] if self.picked is not None and self.picked in self.job.series else []
        return [*first, *(one for one in best if one not in first)][:DRAWN]

    def _draw(self) -> None:
        tracks, (low, high) = self.drawn_tracks(), self.steps.bounds
        more = len(self._tracks()) - len(tracks) if self.figure.fixed else 0
        self.figure.left_out = (f"{more} more of the best",) if more else ()
        for n, (plot, line) in enumerate(zip(self.plots, self.curves, strict=True)):
            plot.setVisible(n == 0 or n < len(tracks))
            last = n == max(0, len(tracks) - 1)
            plot.getAxis("bottom").setStyle(showValues=last)
            plot.getAxis("bottom").showLabel(last)
            if n >= len(tracks):
                line.setData([], [])
                plot.set_title(self.said())
                continue
            one = tracks[n]
            values = self.job.series[one]
            first, stop = max(0, int(low)), min(len(values), int(high) + 2)
            part = values[first:stop]
            factor = max(1, -(-len(part) // (POINTS // 2)))
            ends = [reduce_rows(part, factor, how) for how in (np.minimum, np.maximum)] if factor > 1 else [part, part]
            line.setData(*decimated(ends[0], ends[1], float(first), float(factor)))
            told = f"{self.name_of(one)}, {one.channel.rpartition(':')[0]}: {self.how_well(one)}"
            plot.set_title(self.said() if n == 0 else told, told if n == 0 else "")

    def _in_view(self, _low: float, _high: float) -> None:
        if self.state == "figure" and self.in_sight():
            self._draw()

    # -- the cursor

    def _chosen(self, row: int) -> None:
        """A row was chosen: it is drawn, and the cursor goes to its unit or head."""
        if not 0 <= row < len(self.listed) or self.capture is None:
            return
        self.picked = one = self.listed[row]
        if one not in self.job.series:
            self.job.series[one] = series(self.capture, one, self.frame, self.looking.length)
        channel = self.capture.channels[one.channel]
        which = {"head" if channel.kind == "attention" else "unit": one.number}
        self.looking.move(place=channel.place, **which)
        self._draw()

    def pointed(self, plot: Any, x: float, y: float) -> None:
        """The cursor goes to the step under the mouse."""
        self.looking.move(step=round(x))

    def readout(self, position: Position) -> list[tuple[str, str]]:
        """Whether the step is in a match, and the values that are drawn."""
        step = position.step
        if step is None or not self.job.ranges:
            return []
        inside = any(first <= step <= last for first, last in self.job.ranges)
        rows = [(f"in a match [{step}]", "yes" if inside else "no")]
        for one in self.drawn_tracks():
            if step < len(self.job.series[one]):
                rows.append(
                    (
                        f"{self.name_of(one)} [{step}]  {one.channel.rpartition(':')[0]}",
                        measured(self.job.series[one][step], ""),
                    )
                )
        return rows

    def data(self) -> dict[str, Array]:
        """The matches (first, last), and of each channel, best first, (number of the unit or head, delay, r)."""
        found = {one.channel: np.array([(t.number, t.delay, t.r) for t in best_of([one])]).reshape(-1, 3)
                 for one in list(self.job.found)}  # fmt: skip
        return {"matches": np.array(self.job.ranges, np.int64).reshape(-1, 2), **found}

    def data_axes(self) -> DataAxes:
        """Rows of tables: what a channel is called here are its units or heads, ranked, and not the channel."""
        found = {one.channel: (("rank", "what"), ("number", "delay", "r")) for one in list(self.job.found)}
        return {"matches": (("match", "what"), ("first", "last")), **found}


def best_of(found: list[Tracked]) -> list[Track]:
    """The tracks of all channels, best first."""
    return sorted((one for each in found for one in each.tracks), key=lambda one: -abs(one.r))
