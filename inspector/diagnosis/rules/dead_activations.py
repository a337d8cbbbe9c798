"""Modules whose output is zero nearly everywhere."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.analysis.clipping import percent
from inspector.diagnosis.rule import RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.series import listed, table_of
from inspector.records import Finding

ZERO = "modules:activation/zero"


class DeadActivations:
    """Reads the share of exact zeros in the output of each module, over the last recorded iterations.

    Counter-example: dropout of nine tenths, an embedding of padding, a sparse layer; all are meant.
    """

    id = "IN401"
    title = "Outputs that are zero nearly everywhere"
    summary = "Most outputs of a module are exactly 0, and pass no gradient on."
    trust: Trust = "descriptive"
    scope: Scope = "training"
    reads = ("series",)
    needs = ()
    limits = (
        Limit("share", 0.9, "Nine tenths (neuroscope); others warn at half, which a ReLU after a norm has by design."),
        Limit("last", 20, "Recorded iterations whose median counts."),
    )
    reference = "Lu et al. 2019, arXiv 1903.06733 (dying ReLU)"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one, the worst module first."""
        table = table_of(run, ZERO)
        if table is None:
            return
        last = table.values[-int(run.limit("last")) :]
        columns = [n for n in range(last.shape[1]) if np.isfinite(last[:, n]).any()]
        shares = {table.names[n]: float(np.nanmedian(last[:, n])) for n in columns}
        names = sorted((name for name in shares if shares[name] > run.limit("share")), key=lambda name: -shares[name])
        if names:
            yield Finding(
                rule="dead-activations", severity="warning", place=names[0],
                message=f"{percent(shares[names[0]])} of the outputs of {names[0]} are exactly 0"
                + (f"; also {listed(names[1:])}" if len(names) > 1 else ""),
                evidence=(ZERO,), sure="counted on the batches of the last recorded iterations",
                unless="the layer is meant to be sparse, or its input is mostly padding",
                remedy="A smaller learning rate or initialisation, a norm before it, a leaky ReLU or GELU.",
                code="nn.LeakyReLU(0.01)",
            )  # fmt: skip


RULES.register("dead-activations")(DeadActivations())
