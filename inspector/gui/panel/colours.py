"""The colours that were chosen for the maps of panels: the same in all panels of one kind of a window."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import QObject, Signal

from inspector.gui.state.cursor import Cursor, Looking
from inspector.gui.state.step_ranges import belonging_to
from inspector.gui.widgets.images.colour_choice import AS_USUAL, OWN, ColourChoice, as_data, from_data, without_range
from inspector.records.json_text import read_json

MOST = 200
"""Choices that are read from a file: there are fewer kinds of panels times scales."""

SIDES = "equal sides"
"""The name of that choice in a file, beside those of scales."""


class Colours(QObject):
    """Choices by the key of a panel and the scale of its maps; `changed(key)`."""

    changed = Signal(str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._chosen: dict[tuple[str, str], ColourChoice] = {}
        self._free: set[str] = set()
        """Keys of panels whose square maps have all the room that there is."""

    def of(self, key: str, scale: str) -> ColourChoice:
        """What was chosen."""
        return self._chosen.get((key, scale), AS_USUAL)

    def choose(self, key: str, scale: str, choice: ColourChoice) -> None:
        """Choose for all panels of a kind."""
        if choice == self.of(key, scale):
            return
        self._chosen[key, scale] = choice
        if choice == AS_USUAL:
            del self._chosen[key, scale]
        self.changed.emit(key)

    def forget_ranges(self) -> None:
        """Ranges between two numbers of one's own: those of another model lie elsewhere. What else was chosen stays."""
        for (key, scale), choice in list(self._chosen.items()):
            if choice.span == OWN:
                self.choose(key, scale, without_range(choice))

    def sides(self, key: str) -> bool:
        """Whether maps whose axes count the same have equal sides in panels of a kind."""
        return key not in self._free

    def set_sides(self, key: str, *, on: bool) -> None:
        """Equal sides, or not."""
        if on != self.sides(key):
            (self._free.discard if on else self._free.add)(key)
            self.changed.emit(key)

    def as_data(self) -> dict[str, dict[str, Any]]:
        """All of them, for a file: by panel, by scale."""
        found: dict[str, dict[str, Any]] = {}
        for (key, scale), choice in sorted(self._chosen.items()):
            found.setdefault(key, {})[scale] = as_data(choice)
        for key in sorted(self._free):
            found.setdefault(key, {})[SIDES] = False
        return found

    def take(self, data: Mapping[str, Any]) -> None:
        """Those of a file instead; what cannot be read there is as usual."""
        before = {key for key, _ in self._chosen} | self._free
        self._chosen, self._free = {}, set()
        for key, scales in list(data.items())[:MOST]:
            for scale, told in list(scales.items())[:MOST] if isinstance(scales, dict) else ():
                if scale == SIDES and told is False:
                    self._free.add(str(key))
                choice = from_data(str(scale), told)
                if choice != AS_USUAL:
                    self._chosen[str(key), str(scale)] = choice
        for key in sorted(before | {key for key, _ in self._chosen} | self._free):
            self.changed.emit(key)

    @property
    def text(self) -> str:
        """All of them as one line; "" for none."""
        found = self.as_data()
        return json.dumps(found, separators=(",", ":")) if found else ""

    @property
    def lasting(self) -> str:
        """The same without ranges of one's own, which belong to what is shown."""
        kept = Colours()
        kept._chosen = {at: without_range(choice) for at, choice in self._chosen.items()}
        kept._chosen = {at: choice for at, choice in kept._chosen.items() if choice != AS_USUAL}
        kept._free = self._free
        return kept.text

    def take_text(self, text: str) -> None:
        """Those of a line; nothing where it is none."""
        try:
            data = read_json(text) if text else {}
        except ValueError:
            data = {}
        self.take(data if isinstance(data, dict) else {})


def colours_of(cursor: Cursor | Looking) -> Colours:
    """The choices that belong to a shared cursor; made on first request, and gone with it."""
    return belonging_to(cursor, Colours)
