"""Recurrent units that repeat another one."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.diagnosis.rule import COUNT, PART, RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.units import numbers, unit_tables
from inspector.records import OWN_ITERATIONS, Finding


class DuplicateUnits:
    """Reads for each unit the smallest other one with which its correlation is above 0.999 or below −0.999.

    Counter-example: states of few distinct values (an automaton that was learned) correlate by chance in short
    sequences; so only a layer in which every unit that moves repeats one is a warning.
    """

    id = "IN410"
    title = "Recurrent units that repeat another"
    summary = "Units of a recurrent layer have the same values as another one, up to sign and scale."
    trust: Trust = "descriptive"
    scope: Scope = "frame"
    reads = ("unit",)
    needs = ("units",)
    limits = (
        Limit("steps", 20, "Steps that have to be seen; few points correlate by chance.", "step", within=COUNT),
        Limit(
            "units",
            4,
            "Units from which a layer of one moving unit is a warning; two are often plus and minus.",
            within=COUNT,
        ),
        Limit("share", 0.1, "Share of repeating units that is told at all.", within=PART),
    )
    reference = "units that begin alike stay alike: Goodfellow, Bengio & Courville 2016, section 8.4"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """One for each layer in which a tenth of the units repeat another."""
        for table in unit_tables(run, frame, "/units"):
            if run.too_few(table.steps, run.limit("steps")):
                continue
            copies = np.flatnonzero(table.rows["duplicate_of"] >= 0)
            moving = table.units - int(((table.rows["dead"] > 0) | (table.rows["constant"] > 0)).sum())
            state = table.channel.name.removesuffix("/units")
            own = _reads_nothing(run, state)
            if _counts_steps(run, state, frame):
                continue
            if len(copies) >= max(1.0, run.limit("share") * table.units):
                alike = not own and moving >= run.limit("units") and len(copies) == moving - 1
                alike = alike and 2 * moving >= table.units  # where most stand still, that is the story (IN408, IN409)
                yield Finding(
                    rule="duplicate-units", severity="warning" if alike else "info", place=table.channel.place,
                    message=f"{len(copies)} of {moving} units that change repeat another: {numbers(copies)}"
                    + ("; the layer works as a single unit" if alike else ""),
                    evidence=(table.channel.name,), sure=table.sure,
                    unless="the sequences are too alike to tell these units apart, or the task needs no more of them",
                    remedy="Begin with weights that are drawn at random, one row unlike the other, or use fewer units.",
                    code="nn.init.orthogonal_(rnn.weight_hh_l0)",
                )  # fmt: skip


def _reads_nothing(run: Run, state: str) -> bool:
    """Whether a recurrence runs by itself, along an axis of its own iterations: the covariance of a Kalman filter is
    symmetric and goes to its limit as one, and no layer works there."""
    return state in run.channels and run.channels[state].step_domain.startswith(OWN_ITERATIONS)


ROWS, STRAIGHT = 512, 1e-4
"""Steps that are looked at, and how far from a straight line, beside the largest number, is rounding of float32."""


def _counts_steps(run: Run, state: str, frame: int) -> bool:
    """Whether every unit is a straight line along the steps: a table of exponents n · Δ is a sum that grows by the same
    at each step, and is recorded as a recurrence, but no layer works there. Counter-example: units that all integrate
    one constant input."""
    if state not in run.channels or not run.revision(state, frame):
        return False
    steps, units = run.extent(state, frame)[:2]
    if steps < 3:
        return False
    values = run.block(state, frame, (slice(0, min(int(steps), ROWS)), slice(0, int(units))))
    rows = np.ma.filled(np.ma.asarray(values, np.float64), np.nan)
    largest = np.abs(rows).max(initial=0.0)
    line = rows[0] + np.linspace(0.0, 1.0, len(rows))[:, None] * (rows[-1] - rows[0])
    return bool(largest > 0 and np.abs(rows - line).max() <= STRAIGHT * largest)


RULES.register("duplicate-units")(DuplicateUnits())
