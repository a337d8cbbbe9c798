"""The effect of a threshold on the gradient of one run, in two lines."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.analysis.clipping import percent
from inspector.gui.widgets.numbers import fixed

SPOKEN = 3
"""Parameters that are named in a title."""


def not_finite_in_words(threshold: float, broken: Sequence[int], names: Sequence[str]) -> tuple[str, str]:
    """Where the gradients of some parameters, by number, are NaN or infinite."""
    which = f": {', '.join(names[n] for n in broken[:SPOKEN])}" if broken and names else ""
    more = f" and {len(broken) - SPOKEN} more" if len(broken) > SPOKEN else ""
    return f"threshold {threshold:.3g}", f"the gradient of this run is not finite{which}{more}"


def effect_in_words(threshold: float, norm: float, share: float, cosine: float) -> tuple[str, str]:
    """Of a gradient with this norm, of which a cut by value cuts a share of entries and leaves a cosine."""
    factor = min(1.0, threshold / norm) if norm > 0 else 1.0
    by_norm = f"scaled by {factor:.3g}" if factor < 1 else "unchanged"
    by_value = f"{percent(share)} cut, cosine {fixed(cosine, 3)}" if share else "nothing cut"
    return f"threshold c = {threshold:.3g}, ‖g‖ = {norm:.3g}", f"by norm {by_norm}; by value {by_value}"
