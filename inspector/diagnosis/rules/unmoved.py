"""A parameter that has a gradient and that the optimizer's step does not change: exact, no threshold."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from inspector.diagnosis.rule import COUNT, RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.series import Table, listed, rates_of, table_of, the_only
from inspector.records import Finding

Hits = npt.NDArray[np.bool_]
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
    limits = (Limit("iterations", 10, "A warm-up may begin with a learning rate of 0.", within=COUNT),)
    reference = "TrainCheck, arXiv 2506.14813: a step without effect"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one, for all such parameters."""
        norms, updates = table_of(run, NORMS), table_of(run, UPDATES)
        if norms is None or updates is None or run.too_few(len(updates.values), run.limit("iterations")):
            return
        lost = rounded_away(run)  # which updates-lost tells, with its cause
        still = (name for name in updates.names if self._still(name, norms, updates, run.limit("iterations")))
        names = [name for name in still if name not in lost]
        if names:
            yield Finding(
                rule="unmoved", severity="error", place=the_only(names), places=tuple(names),
                message=f"no recorded step changes {listed(names)}, though there is a gradient",
                evidence=(UPDATES, NORMS), sure="exact for the recorded iterations: the difference before and after",
                unless="the learning rate was meant to be 0 in all of them",
                remedy="Look for a learning rate of 0 in their group, or one so small that steps are rounded away, an "
                "optimizer that holds other tensors, a gradient that is too small for a step (inputs far too large, "
                "saturated units).",
                code="print([(group['lr'], len(group['params'])) for group in optimizer.param_groups])",
            )  # fmt: skip

    def _still(self, name: str, norms: Table, updates: Table, least: float) -> bool:
        if name not in norms.names:
            return False
        moved = updates.values[:, updates.names.index(name)]
        gradient = norms.values[:, norms.names.index(name)]
        known = np.isfinite(moved)
        return bool(known.sum() >= least and (moved[known] == 0).all() and (gradient > 0).sum() >= least)


def rounded_away(run: Run) -> set[str]:
    """Parameters in half precision of which rounding undid every entry of every recorded step, beside others of which
    it did not; none where a learning rate is 0, which would look the same."""
    table, rates = table_of(run, LOST), rates_of(run)
    if table is None or (rates is not None and (rates == 0).any()):
        return set()
    known = np.isfinite(table.values)
    some: Hits = np.any(known, axis=0)
    whole: Hits = some & np.all(~known | (table.values >= 1), axis=0)
    if whole[some].all():
        return set()
    return {name for name, hit in zip(table.names, whole.tolist(), strict=False) if hit}


RULES.register("unmoved")(Unmoved())
