"""How the state at a chosen step depends on a parameter, by the step at which the parameter was used."""

from __future__ import annotations

from inspector.gui.panel.line_panel import CurvePanel
from inspector.gui.panel.registry import PANELS
from inspector.records import Channel


@PANELS.register("state_derivatives")
class StateDerivatives(CurvePanel):
    """Every (step,) channel of kind "state_derivative"."""

    tab_order = 125
    menu_group = "gradients"
    key, title = "state_derivatives", "dh/dθ"
    hint = (
        "The terms of dhₜ/dθ by source step, before any loss weights them: how much each earlier use of a parameter "
        "has to do with the state at step t, the last one unless others are chosen."
    )
    extra = ("gradient/state_derivatives",)
    drawn_as = "norms of the derivatives of the state by step"
    axis = "norm of the term of dhₜ/dθ"

    @classmethod
    def accepts(cls, channel: Channel) -> bool:
        """Terms by source step."""
        return channel.kind == "state_derivative" and channel.dims == ("step",)

    def concerns(self, name: str) -> bool:
        """Terms that could not be computed."""
        return ":state_derivative" in name
