"""Every quantity in one run, as requests: those that train a model train it for a few steps.

What is asked is whether each runs, and what its channels say. With their own numbers of steps two of them take four
fifths of such a run; what they find has tests of its own.
"""

from __future__ import annotations

from inspector.engine.registries import QUANTITIES

SHORT = {"trial/cure": "@iterations=4@seeds=2", "trial/one_batch": "@iterations=4"}


def every_quantity() -> tuple[str, ...]:
    """The requests, in the order of the registry."""
    return tuple(f"{key}{SHORT.get(key, '')}" for key in QUANTITIES)
