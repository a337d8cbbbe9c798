"""What the capture of a watched training knows of how it was trained: its optimizer, rates and clipping."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import numpy as np

from inspector.diagnosis.rule import Captured
from inspector.diagnosis.series import norms_beside_clipping, table_of

SETTINGS = "training:optimizer"
CLIPS, ALIKE = 0.999, 0.01
"""A norm that is smaller than this part of the one before clipping was clipped; and norms that differ by no more than
this part of their median were clipped at one threshold. Counter-example: clipping by value, or by parameter, which is
not taken over."""


def recorded_training(run: Captured) -> str:
    """The text that `trial/cure` takes as `recorded`; "" of what was not watched, or had no optimizer.

    Rates are the median of those that were recorded: a schedule may begin and end at 0. Raises CaptureError.
    """
    training = run.start.meta.get("training")
    told = training.get("optimizers") if isinstance(training, Mapping) else None
    if not isinstance(told, Sequence) or not told:
        return ""
    rates = _rates(run)
    optimizers, varied = [], False
    for n, one in enumerate(told):
        lead = f"optimizer {n} " if len(told) > 1 else ""
        groups = []
        for g, group in enumerate(one["groups"]):
            low, middle, high = rates.get(f"{lead}group {g}: lr", (None, None, None))
            varied |= low != high
            changed = {} if middle is None else {"lr": middle}
            groups.append({"settings": {**group["settings"], **changed}, "parameters": group["parameters"]})
        optimizers.append({"class": one["class"], "groups": groups})
    source = "of the training" + (", at the middle one of its rates" if varied else "")
    told_all = {"optimizers": optimizers, "clip": _clip(run), "source": source}
    return quote(json.dumps(told_all, separators=(",", ":")), safe="")


def _rates(run: Captured) -> dict[str, tuple[Any, ...]]:
    """{name of a learning rate: its lowest, median and highest recorded number}."""
    table = table_of(run, SETTINGS)
    found: dict[str, tuple[Any, ...]] = {}
    for n, name in enumerate(table.names if table is not None else ()):
        assert table is not None
        values = table.values[:, n]
        values = values[np.isfinite(values)]
        if name.endswith(": lr") and len(values):
            found[name] = (float(values.min()), float(np.median(values)), float(values.max()))
    return found


def _clip(run: Captured) -> float | None:
    """The norm at which gradients were clipped; None where they were not, or at no one threshold."""
    norms = norms_beside_clipping(run)
    if norms is None:
        return None
    with np.errstate(invalid="ignore"):
        after = norms[norms[:, 1] < CLIPS * norms[:, 0], 1]
    if not len(after):
        return None
    middle = float(np.median(after))
    return middle if middle > 0 and bool((abs(after - middle) <= ALIKE * middle).all()) else None
