"""Jacobians: norms of the step Jacobian by step, with the line 1 and the bound."""

from __future__ import annotations

from inspector.gui.panel.line_panel import CurvePanel
from inspector.gui.panel.registry import PANELS
from inspector.records import Channel


@PANELS.register("jacobians")
class Jacobians(CurvePanel):
    """Every (step,) channel of kind "jacobian"."""

    tab_order = 80
    menu_group = "gradients"
    key, title = "jacobians", "Jacobians"
    of_recurrences = True
    hint = "Norms of the Jacobian of each step of a recurrent layer: above 1 a step stretches, below 1 it shrinks."
    shows = (
        "jacobian/frobenius_norm",
        "jacobian/frobenius_norm_scaled",
        "jacobian/carousel_norm",
        "jacobian/bound",
        "jacobian/spectral_norm",
        "jacobian/spectral_radius",
    )
    drawn_as = "norms of the step Jacobians"
    axis, mark_one = "norm of ∂sₜ/∂sₜ₋₁", True

    @classmethod
    def accepts(cls, channel: Channel) -> bool:
        """Norms by step."""
        return channel.kind == "jacobian" and channel.dims == ("step",)

    def concerns(self, name: str) -> bool:
        """Norms that could not be computed; and where the gradient does not go as they say."""
        return ":jacobian/" in name or name.endswith(":gradient/detached_parts")
