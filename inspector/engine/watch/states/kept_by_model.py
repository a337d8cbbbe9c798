"""The states that a model keeps in attributes and buffers, at the ends of one call and at the beginning of the next, as
far as that one reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from inspector.engine.watch.states.kept_states import by_rows, kept_states, rows_left
from inspector.engine.watch.states.state_reads import StateReads, can_be_followed
from inspector.engine.watch.states.state_sources import sources

LOOKS = 8
"""Calls in which nothing was kept, after which nothing is looked for any more."""


class KeptByModel:
    """`begins` and `ended` around one call, `next_begins` and `next_ended` around the one after it."""

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._looks = 0
        self._begun: dict[str, Tensor] = {}
        self._given: dict[str, Tensor] = {}
        self._whole: dict[str, Tensor] = {}
        self._reads: StateReads | None = None

    @property
    def is_over(self) -> bool:
        """Whether so many calls kept nothing that no more are looked at."""
        return self._looks >= LOOKS

    def begins(self, data: Tensor) -> None:
        """Remember what is kept before a call that reads `data`."""
        self._begun = {} if self.is_over else self._copies(data)

    def ended(self, data: Tensor) -> dict[str, list[Tensor]]:
        """What the call left that was not there before it: constants are no states."""
        if self.is_over:
            return {}
        now, before = self._copies(data), self._begun
        new = {key: one for key, one in now.items() if key not in before or not _same(one, before[key])}
        self._looks = 0 if new else self._looks + 1
        return {key: [one] for key, one in new.items()}

    def next_begins(self, data: Tensor | None, before: Mapping[str, list[Tensor]]) -> None:
        """Follow what is read of the states that are still there."""
        self.over()
        kept = {} if data is None or not before else kept_states(self._model, data)
        for key, one in kept.items():
            own = by_rows(one, data).detach().clone()
            at = sources({key: before[key]}, {key: [own]}) if key in before else None
            if at is not None and bool((at >= 0).any()):
                self._given[key], self._whole[key] = own, one
        if self._given and can_be_followed(self._model):
            self._reads = StateReads(self._whole)
            self._reads.on(True)

    def next_ended(self, data: Tensor | None, output: Any) -> dict[str, list[Tensor]]:
        """The states on which the output depends; rows of 0 where the call began anew."""
        reads, given, whole = self._reads, self._given, self._whole
        self.over()
        if reads is None or data is None:
            return {}
        found = {}
        for key in sorted(reads.reached(output)):
            state = given[key]
            if key in reads.left:
                state = state * rows_left(reads.left[key], whole[key], data)[:, None]
            found[key] = [state]
        return found

    def over(self) -> None:
        """Follow nothing any more."""
        if self._reads is not None:
            self._reads.on(False)
        self._reads, self._given, self._whole = None, {}, {}

    def _copies(self, data: Tensor) -> dict[str, Tensor]:
        kept = kept_states(self._model, data)
        return {key: by_rows(one, data).detach().clone() for key, one in kept.items()}


def _same(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and one.dtype == other.dtype and torch.equal(one, other)
