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

from inspector.capture import Capture, Curve, Points, points_of

FOUND = "training:loss"
LOGGED, OF_LIBRARY = "training:logged[loss]", "training:logged[loss (logged)]"
"""What the loop logs, and what a training library logs (inspector.integrations)."""
OTHER_NAME = "loss (logged)"
EQUAL = 1e-6
"""Relative difference up to which two numbers are one: a loop may log a number in single precision."""
DECIMALS = 4
"""Libraries log numbers that are rounded to so many decimals (transformers does)."""
LONGER = 1.2
"""How many times as many points the logged one has where it is shown: it is not exchanged for one point more."""
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


class SameLoss:
    """Of one capture; looks at numbers again only where one of the curves has grown."""

    def __init__(self) -> None:
        self._sizes: dict[str, tuple[int, int]] = {}
        self._as_logged = False
        self.apart: dict[str, Bools | None] = {}
        """By key of a logged curve, (n,) at which of its rows it is one of its own; None where it is not shown."""

    def settled(self, capture: Capture, curves: list[Curve]) -> list[Curve]:
        """The curves with one loss, or with others that are told apart. Raises CaptureError."""
        by_key = {curve.key: curve for curve in curves}
        found = by_key.get(FOUND)
        if found is None:
            self.apart.clear()
            return curves
        for key in (LOGGED, OF_LIBRARY):
            logged = by_key.get(key)
            if logged is None:
                continue
            sizes = capture.extent(found.channel.name)[0], capture.extent(logged.channel.name)[0]
            if sizes != self._sizes.get(key):
                self._sizes[key] = sizes
                self._compare(points_of(capture, found), points_of(capture, logged), key)
            by_key[key] = replace(logged, name=OTHER_NAME, role=found.role)
        if self._as_logged and LOGGED in by_key and self.apart[LOGGED] is None:
            by_key[FOUND] = replace(by_key[LOGGED], key=FOUND, name=found.name, group=found.group)
        return [by_key[curve.key] for curve in curves if self.apart.get(curve.key, True) is not None]

    def _compare(self, one: Points, other: Points, key: str) -> None:
        at = np.flatnonzero(one.known & np.isfinite(one.x))
        order = at[np.argsort(one.x[at], kind="stable")]
        x = one.x[order]
        place = np.clip(np.searchsorted(x, other.x), 0, max(0, len(x) - 1))
        shared = (x[place] == other.x) if len(x) else np.zeros(len(other.x), np.bool_)
        values = one.y[order][place] if len(x) else np.full(len(other.x), np.nan)
        equal = shared & _equal(values, other.y, rounded=key == OF_LIBRARY)
        differs = (shared & ~equal & other.known).any()
        self.apart[key] = (other.known & ~equal) if differs else None
        if key == LOGGED:
            self._as_logged = int(other.known.sum()) > LONGER * len(at)


def _equal(values: Floats, logged: Floats, *, rounded: bool) -> Bools:
    """Whether numbers are the same, also where the logged ones were rounded."""
    with np.errstate(invalid="ignore"):
        same: Bools = np.isclose(values, logged, rtol=EQUAL, atol=0.0, equal_nan=True)
        if rounded:
            same |= np.isclose(np.round(logged, DECIMALS), logged, rtol=1e-12, atol=0.0) & (
                np.abs(values - logged) <= 0.501 * 10.0**-DECIMALS
            )
    return same
