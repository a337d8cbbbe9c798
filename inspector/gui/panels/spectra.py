"""Spectra: singular values of the step Jacobian as a fan, eigenvalues beside the unit circle, and a summary."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.analysis.spectrum import bound_verdict, eigenvalue_verdict
from inspector.gui.panel.arranged import LEAST_BESIDE, Arranged, is_very_wide
from inspector.gui.panel.base import Panel, caption, chooser, number, set_options
from inspector.gui.panel.channel_choice import chosen, distinct, offer
from inspector.gui.panel.exact import exact, or_why
from inspector.gui.panel.labelled import row_of
from inspector.gui.panel.registry import PANELS
from inspector.gui.state.cursor import Position
from inspector.gui.widgets.charts.fan import Fan, subscript
from inspector.gui.widgets.charts.plane import Plane
from inspector.gui.widgets.charts.rankplot import RankPlot
from inspector.gui.widgets.numbers import short
from inspector.gui.widgets.plots.source import stride_of
from inspector.gui.widgets.summary_text import SummaryText
from inspector.gui.widgets.theme import Theme
from inspector.records import Channel

Array = npt.NDArray[Any]
PARTS = ("re", "im")
SCALARS = {
    "spectral_radius": "ρ",
    "spectral_norm": "σ₁",
    "non_normality": "non-normality",
    "orthogonality_defect": "‖WᵀW − I‖",
}
"""The scalars of a matrix by the last word of their name, with their symbols."""


@PANELS.register("spectra")
class Spectra(Panel):
    """Channels of kind "spectrum": (step, rank), (step,), (rank,), (eigenvalue, part) and (step, eigenvalue, part)."""

    tab_order = 90
    menu_group = "gradients"
    key, title = "spectra", "Spectra"
    of_recurrences = True
    hint = "Singular values and eigenvalues of step Jacobians and recurrent weights. Needs a recurrent layer."
    shows = (
        "weight/spectrum", "jacobian/isometry", "jacobian/singular_values", "jacobian/eigenvalues", "latent/kalman",
    )  # fmt: skip
    needs_height = 320

    @classmethod
    def accepts(cls, channel: Channel) -> bool:
        """Spectra over steps, and of one matrix."""
        return channel.kind == "spectrum" and channel.dims in (
            ("step", "rank"), ("step",), ("rank",), ("eigenvalue", "part"), ("step", "eigenvalue", "part"),
        )  # fmt: skip

    def concerns(self, name: str) -> bool:
        """Spectra that could not be computed."""
        return "singular_values" in name or "eigenvalues" in name or ":weight" in name

    def build(self) -> None:
        """The fan above the singular values of the chosen matrix, the complex plane on the right, text below."""
        self.figure.shrinks = True
        self.where, self.which = chooser([], "Place in the model"), chooser([], "Which matrix")
        for widget in (caption("Layer"), self.where, caption("Matrix"), self.which):
            self.controls.addWidget(widget)
        self.where.currentTextChanged.connect(self._chosen)
        self.which.currentTextChanged.connect(lambda _name: self.marked.clear())
        self.which.currentTextChanged.connect(self.redraw)
        self.fan = Fan(self.steps, self.theme, label="singular value", symbol="σ", log=True, level=0.0)
        self.ranks = RankPlot(self.theme, label="singular value", bottom="rank", log=True, level=0.0)
        self.plane = Plane(self.theme, circle=True, labels=("Re λ", "Im λ"))
        self.summary = SummaryText(self.theme)
        self.arranged = Arranged(self.figure, [self.fan.plot, self.ranks, self.plane, self.summary])
        self._arrange()
        self.plots = [self.fan.plot, self.ranks]
        self.note, self._very = "", False
        self.steps.changed.connect(self._in_view)

    def _arrange(self) -> None:
        size, plots = (self.width(), self.height()), (self.fan.plot, self.ranks)
        named = ("the singular values by step", "those of the matrix", "its eigenvalues")
        self.arranged.place_three(
            size, plots, [self.plane], self.summary, (LEAST_BESIDE, self.needs_height), named,
            filled=any(channel.dims == ("step", "rank") for channel in self.channels()),
        )  # fmt: skip

    def resizeEvent(self, event: Any) -> None:
        """A very wide panel has the three plots beside each other."""
        super().resizeEvent(event)
        very, self._very = self._very, is_very_wide(self.width(), self.height())
        if self.state == "figure" and not self.over.on and very != self._very:
            self.draw_if_seen()

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        for part in (self.fan, self.plane, self.summary):
            part.set_theme(theme)
        super().set_theme(theme)

    def _chosen(self, place: str) -> None:
        self.looking.move(place=place)
        self.redraw()

    def _in_view(self, _low: float, _high: float) -> None:
        if self.state == "figure" and self.in_sight():
            self._draw_fan()

    def of_dims(self, *dims: str) -> list[Channel]:
        """Channels of the chosen place over these axes."""
        return [c for c in self.channels() if c.dims == dims and c.place == self.where.currentText()]

    def matrices(self) -> list[Channel]:
        """Eigenvalues that the complex plane can show: of matrices, then of the Jacobian at the cursor."""
        return self.of_dims("eigenvalue", "part") + self.of_dims("step", "eigenvalue", "part")

    def update_contents(self) -> None:
        """Fan, plane and ranks of the chosen place and matrix."""
        set_options(self.where, list(dict.fromkeys(channel.place for channel in self.channels())))
        offer(self.which, distinct({channel.signal: name_of(channel) for channel in self.matrices()}))
        self.fan.plot.step_axis.set_names(self.step_names())
        self._arrange()
        self._draw_fan()
        self._draw_matrix()

    def _draw_fan(self) -> None:
        assert self.capture is not None
        channel = next(iter(self.of_dims("step", "rank")), None)
        self.fan.plot.setVisible(channel is not None and self.arranged.has(self.fan.plot))
        self.note = ""
        if channel is None:
            return
        other = next(iter(self.of_dims("step")), None)
        below = self.fan.show(self.capture, channel, self.frame, self.steps.bounds, other)
        self.fan.plot.set_title(f"{channel.title}, {channel.place}")
        notes = [channel.method, *(["some are smaller than the axis shows, or 0"] if below else [])]
        self.note = f"{channel.title}: {'; '.join(notes)}."

    def matrix(self) -> Channel | None:
        """The channel that the complex plane shows."""
        return chosen(self.which, self.matrices())

    def step_shown(self, channel: Channel) -> int:
        """The step whose eigenvalues are drawn: the cursor's, or the last one before it that was computed."""
        assert self.capture is not None
        last = self.capture.extent(channel.name, self.frame)[0] - 1
        every = stride_of(self.capture, channel.name, self.frame)
        step = min(max(0, self.looking.position.step or 0), last)
        return step // every * every

    def scalar(self, name: str, missing: float = math.nan) -> float:
        """A scalar of the frame that is shown."""
        assert self.capture is not None
        frames = {s.frame: s.value for s in self.capture.scalars if s.name == name}
        return frames.get(self.frame, frames[max(frames)] if frames and self.frame < 0 else missing)

    def eigenvalues(self) -> tuple[Array, str]:
        """(eigenvalue, 2) real and imaginary parts of what is shown, and its title."""
        channel = self.matrix()
        if channel is None:
            return np.zeros((0, 2)), ""
        title = channel.title if channel.dims[0] != "step" else f"{channel.title} at step {self.step_shown(channel)}"
        values = self.as_stored(channel)
        return np.stack([values[:, row_of(channel, part, "part")] for part in PARTS], -1), title

    def as_stored(self, channel: Channel) -> Array:
        """(eigenvalue, part) of a matrix, or of the step that is shown, as they are in the capture."""
        assert self.capture is not None
        if channel.dims[0] != "step":
            return self.capture.array(channel.name, self.frame)
        step = self.step_shown(channel)
        found: Array = self.capture.block(channel.name, self.frame, (slice(step, step + 1),))[0]
        return found

    def singular_values(self) -> Array:
        """Singular values of the matrix that is shown, as many as were stored."""
        channel = self.matrix()
        assert self.capture is not None
        if channel is None:
            return np.zeros(0)
        if channel.dims[0] == "step":
            fan = next(iter(self.of_dims("step", "rank")), None)
            step = self.step_shown(channel)
            if fan is None or step >= self.capture.extent(fan.name, self.frame)[0]:
                return np.zeros(0)
            row: Array = self.capture.block(fan.name, self.frame, (slice(step, step + 1),))[0]
            return row
        base = channel.name.rpartition("/")[0]
        own = next((c for c in self.of_dims("rank") if c.name.rpartition("/")[0] == base), None)
        return np.zeros(0) if own is None else self.capture.array(own.name, self.frame)

    def ranks_shown(self, count: int) -> Array:
        """The ranks of those singular values: for a Jacobian not all may have been stored."""
        channel = self.matrix()
        fan = next(iter(self.of_dims("step", "rank")), None)
        names = (
            fan.labels.get("rank", ()) if fan is not None and channel is not None and channel.dims[0] == "step" else ()
        )
        whole = len(names) == count and all(name.isdecimal() for name in names)
        return np.array([int(name) for name in names] if whole else range(1, count + 1))

    def _draw_matrix(self) -> None:
        channel = self.matrix()
        values, title = self.eigenvalues()
        self.plane.setVisible(channel is not None and self.arranged.has(self.plane))
        self.plane.show_dots(values[:, 0], values[:, 1])
        self._ring()
        self.plane.set_title(title + ("" if np.isfinite(values).all() else "  (not finite)"))
        singular = self.singular_values()
        self.ranks.setVisible(len(singular) > 0 and self.arranged.has(self.ranks))
        if len(singular):
            self.ranks.show_values(singular, self.ranks_shown(len(singular)))
            self.ranks.set_title(f"singular values of {self.symbol()}")
        self.summary.set_text("\n".join(filter(None, (self.sentence(values, singular), self.note))))

    def symbol(self) -> str:
        """The name of the matrix."""
        channel = self.matrix()
        if channel is None:
            return ""
        return f"Jₜ at step {self.step_shown(channel)}" if channel.dims[0] == "step" else name_of(channel)

    def numbers(self) -> dict[str, float]:
        """The scalars of the chosen matrix, by symbol; nothing for a Jacobian."""
        channel = self.matrix()
        if channel is None or channel.dims[0] == "step":
            return {}
        base = channel.name.rpartition("/")[0]
        found = {symbol: self.scalar(f"{base}/{name}") for name, symbol in SCALARS.items()}
        bound = self.scalar(f"{base}/bound")
        return {k: v for k, v in (found | {"γσ₁": bound}).items() if not math.isnan(v)}

    def sentence(self, values: Array, singular: Array) -> str:
        """A summary of the chosen matrix."""
        channel = self.matrix()
        if channel is None or not len(values):
            return ""
        numbers = self.numbers()
        if not numbers:
            return f"{self.symbol()}: {eigenvalue_verdict(values, singular).sentence}."
        bound = numbers.pop("γσ₁", math.nan)
        text = f"{self.symbol()}: {', '.join(f'{symbol} = {short(value)}' for symbol, value in numbers.items())}."
        if math.isnan(bound):
            return text
        return f"{text} {bound_verdict(bound).sentence}."

    def follow(self, new: Position, old: Position) -> None:
        """Another place shows its spectra; another step its Jacobian."""
        if new.place != old.place and self.where.findText(new.place) >= 0:
            self.where.setCurrentText(new.place)
        channel = self.matrix()
        if channel is not None and channel.dims[0] == "step" and new.step != old.step:
            self._draw_matrix()

    def pointed(self, plot: Any, x: float, y: float) -> None:
        """Over the fan, the cursor goes to the step under the mouse; a rank or the nearest eigenvalue is marked."""
        if plot is self.fan.plot:
            self.looking.move(step=round(x), place=self.where.currentText())
        elif plot is self.ranks:
            ranks = self.ranks_shown(len(self.singular_values()))
            if len(ranks):
                at = int(np.argmin(np.abs(ranks - x)))
                self.marked.set(plot, at, float(ranks[at]))
        elif plot is self.plane:
            self.marked.set(plot, self.plane.nearest(x, y))
            self._ring()

    def _ring(self) -> None:
        """A ring around the eigenvalue that is marked."""
        values, _ = self.eigenvalues()
        at = self.marked.at(self.plane, len(values))
        self.plane.show_here(*(values[at] if at is not None else (math.nan, math.nan)))

    def told_of(self, value: Any, dim: str) -> str:
        """A number of the matrix that is shown, or why it is not known."""
        matrix = self.matrix()
        if matrix is None or self.capture is None:
            return number(value)
        base = matrix.name.rpartition("/")[0]
        own = [c for c in self.channels() if dim in c.dims and c.name.rpartition("/")[0] == base]
        for channel in own:
            value = value if isinstance(value, str) else or_why(value, self.capture, channel.name, self.frame)
        return number(value)

    def _marked_rows(self) -> list[tuple[str, str]]:
        """The singular value and the eigenvalue that are marked."""
        rows: list[tuple[str, str]] = []
        singular, (values, title) = self.singular_values(), self.eigenvalues()
        at = self.marked.at(self.ranks, len(singular))
        if at is not None:
            rank = self.ranks_shown(len(singular))[at]
            rows.append((f"σ{subscript(str(rank))} of {self.symbol()}", self.told_of(singular[at], "rank")))
        at = self.marked.at(self.plane, len(values))
        if at is not None:
            real, imaginary = values[at]
            shown = f"{number(real)} {'−' if imaginary < 0 else '+'} {number(abs(imaginary))} i"
            modulus = np.hypot(real, imaginary)
            shown = self.told_of(modulus, "part") if np.isnan(modulus) else shown
            rows += [(f"eigenvalue, {title}", shown), ("its modulus |λ|", self.told_of(modulus, "part"))]
        return rows

    def readout(self, position: Position) -> list[tuple[str, str]]:
        """Largest and smallest value at the step, and the numbers of the matrix."""
        rows = self._marked_rows()
        step = position.step
        if step is None:
            return rows
        for channel in [*self.of_dims("step", "rank"), *self.of_dims("step")]:
            assert self.capture is not None
            if step >= self.capture.extent(channel.name, self.frame)[0]:
                continue
            every = stride_of(self.capture, channel.name, self.frame)
            at = step // every * every  # the last one before it that was computed
            row = np.atleast_1d(exact(self.capture, channel.name, self.frame, (slice(at, at + 1),))[0])
            ranks = channel.labels.get("rank", ("",))
            ends = {0, len(row) - 1} if len(channel.dims) > 1 else {0}
            for end in sorted(ends):
                what = f"σ{subscript(ranks[end])}" if len(channel.dims) > 1 and end < len(ranks) else channel.title
                rows.append((f"{what} [{at}]  {channel.place}", number(row[end])))
        return rows + [(f"{symbol} of {self.symbol()}", number(value)) for symbol, value in self.numbers().items()]

    def data(self) -> dict[str, Array]:
        """The fan, and the spectrum of the matrix that is shown (a Jacobian's only at its step)."""
        assert self.capture is not None
        found = {
            c.name: self.capture.array(c.name, self.frame)
            for c in [*self.of_dims("step", "rank"), *self.of_dims("step")]
        }
        channel = self.matrix()
        if channel is not None:
            at = f"[{self.step_shown(channel)}]" if channel.dims[0] == "step" else ""
            found[f"{channel.name}{at}"] = self.as_stored(channel)
            if not at:
                found[f"{channel.name.rpartition('/')[0]}/singular_values"] = self.singular_values()
        return found


def name_of(channel: Channel) -> str:
    """What a matrix is called in the list."""
    return f"{channel.title}, cursor" if channel.dims[0] == "step" else channel.title.removesuffix(": eigenvalues")
