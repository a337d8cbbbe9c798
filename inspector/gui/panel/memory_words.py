"""What the longest runs of memory say of one unit, or of a layer as a whole, in words."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.analysis.gate_summary import memory_sentence
from inspector.gui.panel.labelled import rows_of
from inspector.records import Channel, counted


def memory_words(channel: Channel, values: npt.NDArray[Any], unit: int | None, why: str) -> list[str]:
    """Sentences from the table (statistic, unit) of a channel; `why` says why a number is not known ("damaged")."""
    rows = rows_of(channel, values, "longest", "longest_start", "runs")
    longest, _, runs = rows
    if unit is not None and unit >= len(longest):
        return []
    known = np.isfinite(longest)
    if not known.any() or not (unit is None or known[unit]):
        return [f"long-term memory: {why}"]
    if unit is not None:
        condition = channel.title.partition("(")[2].removesuffix(")")
        return [memory_sentence(condition, *(float(row[unit]) for row in rows))]
    best, held, lost = int(np.where(known, longest, -1).argmax()), int((runs > 0).sum()), int((~known).sum())
    return [
        f"{held} of {counted(int(known.sum()), 'unit')} have long-term memory" + (f", {lost} {why}" if lost else ""),
        f"longest in unit {best}: {memory_sentence('', *(float(row[best]) for row in rows))}",
    ]
