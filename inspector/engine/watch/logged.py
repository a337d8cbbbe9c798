"""Numbers that the user logs, all of them, at their own iterations; tensors are read when a page is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from inspector.engine.watch.optimizers.optimizer_settings import as_float
from inspector.engine.watch.tables import PLACE, About, Tables
from inspector.records import ITERATION_DOMAIN
from inspector.records.plain_text import shortened

LOGGED = f"{PLACE}:logged"
NAMES = "logged"
AXIS = f"{ITERATION_DOMAIN}/logged"
AS_COORDINATES = ("tokens", "epoch")

Row = tuple[int, float, dict[str, Any]]


MOST_REFUSED = 20
"""Names of what is no number, of which the log of the run is told."""


def is_number(value: object) -> bool:
    """Whether `log` can take a value; None is nothing, and no fault."""
    if isinstance(value, Tensor):
        return value.numel() == 1 and not value.is_meta and not value.is_complex()
    if value is None or isinstance(value, (bool, int, float)):
        return True
    try:
        as_float(value)
    except Exception:  # noqa: BLE001 - an object of anybody's may raise anything
        return False
    return True


def kind_of(value: object) -> str:
    """What was given in place of a number."""
    return f"a tensor of shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__


class Logged:
    """Rows of the user's scalars. `pending`: a backward pass began since the last step."""

    tables = (
        About(
            name=LOGGED, title="logged", column=("statistic", NAMES), dtype="float64", axis=AXIS,
            formula="what the training loop passed to log()",
        ),
        *(
            About(
                name=f"{PLACE}:{name}/logged", title=name, kind="coordinate", dtype="float64", axis=AXIS, unit=name,
                formula=f"log({name}=…)",
            )
            for name in AS_COORDINATES
        ),
    )  # fmt: skip

    def __init__(self) -> None:
        self.pending = False
        self._refused: set[str] = set()
        self._open: Row | None = None
        self._rows: list[Row] = []

    def numbers(self, values: Mapping[str, Any], say: Callable[[str], None]) -> dict[str, Any]:
        """Those that are numbers; `say` is told once of each name that came with anything else."""
        wrong = {name: value for name, value in values.items() if not is_number(value)}
        for name in wrong.keys() - self._refused:
            self._refused.add(name)
            if len(self._refused) <= MOST_REFUSED:
                say(
                    f"log({shortened(name, 100)}=…) was given {kind_of(wrong[name])}; expected a number, so it "
                    "is left out."
                )
        return {name: value for name, value in values.items() if name not in wrong}

    def take(self, values: Mapping[str, Any], iteration: int, seconds: float) -> None:
        """Add numbers to the row of an iteration. Everything is a number (see `is_number`)."""
        if self._open is None or self._open[0] != iteration:
            self._close()
            self._open = (iteration, seconds, {})
        for name, value in values.items():
            if value is None:
                continue
            if isinstance(value, Tensor):
                self._open[2][name] = value.detach().clone().reshape(())
            else:
                self._open[2][name] = as_float(value)

    def iteration_ended(self, iteration: int, seconds: float) -> None:
        """Later numbers are of the next row."""
        self.pending = False
        if self._open is not None and self._open[0] < iteration:
            self._close()

    def _close(self) -> None:
        if self._open is not None:
            self._rows.append(self._open)
            self._open = None

    def settle(self, tables: Tables) -> None:
        """Put the rows that are complete into their table, all tensors with one copy a device."""
        rows, self._rows = self._rows, []
        waiting = [(row[2], name) for row in rows for name, value in row[2].items() if isinstance(value, Tensor)]
        by_device: dict[torch.device, list[tuple[dict[str, Any], str]]] = {}
        for values, name in waiting:
            by_device.setdefault(values[name].device, []).append((values, name))
        for places in by_device.values():
            read = torch.stack([values[name].float() if values[name].device.type == "mps" else values[name].double()
                                for values, name in places]).tolist()  # fmt: skip
            for (values, name), number in zip(places, read, strict=True):
                values[name] = number
        for iteration, seconds, values in rows:
            cells: dict[str, dict[int, Any]] = {
                f"{PLACE}:{n}/logged": {0: values[n]} for n in AS_COORDINATES if n in values
            }
            cells[LOGGED] = {tables.column(NAMES, name): value for name, value in values.items()}
            tables.row(AXIS, iteration, seconds, cells)
