"""Small pictures of a table over training with one column a parameter: a map, the parameters from the bottom up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from inspector.analysis.glances import smallest_and_largest
from inspector.capture.curves import SERIES, names_of_columns, positions
from inspector.capture.pyramid import with_nan
from inspector.gui.panel.overview.pictures import Find, Read
from inspector.gui.panel.overview.sketching import cells_of
from inspector.gui.widgets.sketch import Sketch
from inspector.records import Channel, counted


def find_table(signal: str) -> Find:
    """Finds the (iteration, parameter) table of a signal."""

    def find(view: Any, frame: int) -> Sequence[Channel]:
        known = (one for one in view.channels.values() if one.kind == SERIES and one.signal == signal)
        return [one for one in known if one.dims == ("iteration", "parameter") and view.revision(one.name)]

    return find


def read_table(what: str) -> Read:
    """Reads it as a map in logarithmic colours; `what` its numbers are, in the sentence."""

    def read(view: Any, frame: int, channels: Sequence[Channel]) -> Sketch:
        channel = channels[0]
        values = with_nan(view.array(channel.name)).astype(np.float64)
        names = names_of_columns(view, channel)
        seen = np.isfinite(values).any(axis=0)
        middle = np.full(values.shape[1], np.nan)
        middle[seen] = np.nanmedian(np.where(np.isfinite(values[:, seen]), values[:, seen], np.nan), axis=0)
        at = positions(view, channel.domain("iteration"))
        at = np.arange(len(values), dtype=np.float64) if at is None else at[: len(values)]
        shown = np.where(values > 0, values, np.where(values == 0, -np.inf, values))  # no logarithm: nothing is drawn
        return Sketch(
            smallest_and_largest(names, middle, f"median {what}"), cells=cells_of(shown.T[::-1], "log"), scale="log",
            word="iteration", ends=(float(at[0]), float(at[-1])) if len(at) else (0.0, 0.0),
            rows=f"↑ {counted(values.shape[1], 'parameter')}", channel=channel.name,
        )  # fmt: skip

    return read
