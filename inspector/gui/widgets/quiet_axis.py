"""An axis that lays out its label only when it says something else."""

from __future__ import annotations

import pyqtgraph as pg


class QuietAxis(pg.AxisItem):  # type: ignore[misc]
    """pyqtgraph sets the label anew at each change of the range, and nine times while an axis is made."""

    _said = ""

    def _updateLabel(self) -> None:
        said = self.labelString() if self._said or self.labelText or self.labelUnits else ""
        if said == self._said:
            self._adjustSize()  # its font may be another one
        else:
            self._said = said
            super()._updateLabel()
