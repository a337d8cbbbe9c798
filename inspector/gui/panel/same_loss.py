"""The loss of a watched training that is both found where backward begins and logged by the loop: one curve.

Where a loop calls `log(loss=…)`, that number is the loss of the recorded iterations, and logged at all of them. Both
tables have it; as long as they agree the longer one is shown, as "loss". Where they do not (a mean over processes
beside this process's own, a sum of accumulated passes beside the last one's), the logged one is a second curve that has
points only where it differs, or where the other has none.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from inspector.capture import Capture, Curve, points_of

FOUND, LOGGED = "training:loss", "training:logged[loss]"
OTHER_NAME = "loss (logged)"
EQUAL = 1e-6
"""Relative difference up to which two numbers are one: a loop may log a number in single precision."""
LONGER = 1.2
"""How many times as many points the logged one has where it is shown: it is not exchanged for one point more."""
Bools = npt.NDArray[np.bool_]


class SameLoss:
    """Of one capture; looks at numbers again only where one of the curves has grown."""

    def __init__(self) -> None:
        self._sizes: tuple[int, int] = (-1, -1)
        self._as_logged = False
        self.apart: Bools | None = None
        """(n,) at which rows of the logged curve it is one of its own; None where there is one curve."""

    def settled(self, capture: Capture, curves: list[Curve]) -> list[Curve]:
        """The curves with one loss, or with two that are told apart. Raises CaptureError."""
        by_key = {curve.key: curve for curve in curves}
        found, logged = by_key.get(FOUND), by_key.get(LOGGED)
        if found is None or logged is None:
            self.apart = None
            return curves
        sizes = (capture.extent(found.channel.name)[0], capture.extent(logged.channel.name)[0])
        if sizes != self._sizes:
            self._sizes = sizes
            self._compare(capture, found, logged)
        if self.apart is not None:
            other = replace(logged, name=OTHER_NAME)
            return [other if curve is logged else curve for curve in curves]
        shown = replace(logged, key=FOUND, name=found.name, group=found.group) if self._as_logged else found
        return [shown if curve is found else curve for curve in curves if curve is not logged]

    def _compare(self, capture: Capture, found: Curve, logged: Curve) -> None:
        one, other = points_of(capture, found), points_of(capture, logged)
        at = np.flatnonzero(one.known & np.isfinite(one.x))
        order = at[np.argsort(one.x[at], kind="stable")]
        x = one.x[order]
        place = np.clip(np.searchsorted(x, other.x), 0, max(0, len(x) - 1))
        shared = (x[place] == other.x) if len(x) else np.zeros(len(other.x), np.bool_)
        values = one.y[order][place] if len(x) else np.full(len(other.x), np.nan)
        with np.errstate(invalid="ignore"):
            equal = np.isclose(values, other.y, rtol=EQUAL, atol=0.0, equal_nan=True)
        differs = shared & ~equal & other.known
        self.apart = (other.known & ~(shared & equal)) if differs.any() else None
        self._as_logged = int(other.known.sum()) > LONGER * len(at)
