"""Gates that are nearly always open or shut."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.analysis.clipping import percent
from inspector.diagnosis.rule import COUNT, PART, RULES, Limit, Run, Scope, Trust, scalar
from inspector.diagnosis.units import UnitTable, unit_tables
from inspector.records import Finding


class SaturatedGates:
    """Reads the share of steps and units with a gate below 0.1 or above 0.9.

    A gate that keeps the state is judged by its other end alone: near 1, a forget gate does its work; and an output
    gate that is open nearly always passes the state and its gradient as they are. Counter-example: a memory that works
    has its input gate near 0 most of the time; so it is information.
    """

    id = "IN402"
    title = "Gates that are nearly always open or shut"
    summary = "A gate is below 0.1 or above 0.9 in nearly all steps and units, where it passes little gradient."
    trust: Trust = "descriptive"
    scope: Scope = "frame"
    reads = ("unit",)
    needs = ("saturation",)
    limits = (
        Limit(
            "share",
            0.9,
            "Nine tenths of all steps and units; gates of trained language models stay far below.",
            within=PART,
        ),
        Limit("steps", 20, "Steps that have to be seen.", "step", within=COUNT),
    )
    reference = "Karpathy, Johnson & Fei-Fei 2015, arXiv 1506.02078 (0.1 and 0.9)"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """One for each layer, with its gates."""
        found: dict[str, list[tuple[UnitTable, float, float]]] = {}
        for table in unit_tables(run, frame, "/saturation"):
            if not table.channel.signal.startswith("gate/") or run.too_few(table.steps, run.limit("steps")):
                continue
            left, right = (float(np.mean(table.rows[side])) for side in ("left", "right"))
            gate = table.channel.name.removesuffix("/saturation")
            keeps = 1.0 if gate.endswith(":gate/forget") else scalar(run, f"{gate}/keeps", frame)  # NaN: it does not
            if gate.endswith(":gate/output") and right >= run.limit("share"):
                continue
            if (left if keeps != 0 else 0) + (right if keeps != 1 else 0) >= run.limit("share"):
                found.setdefault(table.channel.place, []).append((table, left, right))
        yield from map(_finding, found.values())


def _finding(gates: list[tuple[UnitTable, float, float]]) -> Finding:
    first = gates[0][0]
    said = [
        f"{_name(table)} is below 0.1 in {percent(left)} and above 0.9 in {percent(right)} of all steps and "
        f"units; the mean of 4g(1 − g) is {float(np.mean(table.rows['graded'])):.2g}"
        for table, left, right in gates
    ]
    several = f"{len(gates)} gates are nearly always open or shut: {'. '.join(said)}"
    return Finding(
        rule="saturated-gates", severity="info", place=first.channel.place,
        message=several if len(gates) > 1 else f"the gate {said[0]}",
        evidence=tuple(table.channel.name for table, *_ in gates), sure=first.sure,
        unless="it is meant to be so: a memory does not write (input near 0) most of the time",
        remedy="A smaller initialisation or learning rate, or a layer norm before the gates.",
        code="rnn.reset_parameters()",
    )  # fmt: skip


def _name(table: UnitTable) -> str:
    return table.channel.signal.removeprefix("gate/").removesuffix("/saturation")


RULES.register("saturated-gates")(SaturatedGates())
