"""Which keys a query may not attend to, from the channels beside a map of attention."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture.view import View

Array = npt.NDArray[Any]


def masked_keys(capture: View, name: str, frame: int, head: int, keys: int) -> Array | None:
    """(query, key) True where a key is masked for a head of the map `name`; None where nothing is known of masks."""
    mask, span = f"{name}/mask", f"{name}/allowed"
    if mask in capture.channels and capture.revision(mask, frame):
        own = min(head, capture.extent(mask, frame)[0] - 1)
        return np.asarray(capture.block(mask, frame, (slice(own, own + 1),))[0], dtype=bool)
    if span not in capture.channels or not capture.revision(span, frame):
        return None
    first, last = capture.array(span, frame).astype(np.int64)
    at = np.arange(keys)
    masked: Array = (at < first[:, None]) | (at > last[:, None])
    return masked


def marked(weights: Array, masked: Array | None) -> Array:
    """Weights (query, key) in single precision with −∞ at masked keys; NaN of rows without a key stays."""
    shown = weights.astype(np.float32)
    if masked is not None and masked.shape == shown.shape:
        shown[masked & ~np.isnan(shown)] = -np.inf
    return shown
