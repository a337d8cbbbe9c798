"""What the loss depends on, by lag, beside the gradient: has it vanished, or is there nothing to reach?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from inspector.analysis.influence import Past, influence_verdict
from inspector.gui.panel.labelled import rows_of, scalar_of
from inspector.gui.panel.overview.pictures import PICTURES, SmallPicture
from inspector.gui.panel.overview.sketching import has, sketch_of_lines
from inspector.gui.widgets.sketch import Sketch
from inspector.records import Channel

SIGNALS = ("influence/loss", "gradient/lag")


def find(view: Any, frame: int) -> Sequence[Channel]:
    """The influence on the loss, and the gradient where it was measured."""
    found = {one.signal: one for one in has("influence", ("statistic", "lag"), signals=SIGNALS)(view, frame)}
    return [found[signal] for signal in SIGNALS if signal in found] if SIGNALS[0] in found else []


def read(view: Any, frame: int, channels: Sequence[Channel]) -> Sketch:
    """Both relative to the reference lag; the sentence is the panel's verdict."""

    def scalar(name: str) -> float:
        return scalar_of(view, name, channels[0].name, frame)

    zero = scalar("input:influence/reference_lag")
    zero = int(zero) if math.isfinite(zero) else 0
    means = [np.asarray(rows_of(one, view.array(one.name, frame), "mean")[0], dtype=np.float64) for one in channels]
    reaches = (scalar("input:influence/reach"), scalar("input:gradient/reach"))
    verdict = influence_verdict(means[0], means[1] if len(means) > 1 else None, zero, reaches, Past.read(scalar))
    with np.errstate(all="ignore"):
        shares = [mean / mean[zero] if mean[zero] else np.full_like(mean, np.nan) for mean in means]
    names = [one.title for one in channels]
    lines = [(name, np.arange(len(share), dtype=np.float64), share) for name, share in zip(names, shares, strict=True)]
    return sketch_of_lines(verdict.sentence, lines, channels[0], log=True, word="lag")


PICTURES.register("influence")(SmallPicture("Influence on the loss by lag", "influence", 55, find, read))
