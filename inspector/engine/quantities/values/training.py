"""The training log: every column of the history.json beside the checkpoint, and its measurements at some iterations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from inspector.engine.errors import Unsupported
from inspector.engine.model.training_log import NAME, columns, read_history
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.iteration_axis import PLACE, describe_iterations
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Trace

MOST = 32
"""Columns of a table that are shown."""


@QUANTITIES.register("training")
@per_run(summary="the training log in history.json beside the checkpoint", order=27)
def training(trace: Trace, emit: Emitter) -> None:
    """Write `parameters:training` (statistic, iteration) and `parameters:training/measured`, from `measured`.

    The statistics are the columns by name; the iterations are numbered by the coordinate of their axis.
    """
    try:
        known = read_history(trace.subject.checkpoint)
        if known is None:
            return
        measured = known.get("measured")
        for name, table in (("", known), ("measured", measured)):
            if isinstance(table, dict):
                _write(name, table, emit)
    except Unsupported as reason:
        emit.refuse(f"{PLACE}:training", str(reason))


def _write(name: str, table: Mapping[str, Any], emit: Emitter) -> None:
    """One table: the file itself (""), or one within it, which has iterations of its own."""
    steps, found = columns(table)
    shown = dict(list(found.items())[:MOST])
    if not shown or not len(steps):
        return
    about = Describe(
        kind="training", compare="separate", title="training", source=f"{NAME} beside the checkpoint",
        formula="as in the training log, by iteration",
        method="as logged" if len(shown) == len(found) else f"as logged; the first {MOST} of {len(found)} columns",
        labels={"statistic": tuple(label.replace("_", " ") for label in shown)},
    )  # fmt: skip
    values = torch.stack(list(shown.values()))
    named = f"{PLACE}:training/{name}".removesuffix("/")
    domains = describe_iterations(emit, steps, name)
    emit.array(
        about.channel(named, ("statistic", "iteration"), tuple(values.shape), "float64", domains=domains), values
    )
