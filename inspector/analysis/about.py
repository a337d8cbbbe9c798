"""What a capture is of, in a few lines: the model, what of its checkpoint was loaded, and what was run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from inspector.records import STEP_DOMAIN, counted
from inspector.records.report import from_meta
from inspector.records.report import line as report_line

MOST_KINDS = 6
"""Kinds of modules that are named."""
STEPPED = ("step", "query", "source")


def model_lines(view: Any) -> list[str]:
    """The model with its modules and parameters, then its checkpoint: which step, and how much of it was loaded.

    [] where the capture knows no model (a log of another tool).
    """
    lines = []
    places = view.start.places
    if places:
        parents = {place.name.rpartition(".")[0] for place in places if place.name}
        leaves = Counter(place.module for place in places if place.name and place.name not in parents)
        kinds = [name if count == 1 else f"{count} × {name}" for name, count in leaves.most_common(MOST_KINDS)]
        more = len(leaves) - MOST_KINDS
        named = ", ".join(kinds) + (f" and {more} more kinds" if more > 0 else "")
        parameters = sum(place.parameters for place in places)
        root = next((place.module for place in places if not place.name), "model")
        lines.append(f"{root}{f': {named}' if named else ''}; {counted(parameters, 'parameter', ',')}")
    return lines + _checkpoint(view)


def _checkpoint(view: Any) -> list[str]:
    report = from_meta(view.start.meta)
    steps = [frame.step for frame in view.frames if frame.step is not None]
    at = f" (iteration {steps[-1]:,})" if len(view.frames) == 1 and steps else ""
    if report is not None:
        return [f"Checkpoint{at} {report_line(report)}"]
    if view.start.checkpoint:
        return [f"Checkpoint{at} {PurePath(view.start.checkpoint).name}"]
    if "training" in view.start.meta or not view.start.places:
        return []
    return ["No checkpoint: weights as the model was made"]


def run_lines(view: Any) -> list[str]:
    """What was run: steps, frames, device; of a training its iterations, of a log its files."""
    meta = view.start.meta
    parts = []
    if "log" in meta and not view.start.places:
        parts.append(_log(view))
    if "training" in meta:
        parts.append("a training that was watched")
    if "sweep" in meta:
        parts.append("one run for each checkpoint")
    labels = _frames(view)
    parts += labels
    parts += [
        f"{counted(steps, 'step', ',')}{f' of {axis}' if axis != STEP_DOMAIN else ''}"
        for axis, steps in _lengths(view).items()
    ]
    if isinstance(meta.get("device"), str):
        parts.append(f"on {meta['device']}")
    if view.stop is not None and view.stop.seconds:
        parts.append(f"{view.stop.seconds:.3g} s")
    state = {"running": "still running", "failed": "failed", "cancelled": "cancelled", "unfinished": "never finished"}
    if getattr(view, "awaited", None) is not None:
        state["unfinished"] = "no connection to the training, which is waited for"
    if view.status in state:
        parts.append(state[view.status])
    said = "; ".join(parts)
    own = bool(parts) and parts[0] in labels  # what was typed or named stays as it was written
    lines = [said if own else said[:1].upper() + said[1:]] if said else []
    return [*lines, *_why_it_failed(view)]


def _why_it_failed(view: Any) -> list[str]:
    """What the model or the program said as the run failed, in one line."""
    told = " ".join(view.stop.message.split()) if view.status == "failed" and view.stop is not None else ""
    return [f"Why it failed: {told}"] if told else []


def _frames(view: Any) -> list[str]:
    frames = view.frames
    if len(frames) == 1:
        return [frames[0].label] if frames[0].label else []
    steps = [frame.step for frame in frames if frame.step is not None]
    where = f" from iteration {steps[0]:,} to {steps[-1]:,}" if steps else ""
    return [f"{counted(len(frames), 'frame', ',')}{where}"] if frames else []


def _lengths(view: Any) -> Mapping[str, int]:
    """Steps of every step axis, the longest channel of each, in the newest frame."""
    found: dict[str, int] = {}
    for channel in view.channels.values():
        if channel.dims and channel.dims[0] == "step" and view.revision(channel.name):
            axis = channel.domain("step")
            found[axis] = max(found.get(axis, 0), view.extent(channel.name)[0])
    return found


def _log(view: Any) -> str:
    about = view.start.meta["log"]
    formats = about.get("formats", ()) if isinstance(about, Mapping) else ()
    names = ", ".join(str(one) for one in formats) if isinstance(formats, (list, tuple)) else str(formats)
    runs = len(getattr(view, "shown", ()))
    return f"a log of another tool{f' ({names})' if names else ''}{f', {runs:,} runs' if runs > 1 else ''}"
