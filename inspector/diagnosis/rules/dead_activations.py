"""Modules whose output is zero nearly everywhere."""

from __future__ import annotations

from collections.abc import Iterable

from inspector.analysis.clipping import percent
from inspector.diagnosis.causes import ALIVE, DEAD, LAST, ZERO, dead_modules
from inspector.diagnosis.rule import COUNT, PART, RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.series import listed
from inspector.records import Finding


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
        Limit(
            "share",
            DEAD,
            "Nine tenths (neuroscope); others warn at half, which a ReLU after a norm has by design.",
            within=PART,
        ),
        Limit("last", LAST, "Recorded iterations whose median counts.", within=COUNT),
    )
    reference = "Lu et al. 2019, arXiv 1903.06733 (dying ReLU)"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one, the worst module first."""
        shares = dead_modules(run, run.limit("share"), int(run.limit("last")))
        names = list(shares)
        if names:
            yield Finding(
                rule="dead-activations", severity="warning", place=names[0], places=tuple(names),
                message=f"{percent(shares[names[0]])} of the outputs of {names[0]} are exactly 0"
                + (f"; also {listed(names[1:])}" if len(names) > 1 else ""),
                evidence=(ZERO,), sure="counted on the batches of the last recorded iterations",
                unless="the layer is meant to be sparse, or its input is mostly padding",
                remedy=ALIVE,
                code="nn.LeakyReLU(0.01)",
            )  # fmt: skip


RULES.register("dead-activations")(DeadActivations())
