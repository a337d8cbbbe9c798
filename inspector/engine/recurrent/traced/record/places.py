"""Where in the model an operation was recorded."""

from __future__ import annotations

from collections.abc import Mapping

from inspector.engine.recurrent.traced.record.op_table import Table

ROOT = "model"


def place_of(table: Table, n: int, names: Mapping[int, str]) -> tuple[str, str]:
    """(name, class) of the module whose code ran a call."""
    owner = table.op(n).owner
    name = names.get(id(owner))
    return (name or ROOT, type(owner).__name__) if name is not None else (ROOT, "scan")
