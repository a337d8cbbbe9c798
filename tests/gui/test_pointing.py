"""The mouse over every plot of every panel: a click at a known place of the data moves the cursor, or is read there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyqtgraph as pg
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from inspector.capture import Capture, Writer, open_capture
from inspector.gui.export.offscreen import Stage
from inspector.gui.panel.base import Panel, number
from inspector.gui.panel.registry import ordered
from inspector.gui.panels.clipping import NORMS
from inspector.records import Channel, Frame, Page, RunStart, RunStop

LEFT = Qt.MouseButton.LeftButton
Data = Callable[[Capture], np.ndarray]


@dataclass(frozen=True)
class Aim:
    """A plot, by how it is found in its panel, a place in its data, and what a click there does.

    `cursor` are coordinates of the shared cursor afterwards; `row` is a row of the readout and the number in it.
    """

    plot: Callable[[Any], Any]
    at: tuple[float, float] | Callable[[Any, Capture], tuple[float, float]]
    cursor: dict[str, Any] = field(default_factory=dict)
    row: tuple[str, Data] | None = None
    hovered: bool = True
    """Whether the mouse need only be there."""


def of(name: str, *index: Any) -> Data:
    """An entry of a channel."""
    return lambda capture: capture.array(name)[index]


def step_unit(place: str = "rnn.l0") -> dict[str, Any]:
    return {"step": 117, "unit": 5, "place": place}


L0 = "rnn.l0"


def after_12(capture: Capture) -> float:
    """The mean loss of the cured copies at step 12."""
    return float(capture.array("model:trial/cure/clip_gradient")[1, :, 12].mean())


AIMS: dict[str, tuple[Aim, ...]] = {
    "sequences": (
        Aim(lambda p: p.distribution.plot, (4.2, 0.5), row=("mean loss", of("sequences:loss", 4)), hovered=False),
    ),
    "spike": (
        Aim(lambda p: p.samples, (2.2, 0.1), row=("share of the sample [2]", of("spike:samples", 1, 2))),
        Aim(
            lambda p: p.of_steps, (41.3, 0.002), {"step": 41}, ("share of the loss step [41]", of("spike:steps", 1, 41))
        ),
        Aim(lambda p: p.sources, (43.3, 0.002), {"step": 43}),
    ),
    "inputs": (Aim(lambda p: p.series, (44.2, 0), {"step": 44}, ("value[44, 0]  input", of("input:value", 44, 0))),),
    "state_derivatives": (Aim(lambda p: p.curves.plot, (41, -1), {"step": 41}),),
    "states": (
        Aim(lambda p: p.row.plot, (117, 5), step_unit(), ("h[117, 5]  rnn.l0", of("rnn.l0:h", 117, 5))),
        Aim(lambda p: p.trace, (44.2, 0), {"step": 44}),
    ),
    "ask": (Aim(lambda p: p.plots[0], (31, 0.5), {"step": 31}),),
    "lens": tuple(Aim(lambda p, n=n: p.plots[n], (31, y), {"step": 31}) for n, y in enumerate((0.005, -1, 0, 0.55))),
    "units": (
        Aim(lambda p: p.row.plot, (117, 2), {"step": 117, "place": L0}),
        Aim(lambda p: p.together, (31, 0.5), {"step": 31}),
    ),
    "gates": (
        Aim(
            lambda p: p.rows[1].plot, (117, 5), step_unit(), ("forget gate [117, 5]", of("rnn.l0:gate/forget", 117, 5))
        ),
        Aim(lambda p: p.rows[0].plot, (118, 6), {"step": 118, "unit": 6}),
        Aim(
            lambda p: p.scatter,
            lambda _p, c: tuple(c.array("rnn.l0:gate/input/saturation")[[1, 0], 20]),
            {"unit": 20, "place": L0},
        ),
    ),
    "preflight": (
        Aim(
            lambda p: p.row.plot,
            (7, 3),
            {"step": 7, "key": 3},
            ("output [7], input [3] replaced", of("model:structure/causal", 3, 7)),
        ),
        Aim(
            lambda p: p.bars,
            (1.1, -4),
            row=("change in module 1", of("model:structure/causal/modules", 1)),
            hovered=False,
        ),
    ),
    "cures": (
        Aim(lambda p: p.plot, (12.2, 1.5), row=("cured, mean at step 12", after_12)),
        Aim(lambda p: p.beside, (12.2, 0.1), row=("cured, mean at step 12", after_12)),
    ),
    "decoding": (
        Aim(
            lambda p: p.branches,
            lambda p, _c: (p.across[0], p.height_of[0]),
            row=("its score", of("decoding:score", 0)),
        ),
        Aim(lambda p: p.parting, (4, 0.5), row=("drift of the state, token 4", of("rnn.l0:drift/state", 3))),
    ),
    "openers": (
        Aim(lambda p: p.kept.plot, (117, 5), step_unit()),
        Aim(
            lambda p: p.bars.plot,
            (2, 0.01),
            row=("forget gate by token, marked", lambda c: np.sort(c.array("rnn.l0:gate/forget/by_token").mean(1))[-3]),
        ),
    ),
    "dynamics": (
        Aim(lambda p: p.running.plot, (70, 0), {"step": 70, "place": L0}),
        Aim(lambda p: p.ranks, (3, 0), row=("λ₃ in nats a step  rnn.l0", of("rnn.l0:lyapunov/exponents", 2))),
        Aim(lambda p: p.plane, lambda p, c: tuple(c.array("rnn.l0:trajectory")[211, :2]), {"step": 211}),
    ),
    "attention": (
        Aim(
            lambda p: p.row.plot,
            (31, 87),
            {"step": 87, "key": 31, "head": 0, "place": "attn"},
            ("attention 87 → 31, head 0  attn", of("attn:attention", 0, 87, 31)),
        ),
        Aim(lambda p: p.row.below, lambda p, c: (44, middle(p.row.below)), {"key": 44}),
        Aim(lambda p: p.row.beside, lambda p, c: (p.row.beside.vb.viewRect().center().x(), 55), {"step": 55}),
        Aim(lambda p: p.strip, lambda p, c: (17, middle(p.strip)), {"step": 17}),
    ),
    "outputs": (
        Aim(lambda p: p.curves.plot, (41, 0.5), {"step": 41}, ("surprise [41]", of("output:surprise", 41))),
        Aim(lambda p: p.row.plot, (42, 1), {"step": 42}),
    ),
    "jacobians": (Aim(lambda p: p.curves.plot, (41, 0), {"step": 41}),),
    "gradients": (Aim(lambda p: p.curves.plot, (41, 0), {"step": 41}),),
    "spectra": (
        Aim(lambda p: p.fan.plot, (41, 0), {"step": 41, "place": L0}),
        Aim(lambda p: p.ranks, (4, -0.5), row=("σ₄ of Wₕₕ", of("rnn.l0:weight/hidden/singular_values", 3))),
        Aim(
            lambda p: p.plane,
            lambda p, c: tuple(c.array("rnn.l0:weight/hidden/eigenvalues")[9]),
            row=("its modulus |λ|", lambda c: np.hypot(*c.array("rnn.l0:weight/hidden/eigenvalues")[9])),
        ),
    ),
    "latents": (
        Aim(
            lambda p: p.sheet.upper,
            (41.2, 0.5),
            {"step": 41, "place": L0},
            ("sample [41, 0]", of("rnn.l0:latent/z/sample", 41, 0)),
        ),
        Aim(
            lambda p: p.sheet.terms.plot, (43, 0.5), {"step": 43}, ("kl_total [43]", of("rnn.l0:latent/z/kl_total", 43))
        ),
    ),
    "picture": (Aim(lambda p: p.table, (0, 5), {"step": 5}),),
    "lags": (
        Aim(lambda p: p.plot, (7, -1), row=("norm by lag, p10 [lag 7]", of("rnn.l0:jacobian/lag", 1, 7))),
        Aim(
            lambda p: p.row.plot,
            (7, 3),
            {"step": 10, "key": 3, "place": L0},
            ("norm by start and lag [10, from 3]  rnn.l0", of("rnn.l0:jacobian/lag_map", 3, 7)),
        ),
    ),
    "paths": (
        Aim(lambda p: p.norms.plot, (41, 0), {"step": 41, "place": L0}),
        Aim(lambda p: p.open_units.plot, (117, 5), step_unit()),
        Aim(lambda p: p.shares.plot, (43, 0.5), {"step": 43}),
        Aim(lambda p: p.lags.plot, (9, -1), row=("direct, geometric mean [lag 9]", of("rnn.l0:path/lag_direct", 0, 9))),
    ),
    "bptt": (
        Aim(lambda p: p.row.plot, (31, 187), {"step": 187, "key": 31, "place": L0}),
        Aim(
            lambda p: p.plot,
            (9, 0),
            row=("norm of the sum [lag 9], weight_hh  rnn.l0", lambda c: c.array("rnn.l0:bptt/weight_hh/lag")[0, 9]),
        ),
    ),
    "truncation": (
        Aim(lambda p: p.by_step, (41, 1), {"step": 41}),
        Aim(
            lambda p: p.error,
            lambda p, c: (float(np.log10(truncations(c)[0, 3])), -1.0),
            row=("relative error [K = 4]  rnn.l0", lambda c: truncations(c)[1, 3]),
        ),
        Aim(
            lambda p: p.rest,
            lambda p, c: (float(np.log10(truncations(c)[0, 8])), 0.5),
            row=("cosine [K = 9]  rnn.l0", lambda c: truncations(c)[2, 8]),
        ),
    ),
    "influence": (
        Aim(lambda p: p.plot, (12, -0.2), row=("influence/loss [lag 12]", of("input:influence/loss", 0, 12))),
    ),
    "depth": (
        Aim(lambda p: p.row.plot, (117, 1), {"step": 117, "place": "rnn.l1"}),
        Aim(lambda p: p.gradient, (2, 0.2), {"place": "rnn.l2"}, hovered=False),
        Aim(lambda p: p.rms, (1, 0.1), {"place": "rnn.l1"}, hovered=False),
        Aim(lambda p: p.parameters, (2, -0.5), {"place": "head"}, hovered=False),
    ),
    "clipping": (
        Aim(
            lambda p: p.parameters,
            (-0.5, 2),
            row=(
                "largest entry, gradient of",
                lambda c: next(c.array(n) for n, k in c.channels.items() if k.dims == NORMS)[2, 2],
            ),
        ),
    ),
    "training": tuple(Aim(lambda p, n=n: p.shown[n], lambda p, c, n=n: (4321, middle(p.shown[n]))) for n in range(3)),
    "residual": (
        Aim(
            lambda p: p.row.plot,
            (117, 1),
            {"step": 117, "place": "blocks.0"},
            ("norm of the stream [117]  blocks.0", of("blocks:residual/norm", 1, 117)),
        ),
    ),
    "heads": (),
    "health": (),
}
WITHOUT = {
    "picture": (lambda p: p.large,),  # the cell under the mouse: test_picture_panel.py
    "openers": (lambda p: p.scales.plot,),  # a histogram: its bars are counted in its title
    "clipping": (lambda p: p.effect, lambda p: p.history),  # a threshold is dragged there
    "depth": (lambda p: p.ratio,),  # between two layers; the readout lists all
    "training": (lambda p: p.shown[3],),  # one point
}
"""Plots in which nothing can be pointed at, and why."""


def middle(plot: Any) -> float:
    """The height in the middle of a plot."""
    return float(np.mean(plot.vb.viewRange()[1]))


def truncations(capture: Capture) -> np.ndarray:
    return capture.array(next(n for n, c in capture.channels.items() if c.dims == ("statistic", "truncation")))


@pytest.fixture
def stage(a_capture: Path) -> Iterator[Stage]:
    with open_capture(a_capture) as capture:
        made = Stage(capture, (1500, 860))
        yield made
        made.close()


def on_screen(stage: Stage, key: str) -> Panel:
    """A panel that the mouse reaches."""
    panel = stage.panel(key)
    panel.hide()
    panel.setAttribute(Qt.WidgetAttribute.WA_DontShowOnScreen, False)
    panel.show()
    panel.redraw()
    QTest.qWait(20)
    return panel


def place_of(panel: Panel, plot: Any, x: float, y: float) -> QPoint:
    """Where a place of the data is on the figure; one that needs scrolling is scrolled to."""
    place = panel.figure.mapFromScene(plot.vb.mapViewToScene(QPointF(x, y)))
    assert plot.vb.sceneBoundingRect().contains(panel.figure.mapToScene(place)), "outside of its plot"
    return place


def hover(panel: Panel, place: QPoint) -> None:
    QTest.mouseMove(panel.figure.viewport(), place)
    QTest.qWait(5)


def click(panel: Panel, place: QPoint) -> None:
    QTest.mouseClick(panel.figure.viewport(), LEFT, pos=place)
    QApplication.processEvents()


def shown_plots(panel: Panel) -> set[Any]:
    return {item for item in panel.figure.scene().items() if isinstance(item, pg.PlotItem) and item.isVisible()}


def check(aim: Aim, stage: Stage, panel: Panel) -> None:
    """What the aim says has come true."""
    position = stage.cursor.position
    assert {name: getattr(position, name) for name in aim.cursor} == aim.cursor
    if aim.row is None:
        return
    (value,) = [value for what, value in panel.readout(position) if what.startswith(aim.row[0])]
    assert number(aim.row[1](stage.capture)) in value.split(" "), value


ALONE = ("overview", "table", "weights")
"""The first two have no plot of their own; what the last shows is in captures of nothing else (test_weights_panel.py)."""


@pytest.mark.parametrize("key", [key for key, _ in ordered() if key not in ALONE])
def test_a_click_at_a_known_place_puts_the_cursor_there(stage: Stage, key: str) -> None:
    panel = on_screen(stage, key)
    aimed = [aim.plot(panel) for aim in AIMS[key]]
    assert shown_plots(panel) == {*aimed, *(plot(panel) for plot in WITHOUT.get(key, ()))}, "a plot is not aimed at"
    for aim, plot in zip(AIMS[key], aimed, strict=True):
        at = aim.at if isinstance(aim.at, tuple) else aim.at(panel, stage.capture)
        for go in (hover, click) if aim.hovered else (click,):
            hover(panel, QPoint(1, 1))
            stage.cursor.fix(False)
            stage.cursor.move(step=0, unit=None, key=None, head=None, place="")
            panel.marked.clear()
            go(panel, place_of(panel, plot, *at))
            check(aim, stage, panel)
    assert panel.state == "figure"


def test_a_training_step_is_read_where_it_is_pointed_at(stage: Stage) -> None:
    panel = on_screen(stage, "training")
    before = dict(panel.readout(stage.cursor.position))
    hover(panel, place_of(panel, panel.shown[1], 4321, middle(panel.shown[1])))
    step = panel.looking.position.step
    assert step is not None and abs(step - 4321) < 20 and stage.cursor.position.at("iteration") == step
    table = stage.capture.array("parameters:training")
    rows = dict(panel.readout(stage.cursor.position))
    assert rows[f"loss [iteration {step}]"] == number(table[1, step]) and rows != before
    assert all(plot._line.value() == step for plot in panel.shown), "marked in every plot"


# -- attention: the weight of exactly one head, query and key


QUERIES, KEYS, HEADS = 5, 9, 3
WEIGHTS = (np.arange(2 * HEADS * QUERIES * KEYS, dtype=np.float32) / 1000).reshape(2, HEADS, QUERIES, KEYS)
"""No two of these are alike, so that neither heads nor rows and columns can be exchanged unseen."""


@pytest.fixture
def attending(tmp_path: Path) -> Iterator[tuple[Stage, Panel]]:
    """Two layers of three heads, from five queries to nine keys."""
    path = tmp_path / "a.inspect"
    with Writer(path, RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0))
        for layer in range(2):
            name = f"layers.{layer}:attention"
            writer.write(Channel(name=name, kind="attention", dims=("head", "query", "key"), shape=(HEADS, QUERIES, KEYS),
                                 title="attention", limits=(0, 1), domains={"key": "memory"}))  # fmt: skip
            writer.write(Page(name, 0, (0, 0, 0), WEIGHTS[layer]))
        writer.write(Channel(name="rnn:h", kind="state", dims=("step", "unit"), shape=(40, 2), title="h"))
        writer.write(Page("rnn:h", 0, (0, 0), np.zeros((40, 2), np.float32)))
        writer.write(RunStop("done"))
    with open_capture(path) as capture:
        made = Stage(capture, (1200, 700))
        yield made, on_screen(made, "attention")
        made.close()


def weight_read(stage: Stage, panel: Panel) -> tuple[str, str]:
    """The row of the readout that tells a weight."""
    (row,) = [row for row in panel.readout(stage.cursor.position) if row[0].startswith("attention ")]
    return row


@pytest.mark.parametrize(("query", "key"), [(0, 0), (0, 8), (4, 0), (4, 8), (1, 6), (3, 2)])
@pytest.mark.parametrize("go", [hover, click])
def test_the_weight_under_the_mouse_is_read(
    attending: tuple[Stage, Panel], go: Callable[[Panel, QPoint], None], query: int, key: int
) -> None:
    stage, panel = attending
    stage.cursor.move(head=2, place="layers.1")
    go(panel, place_of(panel, panel.row.plot, key, query))
    position = stage.cursor.position
    assert (position.head, position.step, position.key, position.place) == (2, query, key, "layers.1")
    assert weight_read(stage, panel) == (
        f"attention {query} → {key}, head 2  layers.1",
        number(WEIGHTS[1, 2, query, key]),
    )
    assert panel.row.plot._line.value() == key and panel.row.level_line.value() == query, "and marked in the map"


def test_beside_the_map_the_nearest_entry_is_read(attending: tuple[Stage, Panel]) -> None:
    stage, panel = attending
    panel.row.plot.vb.setRange(xRange=(-3, 12), yRange=(-3, 8), padding=0)
    click(panel, place_of(panel, panel.row.plot, 11, 7))
    assert (stage.cursor.position.step, stage.cursor.position.key) == (QUERIES - 1, KEYS - 1)
    click(panel, place_of(panel, panel.row.plot, -2, -2))
    assert (stage.cursor.position.step, stage.cursor.position.key) == (0, 0)


def test_a_click_on_a_thumbnail_chooses_that_head(attending: tuple[Stage, Panel]) -> None:
    stage, panel = attending
    for layer, head in ((1, 2), (0, 1), (1, 0)):
        click(panel, panel.figure.mapFromScene(panel.atlas.mapToScene(panel.atlas.cell_at(layer, head).center())))
        assert (stage.cursor.position.place, stage.cursor.position.head) == (f"layers.{layer}", head)
        click(panel, place_of(panel, panel.row.plot, 6, 1))
        assert weight_read(stage, panel)[1] == number(WEIGHTS[layer, head, 1, 6])
    before = stage.cursor.position
    last = panel.atlas.cell_at(1, HEADS - 1)
    assert panel.atlas.cell_at(HEADS + 3, 0).isEmpty()
    click(panel, panel.figure.mapFromScene(panel.atlas.mapToScene(QPointF(last.center().x(), last.bottom() + 40))))
    assert stage.cursor.position == before


def test_queries_and_keys_are_chosen_from_the_lines_too(attending: tuple[Stage, Panel]) -> None:
    stage, panel = attending
    panel.view.setCurrentText("Lines")
    QTest.qWait(20)
    assert panel.lines.isVisible() and not panel.row.plot.isVisible()
    area = panel.lines.boundingRect()
    for side, at, of_many in ((0.05, 3, QUERIES), (0.95, 7, KEYS)):
        spot = QPointF(area.left() + side * area.width(), area.top() + (at + 0.5) / of_many * area.height())
        hover(panel, panel.figure.mapFromScene(panel.lines.mapToScene(spot)))
    assert (stage.cursor.position.step, stage.cursor.position.key) == (3, 7)
    assert weight_read(stage, panel)[1] == number(WEIGHTS[0, 0, 3, 7])


def test_the_last_of_many_quick_moves_counts(attending: tuple[Stage, Panel]) -> None:
    stage, panel = attending
    for key in range(KEYS):
        QTest.mouseMove(panel.figure.viewport(), place_of(panel, panel.row.plot, key, 2))
    QTest.qWait(5)
    assert stage.cursor.position.key == KEYS - 1


# -- maps whose axes are not the cursor's own


def test_a_passage_of_the_units_panel_is_gone_to(stage: Stage) -> None:
    panel = on_screen(stage, "units")
    assert panel.spans
    row = panel.texts
    click(panel, panel.figure.mapFromScene(row.mapToScene(QPointF(60, 1.5 * row._height()))))
    assert stage.cursor.position.step == panel.spans[0].first


@pytest.mark.parametrize(
    ("place", "dims", "at", "step", "source"),
    [
        ("rnn.l0", ("step", "source"), (2, 7), 7, 2),
        ("rnn.l0", ("start", "lag"), (4, 1), 7, 3),
        ("rnn.l0.reverse", ("start", "lag"), (4, 3), 5, 9),
    ],
)
def test_an_entry_of_a_map_by_lag_is_read(
    tmp_path: Path, place: str, dims: tuple[str, str], at: tuple[int, int], step: int, source: int
) -> None:
    values = np.arange(120, dtype=np.float32).reshape(12, 10)[: 4 if dims[0] == "start" else 12]
    labels = {"start": ("0", "3", "6", "9")} if dims[0] == "start" else {}
    with Writer(tmp_path / "a.inspect", RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0))
        writer.write(Channel(name=f"{place}:m", kind="map", dims=dims, shape=values.shape, title="m", labels=labels))
        writer.write(Page(f"{place}:m", 0, (0, 0), values))
        writer.write(Channel(name=f"{place}:h", kind="state", dims=("step", "unit"), shape=(12, 2), title="h"))
        writer.write(Page(f"{place}:h", 0, (0, 0), np.zeros((12, 2), np.float32)))
        writer.write(RunStop("done"))
    with open_capture(tmp_path / "a.inspect") as capture:
        stage = Stage(capture, (900, 700))
        panel = on_screen(stage, "lags")
        click(panel, place_of(panel, panel.row.plot, *at))
        assert (stage.cursor.position.step, stage.cursor.position.key) == (step, source)
        rows = dict(panel.readout(stage.cursor.position))
        assert rows[f"m [{step}, from {source}]  {place}"] == number(values[at[1], at[0]])
        assert (panel.row.plot._line.value(), panel.row.level_line.value()) == at
        stage.close()
