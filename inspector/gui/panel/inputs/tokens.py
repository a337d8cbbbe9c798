"""Ids as tokens: a row for each token that occurs, the most frequent at the top, and where in the sequence it does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.gui.widgets.numbers import short
from inspector.gui.widgets.plain_text import token

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class TokenRows:
    """`row` (steps,): the row of each step, −1 where its token is not known; `names` and `counts` of the rows."""

    row: npt.NDArray[np.int64]
    names: tuple[str, ...]
    counts: tuple[int, ...]
    different: int

    def shares(self, cut: tuple[int, int], cells: int) -> tuple[Array, Array]:
        """(cell, row) the share of the steps of each cell that have the token of the row, twice: it is its own least
        and largest. Steps whose token is not known are NaN where a cell has no other."""
        part = self.row[slice(*cut)]
        cells = max(1, min(cells, len(part)))
        cell = np.arange(len(part)) * cells // max(1, len(part))
        known = part >= 0
        many = np.bincount(cell[known] * len(self.names) + part[known], minlength=cells * len(self.names))
        of = np.bincount(cell[known], minlength=cells)
        with np.errstate(all="ignore"):
            share = many.reshape(cells, -1)[:, : len(self.names)] / np.where(of > 0, of, np.nan)[:, None]
        return share, share

    @property
    def sentence(self) -> str:
        """How many tokens, how many of them different, and the most frequent ones."""
        often = ", ".join(f"{name} ×{many:,}" for name, many in list(zip(self.names, self.counts, strict=True))[:3])
        return f"{self.different:,} different of {int((self.row >= 0).sum()):,} tokens; most often {often}"


def rows_of(ids: Array, names: Sequence[str], most: int) -> TokenRows:
    """`most` rows of a sequence of ids (steps,), the last for all others where there are more; `names` is the
    vocabulary, whose entries may be fewer than ids."""
    known = ~np.ma.getmaskarray(ids)
    plain = np.ma.getdata(ids).astype(np.int64)
    distinct, first, many = np.unique(plain[known], return_index=True, return_counts=True)
    order = np.lexsort((first, -many))
    own = order[: most if len(order) <= most else most - 1]
    row_of = np.full(len(distinct), len(own), np.int64)
    row_of[own] = np.arange(len(own))
    row = np.full(len(plain), -1, np.int64)
    row[known] = row_of[np.searchsorted(distinct, plain[known])]
    rest = len(distinct) - len(own)
    more = ((f"{rest:,} others", int(many.sum() - many[own].sum())),) if rest else ()
    told = [(called(int(distinct[at]), names), int(many[at])) for at in own]
    return TokenRows(
        row, (*(n for n, _ in told), *(n for n, _ in more)), (*(m for _, m in told), *(m for _, m in more)),
        len(distinct),
    )  # fmt: skip


def called(one: int, names: Sequence[str]) -> str:
    """A token as it is shown: its text, or its number."""
    return token(names[one]) if 0 <= one < len(names) else short(one)
