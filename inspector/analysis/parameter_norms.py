"""Which parameters changed most between two frames, by what captures themselves hold: weight norms, and where the
checkpoints are that were run."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from inspector.capture import Reference, numbers_along
from inspector.capture.curves import names_of_columns
from inspector.capture.regular import is_a_file, is_a_folder
from inspector.records import ParameterChange

WEIGHTS = "weight/norm"
SWEEP = "sweep"
"""The key of a frame's `meta` that says from which file it was computed."""


def checkpoint_of(side: Reference) -> Path | None:
    """The checkpoint whose numbers a frame has, where the capture says it and it is there."""
    frame = next((one for one in getattr(side.view, "frames", ()) if one.index == side.frame), None)
    told = frame.meta.get(SWEEP, {}) if frame is not None else {}
    named = told.get("path") if isinstance(told, dict) else None
    path = Path(str(named or side.view.start.checkpoint or ""))
    return path if str(path) != "." and (is_a_file(path) or (named and is_a_folder(path))) else None


def norms_at(side: Reference) -> dict[str, float]:
    """The norm of every parameter at the iteration of a frame, or the last before it; {} where none was recorded."""
    table = next((c for c in side.view.channels.values() if c.signal == WEIGHTS and len(c.dims) == 2), None)
    if table is None or not side.view.revision(table.name, -1):
        return {}
    step = next((one.step for one in getattr(side.view, "frames", ()) if one.index == side.frame), None)
    numbers = numbers_along(side.view, table.domain("iteration"))
    values: Any = side.view.array(table.name, -1)
    rows = len(values) if numbers is None or step is None else int(np.searchsorted(numbers, step, side="right"))
    if not rows:
        return {}
    return dict(zip(names_of_columns(side.view, table), map(float, values[rows - 1]), strict=False))


def norm_changes(before: Reference, after: Reference) -> list[ParameterChange]:
    """Changes of norms, the largest relative one first: |‖b‖ − ‖a‖| / ‖a‖, which a change is never smaller than.

    Counter-example: a matrix that was rotated has changed, and its norm has not.
    """
    one, other = norms_at(before), norms_at(after)
    found = []
    for name in dict.fromkeys((*one, *other)):
        if name not in one or name not in other:
            found.append(ParameterChange(name=name, problem=f"only {(before if name in one else after).name} has it"))
            continue
        a, b = one[name], other[name]
        size = abs(b - a)
        relative = size / a if a else (math.inf if size else 0.0)
        found.append(ParameterChange(name=name, first=a, second=b, change=math.nan, relative=relative))
    return sorted(found, key=lambda change: (bool(change.problem), -change.relative))
