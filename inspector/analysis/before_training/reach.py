"""How far back the data depend on inputs beside how far the gradient reaches before training, in a sentence."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from inspector.analysis import gradient_cuts
from inspector.analysis.before_training.verdicts import Numbers, Readings, Verdict, share
from inspector.records import counted

SHARE = 0.05
"""An input counts where it tells at least this part of what the newest one leaves unknown of the target: the share
from which influence counts too."""
FEWEST_SEQUENCES = 8
"""Of fewer, what repeats in one of them by chance (a text that is given twice) cannot be told from what is needed."""
STANDS_OUT = 2.0
"""A lag out of reach is a fault where its input tells more than so many times what any within reach does. Else nearer
inputs may tell the same: in a text, in sequences with a topic, or where one symbol stays for long, all lags tell
something, and the newest ones suffice."""


def needed_lags(needed: Numbers, least: float = SHARE) -> npt.NDArray[np.int64]:
    """The lags, rising, whose input tells something of the target beyond chance, of (statistic, lag)."""
    return np.flatnonzero((needed[0] >= least) & (needed[2] > 0))


def furthest_beyond(
    needed: Numbers, reached: float, least: float = SHARE, times: float = STANDS_OUT
) -> tuple[int, float, bool] | None:
    """(the lag beyond `reached` whose input tells most, the most that a nearer input tells, whether the former stands
    out, so that nearer ones do not tell the same); None where no such lag is needed."""
    lags = needed_lags(needed, least)
    far = lags[lags > reached]
    if not len(far):
        return None
    top = int(far[needed[0][far].argmax()])
    near = float(needed[0][1 : int(reached) + 1].max(initial=0.0))
    return top, near, bool(needed[0][top] - 2 * needed[1][top] > times * near)


def reach_verdict(read: Readings) -> Iterator[Verdict]:
    """At most one sentence, of the channels of `trial/reach`."""
    needed, gradient = read.array("reach"), read.array("reach/gradient")
    if needed is None or gradient is None:
        yield from read.refused("reach")
        return
    name = read.channel("reach")
    least, fewest = read.limit("share", SHARE), read.limit("sequences", FEWEST_SEQUENCES)
    lags = needed_lags(needed, least)
    reached = read.scalar("reach/gradient_most")
    told = _reached(read)
    data = read.run.channel(name, read.frame).method
    if not len(lags):
        unknown = f"No single input tells at least {share(least)} of what is unknown of a target, beyond chance"
        said = f"{unknown} ({data}); {told}"
        yield Verdict("reach", "holds", f"{said}.", math.nan, name)
        return
    beyond = furthest_beyond(needed, reached, least, read.limit("times", STANDS_OUT))
    top = int(lags[-1]) if beyond is None else beyond[0]
    said = f"{depends(needed, top)} ({data}); {told}"
    if not math.isfinite(reached):
        yield Verdict("reach", "not tested", f"{said}.", float(top), name)
    elif beyond is None:
        yield Verdict("reach", "holds", f"{said}.", float(top), name)
    else:
        _, near, alone = beyond
        few = not read.scalar("reach/sequences") >= fewest
        trained = read.scalar("reach/trained") > 0
        more = (
            f" Nearer inputs tell up to {share(near)}, and may tell the same." if not alone else
            " Weights were loaded, so this is no reach before training." if trained else
            f" Fewer than {fewest:g} sequences do not show that it is needed: give more as `data`." if few else
            " A training learns this slowly or not at all."
        )  # fmt: skip
        fault = alone and not trained and not few
        cut = next(iter(gradient_cuts.cuts_of(read.run, read.frame)), None)
        more, remedy = (f" {cut.said}.", gradient_cuts.REMEDY) if cut is not None else (more, "")
        yield Verdict("reach", "fault" if fault else "fact", f"{said}.{more}", float(top), name, remedy=remedy)


def depends(needed: Numbers, lag: int) -> str:
    """What the input so many steps back tells of the target, as a sentence without its end."""
    told = f"{share(float(needed[0][lag]))} ± {share(float(needed[1][lag]))}"
    if lag == 0:
        return (
            f"The newest input tells {told} of what is unknown of the target; of those before it none by itself tells "
            f"{share(SHARE)} of what that leaves unknown, beyond chance"
        )
    return (
        f"The data depend on inputs {counted(lag, 'step')} back: one tells {told} of what the newest one leaves "
        "unknown of the target"
    )


def _reached(read: Readings) -> str:
    least, middle, most = (read.scalar(f"reach/gradient{one}") for one in ("_least", "", "_most"))
    if not math.isfinite(middle):
        return "the gradient reaches no input"
    span = f" ({least:.0f} to {most:.0f} by sequence)" if most > least else ""
    return f"the gradient of this model reaches {counted(round(middle), 'step')} back{span}"
