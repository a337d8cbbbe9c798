"""The rows of the map that is drawn: one head or several together, with or without the first key, masks applied."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from inspector.analysis.attention.masks import looks_causal, marked, masked_rows
from inspector.capture.view import View

Array = npt.NDArray[Any]
Together = Literal["mean", "maximum"]


@dataclass(frozen=True, slots=True)
class MapChoice:
    """What is drawn.

    Attributes:
        heads: (name of the channel, number of the head); several are drawn as one map.
        frame: the frame of the capture; -1 for the newest.
        together: how several heads become one map: their mean, in which a key that is masked in one of them counts as
            0, or their maximum. A key is masked where it is in all of them.
        without_first: whether the first key is left out and the rows divided by the sum of what is left.
        signed: whether the numbers have signs: differences of two runs, gradients.
        masks: the name of the map whose masks hold; "" for the map's own, and none of differences.
    """

    heads: tuple[tuple[str, int], ...]
    frame: int = -1
    together: Together = "mean"
    without_first: bool = False
    signed: bool = False
    masks: str = ""


class MapSource:
    """Rows (query, key) of a choice, in single precision: −∞ at masked keys, NaN where the model made one, `unknown`
    where numbers are not known. Heads with other numbers of queries or keys than the first one are left out."""

    def __init__(self, view: View, choice: MapChoice, *, unknown: float = np.nan) -> None:
        self.view, self.choice, self.unknown = view, choice, unknown
        self.shape = self._shape(choice.heads[0][0])
        """(queries, keys)"""
        self.heads = tuple(head for head in choice.heads if self._shape(head[0]) == self.shape)

    def _shape(self, name: str) -> tuple[int, int]:
        queries, keys = self.view.extent(name, self.choice.frame)[-2:]
        return queries, keys

    @property
    def narrow(self) -> bool:
        """Whether the numbers are stored in half precision, which is enough to draw them too."""
        return all(self.view.channel(name, self.choice.frame).dtype == "float16" for name, _ in self.heads)

    @cached_property
    def revision(self) -> tuple[int, ...]:
        """Other numbers have another one."""
        return tuple(self.view.revision(name, self.choice.frame) for name, _ in self.heads)

    def rows(self, first: int, stop: int) -> Array:
        """(stop − first, keys) of the map."""
        each = [self._of_head(name, head, first, stop) for name, head in self.heads]
        found = each[0] if len(each) == 1 else _together(each, self.choice.together)
        return renormalised(found) if self.choice.without_first else found

    def _of_head(self, name: str, head: int, first: int, stop: int) -> Array:
        weights = self._filled(name, head, first, self._block(name, head, first, stop))
        masks = self.choice.masks or ("" if self.choice.signed else name)
        if not masks:
            return weights.astype(np.float32)
        masked = masked_rows(self.view, masks, self.choice.frame, max(0, head), (first, stop), self.shape[1])
        if masked is None and not self.choice.masks and self._causal(name, head):
            masked = np.arange(self.shape[1]) > np.arange(first, stop)[:, None]
        return marked(weights, masked)

    def _block(self, name: str, head: int, first: int, stop: int) -> Array:
        """Some rows of a head, or of a map that all heads share, which has no axis of heads (head −1)."""
        rows: Array
        if head < 0:
            rows = self.view.block(name, self.choice.frame, (slice(first, stop),))
        else:
            rows = self.view.block(name, self.choice.frame, (slice(head, head + 1), slice(first, stop)))[0]
        return rows

    def _filled(self, name: str, head: int, first: int, rows: Array) -> Array:
        """The rows with `unknown` where no page brought a number or a page is damaged."""
        holes = self.view.holes(name, self.choice.frame)
        if not holes:
            return rows
        found = rows.copy()
        for *heads, queries, keys in (*holes.missing, *holes.damaged):
            if not heads or heads[0][0] <= head < heads[0][1]:
                found[max(0, queries[0] - first) : max(0, queries[1] - first), slice(*keys)] = self.unknown
        return found

    def known_queries(self) -> npt.NDArray[np.bool_]:
        """(queries,) whether a number of any key came with a page that is whole, in every head."""
        queries, keys = self.shape
        missing = np.zeros((len(self.heads), queries), np.int64)
        for at, (name, head) in enumerate(self.heads):
            holes = self.view.holes(name, self.choice.frame)
            for *heads, rows, columns in (*holes.missing, *holes.damaged):
                if not heads or heads[0][0] <= head < heads[0][1]:
                    missing[at, slice(*rows)] += columns[1] - columns[0]
        return np.asarray((missing < keys).all(axis=0), np.bool_)

    def _causal(self, name: str, head: int) -> bool:
        known = self.__dict__.setdefault("_looked", {})
        if (name, head) not in known:
            queries, keys = self.shape
            small = queries == keys and queries * keys <= 1 << 22
            known[name, head] = small and looks_causal(self._block(name, head, 0, queries))
        return bool(known[name, head])


def _together(each: list[Array], how: Together) -> Array:
    """One map of several: NaN where one of them is, −∞ where all are."""
    stack = np.stack(each)
    if how == "maximum":
        largest: Array = stack.max(axis=0)
        return largest
    hidden = np.isneginf(stack)
    mean: Array = np.where(hidden, 0, stack).mean(axis=0)
    mean[hidden.all(axis=0)] = -np.inf
    return mean


def renormalised(rows: Array) -> Array:
    """Rows without their first key, which counts as masked, divided by the sum of the weights that are left; a row of
    which nothing is left is masked as a whole."""
    found = rows.copy()
    found[:, :1] = np.where(np.isnan(rows[:, :1]), np.nan, -np.inf)
    hidden = np.isneginf(found)
    total = np.where(hidden, 0, found).sum(axis=1, keepdims=True)
    with np.errstate(all="ignore"):
        scaled: Array = np.where(hidden, -np.inf, found / total)
    scaled[(total == 0)[:, 0]] = -np.inf
    return scaled
