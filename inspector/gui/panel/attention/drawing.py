"""Colours, words and profiles of maps of attention."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.analysis.attention.alignment import Alignment
from inspector.analysis.attention.map_pyramid import How, MapPyramid
from inspector.analysis.attention.map_source import MapChoice
from inspector.gui.panel.map_levels import SMALL
from inspector.gui.widgets.gaps import NONE, Gaps
from inspector.gui.widgets.images.quantise import Levels
from inspector.gui.widgets.maps.colourbar import ColourBar
from inspector.gui.widgets.plain_text import token
from inspector.gui.widgets.plots.source import of_the_other

Array = npt.NDArray[Any]
DECADES = 5
"""Of logarithmic colours, below the largest weight."""


def levels_for(view: Any, choice: MapChoice, pyramid: MapPyramid, *, log: bool) -> Levels:
    """The colours of a map: the square root of the weight from 0 to the largest there is, here or in the run beside
    it; or five decades below that; or, of differences, as far to both sides of 0."""
    least, most = pyramid.extremes
    masked = pyramid.special[2]
    if choice.signed:
        reach = max(-least, most) or 1.0
        return Levels(-reach, reach, "diverging", masked=masked)
    log |= view.channel(choice.heads[0][0], choice.frame).scale == "log"
    if pyramid.shape[0] * pyramid.shape[1] <= SMALL and choice.heads[0][1] >= 0:
        for name, head in choice.heads:
            other = of_the_other(view, view.channel(name, choice.frame), (slice(head, head + 1),))
            most = max(most, float(other[np.isfinite(other)].max(initial=0.0)))
    most = most or 1.0
    if log:
        top = math.log10(most)
        return Levels(top - DECADES, top, "attention", log=True, masked=masked)
    return Levels(0.0, most, "attention", masked=masked, root=True)


def count_cells(bar: ColourBar, pyramid: MapPyramid, how: How) -> None:
    """Beside the range of the colours stands how many cells of a map have which number."""

    def columns(cut: tuple[int, int], _cells: int) -> tuple[Array, Array]:
        found = pyramid.some(cut, how)
        return found, found

    bar.count_from(columns, pyramid.levels[0].largest.shape[1])


def unread_rows(pyramid: MapPyramid) -> Gaps:
    """The rows that are still being read, as not there yet."""
    if pyramid.complete:
        return NONE
    return Gaps(missing=(((0, pyramid.shape[1]), (pyramid.rows_done, pyramid.shape[0])),))


def spoken(names: Sequence[str], at: int) -> str:
    """A token with its position."""
    return f"{token(names[at])} [{at}]" if at < len(names) else f"[{at}]"


def sides_of_alignment(found: Alignment, focus: str) -> tuple[Array, Array, tuple[str, str]]:
    """(coverage by source token, focus by target token, their titles)."""
    if focus == "entropy":
        return found.coverage, found.entropy, ("coverage", "entropy / nat")
    return found.coverage, found.largest, ("coverage", "largest")


def alignment_sentence(found: Alignment, *, short: bool = False) -> str:
    """The numbers of an alignment as one line; `short`: in fewer words."""
    if math.isnan(found.focus):
        return "no row has a weight"
    diagonality, what = ("diagonal", "penalty") if short else ("diagonality", "coverage penalty")
    few = "{}/{} below ½" if short else "{} of {} source tokens below ½"
    unread = ", " + few.format(found.unread, len(found.coverage)) if found.unread else ""
    penalty = f"{found.coverage_penalty:.3g}".replace("-", "−") if math.isfinite(found.coverage_penalty) else "−∞"
    return f"focus {found.focus:.2f}, {diagonality} {found.diagonality:.2f}, {what} {penalty}{unread}"
