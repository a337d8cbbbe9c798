"""The exact numbers beside the panels: those of the panels that are visible, under a heading for each."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from inspector.capture import Capture
from inspector.gui.state.pins import Pin
from inspector.gui.widgets.plain_text import clean

if TYPE_CHECKING:
    from inspector.gui.panel.base import Panel
    from inspector.gui.window.bars.sequence_row import SequenceRow

Row = tuple[str, ...]
"""What a number is, the number under the cursor, and that at each pin."""
NOT_THERE, VARIES = "–", "…"
_ALL_DIFFERS = re.compile(r" ?\[…(, …)*\]")
_IN_WORDS = re.compile(r" ?\[([^\W\d_][^\[\]]*)\]$")
MOST_ROWS = 12
"""Rows of one panel; for a panel with more, the number of those left out is shown."""


def rows_of(
    capture: Capture | None,
    panels: Mapping[str, Panel],
    seen: Container[str],
    strips: Iterable[SequenceRow],
    pins: Sequence[Pin] = (),
) -> list[Row]:
    """The position along every axis, then the title of each panel that is visible, (title, ""), and its numbers; with
    pins those at each of them beside it."""
    from inspector.gui.panel.compared import compared_runs_short

    rows: list[Row] = []
    for strip in strips:
        position = strip.looking.position
        if position.step is not None and strip.looking.length:
            steps = [position.step, *(pin.position.at(strip.axis) for pin in pins)]
            rows.append((clean(strip.described.title), *(_step_of(capture, strip, step) for step in steps)))
    for key, panel in panels.items():
        if panel.state != "figure" or key not in seen:
            continue
        found = side_by_side(panel.labelled_readout(), [panel.readout_at(pin) for pin in pins])
        if found:
            runs = compared_runs_short(panel)
            found, place = briefly(found) if pins else said_once(found)
            rows += [(headed(panel.title, place, runs), ""), *found[:MOST_ROWS]]
            if len(found) > MOST_ROWS:
                rows.append((f"and {len(found) - MOST_ROWS} more numbers", "Save numbers…"))
    return rows


def drawn_names(panels: Mapping[str, Panel], seen: Container[str]) -> frozenset[str]:
    """The channels from which the panels that can be seen are drawn, those left out that show what a person asks for:
    they tell of the others."""
    drawn = [one for key, one in panels.items() if key in seen and one.state == "figure" and not one.asks_first]
    return frozenset(name for one in drawn for name, _ in one.read)


def _step_of(capture: Capture | None, strip: SequenceRow, step: int | None) -> str:
    """A position along the axis of a strip, with its token and its place in a grid."""
    if step is None or step >= strip.looking.length:
        return NOT_THERE
    names = capture.labels(strip.axis, strip.looking.position.frame) if capture is not None else ()
    name = f"  {names[step]!r}" if step < len(names) else ""
    where = strip.strip.where(step)
    return f"{step}{name}{where and f'  {where}'}"


def side_by_side(here: Sequence[tuple[str, str]], pinned: Sequence[Sequence[tuple[str, str]]]) -> list[Row]:
    """Rows of several readouts as one table. Rows are the same quantity where they are named alike but for numbers, the
    n-th of a name with the n-th; a number that differs is "…" in the name."""
    if not pinned:
        return list(here)
    tables = [_keyed(rows) for rows in (here, *pinned)]
    found = []
    for key in dict.fromkeys(key for table in tables for key in table):
        named = [table[key] for table in tables if key in table]
        name = named[0][0]
        for other, _ in named[1:]:
            name = _common(name, other)
        found.append((name, *(table[key][1] if key in table else NOT_THERE for table in tables)))
    return found


def headed(title: str, place: str, runs: str) -> str:
    """The heading of a panel's numbers: its title, the place that all have, and of which runs they are."""
    named = f"{title}, {place}" if place else title
    return f"{named}: {runs}" if runs else named


def said_once(rows: Sequence[Row]) -> tuple[list[Row], str]:
    """Rows of the cursor alone without what all of several have, a place or "[iteration 350]", which is given beside
    them. Steps and units in brackets stay: they are short, and what a row is of."""
    if len(rows) < 2:
        return list(rows), ""
    shorter, place = _without_place(rows)
    brackets = {found[1] if (found := _IN_WORDS.search(row[0])) else "" for row in shorter}
    if len(brackets) == 1 and (words := brackets.pop()):
        shorter = [(_IN_WORDS.sub("", row[0]), *row[1:]) for row in shorter]
        place = f"{words}, {place}" if place else words
    return shorter, place


def _without_place(rows: Sequence[Row]) -> tuple[list[Row], str]:
    """Rows without the place that all have, and that place; as they are with "" where they have several, or none."""
    parts = [row[0].rpartition("  ") for row in rows]
    places = {place if gap else "" for _, gap, place in parts}
    place = places.pop() if len(places) == 1 else ""
    named = [name if place else row[0] for row, (name, _, _) in zip(rows, parts, strict=True)]
    return [(name, *row[1:]) for name, row in zip(named, rows, strict=True)], place


def briefly(rows: Sequence[Row]) -> tuple[list[Row], str]:
    """Rows beside pins, whose columns leave little room for names: without the brackets in which everything differs
    (the first row and the headings say where), and without the place that all have, which is given beside them."""
    rows, place = _without_place(rows)
    names = [row[0] for row in rows]
    shorter = [_ALL_DIFFERS.sub("", name).strip() for name in names]
    names = shorter if len(set(shorter)) == len(shorter) and all(shorter) else names
    return [(name, *row[1:]) for name, row in zip(names, rows, strict=True)], place


def _keyed(rows: Sequence[tuple[str, str]]) -> dict[tuple[str, int], tuple[str, str]]:
    """Each row by its name without numbers, and how many of that name came before it."""
    found: dict[tuple[str, int], tuple[str, str]] = {}
    for row in rows:
        name = re.sub(r"\d+", "#", row[0])
        nth = 0
        while (name, nth) in found:
            nth += 1
        found[name, nth] = row
    return found


def _common(one: str, other: str) -> str:
    """Two names that differ only in numbers as one."""
    pairs = zip(re.split(r"(\d+|…)", one), re.split(r"(\d+|…)", other), strict=True)
    return "".join(first if first == second else VARIES for first, second in pairs)
