"""Gradients: how much the loss would change with each state, by step."""

from __future__ import annotations

from typing import Any

import numpy as np

from inspector.analysis.replaced_states import NONE, replacing, without_gradient
from inspector.capture.pyramid import with_nan
from inspector.gui.panel.line_panel import CurvePanel
from inspector.gui.panel.registry import PANELS
from inspector.records import Channel


@PANELS.register("gradients")
class Gradients(CurvePanel):
    """Every (step,) channel of kind "gradient"."""

    tab_order = 140
    menu_group = "gradients"
    key, title = "gradients", "Gradients"
    of_recurrences = True
    hint = (
        "Norms of the gradient at every state of the loss, its sum over the steps, by one backward pass (Clipping and "
        "Sequences have those of the mean). The model needs a loss for it."
    )
    shows = ("gradients", "gradients/embedding")
    drawn_as = "norms of the gradient of the sum of the losses, by step"
    axis = "gradient norm"

    @classmethod
    def accepts(cls, channel: Channel) -> bool:
        """Gradient norms by step."""
        return channel.kind == "gradient" and channel.dims == ("step",)

    def concerns(self, name: str) -> bool:
        """Gradients that could not be computed."""
        return ":gradient" in name

    def told(self, channel: Channel, step: int, value: Any) -> Any:
        """The norm; where an edit replaced the state there is none, and that is said."""
        if isinstance(value, str):
            return value
        edits, at = replacing(self.capture, channel, self.frame), np.array([float(step)])
        return NONE if without_gradient(edits, at, np.array([float(value)])).any() else value

    def remark(self) -> str:
        """Where there is no gradient, which is no fault of the model's."""
        assert self.capture is not None
        edits = dict[str, None]()
        for channel in self.shown():
            if own := replacing(self.capture, channel, self.frame):
                values = with_nan(self.capture.array(channel.name, self.frame)).astype(np.float64)
                if without_gradient(own, np.arange(len(values), dtype=np.float64), values).any():
                    edits |= dict.fromkeys(map(str, own))
        return f"none where an edit replaced the state: {', '.join(edits)}" if edits else ""
