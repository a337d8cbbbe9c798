"""What a person zoomed in the plots of a panel, as plain numbers, and the same again."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inspector.gui.panel.base import Panel
    from inspector.gui.widgets.maps.linesview import LinesView
    from inspector.gui.widgets.maps.map_plot import MapPlot
    from inspector.gui.widgets.plots.view import Range, View

ITERATIONS, PLOTS, MAPS, LINES, OVER = "iterations", "plots", "maps", "lines", "over"


def zoomed_in(panel: Panel) -> dict[str, Any]:
    """What is zoomed in a panel; nothing where nothing is.

    `plots`: for each plot, from the top, [x, y], each [low, high] or None where it was not zoomed. `maps`: for each map
    of attention or weights, as large as it is drawn, [columns, rows] in view, or None for all. `lines`: the queries in
    view of attention that is drawn as lines. `iterations`: what is in view of a training. `over`: the same of its
    summaries over training. Steps in view are shared by all panels and are not in it.
    """
    if panel.state != "figure":
        return {}
    found = _in_figure(panel.figure, getattr(panel, "column", None))
    over = _in_figure(panel.over.figure, panel.over.column) if panel.over.on else {}
    return {**found, **({OVER: over} if over else {})}


def zoom_again(panel: Panel, wanted: Any) -> dict[str, Any]:
    """The same, where the panel has as many plots as it had; what is no range is left out. Returns what belongs to the
    other figure of the panel, its summaries over training or what it draws without them."""
    told = wanted if isinstance(wanted, Mapping) else {}
    rest = {name: part for name, part in told.items() if (name == OVER) != panel.over.on}
    if len(rest) == len(told):
        return rest
    if panel.over.on:
        over = told.get(OVER)
        _again(panel, panel.over.figure, panel.over.column, over if isinstance(over, Mapping) else {})
    else:
        _again(panel, panel.figure, getattr(panel, "column", None), told)
    return rest


def _in_figure(figure: Any, column: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    ranges = [_held(view) for view in _views(figure)]
    maps = [None if one.whole else [list(map(float, ends)) for ends in one.vb.viewRange()] for one in _maps(figure)]
    if any(one != [None, None] for one in ranges):
        found[PLOTS] = ranges
    if any(maps):
        found[MAPS] = maps
    lines = _lines(figure)
    if lines is not None and lines.tokens is not None:
        found[LINES] = list(map(float, lines.tokens))
    if _is_column(column) and column.zoomed is not None:
        found[ITERATIONS] = list(column.zoomed)
    return found


def _again(panel: Panel, figure: Any, column: Any, told: Mapping[str, Any]) -> None:
    iterations, lines, between = _range(told.get(ITERATIONS)), _lines(figure), _range(told.get(LINES))
    if _is_column(column) and iterations is not None:
        column.zoomed = iterations
        panel.redraw()
    if lines is not None and between is not None:
        lines.zoom_to(*between)
    for one, (x, y) in _paired(_maps(figure), told.get(MAPS)):
        if x is not None and y is not None:
            one.zoom_to(x, y)
    for view, (x, y) in _paired(_views(figure), told.get(PLOTS)):
        _zoom(view, x, y)


def _zoom(view: View, x: Range | None, y: Range | None) -> None:
    """Ranges of a plot; none in which nothing that it draws now would be seen."""
    x, y = (None if view.led[axis] or not _shows(view, axis, one) else one for axis, one in enumerate((x, y)))
    axes = (x is not None, y is not None)
    if any(axes):
        with view.moved_by_user(axes):
            view.setRange(None, x, y, padding=0)


def _shows(view: View, axis: int, wanted: Range | None) -> bool:
    """Whether anything of what the panel has in view is in a range."""
    low, high = view.state["targetRange"][axis]
    return wanted is not None and wanted[0] < high and low < wanted[1]


def _paired(items: Sequence[Any], told: Any) -> Iterator[tuple[Any, tuple[Range | None, Range | None]]]:
    """Each of some plots with its two ranges; nothing where there are more or fewer than were told of."""
    if not isinstance(told, list) or len(told) != len(items):
        return
    for item, both in zip(items, told, strict=True):
        if isinstance(both, list) and len(both) == 2:
            yield item, (_range(both[0]), _range(both[1]))


# What plots are made of is imported when there are some: the window stands before it is loaded.


def _is_column(column: Any) -> bool:
    """Whether these are plots of a training."""
    from inspector.gui.panel.over_iterations.plot_column import PlotColumn

    return isinstance(column, PlotColumn)


def _maps(figure: Any) -> list[MapPlot]:
    from inspector.gui.widgets.maps.map_plot import MapPlot

    return _from_the_top(item for item in figure.scene().items() if isinstance(item, MapPlot))


def _lines(figure: Any) -> LinesView | None:
    from inspector.gui.widgets.maps.linesview import LinesView

    found = (item for item in figure.scene().items() if isinstance(item, LinesView))
    return next((one for one in found if one.isVisible()), None)


def _views(figure: Any) -> list[View]:
    from inspector.gui.widgets.plots.view import views_in

    return _from_the_top(views_in(figure.scene()))


def _from_the_top(items: Iterable[Any]) -> list[Any]:
    """Those that are seen, from the top and from the left."""
    at = {item: item.mapToScene(item.rect().topLeft()) for item in items if item.isVisible()}
    return sorted(at, key=lambda item: (round(at[item].y()), round(at[item].x())))


def _held(view: View) -> list[list[float] | None]:
    seen = view.state["viewRange"]
    return [[float(end) for end in seen[axis]] if view.held[axis] else None for axis in (0, 1)]


def _range(told: Any) -> Range | None:
    """Two numbers, the smaller one first; None for anything else."""
    if not isinstance(told, list | tuple) or len(told) != 2:
        return None
    if not all(isinstance(one, int | float) and math.isfinite(one) for one in told) or not told[0] < told[1]:
        return None
    return float(told[0]), float(told[1])
