"""How far back gradients reach, layer by layer: the middle of the products of Jacobians by lag."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from inspector.analysis.lag_norms import centre_of, lag_verdict
from inspector.gui.panel.labelled import row_of, scalar_of
from inspector.gui.panel.overview.pictures import PICTURES, SmallPicture
from inspector.gui.panel.overview.sketching import Named, has, sketch_of_lines, there
from inspector.gui.widgets.plots.stepplot import logarithm
from inspector.gui.widgets.sketch import MOST_LINES, Sketch
from inspector.records import Channel

SIGNAL = "jacobian/lag"
WORST = ("exploded", "vanished", "unknown", "kept")
"""The verdict of the layer that is worst off is told."""


def read(view: Any, frame: int, channels: Sequence[Channel]) -> Sketch:
    """One line a layer; the sentence is the panel's verdict on the layer that reaches least far."""
    lines: Named = []
    said = []
    for channel in channels[:MOST_LINES]:
        name, what = centre_of(channel.signal, channel.labels.get("statistic", ()))
        middle = np.asarray(view.array(channel.name, frame), dtype=np.float64)[row_of(channel, name)]
        lines.append((channel.place, np.arange(len(middle), dtype=np.float64), middle))
        horizon = _horizon(view, frame, channel)
        verdict = lag_verdict(logarithm(middle), horizon, what, _dead(view, frame, channel))
        reach = horizon if math.isfinite(horizon) else math.inf
        said.append((WORST.index(verdict.word), reach, f"{channel.place}: {verdict.sentence}", channel))
    _, _, sentence, worst = min(said, key=lambda one: one[:2])
    return sketch_of_lines(sentence, lines, worst, log=True, word="lag")


def _horizon(view: Any, frame: int, channel: Channel) -> float:
    return scalar_of(view, f"{channel.place}:jacobian/lag_horizon", channel.name, frame)


def _dead(view: Any, frame: int, channel: Channel) -> Any:
    name = f"{channel.place}:jacobian/lag_dead"
    return view.array(name, frame) if there(view, name, frame) else None


PICTURES.register("horizon")(
    SmallPicture("Gradient reach by lag", "lags", 50, has("lag", ("statistic", "lag"), signals=(SIGNAL,)), read)
)
