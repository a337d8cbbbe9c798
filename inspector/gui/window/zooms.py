"""What a person zoomed in the plots of a panel, as plain numbers, and the same again."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inspector.gui.panel.base import Panel
    from inspector.gui.panel.plot_column import PlotColumn
    from inspector.gui.widgets.view import View

ITERATIONS, PLOTS = "iterations", "plots"


def zoomed_in(panel: Panel) -> dict[str, Any]:
    """`plots`: for each plot of the panel, from the top, [x, y], each [low, high] or None where it was not zoomed;
    `iterations`: what is in view of a training. Nothing where nothing is zoomed. Steps in view are shared by all panels
    and are not in it, nor is what an attention map shows."""
    if panel.state != "figure" or panel.over.on:
        return {}
    ranges = [_held(view) for view in _views(panel)]
    found: dict[str, Any] = {PLOTS: ranges} if any(one != [None, None] for one in ranges) else {}
    column = _column(panel)
    if column is not None and column.zoomed is not None:
        found[ITERATIONS] = list(column.zoomed)
    return found


def zoom_again(panel: Panel, wanted: Any) -> None:
    """The same, where the panel has as many plots as it had; what is no range is left out."""
    told = wanted if isinstance(wanted, Mapping) else {}
    column, iterations = _column(panel), _range(told.get(ITERATIONS))
    if column is not None and iterations is not None:
        column.zoomed = iterations
        panel.redraw()
    views, ranges = _views(panel), told.get(PLOTS)
    if not isinstance(ranges, list) or len(ranges) != len(views):
        return
    for view, both in zip(views, ranges, strict=True):
        x, y = (_range(one) for one in both) if isinstance(both, list) and len(both) == 2 else (None, None)
        axes = (x is not None and not view.led[0], y is not None and not view.led[1])
        if any(axes):
            with view.moved_by_user(axes):
                view.setRange(None, x if axes[0] else None, y if axes[1] else None, padding=0)


def _column(panel: Panel) -> PlotColumn | None:
    """The plots of a training, where it has such."""
    from inspector.gui.panel.plot_column import PlotColumn  # the window stands before plots are loaded

    found = getattr(panel, "column", None)
    return found if isinstance(found, PlotColumn) else None


def _views(panel: Panel) -> list[View]:
    """Those that are seen, from the top and from the left."""
    from inspector.gui.widgets.view import views_in

    at = {view: view.mapToScene(view.rect().topLeft()) for view in views_in(panel.figure.scene()) if view.isVisible()}
    return sorted(at, key=lambda view: (round(at[view].y()), round(at[view].x())))


def _held(view: View) -> list[list[float] | None]:
    seen = view.state["viewRange"]
    return [[float(end) for end in seen[axis]] if view.held[axis] else None for axis in (0, 1)]


def _range(told: Any) -> tuple[float, float] | None:
    """Two numbers, the smaller one first; None for anything else."""
    if not isinstance(told, list | tuple) or len(told) != 2:
        return None
    if not all(isinstance(one, int | float) and math.isfinite(one) for one in told) or not told[0] < told[1]:
        return None
    return float(told[0]), float(told[1])
