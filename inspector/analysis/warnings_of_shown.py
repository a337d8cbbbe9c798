"""Refusals of a whole module whose layers are shown all the same: what they say is a warning about what is shown."""

from __future__ import annotations

import re

from inspector.capture import Capture
from inspector.records import Refusal


def is_shown(capture: Capture, refusal: Refusal) -> bool:
    """Whether the capture has the refused channel itself, or that of a layer of the module: "rnn:h" with "rnn.l0:h"."""
    place, _, signal = refusal.channel.rpartition(":")
    layer = re.compile(rf"{re.escape(place)}(\.l\d+(_reverse)?)?")
    return any(channel.signal == signal and layer.fullmatch(channel.place) for channel in capture.channels.values())
