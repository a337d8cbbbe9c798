"""Maps of attention heads, small."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from inspector.analysis.attention.map_source import MapChoice, MapSource
from inspector.analysis.clipping import percent
from inspector.capture.pyramid import with_nan
from inspector.gui.panel.overview.pictures import PICTURES, SmallPicture
from inspector.gui.panel.overview.sketching import has, there
from inspector.gui.state.step_axes import without_passing
from inspector.gui.widgets.maps.atlas import thumbnail
from inspector.gui.widgets.sketch import MOST_TILES, Sketch
from inspector.records import Channel, counted

_maps = has("attention", ("head", "query", "key"))
LAYERS, SIDE = 4, 48
LARGEST = 4_000_000
"""Weights of a map above which only its last queries are read."""


def find(view: Any, frame: int) -> list[Channel]:
    """The maps; not the rows that came while a decoder ran, where their map is there."""
    return without_passing(_maps(view, frame))


def read(view: Any, frame: int, channels: Sequence[Channel]) -> Sketch:
    """A tile for each head of at most four layers, from the first to the last of them. Masked keys, and weights that
    are not known, are the ground."""
    chosen = [channels[n] for n in sorted({round(n) for n in np.linspace(0, len(channels) - 1, LAYERS)})]
    each = max(1, MOST_TILES // len(chosen))
    tiles = [tile for channel in chosen for tile in _tiles(view, frame, channel, channels.index(channel), each)]
    heads = sum(view.extent(one.name, frame)[0] for one in channels)
    said = f"{counted(heads, 'head')} in {counted(len(channels), 'layer')}{_cut(view, frame, chosen)}"
    said += _sink(view, frame, channels)
    return Sketch(said, tiles=tuple(tiles), scale="attention", place=channels[0].place, channel=channels[0].name)


def _tiles(view: Any, frame: int, channel: Channel, layer: int, most: int) -> Iterator[tuple[str, Any]]:
    heads, queries, keys = view.extent(channel.name, frame)
    first = _first(queries, keys)
    for head in range(min(heads, most)):
        source = MapSource(view, MapChoice(((channel.name, head),), frame), unknown=-np.inf)
        yield f"{layer}.{head}", thumbnail(source.rows(first, queries), SIDE)


def _first(queries: int, keys: int) -> int:
    """The first query that is read of a map."""
    return max(0, queries - max(1, LARGEST // max(1, keys)))


def _cut(view: Any, frame: int, chosen: Sequence[Channel]) -> str:
    """That of large maps not all queries are drawn, in words; "" where they are."""
    sizes = {tuple(view.extent(one.name, frame)[1:]) for one in chosen}
    cut = [(queries, queries - _first(queries, keys)) for queries, keys in sizes if _first(queries, keys)]
    if not cut:
        return ""
    if len(cut) == len(sizes) == 1:
        return f", drawn: the last {cut[0][1]:,} of {cut[0][0]:,} queries"
    return f", drawn of large maps: the last {min(read for _, read in cut):,} queries or more"


def _sink(view: Any, frame: int, channels: Sequence[Channel]) -> str:
    """The head that has most of its weight on the first key."""
    best, where = 0.0, ""
    for layer, channel in enumerate(channels):
        name = f"{channel.place}:attention/sink_mass"
        if there(view, name, frame):
            values = with_nan(view.array(name, frame)).astype(np.float64)
            means = [float(np.mean(row[np.isfinite(row)])) if np.isfinite(row).any() else 0.0 for row in values]
            if max(means, default=0.0) > best:
                best, where = max(means), f"{layer}.{int(np.argmax(means))}"
    return f"; head {where} has {percent(best)} of its weight on the first key" if where else ""


PICTURES.register("attention")(SmallPicture("Attention heads", "attention", 75, find, read))
