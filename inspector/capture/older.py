"""Channels of captures that are older than a field of theirs: the table from which the field is derived.

`Channel.compare` is the first such field. Captures of format 1 from before it existed have neither it nor a mark that
it is missing: how two runs of a channel are compared was then decided by these kinds, and by a logarithmic scale.
"""

from __future__ import annotations

from dataclasses import replace

from inspector.records import Channel, Comparison
from inspector.records.json_text import read_json

SEPARATE = frozenset({
    "bptt", "clipping", "fixed_point", "health", "influence", "lyapunov", "memory", "opener", "spectrum", "training",
    "trajectory", "truncation",
})  # fmt: skip
"""Kinds of tables, spectra and verdicts of one run: the difference of two runs has no meaning."""


def compared(channel: Channel, text: str) -> Channel:
    """A channel read from a record's text, with `compare` derived where the text does not have it."""
    return channel if "compare" in read_json(text) else replace(channel, compare=_derived(channel))


def _derived(channel: Channel) -> Comparison:
    if channel.kind in SEPARATE:
        return "separate"
    return "ratio" if channel.scale == "log" else "difference"
