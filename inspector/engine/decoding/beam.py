"""Beam search: the best hypotheses of each length are continued together."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from inspector.engine.decoding.growth import Ask, Growth
from inspector.records.decoding import BEGINNING, penalty_of


def beam(ask: Ask, growth: Growth, end: int | None) -> None:
    """Continue the `width` best hypotheses until none of them can become one of the `width` best that have ended.

    At each step every continuation of every hypothesis is a candidate, by its log probability. A candidate with the end
    token has ended if it is among the best `width`; the best `width` others are alive. The next best candidates, twice
    the width in all, are noted as pruned. Equal candidates: that of the better hypothesis, then the lowest id.
    """
    decode, alive = growth.decode, [BEGINNING]
    finished: list[int] = []
    for _ in range(decode.longest):
        following: list[int] = []
        for rank, (parent, token, value) in enumerate(_candidates(ask, growth, alive)):
            at = growth.add(parent, token, value)
            if token == end and rank < decode.width:
                growth.end(at, "finished")
                finished.append(at)
            elif token != end and len(following) < decode.width:
                growth.end(at, "alive")
                following.append(at)
            else:
                continue
            if parent != BEGINNING:
                growth.end(parent, "continued")
        growth.end_alive(alive, "pruned")
        alive = following
        if not alive or _is_decided(growth, alive, finished):
            growth.end_alive(alive, "pruned")
            return
    growth.end_alive(alive, "unfinished")


def _candidates(ask: Ask, growth: Growth, alive: Sequence[int]) -> list[tuple[int, int, float]]:
    """(parent, token, ln p of the token) of the best continuations, twice the width, the best first.

    Among so many are always `width` that do not end, where there are as many: each hypothesis ends in one way only.
    """
    values = ask([growth.ids_of(last) for last in alive])
    totals = (values + _totals(growth, alive)[:, None]).flatten()
    best = totals.sort(descending=True, stable=True).indices[: 2 * growth.decode.width].tolist()
    possible = [at for at in best if totals[at] > -torch.inf]
    size = values.shape[1]
    return [(alive[at // size], at % size, float(values.flatten()[at])) for at in possible]


def _totals(growth: Growth, alive: Sequence[int]) -> Tensor:
    return torch.tensor([growth.total(last) for last in alive], dtype=torch.float64)


def _is_decided(growth: Growth, alive: Sequence[int], finished: Sequence[int]) -> bool:
    """Whether no hypothesis that goes on can still be among the best `width` that have ended.

    ln p only falls as a hypothesis grows, and the penalty is monotonic in its length: the best score that it can reach
    is that of its present ln p at one more token, or at the longest length.
    """
    decode = growth.decode
    if len(finished) < decode.width:
        return False
    worst = sorted((growth.tokens[at].score for at in finished), reverse=True)[decode.width - 1]
    lengths = (len(growth.ids_of(alive[0])) + 1, decode.longest)
    best = max(growth.total(last) for last in alive)
    return worst >= max(best / penalty_of(length, decode.length_penalty) for length in lengths)
