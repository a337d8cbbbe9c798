"""Why a loss may stand still, as far as a training's own numbers show it: so that what a rule advises follows that."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inspector.analysis import gradient_cuts
from inspector.analysis.clipping import percent
from inspector.diagnosis.rule import Run
from inspector.diagnosis.series import listed, medians_of_weights, table_of

ZERO, RATIO, UPDATES = "modules:activation/zero", "parameters:update/ratio", "parameters:update/norm"
DEAD, LAST, NOTHING = 0.9, 20, 1e-6
"""As for dead activations: the share of zeros, and how many recorded iterations count. As for plateau: an update beside
its weight that is next to nothing."""
ALIVE = "A smaller learning rate or initialisation, a norm before it, a leaky ReLU or GELU."
LARGER = "Look for a learning rate that is too small, or 0, and take a step near the largest that works."


@dataclass(frozen=True, slots=True)
class Cause:
    """What is known: a clause for the end of a sentence, what to do, as a line of code too, and where it shows."""

    said: str
    remedy: str
    code: str
    evidence: tuple[str, ...]


def cause_of(run: Run, nothing: float = NOTHING) -> Cause | None:
    """The one that comes first in the order of how much it explains; None where the numbers show none of them.

    A step is next to nothing where no weight matrix changes by `nothing` of its size. Counter-example: one dead layer
    beside others that can learn the task without it.
    """
    return _tiny_steps(run, nothing) or _dead(run) or _cut(run)


def dead_modules(run: Run, share: float = DEAD, last: int = LAST) -> dict[str, float]:
    """The share of exact zeros in the output of each module that has more than `share`, the worst first: medians over
    the last recorded iterations."""
    table = table_of(run, ZERO)
    if table is None:
        return {}
    rows = table.values[-last:]
    columns = [n for n in range(rows.shape[1]) if np.isfinite(rows[:, n]).any()]
    shares = {table.names[n]: float(np.nanmedian(rows[:, n])) for n in columns}
    return {name: shares[name] for name in sorted(shares, key=lambda name: -shares[name]) if shares[name] > share}


def _tiny_steps(run: Run, nothing: float) -> Cause | None:
    table = table_of(run, RATIO)
    middles = [] if table is None else list(medians_of_weights(table).values())
    # the largest: where one layer makes large steps and the others are dead, the step is not too small
    if not middles or max(middles) >= nothing:
        return None
    said = f"a step changes no weight matrix by more than {max(middles):.2g} of its size, which is next to nothing"
    if not max(middles):
        moved = _moved(run)
        said = f"no step moves a weight matrix, only {listed(moved)}" if moved else "no step moves any parameter"
    return Cause(said, LARGER, "", (RATIO,))


def _moved(run: Run) -> list[str]:
    """Parameters that some recorded step changes, biases too."""
    table = table_of(run, UPDATES)
    if table is None:
        return []
    return [name for name, row in zip(table.names, table.values.T, strict=False) if (row > 0).any()]


def _dead(run: Run) -> Cause | None:
    dead = dead_modules(run)
    if not dead:
        return None
    worst, *others = dead
    also = f", and nearly all of {listed(others)}" if others else ""
    said = f"{percent(dead[worst])} of the outputs of {worst} are exactly 0{also}, and pass no gradient on"
    return Cause(said, f"{worst} comes first: {ALIVE}", "nn.LeakyReLU(0.01)", (ZERO,))


def _cut(run: Run) -> Cause | None:
    cut = next((one for one in gradient_cuts.cuts_of(run) if one.every), None)
    if cut is None:
        return None
    said = cut.said[:1].lower() + cut.said[1:]
    return Cause(said, gradient_cuts.REMEDY, gradient_cuts.CODE, ())
