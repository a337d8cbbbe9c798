"""Recurrent units whose state is 0 at every step."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.analysis.clipping import percent
from inspector.diagnosis.rule import COUNT, PART, RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.units import numbers, unit_tables
from inspector.records import Finding


class DeadUnits:
    """Reads which units of each recurrent layer are exactly 0 throughout.

    Counter-example: a rectified unit that only other inputs turn on; so a share below all units is a warning only where
    the statistics are of several sequences.
    """

    id = "IN408"
    title = "Recurrent units that are always 0"
    summary = "Units of a recurrent layer are exactly 0 at every step of every sequence."
    trust: Trust = "descriptive"
    scope: Scope = "frame"
    reads = ("unit",)
    needs = ("units",)
    limits = (
        Limit(
            "share",
            0.5,
            "Half of the units (SageMaker Debugger, torchmortem); a ReLU has half at 0 at one step.",
            within=PART,
        ),
        Limit("steps", 20, "Steps that have to be seen.", "step", within=COUNT),
        Limit(
            "sequences",
            8,
            "Sequences from which a share is a warning; fewer show what a few inputs turn on.",
            within=COUNT,
        ),
    )
    reference = "Lu et al. 2019, arXiv 1903.06733 (dying ReLU); Sokar et al. 2023, arXiv 2302.12902 (dormant units)"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """One for each layer with a dead unit."""
        for table in unit_tables(run, frame, "/units"):
            if run.too_few(table.steps, run.limit("steps")):
                continue
            dead = np.flatnonzero(table.rows["dead"] > 0)
            share, many = len(dead) / table.units, table.sequences >= run.limit("sequences")
            if len(dead):
                ill = share == 1 or (many and share >= run.limit("share"))
                yield Finding(
                    rule="dead-units", severity="warning" if ill else "info", place=table.channel.place,
                    message=f"{len(dead)} of {table.units} units ({percent(share)}) are 0 at every step: "
                    f"{numbers(dead)}",
                    evidence=(table.channel.name,), sure=table.sure,
                    unless="other inputs turn these units on" if share < 1 else "the input was all zeros",
                    remedy="A smaller learning rate or initialisation, an activation that passes a gradient below 0, "
                    "or "
                    "fewer units. Look at many sequences (--data) before believing a share of one.",
                    code="nn.functional.leaky_relu(a, 0.01)",
                )  # fmt: skip


RULES.register("dead-units")(DeadUnits())
