"""A tanh recurrence whose state is nearly always at one of its bounds."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.analysis.clipping import percent
from inspector.diagnosis.rule import COUNT, PART, RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.units import unit_tables
from inspector.records import Finding


class SaturatedStates:
    """Reads the share of steps and units with |h| > 0.97 of a plain tanh recurrence.

    Counter-example: a network that has learned an automaton keeps its symbols at the bounds; so it is information.
    """

    id = "IN411"
    title = "States at the bounds of tanh"
    summary = "Most states of a plain recurrence are near −1 or 1, where tanh passes little gradient."
    trust: Trust = "descriptive"
    scope: Scope = "frame"
    reads = ("unit",)
    needs = ("saturation",)
    limits = (
        Limit("share", 0.5, "Half of all steps and units (torchmortem).", within=PART),
        Limit("steps", 20, "Steps that have to be seen.", "step", within=COUNT),
    )
    reference = "|tanh| > 0.97: Karpathy's makemore; the derivative there is below 0.06"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """One for each layer."""
        for table in unit_tables(run, frame, "/saturation"):
            state = run.channels.get(table.channel.name.removesuffix("/saturation"))
            gated = table.channel.signal.startswith(("gate/", "candidate")) or (
                state is not None and state.kind == "gate"
            )  # the candidate of a cell that is written by hand has the name of its variable
            if gated or run.too_few(table.steps, run.limit("steps")):
                continue
            share = float(np.mean(table.rows["left"] + table.rows["right"]))
            if share >= run.limit("share"):
                passes = float(np.mean(table.rows["graded"]))
                yield Finding(
                    rule="saturated-states", severity="info", place=table.channel.place,
                    message=f"{percent(share)} of the states are beyond ±0.97; the mean derivative of tanh is "
                    f"{passes:.2g}",
                    evidence=(table.channel.name,), sure=table.sure,
                    unless="the layer keeps symbols at its bounds on purpose, as one that has learned an automaton",
                    remedy="A smaller initialisation of the recurrent and input weights, inputs of unit scale, a norm "
                    "before tanh, or a smaller learning rate.",
                    code="rnn.reset_parameters()",
                )  # fmt: skip


RULES.register("saturated-states")(SaturatedStates())
