"""Summaries of the gates of a unit or a layer, in the terms of lectures; every number in them is a measured share."""

from __future__ import annotations

import math

from inspector.records import counted

NEAR_ONE, NEAR_ZERO = 0.9, 0.1
SAID = 0.5
"""Share of steps from which a gate is called near 1, or near 0."""
ROLES = {
    "reset": "reset", "r": "reset", "update": "update", "z": "update", "carry": "update", "t": "update",
    "forget": "forget", "f": "forget", "input": "input", "i": "input", "output": "output", "o": "output",
}  # fmt: skip
LETTERS = {"reset": "r", "update": "z", "forget": "f", "input": "i", "output": "o"}
KEEPS, REPLACES = "the input is ignored (the state is copied)", "the state is replaced by the candidate"
MEANING = {
    "reset": ("it works as a plain RNN", "it forgets"),
    "forget": ("the cell keeps its state", "the cell is erased"),
    "input": ("the candidate is written", "nothing is written"),
    "output": ("the cell is shown to the rest", "the cell is hidden from the rest"),
}


def short(signal: str) -> str:
    """The bare name of a gate: "gate/forget" → "forget"."""
    return signal.rpartition("/")[2].lower()


def gate_sentence(signal: str, near_zero: float, near_one: float, keeps: float | None) -> str:
    """One sentence about a gate from its shares of steps below 0.1 and above 0.9.

    `keeps` is the value at which the gate keeps the state, where it is known: update gates are defined in both
    directions.
    """
    role = ROLES.get(short(signal), "")
    letter = LETTERS.get(short(signal), short(signal))
    if not math.isfinite(near_zero + near_one):
        return f"{letter}: NaN"
    high, low = MEANING.get(role, ("", ""))
    if keeps is not None and role != "forget":
        high, low = (KEEPS, REPLACES) if keeps else (REPLACES, KEEPS)
    for share, value, meaning in ((near_one, 1, high), (near_zero, 0, low)):
        if share >= SAID:
            return f"{letter} near {value} in {share:.0%} of steps".replace("%", " %") + (
                f": {meaning}" if meaning else ""
            )
    return f"{letter} is graded: near 1 in {near_one:.0%}, near 0 in {near_zero:.0%} of steps".replace("%", " %")


def memory_sentence(condition: str, longest: float, start: float, runs: float) -> str:
    """One sentence about the longest run over which the state is kept; `runs` counts those that are long enough.

    `condition` is true throughout the run, "f > 0.9 and i < 0.1"; "" leaves it out.
    """
    words = condition.replace(f"> {NEAR_ONE}", "near 1").replace(f"< {NEAR_ZERO}", "near 0")
    if longest < 1:
        return f"{words} at no step: no long-term memory".strip()
    where = f"{words} over {longest:.0f} step{'' if longest == 1 else 's'} from step {start:.0f}".strip()
    return f"{where}: {'long-term memory' if runs > 0 else 'too short for long-term memory'}"


def timescale_sentence(steps: float, length: int) -> str:
    """One sentence about a memory timescale τ beside the length of the sequence."""
    if math.isnan(steps):
        return "timescale: NaN"
    if math.isinf(steps) or steps > 10 * length:
        return f"never forgets within the sequence of {length:,} step{'' if length == 1 else 's'}"
    return f"memory timescale {counted(steps, 'step', '.3g')}; the sequence has {length:,}"
