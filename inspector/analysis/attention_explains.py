"""Does attention explain the predictions? Its rank correlation with the gradient for the same query and key."""

from __future__ import annotations

import math

from inspector.analysis.rank_correlation import Spread
from inspector.analysis.verdict import Verdict

STRONG, WEAK = 0.5, 0.2
"""ρ from which attention orders the keys much as the gradient does, and below which hardly at all: Cohen's large (0.5)
and small to medium effects (0.1 to 0.3). Jain & Wallace 2019 found τ of 0.2 to 0.5 for recurrent encoders and took
that for weak."""
FEWEST = 5
WRONG = "wrong where keys carry the same information, since a gradient tells what one key alone would change"


def explains(of: str, attention: Spread) -> Verdict:
    """Whether attention explains the predictions, from the rank correlation ρ between attention and the gradient.

    of: which attention ("the rollout"); attention: ρ over queries. "explains" where even the low end of the spread is
    strong, "not" where even the high end is weak, "partly" else, "unknown" with fewer than five queries.
    """
    numbers = {"rho": attention.mean, "low": attention.low, "high": attention.high, "queries": float(attention.rows)}
    if attention.rows < FEWEST or not math.isfinite(attention.low):
        few = f"only {attention.rows} queries have a rank correlation, at least {FEWEST} are needed"
        return Verdict("unknown", f"whether attention explains the predictions is not known: {few}", numbers)
    word = "explains" if attention.low >= STRONG else "not" if attention.high < WEAK else "partly"
    says = {
        "explains": "attention explains these predictions",
        "not": "attention does not explain these predictions",
        "partly": "attention explains these predictions in part",
    }[word]
    values = f"ρ = {attention.mean:.2f} ({attention.low:.2f} to {attention.high:.2f} over {attention.rows} queries)"
    return Verdict(word, f"{says}: rank correlation of {of} with the gradient {values}; {WRONG}", numbers)
