"""Recurrent units whose state hardly changes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.analysis.clipping import percent
from inspector.diagnosis.rule import COUNT, RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.units import numbers, unit_tables
from inspector.records import Finding


class ConstantUnits:
    """Reads which units have a spread below a thousandth of the layer's root mean square.

    Counter-example: a bias that a trained layer makes of a unit, or a unit that only a rare symbol changes.
    """

    id = "IN409"
    title = "Recurrent units that do not change"
    summary = "Units of a recurrent layer have the same value at every step."
    trust: Trust = "descriptive"
    scope: Scope = "frame"
    reads = ("unit",)
    needs = ("units",)
    limits = (Limit("steps", 20, "Steps that have to be seen.", "step", within=COUNT),)
    reference = "Sokar et al. 2023, arXiv 2302.12902 (dormant units), by the spread in place of the mean"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """One for each layer with such units; a warning where all that are not 0 are."""
        for table in unit_tables(run, frame, "/units"):
            if run.too_few(table.steps, run.limit("steps")):
                continue
            still = np.flatnonzero(table.rows["constant"] > 0)
            if len(still):
                whole = len(still) + int((table.rows["dead"] > 0).sum()) == table.units
                share = percent(len(still) / table.units)
                yield Finding(
                    rule="constant-units", severity="warning" if whole else "info", place=table.channel.place,
                    message=f"{len(still)} of {table.units} units ({share}) keep one value at every step: "
                    f"{numbers(still)}"
                    + ("; the state of this layer tells nothing of its input" if whole else ""),
                    evidence=(table.channel.name,), sure=table.sure,
                    unless="the sequence itself hardly changes, or other inputs move these units",
                    remedy="Check the scale of the input (mean 0 and spread 1, not 280 to 310) and of the weights, "
                    "saturation, and gates that never open.",
                    code="x = (x - x.mean((0, 1))) / x.std((0, 1))",
                )  # fmt: skip


RULES.register("constant-units")(ConstantUnits())
