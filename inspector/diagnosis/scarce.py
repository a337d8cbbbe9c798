"""Whether so little of a watched training was recorded that rules could not judge it, and how more is recorded."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from inspector.diagnosis.diagnose import Diagnosis
from inspector.diagnosis.rule import Captured
from inspector.records import TRAINED, Frame, counted

AT, SERIES = "training:iteration", frozenset({"series", "training", "histogram", "coordinate"})
ENOUGH = 1000
"""Recorded iterations that every rule over a training has enough of."""
EARLY = 0.1
"""A last probe within the first tenth of a training says little of the rest; a judgement."""
NEVER = (
    "No iteration was recorded: no step() of a watched optimizer has been seen. Call optimizer.step() after backward, "
    "of the optimizer that inspector.watch was given; a loop without one of torch's calls watcher.step(loss=…)."
)
_NEEDED = re.compile(r"of ([\d.e+]+) points\)$")


def scarce(run: Captured, found: Diagnosis) -> str:
    """What was not recorded of a watched training and what to give `inspector.watch`, in sentences; "" where every rule
    had enough, where a longer training would be needed and no denser recording, and of what was not watched.

    A probe that was never taken is told only where nothing worse than information was found. Raises CaptureError.
    """
    settings = _settings(run)
    if settings is None:
        return ""
    if AT not in run.channels:
        return NEVER
    rows = np.ma.filled(np.ma.asarray(run.array(AT), np.float64), np.nan) if run.revision(AT) else np.zeros(0)
    recorded = len(rows)
    done = int(max([one.value for one in run.scalars if one.name == TRAINED] + [np.nanmax(rows, initial=0.0)]))
    hungry = [one for one in found.short if recorded < _needed(one) <= done]
    quiet = all(one.severity == "info" for one in found.findings)
    probed = any(one.kind not in SERIES and run.revision(one.name) for one in run.channels.values())
    said, advice = list[str](), list[str]()
    if hungry:
        said.append(
            f"only {recorded:,} of {counted(done, 'iteration', ',')} {'was' if recorded == 1 else 'were'} recorded"
            f"{_why(settings)}, too few for {counted(len(hungry), 'rule')}"
        )
        advice.append(f"every={max(1, done // ENOUGH)}")
    if not probed and (hungry or quiet):
        said.append("no probe was taken, so states, gates, attention and Jacobians were not looked at")
        advice += ["probe=batch", f"probe_every={max(1, done // 10)}", "probe_loss=function(output, batch)"]
    elif probed and (last := _last_probe(run)) is not None and last < EARLY * done:
        said.append(
            f"the last probe was taken at iteration {last:,} of {done:,}, so nobody looked at what states, gates, "
            "attention and Jacobians became"
        )
        advice.append(f"probe_every={max(1, done // 10)}")
    if not said:
        return ""
    told, more = "; ".join(said), ", ".join(advice)
    return f"{told[:1].upper()}{told[1:]}. More is recorded by inspector.watch(model, optimizer, path, {more})."


def _settings(run: Captured) -> Mapping[str, Any] | None:
    """How a training was watched; None of what was not."""
    training = run.start.meta.get("training")
    watched = training.get("watch") if isinstance(training, Mapping) else None
    return watched if isinstance(watched, Mapping) else None


def _last_probe(run: Captured) -> int | None:
    """The iteration of the newest frame, where frames say theirs."""
    frames: Sequence[Frame] = getattr(run, "frames", ())  # a log has none
    return max((one.step for one in frames if one.step is not None), default=None)


def _why(settings: Mapping[str, Any]) -> str:
    every, share = settings.get("every"), settings.get("share")
    if isinstance(every, int):
        return f" (every={every})"
    return f" (as many as {100 * share:g} % of the time allow)" if isinstance(share, float) else ""


def _needed(short: str) -> float:
    """How many points a rule needs, by the word of a diagnosis: "plateau (3 of 60 points)"."""
    found = _NEEDED.search(short)
    return float(found.group(1)) if found is not None else float("inf")
