"""`history.json`: a JSON object whose lists are columns of equal length, one of them "step".

The samples' trainings are written so. A list may also stand in an object inside it, which has steps of its own; Keras'
`History.history` has no steps, and its rows are epochs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from inspector.capture.layout import CaptureError
from inspector.capture.logs.document import Document
from inspector.capture.logs.json_values import number_of
from inspector.capture.logs.reader import LOGS, Intake, OneFile
from inspector.capture.logs.rows import step_name
from inspector.capture.logs.run_log import RunLog


class History(Document):
    """One file."""

    def take(self, found: Any, into: Intake) -> None:
        """Every list beside the steps is a curve; what is no list is a setting."""
        if not isinstance(found, dict) or not any(_is_table(one) for one in (found, *found.values())):
            raise CaptureError(
                f"{self.path.name} has no columns; expected an object of lists of numbers, equally long."
            )
        run = into.run()
        run.config.update({name: value for name, value in found.items() if not isinstance(value, (list, dict))})
        self._table(found, "", run)
        for name, value in found.items():
            if _is_table(value):
                self._table(value, f"{name}/", run)
        run.flush()

    def _table(self, table: Mapping[str, Any], before: str, run: RunLog) -> None:
        columns = {name: column for name, column in table.items() if isinstance(column, list)}
        step = step_name(columns)
        steps = columns.pop(step, None)
        if steps is None and not before:
            run.along = "epoch"  # what Keras keeps has a row for each epoch
        for name, column in columns.items():
            if steps is not None and len(column) != len(steps):
                run.lose(self.path.name, None, f"{name} has {len(column):,} values for {len(steps):,} steps")
            numbers = range(len(column)) if steps is None else steps
            for at, value in zip(numbers, column, strict=False):
                place, number = number_of(at), number_of(value)
                if place is not None and number is not None and math.isfinite(place):
                    run.point(f"{before}{name}", place, number)


def _is_table(value: Any) -> bool:
    """Whether an object has a list that begins with a number, or with null."""
    return isinstance(value, dict) and any(
        isinstance(own, list) and own and (own[0] is None or number_of(own[0]) is not None) for own in value.values()
    )


class Histories(OneFile):
    """Recognised by its name."""

    title = "Columns in JSON"
    summary = "An object of lists of equal length, as the samples' history.json and Keras' history."
    names = ("history.json",)
    order = 30

    def open(self, path: Path) -> History:
        """One file."""
        return History(path)


LOGS.register("history")(Histories())
