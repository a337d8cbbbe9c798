"""The gate that keeps the state, by step and unit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inspector.gui.panel.gates_of_place import GatesOfPlace
from inspector.gui.panel.overview.pictures import PICTURES, SmallPicture
from inspector.gui.panel.overview.sketching import has, sketch_of_map, there
from inspector.gui.widgets.sketch import Sketch
from inspector.records import Channel

_of_gates = has("gate", ("step", "unit"))


def find(view: Any, frame: int) -> Sequence[Channel]:
    """Gates between 0 and 1; a candidate is none."""
    return [one for one in _of_gates(view, frame) if one.limits != (-1, 1) and one.signal.startswith("gate/")]


def read(view: Any, frame: int, channels: Sequence[Channel]) -> Sketch:
    """The map of the gate that carries the last layer's state over, else of its first gate; what Openers says."""
    place = channels[-1].place
    own = [one for one in channels if one.place == place]
    keeping = GatesOfPlace(view, frame, own).memory_gate()
    gate = keeping[0] if keeping is not None else own[0]
    table = f"{gate.name}/saturation"
    tables = [view.channel(table, frame)] if there(view, table, frame) else []
    said = GatesOfPlace(view, frame, [gate, *tables]).summary_lines(None, view.extent(gate.name, frame)[0])
    sentence = "; ".join(said) or f"{gate.title}, not summarised yet"
    return sketch_of_map(view, frame, gate, f"{place}: {sentence}")


PICTURES.register("gates")(SmallPicture("Gates", "gates", 90, find, read))
