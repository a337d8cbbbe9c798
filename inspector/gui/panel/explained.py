"""What a quantity is, in words: from what its file in the registry of quantities says of it, and from nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from inspector.gui.widgets.numbers import short
from inspector.records import Channel, Entry

MOST_TOLD, MOST_OF_A_PANEL = 3, 6
"""Quantities whose formulas a tooltip has, of a title and of a panel."""
DIFFERENCE = "Δ "


def in_one_line(channel: Channel) -> str:
    """Title and formula."""
    return f"{_title(channel)}: {channel.formula}" if channel.formula else _title(channel)


def in_full(channel: Channel) -> str:
    """Everything that is known of it, a line each."""
    unit = "none: a pure number" if channel.unit in ("", "1") else channel.unit
    limits = f", from {short(channel.limits[0])} to {short(channel.limits[1])}" if channel.limits else ""
    lines = [
        _title(channel), f"Formula: {channel.formula}" if channel.formula else "",
        f"Axes: {' × '.join(channel.dims)}", f"Unit: {unit}{limits}", f"Method: {channel.method}",
        f"Source: {channel.source}" if channel.source else "", f"Channel: {channel.name}",
    ]  # fmt: skip
    return "\n".join(line for line in lines if line)


def of_entries(keys: Iterable[str], entries: Sequence[Entry]) -> str:
    """What some quantities compute, a line each, before any of them is there."""
    wanted = set(keys)
    return "\n".join(f"{one.title or one.key}: {one.summary}" for one in entries if one.key in wanted and one.summary)


def named_in(text: str, channels: Iterable[Channel]) -> list[Channel]:
    """The channels whose titles are in a text, in the order of the text; of titles in each other the longest."""
    found: list[tuple[int, Channel]] = []
    rest = text.casefold()
    for channel in sorted(channels, key=lambda one: -len(one.title)):
        title = _title(channel).casefold()
        at = re.search(rf"(?<!\w){re.escape(title)}(?!\w)", rest) if title else None
        if at is not None and not any(title == _title(one).casefold() for _, one in found):
            found.append((at.start(), channel))
            rest = rest[: at.start()] + "\0" * len(title) + rest[at.end() :]
    return [channel for _, channel in sorted(found, key=lambda pair: pair[0])]


def told_of(text: str, channels: Iterable[Channel]) -> str:
    """The formulas of what a title or the name of a curve is about, a line each; "" where there are none."""
    with_formula = [one for one in named_in(text, channels) if one.formula]
    return "\n".join(map(in_one_line, with_formula[:MOST_TOLD]))


def of_panel(channels: Iterable[Channel]) -> str:
    """The formulas of what a panel shows, each title once, a line each."""
    once: dict[str, Channel] = {}
    for channel in channels:
        if channel.formula:
            once.setdefault(_title(channel), channel)
    lines = [in_one_line(one) for one in once.values()]
    more = [f"… and {len(lines) - MOST_OF_A_PANEL} more"] if len(lines) > MOST_OF_A_PANEL else []
    return "\n".join([*lines[:MOST_OF_A_PANEL], *more])


def _title(channel: Channel) -> str:
    return channel.title.removeprefix(DIFFERENCE) or channel.signal
