"""Updates that half precision rounds away: counted, with one threshold."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.analysis.clipping import percent
from inspector.diagnosis.rule import PART, RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.series import listed, table_of, the_only
from inspector.records import Finding

LOST = "parameters:update/lost"


class UpdatesLost:
    """Reads the share of entries with a gradient whose weight a step leaves as it is.

    Counter-example: late in training with a small learning rate a large share is lost, and the rest still moves.
    """

    id = "IN113"
    title = "Updates are lost to rounding"
    summary = "Weights in half precision stay as they are, since updates are smaller than half of their last bit."
    trust: Trust = "exact"
    scope: Scope = "training"
    reads = ("series",)
    needs = ()
    limits = (
        Limit(
            "share",
            0.5,
            "Half of the entries: AdamW in bfloat16 loses 4 % at 1e-3, 76 % at 1e-4, 97 % at 1e-5.",
            within=PART,
        ),
    )
    reference = "Zamirai et al. 2020, arXiv 2010.06192; pytorch/ao PR 1124"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one, for all parameters."""
        table = table_of(run, LOST)
        if table is None or not np.isfinite(table.values).any():
            return
        columns = [n for n in range(table.values.shape[1]) if np.isfinite(table.values[:, n]).any()]
        middle = {table.names[n]: float(np.nanmedian(table.values[:, n])) for n in columns}
        names = sorted((name for name in middle if middle[name] > run.limit("share")), key=lambda name: -middle[name])
        if names:
            yield Finding(
                rule="updates-lost", severity="warning", place=the_only(names), places=tuple(names),
                message=f"{len(names)} of {len(middle)} parameters lose most of their updates to rounding, "
                f"{names[0]} {percent(middle[names[0]])} of its entries (median over iterations): {listed(names)}",
                evidence=(LOST,), sure="exact: entries are compared before and after the step",
                unless="the training is meant to end here, at a learning rate near 0",
                remedy="Keep the parameters in float32 and compute in half precision by autocast, or round "
                "stochastically, or sum with compensation.",
                code="with torch.autocast('cuda', torch.bfloat16): ...  # and model.float()",
            )  # fmt: skip


RULES.register("updates-lost")(UpdatesLost())
