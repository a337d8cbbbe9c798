"""Which layer numbers are of, in panels that show one of several: their titles say so once, a read-out in each row."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtWidgets import QComboBox, QWidget

APART = "  "
"""Between the name of a number and its place."""


def with_place(panel: QWidget, rows: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Rows of a readout, each with the place that is shown where there is a choice and the row does not say it: the
    cursor and pins may be at places that this panel does not show."""
    where = getattr(panel, "where", None)
    if not isinstance(where, QComboBox) or where.count() < 2:
        return list(rows)
    place = where.currentText()
    return [(what if APART in what else f"{what}{APART}{place}", value) for what, value in rows]
