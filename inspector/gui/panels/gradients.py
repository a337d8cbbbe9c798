"""Gradients: how much the loss would change with each state, by step."""

from __future__ import annotations

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
