"""Refusals of a whole module whose layers are shown all the same: what they say is a warning about what is shown."""

from __future__ import annotations

import re

from inspector.capture import Capture
from inspector.records import Refusal

REMARKS = ("gradient/past_cuts", "gradient/detached_parts")
"""Signals under which something is said of gradients that are shown; no channel has these names."""


def is_remark(refusal: Refusal) -> bool:
    """Whether nothing was refused: a sentence about what is shown was recorded in the form of a refusal."""
    return refusal.channel.rpartition(":")[2] in REMARKS


def is_shown(capture: Capture, refusal: Refusal) -> bool:
    """Whether the capture has the refused channel itself, or that of a layer of the module: "rnn:h" with "rnn.l0:h".

    True for a remark.
    """
    if is_remark(refusal):
        return True
    place, _, signal = refusal.channel.rpartition(":")
    layer = re.compile(rf"{re.escape(place)}(\.l\d+(_reverse)?)?")
    return any(channel.signal == signal and layer.fullmatch(channel.place) for channel in capture.channels.values())
