"""Which keys a query may not attend to, from the channels beside a map of attention."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture.view import View

Array = npt.NDArray[Any]
OLDEST = 2048
"""Queries up to which a capture without masks is searched for a causal one: it takes the whole map."""


def masked_rows(capture: View, name: str, frame: int, head: int, rows: tuple[int, int], keys: int) -> Array | None:
    """(query, key) True where a key is masked, for some rows of a head of the map `name`; None where nothing is known
    of masks."""
    mask, span = f"{name}/mask", f"{name}/allowed"
    if mask in capture.channels and capture.revision(mask, frame):
        own = min(head, capture.extent(mask, frame)[0] - 1)
        return np.asarray(capture.block(mask, frame, (slice(own, own + 1), slice(*rows)))[0], dtype=bool)
    if span not in capture.channels or not capture.revision(span, frame):
        return None
    first, last = capture.array(span, frame)[:, slice(*rows)].astype(np.int32)
    at = np.arange(keys, dtype=np.int32)
    masked: Array = (at < first[:, None]) | (at > last[:, None])
    return masked


def looks_causal(weights: Array) -> bool:
    """Whether all weights above the diagonal of a square map are 0, as a causal mask leaves them.

    Captures of older versions say nothing of masks. Counter-example: a head without a mask that never looks ahead.
    """
    rows, keys = weights.shape
    if rows != keys or not 1 < rows <= OLDEST:
        return False
    return not np.nan_to_num(weights[np.triu_indices(rows, 1)]).any()


def marked(weights: Array, masked: Array | None) -> Array:
    """Weights (query, key) in single precision with −∞ at masked keys; NaN of rows without a key stays."""
    shown = weights.astype(np.float32)
    if masked is not None and masked.shape == shown.shape:
        nan = np.isnan(shown)
        np.copyto(shown, -np.inf, where=masked & ~nan if nan.any() else masked)
    return shown
