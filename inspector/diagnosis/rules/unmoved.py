"""A parameter that has a gradient and that the optimizer's step does not change: exact, no threshold."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.diagnosis.rule import RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.series import Table, listed, table_of, the_only
from inspector.records import Finding

NORMS, UPDATES, LOST = "parameters:gradient/norm", "parameters:update/norm", "parameters:update/lost"


class Unmoved:
    """Reads gradients and the real difference that a step makes.

    Counter-example: a learning rate of 0 in a warm-up's first iterations, so all recorded iterations have to agree.
    """

    id = "IN112"
    title = "Parameters that the step does not move"
    summary = "A parameter has a gradient, and no recorded step of the optimizer changes it."
    trust: Trust = "exact"
    scope: Scope = "training"
    reads = ("series",)
    needs = ()
    limits = (Limit("iterations", 10, "A warm-up may begin with a learning rate of 0."),)
    reference = "TrainCheck, arXiv 2506.14813: a step without effect"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one, for all such parameters."""
        norms, updates = table_of(run, NORMS), table_of(run, UPDATES)
        if norms is None or updates is None or run.too_few(len(updates.values), run.limit("iterations")):
            return
        names = [name for name in updates.names if self._still(name, norms, updates, run.limit("iterations"))]
        if names:
            half = "" if LOST not in run.channels else " (or, in half precision, updates too small to be stored)"
            yield Finding(
                rule="unmoved", severity="error", place=the_only(names), places=tuple(names),
                message=f"no recorded step changes {listed(names)}, though there is a gradient",
                evidence=(UPDATES, NORMS), sure="exact for the recorded iterations: the difference before and after",
                unless="the learning rate was meant to be 0 in all of them",
                remedy="Look for a learning rate of 0 in their group, an optimizer that holds other tensors, a "
                f"gradient so small that steps are rounded away (inputs far too large, saturated units){half}.",
            )  # fmt: skip

    def _still(self, name: str, norms: Table, updates: Table, least: float) -> bool:
        if name not in norms.names:
            return False
        moved = updates.values[:, updates.names.index(name)]
        gradient = norms.values[:, norms.names.index(name)]
        known = np.isfinite(moved)
        return bool(known.sum() >= least and (moved[known] == 0).all() and (gradient > 0).sum() >= least)


RULES.register("unmoved")(Unmoved())
