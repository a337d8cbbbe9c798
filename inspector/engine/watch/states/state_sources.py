"""Whose last state each sequence of a batch begins with: bit for bit, else times a number or through dropout, else
(each row its own) mixed with the same numbers in every row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import torch
from torch import Tensor

MOST_ROWS, MOST_NUMBERS = 64, 256
"""Of a batch: rows that are compared, and numbers of a state."""
LEAST_NUMBERS = 4
"""Numbers other than 0 that a state needs to be told from another by its direction alone."""
SMALL = 0.01
"""A factor below which little of a state is left."""
ROUNDED = 64
"""Roundings of the numbers that are taken for equal."""
PRECISE = 1e-5
"""Types with a larger rounding than this have no directions that can be told apart."""


def sources(before: Mapping[str, list[Tensor]], following: Mapping[str, list[Tensor]]) -> Tensor | None:
    """(b,) the row of the call before whose last state each row begins with, −1 for none; of the first place where some
    do. None where states cannot be compared."""
    found: Tensor | None = None
    ended = [rows_of(one) for states in before.values() for one in states]
    begun = [rows_of(one) for states in following.values() for one in states]
    for way in (_equal, _scaled, _mixed):
        for at in _by(way, begun, ended):
            found = at if found is None else found
            if bool((at >= 0).any()):
                return at
    return found


def rows_of(state: Tensor) -> Tensor:
    """(b, n) of a state (…, b, n): its first numbers, of the rows that are compared."""
    return state.movedim(-2, 0).reshape(state.shape[-2], -1)[:MOST_ROWS, :MOST_NUMBERS]


def _by(way: Callable[[Tensor, Tensor], Tensor], begun: list[Tensor], ended: list[Tensor]) -> Iterator[Tensor]:
    """(b,) the source of each row, by pairs of places that can be compared: the same row where it is one of several."""
    for first in begun:
        for last in ended:
            if first.shape != last.shape or first.dtype != last.dtype or not len(first):
                continue
            pairs = way(first, last) & (first != 0).any(-1)[:, None]
            own = torch.diagonal(pairs)
            at = torch.where(own, torch.arange(len(own), device=own.device), pairs.float().argmax(1))
            yield torch.where(pairs.any(1), at, -1)


def _equal(begun: Tensor, last: Tensor) -> Tensor:
    """(b, b) whether row i begins, bit for bit, with what row j ended with."""
    return (begun[:, None] == last[None]).all(-1)


def _scaled(begun: Tensor, last: Tensor) -> Tensor:
    """(b, b) whether row i begins with a multiple of what row j ended with, but for numbers that are 0 (dropout)."""
    size = len(begun)
    if not _told_apart(begun):
        return begun.new_zeros((size, size), dtype=torch.bool)
    there = (begun != 0).double()
    first, ended = begun.double(), last.double()
    power = there @ (ended**2).T
    factor = first @ ended.T / power.clamp_min(torch.finfo(torch.float64).tiny)
    missing = (first**2).sum(-1, keepdim=True) - factor**2 * power  # ‖first − factor · last‖² where first is not 0
    close = missing <= (ROUNDED * torch.finfo(begun.dtype).eps) ** 2 * (first**2).sum(-1, keepdim=True)
    many = there.sum(-1, keepdim=True) >= max(LEAST_NUMBERS, begun.shape[1] / 4)
    return close & many & (factor.abs() >= SMALL)


def _mixed(begun: Tensor, last: Tensor) -> Tensor:
    """(b, b) whether every row begins with a multiple of what it ended with, plus numbers that are the same for all
    rows: their differences from the mean of the rows are multiples then."""
    size = len(begun)
    none = begun.new_zeros((size, size), dtype=torch.bool)
    if not _told_apart(begun) or size < LEAST_NUMBERS:
        return none
    first, ended = (one.double() - one.double().mean(0) for one in (begun, last))
    power = (ended**2).sum().clamp_min(torch.finfo(torch.float64).tiny)
    factor = (first * ended).sum() / power
    whole = (begun.double() ** 2).sum()
    close = (first - factor * ended).square().sum() <= (ROUNDED * torch.finfo(begun.dtype).eps) ** 2 * whole
    clear = (factor.abs() >= SMALL) & ((first**2).sum() >= SMALL**2 * whole)
    return none | (torch.eye(size, dtype=torch.bool, device=begun.device) & close & clear)


def _told_apart(states: Tensor) -> bool:
    return states.shape[1] >= LEAST_NUMBERS and torch.finfo(states.dtype).eps < PRECISE
