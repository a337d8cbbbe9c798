"""Why a loss may stand still, as far as a training's own numbers show it: so that what a rule advises follows that."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inspector.analysis import gradient_cuts
from inspector.analysis.clipping import percent
from inspector.diagnosis.rule import Run
from inspector.diagnosis.series import (
    GRADIENT_NORM,
    Table,
    listed,
    medians_of_weights,
    norms_beside_clipping,
    rates_of,
    table_of,
)

ZERO, NORMS = "modules:activation/zero", "parameters:gradient/norm"
RATIO, UPDATES = "parameters:update/ratio", "parameters:update/norm"
DEAD, LAST, NOTHING = 0.9, 20, 1e-6
"""As for dead activations: the share of zeros, and how many recorded iterations count. As for plateau: an update beside
its weight that is next to nothing."""
WAY = 0.01
"""The way of all steps, beside the weight, within which hardly anything can be learned; a judgement. Counter-example: a
very wide net, whose single weights hardly have to move. So it is asked only of a loss that stands still."""
CLIPPED = 0.01
"""The gradient is scaled down to less than a hundredth, nine times in ten: clipping is meant for the exception."""
FADES, MATRICES = 1e-4, 4
"""Less of the largest gradient in most of the weights, and of how many at least: AUTOTRAINER (ICSE 2021) takes a ratio
of a thousandth between the first and the last layer, with less than 1e-4 in the first, for one that vanishes."""
GATES, KEEP, SHUT = "modules:gate/saturated", ("forget low", "update low"), 0.9
"""Gates below 0.1, by module, of those that keep the state in torch's LSTM and GRU; as for saturated gates."""
OPEN = (
    "Let these gates begin open: a bias of ln T for T steps that the state has to keep, 1 for few; and see whether one "
    "batch can be learned then."
)
ADAM = "parameters:adam/rms"
FELL = 1e-3
"""A learning rate that has fallen to less than a thousandth has ended the training."""
RATES = "training:optimizer"
ALIVE = "A smaller learning rate or initialisation, a norm before it, a leaky ReLU or GELU."
BEFORE = (
    "No gradient reaches a weight matrix: look for a detach(), a torch.no_grad(), .data, or an output that the loss "
    "does not read."
)
LARGER = "Look for a learning rate that is too small, or 0, and take a step near the largest that works."
SLOWER = "A schedule that falls more slowly: look whether it is stepped in each iteration where epochs were meant."
SKIPS = (
    "Skip connections around the layers, normalisation before them, and weights that begin at a size that keeps "
    "that of what they are given."
)
UNCLIPPED = (
    "Set the threshold of clipping near the 90th percentile of the norm: it sets the step now, and not the rate."
)


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
    early = _dead(run) or _tiny_steps(run, nothing) or _cut(run) or _clipped(run)
    return early or _fades_with_depth(run)  # behind a dead layer steps are tiny too


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
    if table is None or not middles:
        return None
    # the largest: where one layer makes large steps and the others are dead, the step is not too small
    if max(middles) >= nothing:
        return _short_way(run, table)
    said = f"a step changes no weight matrix by more than {max(middles):.2g} of its size, which is next to nothing"
    if not max(middles):
        return _still(run, table)
    return Cause(said, LARGER if _has_gradient(run) else BEFORE, "", (RATIO,))


def _still(run: Run, table: Table) -> Cause:
    """No step, or none of most of the training, moves a weight matrix."""
    matrices = [n for n, name in enumerate(table.names) if name in medians_of_weights(table)]
    rows = np.flatnonzero((table.values[:, matrices] > 0).any(axis=1))
    if not len(rows):
        moved = _moved(run)
        said = f"no step moves a weight matrix, only {listed(moved)}" if moved else "no step moves any parameter"
        return Cause(said, LARGER if _has_gradient(run) else BEFORE, "", (RATIO,))
    last = int(rows[-1])
    said = f"after iteration {table.iterations[last]:g} no step moves a weight matrix"
    rates = rates_of(run)
    fell = rates is not None and last + 1 < len(rates) and np.nanmax(rates[-1]) < FELL * np.nanmax(rates)
    if rates is None or not fell:
        return Cause(said, LARGER if _has_gradient(run) else BEFORE, "", (RATIO,))
    said += f", by when the learning rate has fallen from {np.nanmax(rates):.2g} to {np.nanmax(rates[last + 1]):.2g}"
    return Cause(said, SLOWER, "", (RATIO, RATES))


def _short_way(run: Run, table: Table) -> Cause | None:
    """All steps together lead next to nowhere: the sum of their lengths, in weights."""
    steps = int(table.iterations[-1] - table.iterations[0]) + 1
    ways = {
        name: steps * float(np.nanmean(table.values[:, table.names.index(name)])) for name in medians_of_weights(table)
    }
    furthest = max(ways.values())
    if len(table.values) < LAST or not furthest < WAY:
        return None
    said = f"all {steps:,} steps together change no weight matrix by more than {percent(furthest)} of its size"
    return Cause(said, LARGER, "", (RATIO,))


def _clipped(run: Run) -> Cause | None:
    """Clipping sets the step, of an optimizer whose step follows the size of the gradient (Adam's does not)."""
    norms = norms_beside_clipping(run)
    if norms is None or table_of(run, ADAM) is not None:
        return None
    before, after = norms[:, 0], norms[:, 1]
    known = np.isfinite(before) & np.isfinite(after) & (before > 0)
    if known.sum() < LAST or not np.quantile(after[known] / before[known], 0.9) < CLIPPED:
        return None
    middle = float(np.median(after[known] / before[known]))
    said = f"clipping scales the gradient by {middle:.2g} in the middle, and each step with it"
    return Cause(said, UNCLIPPED, "", (GRADIENT_NORM,))


def _fades_with_depth(run: Run) -> Cause | None:
    """Most weight matrices get next to nothing of the gradient that another one gets."""
    table = table_of(run, NORMS)
    middles = {} if table is None else {name: one for name, one in medians_of_weights(table).items() if one > 0}
    if len(middles) < MATRICES:
        return None
    largest, smallest = max(middles, key=lambda name: middles[name]), min(middles, key=lambda name: middles[name])
    if not float(np.median(list(middles.values()))) < FADES * middles[largest]:
        return None
    said = (
        f"the gradient fades within the net: of {len(middles)} weights most get less than {FADES:g} of the norm that "
        f"{largest} gets ({middles[largest]:.2g}), {smallest} {middles[smallest]:.2g}"
    )
    return Cause(said, SKIPS, "x = x + layer(norm(x))", (NORMS,))


def forgets_at_once(run: Run) -> Cause | None:
    """Gates that keep the state are shut nearly always, so that it keeps nothing for longer than a few steps.

    No other cause, where it is asked whether a state forgets. Counter-example: a task that needs no memory.
    """
    table = table_of(run, GATES)
    keeping = [] if table is None else [n for n, name in enumerate(table.names) if name.endswith(KEEP)]
    if table is None or not keeping:
        return None
    rows = table.values[-LAST:, keeping]
    known = [n for n in range(len(keeping)) if np.isfinite(rows[:, n]).any()]
    shares = {table.names[keeping[n]].rpartition(" ")[0]: float(np.nanmedian(rows[:, n])) for n in known}
    shut = {name: one for name, one in shares.items() if one >= SHUT}
    if not shut:
        return None
    worst = max(shut, key=lambda name: shut[name])
    said = f"of the gates {listed(list(shut))}, which keep the state, {percent(shut[worst])} are below 0.1"
    return Cause(said, OPEN, "bias[hidden:2 * hidden] = math.log(steps)", (GATES,))


def _has_gradient(run: Run) -> bool:
    """Whether a weight matrix has a gradient in some recorded iteration; True where gradients were not recorded."""
    table = table_of(run, NORMS)
    return table is None or any(one > 0 for one in medians_of_weights(table).values())


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
    return Cause(said, f"See to {worst} first. {ALIVE}", "nn.LeakyReLU(0.01)", (ZERO,))


def _cut(run: Run) -> Cause | None:
    cut = next((one for one in gradient_cuts.cuts_of(run) if one.every), None)
    if cut is None:
        return None
    said = cut.said[:1].lower() + cut.said[1:]
    return Cause(said, gradient_cuts.REMEDY, gradient_cuts.CODE, ())
