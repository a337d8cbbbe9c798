"""Gates that have the same value at every step."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.diagnosis.rule import COUNT, PART, RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.units import gate_rows
from inspector.records import Channel, Finding

DECAY = "gate/decay"
"""Of linear recurrences, which read no input by design (S4D); selective ones that are frozen are not found."""


class FrozenGates:
    """Reads the range of each unit's gate over the steps of the sequence.

    Counter-example: a forget gate that is meant to stay at 1, or a sequence that does not change; so it is information.
    """

    id = "IN407"
    title = "Gates that do not change"
    summary = "A gate has the same value at every step in all units: it does not read its input."
    trust: Trust = "descriptive"
    scope: Scope = "frame"
    reads = ("gate",)
    needs = ("gates",)
    limits = (
        Limit("range", 0.001, "Largest less smallest value of the unit that changes most.", within=PART),
        Limit("steps", 20, "Steps that have to be seen.", "step", within=COUNT),
    )
    reference = "a gate is a function of input and state: Hochreiter & Schmidhuber 1997"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """One for each gate."""
        for channel in run.channels.values():
            gate = channel.kind == "gate" and channel.signal.startswith("gate/") and channel.signal != DECAY
            if gate and channel.dims == ("step", "unit") and run.revision(channel.name, frame):
                yield from self._of(channel, run, frame)

    def _of(self, channel: Channel, run: Run, frame: int) -> Iterable[Finding]:
        blocks = [(len(rows), rows.min(axis=0), rows.max(axis=0)) for rows in gate_rows(run, channel.name, frame)]
        steps = sum(count for count, _, _ in blocks)
        if not blocks or run.too_few(steps, run.limit("steps")):
            return
        low, high = (np.stack([block[side] for block in blocks]) for side in (1, 2))
        most = float((high.max(axis=0) - low.min(axis=0)).max(initial=0.0))
        if most < run.limit("range"):  # false for NaN
            name = channel.signal.removeprefix("gate/")
            yield Finding(
                rule="frozen-gates", severity="info", place=channel.place,
                message=f"the gate {name} changes by at most {most:.2g} over {steps:,} steps, in any unit",
                evidence=(channel.name,), sure="exact for the sequence that is shown, one alone",
                unless="the gate is fixed on purpose, or the sequence does not change",
                remedy="Look at its weights and bias (a bias of large size shuts or opens it for good), and at the "
                "scale of the input.",
                code="nn.init.zeros_(gate.bias)",
            )  # fmt: skip


RULES.register("frozen-gates")(FrozenGates())
