"""What a model writes by itself from a z: the likeliest token at each step, fed back to it as what it reads."""

from __future__ import annotations

import torch
from torch import Tensor

from inspector.engine.analyses.latent.again import LatentCalls
from inspector.engine.analyses.latent.reconstruction import NO_TOKENS, Reconstruction
from inspector.engine.errors import Unsupported
from inspector.engine.model.batching import pad

LONGEST = 64
READS_AHEAD = (
    "The scores of a step depend on tokens that are not written yet (beside z), so nothing can be written step by step."
)


def written(calls: LatentCalls, z: Tensor, way: Reconstruction, steps: int, first: Tensor) -> Tensor:
    """(k, steps) ids that the model writes from z (k, u), −1 behind the end token. Raises Unsupported.

    `first` (ahead,): what a model that tells the next token is given to begin with. z takes the place of the sample
    whatever is read, so a model needs no method that decodes.
    """
    k, ahead = len(z), way.ahead
    ids = torch.zeros((k, steps), dtype=torch.long)
    ids[:, :ahead] = first
    for t in range(steps - ahead):
        ids[:, t + ahead] = _likeliest(calls, ids, z)[:, t]
    again = _likeliest(calls, ids, z)
    if not torch.equal(again[:, : steps - ahead], ids[:, ahead:]):
        raise Unsupported(READS_AHEAD)
    return _ended(ids, calls.subject.end_token)


def _likeliest(calls: LatentCalls, ids: Tensor, z: Tensor) -> Tensor:
    told = calls.with_z(pad(calls.subject, list(ids), targets=[None] * len(ids)), z)
    if told.scores is None:
        raise Unsupported(NO_TOKENS)
    return told.scores.argmax(-1).cpu()


def _ended(ids: Tensor, end: int | None) -> Tensor:
    """−1 behind the first end token of each row."""
    if end is None:
        return ids
    ended = (ids == end).long().cumsum(1)
    return ids.masked_fill((ended - (ids == end).long()) > 0, -1)
