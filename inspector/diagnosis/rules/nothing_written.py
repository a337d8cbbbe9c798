"""A gated layer that writes nothing into its state over a whole sequence: a bound, not an estimate."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from inspector.diagnosis.rule import COUNT, PART, RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.units import Array, gate_rows
from inspector.records import Finding

WRITES = re.compile(r" and (\S+) < ")
KEEPS, FORGET, INPUT, MEMORY, DECAY = "/keeps", "gate/forget", "gate/input", "gate/memory", "gate/decay"
STATES = (("c",), ("h",), ("h.real", "h.imaginary"))
"""Names of what a gated layer carries: the first that there is."""


class NothingWritten:
    """Reads the gate that lets the candidate into the state: the input gate, or what the update gate does not keep.

    A candidate is between −1 and 1 and what is kept never grows, so the state of a unit that begins at 0 is at most the
    sum of that gate over the steps. What a scan h_t = a h_(t−1) + b writes does not depend on its decay a, so there, as
    wherever the state is known, it has to stay as it is too. Counter-example: a later layer that multiplies by very
    large weights.
    """

    id = "IN405"
    title = "A gate that lets nothing in"
    summary = (
        "The gate that writes into the state is so near its closed end at all steps that the state stays as it began."
    )
    trust: Trust = "descriptive"
    scope: Scope = "frame"
    reads = ("memory",)
    needs = ("gates", "memory")
    limits = (
        Limit(
            "written",
            0.05,
            "A twentieth of the range of tanh, over the whole sequence, in the unit that writes most.",
            within=PART,
        ),
        Limit("steps", 5, "Steps that have to be seen.", "step", within=COUNT),
    )
    reference = "c_t = f c_(t−1) + i g, |g| ≤ 1: Hochreiter & Schmidhuber 1997, Gers et al. 2000"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one for each gated layer."""
        for one in [one for one in run.scalars if one.frame == frame and one.name.endswith(KEEPS)]:
            place, _, signal = one.name.removesuffix(KEEPS).rpartition(":")
            gate, opens = _writer(run, place, signal, one.value)
            name = f"{place}:{gate}"
            if name not in run.channels or not gate:
                continue
            blocks = list(_sums(run, name, frame, opens))
            steps = sum(count for count, _ in blocks)
            if not blocks or run.too_few(steps, run.limit("steps")):
                continue
            most = float(np.sum([total for _, total in blocks], axis=0).max(initial=0.0))
            moves = _moves(run, place, frame, gate == DECAY)
            if most < run.limit("written") and not moves >= run.limit("written"):  # false, true for NaN
                what = (
                    f"the decay is 1 up to {most:.2g}, and what is added changes no unit by more than {moves:.2g}"
                    if gate == DECAY else f"{gate.removeprefix('gate/')} lets at most {most:.2g} into any unit"
                )  # fmt: skip
                yield Finding(
                    rule="nothing-written", severity="warning", place=place,
                    message=f"{what} over all {steps:,} steps, so the state stays as it began",
                    evidence=(name,),
                    sure="a bound that holds for the sequence that is shown, one alone, where the candidate is within "
                    "±1",
                    unless="the state began with what it has to keep, or a later layer multiplies it by large weights",
                    remedy="A bias of that gate near 0, smaller weights or a smaller learning rate.",
                    code="nn.init.zeros_(input_gate.bias)",
                )  # fmt: skip


def _writer(run: Run, place: str, signal: str, keeps: float) -> tuple[str, bool]:
    """The gate that writes and whether 1 writes; "" where it is not known which one does.

    A step that writes by a gate of its own says so in the title of its memory, "(f > 0.9 and i < 0.1)", by the name
    that the gate has in the code; without it, what the memory's gate does not keep is written.
    """
    memory = run.channels.get(f"{place}:{MEMORY}")
    own = WRITES.search(memory.title) if memory is not None else None
    for gate in (f"gate/{own[1]}", INPUT) if own is not None else (INPUT,) if signal == FORGET else ():
        if f"{place}:{gate}" in run.channels:
            return gate, True
    alone = memory is not None and own is None
    return (signal, keeps == 0) if alone and signal != FORGET else ("", True)


def _moves(run: Run, place: str, frame: int, from_zero: bool) -> float:
    """By how much the unit of the state that changes most does so over the steps, `from_zero` in the first one too; NaN
    where no state is known."""
    for parts in STATES:
        names = [f"{place}:{part}" for part in parts]
        if not all(name in run.channels and run.channels[name].dims == ("step", "unit") for name in names):
            continue
        blocks = [rows for name in names for rows in gate_rows(run, name, frame)]
        if blocks:
            first = float(max(np.abs(rows[0]).max() for rows in blocks)) if from_zero else 0.0
            return max(first, *(float(np.ptp(rows, axis=0).max()) for rows in blocks))
    return float("nan")


def _sums(run: Run, name: str, frame: int, opens: bool) -> Iterable[tuple[int, Array]]:
    for rows in gate_rows(run, name, frame):
        yield len(rows), (rows if opens else 1 - rows).sum(axis=0)


RULES.register("nothing-written")(NothingWritten())
