"""Which panel draws what a finding, a picture or a note is about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inspector.gui.panel.base import Panel
    from inspector.gui.panel.signals import Lead

OVERVIEW = "overview"


def panel_for(view: Any, lead: Lead, kinds: Mapping[str, type[Panel]]) -> str:
    """The first panel, from left to right, that shows the channel; the one of trainings for iterations; "" for none.

    The overview shows everything, so it is never the answer; nor is what shows nothing before one asks.
    """
    channel = view.channels.get(lead.channel)
    if channel is not None:
        for key, kind in kinds.items():
            if key != OVERVIEW and not kind.asks_first and kind.accepts(channel):
                return key
    if lead.iterations:
        return "training"
    return "states" if lead.steps and "states" in kinds else ""
