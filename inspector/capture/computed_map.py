"""A map of attention computed from the queries and keys that a run kept, where the map itself was too large to write.

A = softmax over the allowed keys of q·k + bias, where q is a query times the scale as the model used it (positions
rotated into queries and keys are in them). Beside the map NAME stand `NAME/queries` (head, query, component),
`NAME/keys` (group, key, component), where several heads may share a group, `NAME/allowed` and `NAME/mask` (which keys a
query may attend to), and where scores have one, `NAME/bias` (mask, query, key), whose axes may have one position for
all, or `NAME/bias_by_distance` (mask, distance), whose position n is that of key − query = n − (queries − 1).

Some rows of the map are written: those whose product with the values was compared with what the call returned. What is
computed is shown only where these rows come out as they were.

Reference: Vaswani et al. (2017), Attention is all you need, equation 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture.damage import Box
from inspector.capture.view import View

Array = npt.NDArray[Any]
RECIPE = "queries and keys"
"""`Channel.computed` of such a map."""
PARTS = ("queries", "keys", "allowed", "mask", "bias", "bias_by_distance")
"""Channels beside the map that it is computed from, as far as they are there."""
PIECE = 1 << 19
"""Weights that are computed at once: what fits a core's cache."""
HALF = 2.0**-10
"""Twice the largest relative error of a weight that was rounded to half precision."""
TINY = 1.2e-7
"""Two steps between the smallest numbers in half precision."""
NO_FIT = "the queries and keys that were kept of {} do not fit each other"
DIFFERENT = "query {} of {} computed from kept queries and keys differs from what the run had by {:.3g}"


class ComputedMap:
    """The map `name` of one frame. Rows are read from the parts whenever they are wanted; nothing is kept here."""

    def __init__(self, view: View, name: str, frame: int) -> None:
        self.view, self.name, self.frame = view, name, frame

    def part(self, what: str) -> str:
        """The name of a part, or "" where it was not kept."""
        name = f"{self.name}/{what}"
        return name if name in self.view.channels and self.view.revision(name, self.frame) else ""

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """The names of all parts that there are."""
        return tuple(found for what in PARTS if (found := self.part(what)))

    @property
    def damaged(self) -> bool:
        """Whether some part is not known as a whole."""
        return any(self.view.holes(part, self.frame) for part in self.parts)

    @cached_property
    def shape(self) -> tuple[int, int, int]:
        """(heads, queries, keys); (0, 0, 0) where the parts do not fit each other."""
        if not (self.part("queries") and self.part("keys") and self.part("allowed")):
            return (0, 0, 0)
        extents = {what: self.view.extent(found, self.frame) for what in PARTS if (found := self.part(what))}
        (heads, queries, width), (groups, keys, other) = extents["queries"], extents["keys"]
        fit = [width == other, groups > 0 and heads % max(1, groups) == 0, extents["allowed"] == (2, queries)]
        for what in ("mask", "bias"):
            full = (heads, queries, keys)
            fit.append(all(n in (1, most) for n, most in zip(extents.get(what, full), full, strict=True)))
        by_distance = extents.get("bias_by_distance", (heads, queries + keys - 1))
        fit.append(by_distance[0] in (1, heads) and by_distance[1] == queries + keys - 1)
        return (heads, queries, keys) if all(fit) else (0, 0, 0)

    def problem(self, rows: Iterable[tuple[int, Array]]) -> str:
        """Why the map is not shown, "" where it is. `rows`: (query, (head, key) weights) that the run had."""
        heads, queries, keys = self.shape
        if not heads:
            return NO_FIT.format(self.name)
        for query, expected in rows:
            if query >= queries or expected.shape != (heads, keys):
                return NO_FIT.format(self.name)
            for head in range(heads):
                far = self._beyond(head, query, expected[head].astype(np.float64))
                if far > 0:
                    return DIFFERENT.format(query, self.name, far)
        return ""

    def _beyond(self, head: int, query: int, expected: Array) -> float:
        """How far a row is from what the run had, 0 within the error of rounding."""
        scores = self.scores(head, query, query + 1)[0]
        open_keys = np.flatnonzero(~np.isneginf(scores))  # of a row that is NaN, masked keys may be NaN or 0
        found, expected = softmax(scores[None])[0, open_keys].astype(np.float64), expected[open_keys]
        if np.isnan(expected).any() or np.isnan(found).any():
            return 0.0 if bool((np.isnan(expected) == np.isnan(found)).all()) else np.inf
        finite = np.abs(scores[np.isfinite(scores)])
        eps = float(np.finfo(scores.dtype).eps) * (16.0 + 4.0 * float(finite.max(initial=0.0)))
        error = np.abs(found - expected)
        return float(np.where(error > expected * (HALF + eps) + TINY, error, 0.0).max(initial=0.0))

    def block(self, box: Box, dtype: str) -> Array:
        """The weights of (head, query, key) positions."""
        (a0, a1), (q0, q1), (k0, k1) = box
        out: Array = np.empty((a1 - a0, q1 - q0, k1 - k0), dtype)
        step = max(1, PIECE // max(1, self.shape[2]))
        for head in range(a0, a1):
            for first in range(q0, q1, step):
                stop = min(q1, first + step)
                out[head - a0, first - q0 : stop - q0] = self._rows(head, first, stop)[:, k0:k1]
        return out

    def _rows(self, head: int, first: int, stop: int) -> Array:
        """(query, key) weights; nothing is computed of keys beyond the last one that a query may attend to."""
        scores = self.scores(head, first, stop)
        weights, missing = softmax(scores), self.shape[2] - scores.shape[1]
        if not missing:
            return weights
        without_key = np.isneginf(scores.max(axis=1, keepdims=True, initial=-np.inf))
        rest = np.where(without_key, np.nan, 0).astype(weights.dtype)
        return np.concatenate((weights, np.repeat(rest, missing, axis=1)), axis=1)

    def scores(self, head: int, first: int, stop: int) -> Array:
        """(query, key) q·k + bias of some queries, −∞ where a key is masked, up to the last key that is not."""
        low, high = np.ma.getdata(self._read("allowed", (0, 2), (first, stop))).astype(np.int64)
        end = min(self.shape[2], max(1, int(high.max(initial=-1)) + 1))
        queries = self._read("queries", (head, head + 1), (first, stop))[0]
        bias = self._bias(head, first, stop, end)
        with np.errstate(all="ignore"):  # a model that fails has infinities, which are shown
            scores: Array = queries @ self._keys(head, 0, end).T
            if bias is not None:
                scores += bias
        if self.part("mask"):
            masked = np.broadcast_to(self._of_mask("mask", head, first, stop)[:, :end] != 0, scores.shape)
        elif low.max(initial=0) <= 0 and high.min(initial=0) >= end - 1:
            return scores
        else:
            masked = (np.arange(end) < low[:, None]) | (np.arange(end) > high[:, None])
        np.copyto(scores, -np.inf, where=masked)
        return scores

    def products(self, head: int, query: int, key: int) -> Array:
        """(component,) of which q·k is the sum."""
        found: Array = (
            self._read("queries", (head, head + 1), (query, query + 1))[0, 0] * self._keys(head, key, key + 1)[0]
        )
        return found

    def bias_at(self, head: int, query: int, key: int) -> float:
        """What is added to q·k; 0 without a bias."""
        bias = self._bias(head, query, query + 1, key + 1)
        return 0.0 if bias is None else float(bias[0, -1])

    def _keys(self, head: int, first: int, stop: int) -> Array:
        groups = self.view.extent(self.part("keys"), self.frame)[0]
        group = head // (self.shape[0] // groups)
        found: Array = self._read("keys", (group, group + 1), (first, stop))[0]
        return found

    def _bias(self, head: int, first: int, stop: int, end: int) -> Array | None:
        """(query or 1, key or 1) up to the key `end`; None without one."""
        if self.part("bias"):
            return self._of_mask("bias", head, first, stop)[:, :end]
        return self._by_distance(head, first, stop, end) if self.part("bias_by_distance") else None

    def _of_mask(self, what: str, head: int, first: int, stop: int) -> Array:
        """(query or 1, key or 1) of a part whose axes may have one position for all."""
        heads, queries, _ = self.view.extent(self.part(what), self.frame)
        own = head if heads > 1 else 0
        found: Array = self._read(what, (own, own + 1), (first, stop) if queries > 1 else (0, 1))[0]
        return found

    def _by_distance(self, head: int, first: int, stop: int, end: int) -> Array:
        table = self._read("bias_by_distance")
        own = table[head if len(table) > 1 else 0]
        at = np.arange(end)[None, :] - np.arange(first, stop)[:, None] + self.shape[1] - 1
        found: Array = own[at]
        return found

    def _read(self, what: str, *cuts: tuple[int, int]) -> Array:
        return self.view.block(self.part(what), self.frame, tuple(slice(*cut) for cut in cuts))


def softmax(scores: Array) -> Array:
    """Along the keys; NaN for a row of which every key is masked (−∞)."""
    with np.errstate(all="ignore"):
        weights: Array = scores - scores.max(axis=-1, keepdims=True)
        np.exp(weights, out=weights)
        weights /= weights.sum(axis=-1, keepdims=True)
    return weights
