"""Decoding: the tree of a search for an answer, and how far free running drifts from the right answer given."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QSpinBox

from inspector.analysis.decoded_tree import GOING_ON, hypothesis_lines, read_tree, tokens_until
from inspector.capture import CaptureError
from inspector.gui.panel.arranged import Arranged, is_wide
from inspector.gui.panel.base import Panel, measured, set_options
from inspector.gui.panel.over_iterations.drift_words import GOES_ON, of_several, parted
from inspector.gui.panel.registry import PANELS
from inspector.gui.state.cursor import Position
from inspector.gui.widgets.controls import caption
from inspector.gui.widgets.plain_text import clean
from inspector.gui.widgets.plots.legend import Legend
from inspector.gui.widgets.plots.stepplot import StepPlot, curve
from inspector.gui.widgets.theme import Theme
from inspector.gui.widgets.tree_layout import tree_layout
from inspector.gui.widgets.wrapped_text import WrappedText
from inspector.records import Channel, DecodedTree

Array = npt.NDArray[Any]
HYPOTHESES, EVERYTHING = "hypotheses", "everything tried"
MOST_TEXTS, MOST_LINES, FEW_LINES, MOST_LETTERS = 400, 6, 2, 70
"""Tokens up to which each is written; hypotheses that are listed, those in a low panel, letters of the text of each."""
ROW, WRITTEN_ROW, DRIFT, ELSE, TALLEST, LETTER = 14, 26, 240, 160, 8000, 7
"""Pixels of a row of the tree, of one with its tokens above it, of the drift, of what else there is, of everything at
most, and of a letter."""
LEAST_DRIFT, ABOVE = 190, 80
"""Pixels of the drift beside the tree at least, and of what stands above it: controls and hypotheses."""
SEARCH, SEARCH_TIP = "Decode an answer…", "Asks how, then searches for the answer to the sequence that is shown"
BY_SEQUENCE = ("statistic", "sequence")
DRIFTS, CONTINUED = "drift from the right answer given", "second halves of sequences: the data's, and its own"
TREE, NEWEST = 0, -1
"""The frame that has the tree; the drift stands in that of the best hypothesis."""
KINDS = {
    GOING_ON: ("continued",), "alive": ("alive",), "finished": ("finished",), "unfinished": ("unfinished",),
    "pruned": ("pruned",),
}  # fmt: skip


@PANELS.register("decoding")
class Decoding(Panel):
    """Channels of kind "decoding": fields of the tokens that were tried (node,), and drift over the answer's steps."""

    tab_order, tab_row = 75, "upper"
    menu_group = "sequence"
    key, title = "decoding", "Decoding"
    hint = (
        "The tree of a search for an answer: greedy decoding, samples, or a beam, with what was pruned. "
        "Run ▸ Decode an answer… searches for it, and so does `inspector decode MODEL --how beam`."
    )
    by_steps = False
    needs_height = 420

    @classmethod
    def accepts(cls, channel: Channel) -> bool:
        """The fields of the tokens, and what drifts."""
        return channel.kind == "decoding" and channel.dims in (("node",), ("step",), BY_SEQUENCE)

    def _filled(self) -> list[Channel]:
        """Of whichever frame: the tree and the drift stand in different ones, and belong to all."""
        known = () if self.capture is None else tuple(self.capture.channels.values())
        return [one for one in known if self.accepts(one) and self.capture.revision(one.name, NEWEST)]  # type: ignore[union-attr]

    def build(self) -> None:
        """The hypotheses as text, the tree, and the drift below it."""
        self._empty.offer(SEARCH, SEARCH_TIP, self.searching.emit)
        self.which = self.add_choice("Show", "Which tokens of the search are drawn")
        set_options(self.which, [HYPOTHESES, EVERYTHING])
        self.until = until_chooser()
        self.until.valueChanged.connect(self.redraw)
        for widget in (caption("Up to token"), self.until):
            self.controls.addWidget(widget)
        self.told = WrappedText(self.theme, lines=FEW_LINES, muted=True)
        self.figure.addItem(self.told, row=0, col=0, colspan=2)
        self.branches = StepPlot(None, self.theme, bottom="token of the answer")
        self.branches.getAxis("left").setTicks([[]])
        self.lines = pg.PlotDataItem(connect="pairs")
        self.branches.addItem(self.lines)
        self.dots = {name: pg.ScatterPlotItem(size=8, pen=None) for name in KINDS}
        for dots in self.dots.values():
            self.branches.addItem(dots)
        self.ring = pg.ScatterPlotItem(size=16, brush=None)
        """Around the token that is read."""
        self.branches.addItem(self.ring)
        self.legend = Legend(self.branches, theme=self.theme)
        self._written: dict[tuple[Any, ...], pg.TextItem] = {}
        """(position in the tree, text, colour, anchor) → what is drawn."""
        self.figure.addItem(self.branches, row=1, col=0)
        self.branches.vb.sigXRangeChanged.connect(self._write_again)
        self.branches.vb.sigResized.connect(self._write_again)
        self.parting = StepPlot(None, self.theme, label="drift", bottom="token of the answer")
        self.drift_legend = Legend(self.parting, theme=self.theme)
        self.drifts: dict[str, pg.PlotDataItem] = {}
        self.figure.addItem(self.parting, row=2, col=0)
        self.parting.vb.setXLink(self.branches.vb)
        self.parting.setMaximumHeight(DRIFT)
        self.arranged = Arranged(self.figure, [self.told, self.branches, self.parting])
        self._wide = False
        self.plots = [self.branches, self.parting]
        self.tree: DecodedTree | None = None
        self._said_lines = 0
        self.nodes, self.across, self.height_of = np.array([], int), np.array([]), np.array([])

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.told.theme = theme
        self.told.update()
        for legend in (self.legend, self.drift_legend):
            legend.set_theme(theme)
        self.lines.setPen(pg.mkPen(theme.grid, width=1.4))
        self.ring.setPen(pg.mkPen(theme.cursor, width=2))
        for (name, dots), colour in zip(
            self.dots.items(), (*theme.series[:3], *theme.series[4:5], theme.muted), strict=True
        ):
            dots.setBrush(pg.mkBrush(colour))
            dots.setSymbol("x" if name == "pruned" else "o")
        for line, colour in zip(self.drifts.values(), theme.series, strict=False):
            line.setPen(pg.mkPen(colour, width=1.4))
        super().set_theme(theme)

    def update_contents(self) -> None:
        """The tree, and what drifts."""
        assert self.capture is not None
        try:
            self.tree = read_tree(self.capture, TREE)
            self._say_hypotheses()
        except CaptureError as problem:  # damaged, or still being written
            self.tree = None
            self.told.set_text(str(problem))
        self._draw_drift([channel for channel in self.channels() if channel.dims == ("step",)])
        if self.tree is not None:
            self._draw_tree(self.tree)

    def _say_hypotheses(self) -> None:
        """The best of them, as many as a panel of this height has room for, and what is known of several sequences."""
        last = self.until.value()
        lines = list(hypothesis_lines(self.tree, MOST_LETTERS, last)) if self.tree is not None else []
        most = self._most_lines
        more = [f"and {len(lines) - most} more"] if len(lines) > most else []
        several = [of_several(one.signal, self._drift(one)) for one in self.channels() if one.dims == BY_SEQUENCE]
        self.told.set_text("\n".join([*lines[:most], *more, *several]))
        self._said_lines = most

    @property
    def _most_lines(self) -> int:
        return MOST_LINES if self.height() > self.needs_height else FEW_LINES

    def _draw_tree(self, tree: DecodedTree) -> None:
        depths = tree.depths
        self.until.setMaximum(max(depths, default=0))
        self.nodes = np.array(tokens_until(tree, self.until.value(), everything=self._all), int)
        number = {int(node): at for at, node in enumerate(self.nodes)}
        parents = [number.get(tree.tokens[node].parent, -1) for node in self.nodes]
        best = self._best(tree)
        self.across, rows = tree_layout(parents, [best[node] for node in self.nodes])
        self.height_of = -rows
        pairs = [(parent, at) for at, parent in enumerate(parents) if parent >= 0]
        order = np.array(pairs, int).reshape(-1)
        self.lines.setData(self.across[order], self.height_of[order])
        self._draw_dots(tree)
        self._draw_ring()
        self._write(tree)
        asked = tree.decode
        at = f", token {self.until.value()} of {max(depths, default=0)}" if self.until.value() else ""
        counted = f"{len(self.nodes)} of {len(tree.tokens)} tokens"
        going = ", not at its end" if tree.goes_on else ""
        self.branches.set_title(f"{asked.how}, width {asked.width}{at}{going}: {counted}")
        self.branches.vb.setXRange(0.5, max(2.0, max(depths, default=1) + 0.7), padding=0)
        self.branches.vb.setYRange(float(self.height_of.min(initial=0.0)) - 0.7, 0.9, padding=0)
        row = WRITTEN_ROW if self._written and not self._all else ROW
        drift = DRIFT if not self._wide and any(self._is_drift(one) for one in self.channels()) else 0
        self.figure.setMinimumHeight(round(min(TALLEST, ELSE + drift + row * (1 - self.height_of.min(initial=0.0)))))

    @staticmethod
    def _is_drift(channel: Channel) -> bool:
        return channel.dims == ("step",) and channel.signal != "drift/wrong"

    def _draw_dots(self, tree: DecodedTree) -> None:
        """The tokens by what became of them; the legend names what there is."""
        shown = []
        for name, fates in KINDS.items():
            own = [at for at, node in enumerate(self.nodes) if tree.tokens[node].fate in fates]
            self.dots[name].setData(x=self.across[own], y=self.height_of[own])
            shown += [name] if own else []
        if [name for _, name in self.legend.entries] != shown:
            self.legend.clear()
            for name in shown:
                self.legend.addItem(self.dots[name], name)

    def _draw_ring(self) -> None:
        """Around the token that is read, wherever it stands now; nothing where it is not drawn."""
        node = self.marked.at(self.branches, len(self.tree.tokens) if self.tree is not None else 0)
        at = np.flatnonzero(self.nodes == node) if node is not None else np.array([], int)
        self.ring.setData(x=self.across[at], y=self.height_of[at])

    def reset(self) -> None:
        """Another search is shown to its end."""
        self.until.blockSignals(True)
        self.until.setValue(0)
        self.until.blockSignals(False)

    @property
    def _all(self) -> bool:
        return bool(self.which.currentText() == EVERYTHING)

    @staticmethod
    def _best(tree: DecodedTree) -> list[float]:
        """For each token the score of the best hypothesis through it; without one its own ln p, far below these."""
        best = [one.total - 1e6 for one in tree.tokens]
        for end in tree.ranked:
            for node in tree.path(end):
                best[node] = max(best[node], tree.tokens[end].score)
        return best

    def _write(self, tree: DecodedTree) -> None:
        """The tokens at their places, where there is room for them; as the tree grows, those that stay are moved."""
        nodes = self.nodes if len(self.nodes) <= MOST_TEXTS and self._fit(tree) else self.nodes[:0]
        anchor, letters = (-0.4, 0.5) if self._all else (0.5, 1.1), int(self._apart() / LETTER)
        before, self._written = self._written, {}
        for at, node in enumerate(nodes.tolist()):
            one = tree.tokens[node]
            colour = self.theme.muted if one.fate == "pruned" else self.theme.text
            said = brief(clean(one.text).replace(" ", "␣") or "·", letters)
            looks = (node, said, colour, anchor)
            text = before.pop(looks, None)
            if text is None:
                text = pg.TextItem(said, color=colour, anchor=anchor)
                self.branches.addItem(text, ignoreBounds=True)
            text.setPos(self.across[at], self.height_of[at])
            self._written[looks] = text
        for text in before.values():
            self.branches.removeItem(text)

    def _fit(self, tree: DecodedTree) -> bool:
        """Whether most tokens are narrower than the way to the next one: others would be written over each other."""
        letters = np.array([len(tree.tokens[node].text) for node in self.nodes.tolist()] or [0])
        return bool(self._apart() >= LETTER * np.percentile(letters, 75))

    def _apart(self) -> float:
        """Pixels from a token to the next one."""
        (first, last), _ = self.branches.vb.viewRange()
        return float(self.branches.vb.width() / max(last - first, 1e-9))

    def _write_again(self) -> None:
        """After a zoom, or in another size."""
        if self.tree is not None and self.state == "figure":
            self._write(self.tree)

    @property
    def texts(self) -> list[pg.TextItem]:
        """The tokens that are written."""
        return list(self._written.values())

    def _draw_drift(self, channels: list[Channel]) -> None:
        assert self.capture is not None
        shown = [channel for channel in channels if self._is_drift(channel)]
        self._arrange(bool(shown))
        if [channel.name for channel in shown] != list(self.drifts):
            self._remake(shown)
        for channel in shown:
            values = self._drift(channel).astype(np.float64)
            self.drifts[channel.name].setData(np.arange(1.0, len(values) + 1), values)
        wrong = next((channel for channel in channels if channel.signal == "drift/wrong"), None)
        self.parting.set_title(
            parted(self._drift(wrong)) if wrong is not None else CONTINUED if self._goes_on else DRIFTS
        )

    def _arrange(self, drifts: bool) -> None:
        """The drift beside the tree in a wide panel, where it is not scrolled away with its axis, else below it."""
        self._wide = is_wide(self.width(), self.height())
        cells = {self.told: (0, 0, 1, 2), self.branches: (1, 0, 1, 1 if drifts and self._wide else 2)}
        if drifts:
            cells[self.parting] = (1, 1, 1, 1) if self._wide else (2, 0, 1, 2)
        beside = drifts and self._wide
        self.arranged.place(cells, (0, 3, 2) if drifts and not beside else (0, 1), (1, 1) if beside else (1, 0))
        self.parting.setMaximumHeight(min(DRIFT, max(LEAST_DRIFT, self.height() - ABOVE)) if beside else DRIFT)
        self.figure.ci.layout.setAlignment(self.parting, Qt.AlignmentFlag.AlignTop)

    def resizeEvent(self, event: Any) -> None:
        """Another form of the panel: another layout."""
        super().resizeEvent(event)
        if self.state != "figure":
            return
        if self.drifts and (self._wide or is_wide(self.width(), self.height())):
            self.draw_if_seen()
        elif self._said_lines != self._most_lines:
            self._say_hypotheses()

    def _drift(self, channel: Channel) -> Array:
        """The drift of the frame that is shown, if it has one; else of the newest that has."""
        assert self.capture is not None
        own = self.capture.revision(channel.name, self.frame) > 0
        return self.capture.array(channel.name, self.frame if own else NEWEST)

    @property
    def _goes_on(self) -> bool:
        """Whether the model continues texts, so that no answer is the right one."""
        return any(one.signal == GOES_ON for one in self.channels())

    def _remake(self, channels: list[Channel]) -> None:
        for line in self.drifts.values():
            self.parting.removeItem(line)
        self.drift_legend.clear()
        self.drifts = {}
        for number, channel in enumerate(channels):
            line = curve(self.theme, number)
            self.parting.addItem(line)
            self.drifts[channel.name] = line
            unit = "" if channel.unit == "1" else f" [{channel.unit}]"
            place = "" if channel.place == self.key else channel.place  # that of the output is the search itself
            self.drift_legend.addItem(line, f"{channel.title}{unit}  {place}".strip())

    def pointed(self, plot: Any, x: float, y: float) -> None:
        """The nearest token of the tree is marked, or a token of the answer."""
        if plot is self.branches and len(self.nodes):
            at = int(np.argmin((self.across - x) ** 2 + (self.height_of - y) ** 2))
            self.marked.set(plot, int(self.nodes[at]), float(self.across[at]))
            self._draw_ring()
        elif plot is self.parting:
            self.marked.set(plot, max(0, round(x) - 1), max(1, round(x)))

    def readout(self, position: Position) -> list[tuple[str, str]]:
        """The token that is marked, with its hypothesis; the drift at the token that is marked."""
        if self.state != "figure" or self.capture is None:
            return []
        rows: list[tuple[str, str]] = []
        at = self.marked.at(self.branches, len(self.tree.tokens) if self.tree is not None else 0)
        if at is not None and self.tree is not None:
            one = self.tree.tokens[at]
            said, fate = clean(self.tree.said(at)), GOING_ON if one.fate == "continued" else one.fate
            rows += [
                (f"token {clean(one.text)!r}, {fate}", f"p = {measured(math.exp(one.log_probability), '')}"),
                (f"ln p of {said!r}", measured(one.total, "nat")), ("its score", measured(one.score, "nat")),
            ]  # fmt: skip
            if one.times > 1:
                rows.append(("samples through it", str(one.times)))
        for channel in self.channels():
            if channel.dims == ("step",):
                values = self._drift(channel)
                step = self.marked.at(self.parting, len(values))
                if step is not None:
                    rows.append(
                        (f"{channel.title}, token {step + 1}  {channel.place}", measured(values[step], channel.unit))
                    )
        return rows

    def data(self) -> dict[str, Array]:
        """Every field of the tokens, and what drifts."""
        assert self.capture is not None
        return {
            one.name: self.capture.array(one.name, TREE) if one.dims == ("node",) else self._drift(one)
            for one in self.channels()
        }


def brief(text: str, letters: int) -> str:
    """A text of at most so many letters, but never fewer than two: the end of a longer one is an ellipsis."""
    return text if len(text) <= max(2, letters) else f"{text[: max(2, letters) - 1]}…"


def until_chooser() -> QSpinBox:
    """The token up to which the search is drawn; the lowest value is its end."""
    box = QSpinBox()
    box.setRange(0, 0)
    box.setSpecialValueText("the end")
    box.setAccessibleName("Token up to which the search is drawn")
    box.setToolTip("Steps through the search: the hypotheses so far, and everything that was tried as this token")
    return box
