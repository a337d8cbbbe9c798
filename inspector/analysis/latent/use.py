"""Whether a hidden variable is used, in one sentence: posterior collapse, or how much of it tells what was read.

Source: Bowman et al. 2016, arXiv 1511.06349; Burda, Grosse & Salakhutdinov 2016, arXiv 1509.00519.
"""

from __future__ import annotations

import math

from inspector.analysis.verdict import Verdict

COLLAPSED = 0.1
"""Nats of KL a sequence below which nothing is told: z then picks one of e^0.1 = 1.1 sequences. Counter-example: a
model that needs to tell less than that, of sequences that are nearly all alike."""
ACTIVE = 0.01
"""Variance of its mean over sequences above which a unit is active (Burda et al. 2016)."""
NEARLY_ALL = 0.98
"""Share of the most that so many sequences can show; beyond it more would be told of more sequences."""
UNUSED = 0.01
"""Nats by which the loss of a step rises with a wrong z, below which the decoder makes nothing of z."""
LEARNED = 0.95
"""Of the loss of even probabilities: a model whose loss is higher has learned next to nothing, so z cannot be used yet.
Counter-example: texts whose symbols are nearly all equally frequent and tell nothing of each other."""


def use_verdict(
    kl: float,
    information: float,
    most: float,
    active: float,
    units: int,
    rise: float,
    limits: tuple[float, float] = (COLLAPSED, UNUSED),
) -> Verdict:
    """What z tells: KL and mutual information in nats a sequence, active units, rise of a step's loss with wrong z.

    `limits`: of KL and rise. A number that is not known is NaN.
    """
    told = f"KL {kl:.3g} nats a sequence, mutual information {information:.3g} of at most {most:.3g}"
    told += f", {active:.0f} of {units} units active"
    numbers = {"kl": kl, "information": information, "active": active, "rise": rise}
    if math.isnan(kl):
        return Verdict("unknown", "how much z tells is not known", numbers)
    if kl < limits[0]:
        return Verdict("collapsed", f"posterior collapse: q(z | x) is the prior, whatever x is. {told}", numbers)
    if information < limits[0] < most and not rise >= limits[1]:  # false where one of them is not known
        said = "z tells nothing of x: q(z | x) is not the prior, but much the same whatever x is"
        return Verdict("idle", f"{said}. {told}", numbers)
    if math.isfinite(rise) and rise < limits[1]:
        said = f"z tells x, but nothing is made of it: a wrong z costs {rise:.2g} nats a step"
        return Verdict("unused", f"{said}. {told}", numbers)
    costs = f"; a wrong z costs {rise:.3g} nats a step" if math.isfinite(rise) else ""
    more = "; more sequences may show more" if information > NEARLY_ALL * most else ""
    return Verdict("used", f"z is used: {told}{more}{costs}", numbers)
