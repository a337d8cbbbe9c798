"""Rows of named values as points: which name is the step, the time, the run, and which are curves."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from inspector.capture.logs.json_values import number_of, numbers_in
from inspector.capture.logs.roles import role_of
from inspector.capture.logs.run_log import EPOCH, TOKENS, RunLog

USUAL_STEPS = (
    "_step", "step", "global_step", "trainer/global_step", "train/global_step", "iteration", "iter", "num_updates",
    "steps",
)  # fmt: skip
"""Names of the step, the usual ones first: where a row has several, the first of them is taken."""
RUN_WORDS = ("run", "run_name", "run_id", "experiment", "exp_name")
"""Names whose texts tell runs apart that share a file."""
PHASES = ("phase", "split", "mode", "stage", "subset")
"""Names whose texts ("train", "val") go in front of the names of the numbers beside them."""
LONGEST_PHASE = 40


def step_name(names: Iterable[str]) -> str:
    """The name of the step among some names: a usual one, else one that stands for it, else the epoch; "" for none."""
    known = {name.strip().lower(): name for name in reversed(list(names))}
    for usual in USUAL_STEPS:
        if usual in known:
            return known[usual]
    roles = {role_of(name): name for name in reversed(list(known.values()))}
    return roles.get("step") or roles.get("epoch") or ""


def seconds_of(value: Any) -> float:
    """A time as seconds since 1970: a number, or a date in ISO 8601; NaN for anything else."""
    number = number_of(value)
    if number is not None:
        return number
    try:
        return datetime.fromisoformat(value).timestamp() if isinstance(value, str) else math.nan
    except (ValueError, OverflowError):
        return math.nan


def put_row(run: RunLog, row: Mapping[str, Any], step: str, time: float = math.nan) -> bool:
    """Put a row of JSON values into a run; whether it had a step. `step` is the name of its step."""
    number = number_of(row.get(step))
    if number is None or not math.isfinite(number):
        return False
    values = numbers_in(row)
    values.pop(step, None)
    others = {}
    for name in list(values):
        role = role_of(name)
        if role == "time" and time != time:
            time = values.pop(name)
        elif role == "epoch" and "/" not in name:
            others[EPOCH] = values[name]
        elif role == "tokens":
            others[TOKENS] = values[name]
    phase = next((row[name] for name in PHASES if isinstance(row.get(name), str)), "")
    if phase and len(phase) <= LONGEST_PHASE:
        values = {f"{phase}/{name}": value for name, value in values.items()}
    if role_of(step) == "epoch":
        run.along = "epoch"
    note_time(run, time)
    run.row(number, values, time, others)
    return True


def note_time(run: RunLog, time: float) -> None:
    """The run began no later than at this time."""
    if math.isfinite(time) and not run.begin <= time:
        run.begin = time


def run_word(row: Mapping[str, Any]) -> str:
    """Which run a row belongs to, where its file has several; "" for the only one."""
    return next((row[name] for name in RUN_WORDS if isinstance(row.get(name), str)), "")
