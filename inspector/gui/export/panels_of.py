"""Which panels have something for a capture, and which one shows a channel best. No panel is made for that."""

from __future__ import annotations

from dataclasses import dataclass

from inspector.capture import Capture
from inspector.gui.panel.registry import ordered

PAGE = "overview"
"""The page that has something of everything: it is no figure of a channel, and a report says the same in words."""


@dataclass(frozen=True, slots=True)
class Filled:
    """A panel with something to show: its key, its title, and the names of the channels that it draws from."""

    key: str
    title: str
    channels: tuple[str, ...]


def panels_of(capture: Capture, frame: int = -1) -> list[Filled]:
    """The panels that have something to show of a frame, in the order of the window's tabs."""
    found = []
    for key, kind in ordered():
        if key == PAGE or kind.asks_first:
            continue
        names = tuple(channel.name for channel in kind.found_in(capture, frame))
        if names:
            found.append(Filled(key, kind.title, names))
    return found


def panel_for(panels: list[Filled], channel: str) -> str:
    """The key of the panel that shows a channel best, "" for none: of those that draw it the one that draws least.

    A statistic of a channel ("rnn:h/saturation") that no panel draws is seen where the channel ("rnn:h") is drawn.
    A gate is drawn among the gates, the statistics of units and the matching of units; the first shows little else.
    A panel of another package that draws one kind only goes before a better one of this package.
    """
    while channel:
        own = [panel for panel in panels if channel in panel.channels]
        if own:
            return min(own, key=lambda panel: len(panel.channels)).key
        channel = channel.rpartition("/")[0]
    return ""
