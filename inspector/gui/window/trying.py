"""A cure is tried for a finding: copies of the model are trained by the worker, and the panel Cures shows what came."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.gui.state.needed import needed_for
from inspector.records import Finding

if TYPE_CHECKING:
    from inspector.gui.window.asking import Asking

REQUEST = "trial/cure@cure={}"
PANEL = "cures"
NO_RUN = "Open a model and run it: the cure is tried on that run."


def try_cure(window: Asking, finding: Finding, cure: str) -> None:
    """Have the worker train copies of the model as it is and cured, and show the panel of the losses.

    The result goes into the capture that is shown. It is asked for this once: later runs try nothing by themselves.
    Where the capture was made by a model that is not open, what has to be done first is said.
    """
    from inspector.gui.panel.signals import Lead

    needed = needed_for(window.session)
    if needed.why or not window.session.can_run_again:
        window.fail(f"This cannot be tried on the capture that is shown. {needed.why or NO_RUN}")
        return
    window.go_to(Lead(panel=PANEL, frame=finding.frame))
    panel = window.panels.get(PANEL)
    if panel is not None and hasattr(panel, "show_cure"):
        panel.show_cure(cure)
    window.session.analyse((REQUEST.format(cure),))
    window.show_state()
