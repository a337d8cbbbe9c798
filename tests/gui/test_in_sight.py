"""In the dock of a window of 1280 × 800 pixels no main plot lies below the fold, and none is a sliver."""

from __future__ import annotations

from pathlib import Path

import pytest
from cases_gradients import BPTT, JACOBIANS, PATHS
from cases_latents import HIDDEN, VARIABLES
from cases_runs import CLIPPING, DECODING, DYNAMICS, SPECTRA, WEIGHTS
from cases_units import GATES, STATES
from panel_captures import shown
from PySide6.QtWidgets import QApplication
from reading import Case

LOW = (826, 287)
"""Of a panel in the lower row of such a window, beside its bars."""
SLIVER = 25.0
TREE = Case("decoding", tuple(one for one in DECODING.parts if not isinstance(one, tuple) or one[0].dims == ("node",)))
CASES = {
    "spectra": SPECTRA, "weights": WEIGHTS, "dynamics": DYNAMICS, "clipping": CLIPPING, "variables": VARIABLES,
    "states of a chain": HIDDEN, "bptt": BPTT, "paths": PATHS, "jacobians": JACOBIANS, "gates": GATES, "states": STATES,
    "tree": TREE,
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_every_plot_is_in_sight_in_a_low_dock(name: str, tmp_path: Path, qapp: QApplication) -> None:
    case = CASES[name]
    with shown(tmp_path, case.key, *case.parts, place=case.place) as (_stage, panel):
        panel.resize(*LOW)
        for _ in "ab":
            qapp.processEvents()
            panel.redraw()
        qapp.processEvents()
        plots = [plot for plot in panel.plots if plot.isVisible()]
        assert plots
        for plot in plots:
            assert plot.sceneBoundingRect().bottom() <= LOW[1] + 1, plot.titleLabel.lines
            assert min(plot.vb.width(), plot.vb.height()) >= SLIVER, plot.titleLabel.lines
        for first in plots:  # nothing is written or drawn over another plot
            inside = first.sceneBoundingRect().adjusted(1, 1, -1, -1)
            assert not any(inside.intersects(one.sceneBoundingRect()) for one in plots if one is not first)
