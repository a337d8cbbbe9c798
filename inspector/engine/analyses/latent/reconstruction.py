"""What of a model's loss is the reconstruction of the sequence that it read: −ln p of its tokens by the scores.

That is not declared, so it is tried: with another z the loss must change by exactly as much as the cross entropy of the
tokens, since all other terms (the divergence) are made of μ and σ, which stay.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from inspector.engine.analyses.latent.again import LatentCalls, Told
from inspector.engine.errors import Unsupported
from inspector.engine.model.batch import Batch

FAR = 3.0
"""Deviations of the prior by which z is moved in the trial."""
TOLERANCE = 1e-4
NO_TOKENS = "The reconstruction by character is of models that read tokens and give a score of each at every step."
NO_LOSS = "There is no loss of every step, so what z changes of it is not known."
OTHER_LOSS = (
    "With another z the loss of a step does not change as the cross entropy of the tokens that were read, so what part "
    "of the loss is their reconstruction is not known."
)


@dataclass(frozen=True, slots=True)
class Reconstruction:
    """Where the tokens are told: the scores of step t are of the token t + `ahead`."""

    ahead: int

    def targets(self, batch: Batch) -> Tensor:
        """(n, t) ids, −1 where none is told."""
        ids, steps = batch.inputs.cpu(), torch.arange(batch.steps)
        wanted = torch.full_like(ids, -1)
        wanted[:, : batch.steps - self.ahead] = ids[:, self.ahead :]
        return wanted.masked_fill(steps >= (batch.lengths - self.ahead)[:, None], -1)

    def losses(self, scores: Tensor, batch: Batch) -> Tensor:
        """(n, t) float64 nats, −ln p(token); NaN where none is told. Keeps the graph."""
        wanted = self.targets(batch)
        wide = scores.double().cpu()
        values = nn.functional.cross_entropy(wide.transpose(1, 2), wanted.clamp(min=0), reduction="none")
        return values.masked_fill(wanted < 0, torch.nan)


def loss_by_step(told: Told) -> Tensor:
    """(n, t) float64: the model's own loss. Raises Unsupported."""
    if told.loss is None:
        raise Unsupported(NO_LOSS)
    return told.loss.detach().double().cpu()


def reconstruction_of(calls: LatentCalls, batch: Batch) -> Reconstruction:
    """Which tokens the loss is of. Raises Unsupported where it is not that of those that were read."""
    first = calls.plain(batch)
    if (
        batch.first.kind != "tokens"
        or batch.inputs.dim() != 2
        or first.scores is None
        or calls.trace.answer is not None
    ):
        raise Unsupported(NO_TOKENS)
    noise = torch.randn(first.sample.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    moved = calls.with_z(batch, first.sample + FAR * noise)
    ways = [Reconstruction(int(calls.subject.next_token)), Reconstruction(int(not calls.subject.next_token))]
    for way in ways:
        if _fits(way, first, moved, batch):
            return way
    raise Unsupported(OTHER_LOSS)


def _fits(way: Reconstruction, first: Told, moved: Told, batch: Batch) -> bool:
    assert first.scores is not None
    losses = loss_by_step(first), loss_by_step(moved)
    if moved.scores is None or first.scores.shape[-1] <= int(batch.inputs.max()):
        return False
    own = way.losses(first.scores, batch), way.losses(moved.scores, batch)
    asked = ~losses[0].isnan()
    if not bool(asked.any()) or bool((own[0].isnan() & asked).any()):
        return False
    change, wanted = (losses[1] - losses[0])[asked], (own[1] - own[0])[asked]
    rest = (losses[0] - own[0])[asked]
    scale = TOLERANCE * (1 + float(losses[1][asked].abs().max()))
    return bool((change - wanted).abs().max() <= scale and rest.min() >= -scale)
