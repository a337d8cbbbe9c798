"""A cure is tried for a finding: copies of the model are trained by the worker, and the panel Cures shows what came."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.capture import Capture
from inspector.gui.state.needed import needed_for
from inspector.gui.window.training_trials import show_cure
from inspector.records import Finding

if TYPE_CHECKING:
    from inspector.gui.window.asking import Asking

REQUEST = "trial/cure@cure={}"
TRAINING = "training"
"""In what the beginning of a capture says, where it is of a training that was watched."""
NO_RUN = "Open a model and run it: the cure is tried on that run."


def try_cure(window: Asking, finding: Finding, cure: str) -> None:
    """Have copies of the model trained as it is and cured, and show the panel of the losses.

    The result goes into the capture that is shown. It is asked for this once: later runs try nothing by themselves.
    Where the capture was made by a model that is not open, what has to be done first is said.
    """
    shown = window.session.capture
    if isinstance(shown, Capture) and TRAINING in shown.start.meta:
        window.trials.begin(shown, finding, cure)
        return
    needed = needed_for(window.session)
    if needed.why or not window.session.can_run_again:
        window.fail(f"This cannot be tried on the capture that is shown. {needed.why or NO_RUN}")
        return
    show_cure(window, finding, cure)
    window.session.analyse((REQUEST.format(cure),))
    window.show_state()
