"""The names of several parts of a model without what all of them share: "layers.0" of "encoder.layers.0.self_attn"."""

from __future__ import annotations

from collections.abc import Iterable


def in_short(places: Iterable[str]) -> dict[str, str]:
    """Each place without the parts at its beginning and its end that all have; a number keeps the word before it. One
    place alone, and places that would be nothing or alike then, stay whole."""
    parts = {place: place.split(".") for place in places}
    rows = list(parts.values())
    if len(rows) < 2:
        return {place: place for place in parts}
    first, last = _shared(rows), _shared([row[::-1] for row in rows])
    last = min(last, min(map(len, rows)) - first)
    if first and any(row[first : first + 1] and row[first].isdigit() for row in rows):
        first -= 1
    short = {place: ".".join(row[first : len(row) - last]) for place, row in parts.items()}
    return short if all(short.values()) and len(set(short.values())) == len(short) else {one: one for one in parts}


def _shared(rows: list[list[str]]) -> int:
    """How many parts all have in common from the beginning."""
    alike = 0
    for column in zip(*rows, strict=False):
        if len(set(column)) > 1:
            break
        alike += 1
    return alike
