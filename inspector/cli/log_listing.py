"""What `inspector list` tells of a log: its runs, and the curves of each."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from inspector.capture import LogView, listed, role_of
from inspector.cli.columns import width_of
from inspector.records.plain_text import plain_line
from inspector.transport.terminal import say

SCHEMA = "inspector-log-1"
MOST_DAMAGE = 20
MOST_SETTINGS = 12
"""Settings of a run that are printed; `--json` has all."""
LISTED = ("series", "histogram")


def as_data(log: LogView) -> dict[str, Any]:
    """What `--json` prints."""
    return {
        "schema": SCHEMA,
        "title": log.start.title,
        "formats": log.source.formats,
        "runs": [_run(log.one(name)) for name in log.shown],
        "damaged": [asdict(one) for one in log.damage],
    }


def _run(log: LogView) -> dict[str, Any]:
    channels = [
        {
            "name": c.name, "kind": c.kind, "dims": list(c.dims), "shape": list(log.extent(c.name)), "title": c.title,
            "role": role_of(c.title), "axis": c.domain("iteration"),
        }
        for c in log.channels.values()
    ]  # fmt: skip
    events = [{"iteration": e.iteration, "kind": e.kind, "text": e.text} for e in log.events]
    return {
        "name": log.run, "title": log.start.title, "status": log.status, "meta": _strict(log.start.meta),
        "channels": channels, "events": events,
    }  # fmt: skip


def _strict(value: Any) -> Any:
    """NaN and infinities as text: JSON has no other way."""
    if isinstance(value, dict):
        return {str(key): _strict(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_strict(item) for item in value]
    return str(value) if isinstance(value, float) and not float("-inf") < value < float("inf") else value


def say_log(log: LogView) -> None:
    """The same for people, a line each."""
    count = f"{len(log.runs)} runs" if len(log.runs) > 1 else "1 run"
    say(f"{plain_line(log.path.name)}: {', '.join(log.source.formats)}, {count}")
    for name in log.shown:
        _say_run(log.one(name))
    for sentence in listed(log.damage, MOST_DAMAGE):
        say(f"  damaged: {sentence}")


def _say_run(log: LogView) -> None:
    title = f" ({log.start.title})" if log.start.title != log.run else ""
    say(f"run {log.run}{title}" + (f", {log.status}" if log.status != "unknown" else ""))
    settings = {**log.start.meta.get("texts", {}), **log.start.meta.get("config", {})}
    if settings:
        some = ", ".join(f"{key}={plain_line(str(value), 60)}" for key, value in list(settings.items())[:MOST_SETTINGS])
        more = len(settings) - MOST_SETTINGS
        say(f"  settings: {some}" + (f" and {more} more" if more > 0 else ""))
    shown = [
        channel for channel in log.channels.values() if channel.kind in LISTED and not channel.name.endswith("/edges")
    ]
    width = width_of([channel.name for channel in shown])
    for channel in shown:
        known = int(log.known(channel.name).sum()) if channel.kind == "series" else log.extent(channel.name)[0]
        role = role_of(channel.title)
        what = "histogram" if channel.kind == "histogram" else "point"
        say(f"  {channel.name:<{width}}  {known:,} {what}{'' if known == 1 else 's'}" + (f"  ({role})" if role else ""))
    for event in log.events:
        say(f"  {event.kind} at {event.iteration:.15g}: {event.text}")
