"""The registry of small pictures: one file each in `gui/pictures`. Each says which panel draws the whole of it.

A picture is read in a thread with a capture of its own, so it may take its time; it is painted from what was read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from inspector.gui.widgets.sketch import Sketch
from inspector.records import Channel
from inspector.registry import Registry

Find = Callable[[Any, int], Sequence[Channel]]
Read = Callable[[Any, int, Sequence[Channel]], Sketch]


@dataclass(frozen=True, slots=True)
class SmallPicture:
    """One small picture of the overview.

    Attributes:
        title: above it. panel: the key of the panel that a click shows.
        order: smaller ones come first; what a training says stands before what one run says.
        find: (view, frame) → the channels of which it is made, in that frame; none where the capture has none.
        read: (view, frame, channels) → what is drawn, and its sentence. Neither changes anything. May raise
            CaptureError.
    """

    title: str
    panel: str
    order: int
    find: Find
    read: Read


PICTURES: Registry[SmallPicture] = Registry("pictures", "inspector.gui.pictures")


def pictures_in_order() -> list[tuple[str, SmallPicture]]:
    """All pictures by key, in the order in which they are shown."""
    return sorted(PICTURES.items(), key=lambda item: (item[1].order, item[0]))
