"""By which way a character's loss depends on what was read: through the sample, or by the decoder's own characters."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from inspector.engine.analyses.latent.again import LatentCalls
from inspector.engine.analyses.latent.reconstruction import Reconstruction
from inspector.engine.errors import Unsupported
from inspector.engine.latent.written import Drawn
from inspector.engine.model.batch import Batch

MOST_STEPS = 512
NO_EMBEDDING = "No nn.Embedding reads the tokens, so there is nothing at which the two ways could be compared."
NO_GRAPH = "The sample is not connected with what was read by autograd (no_grad, or sample instead of rsample)."
TOO_LONG = "{:,} steps; gradients of each step's loss are computed for up to {:,}."


@dataclass(frozen=True, slots=True)
class Paths:
    """Norms by step (t,), float64: at z itself, at the embedded tokens through z, and at them without z."""

    at_z: Tensor
    by_z: Tensor
    own: Tensor

    @property
    def share(self) -> Tensor:
        """(t,): ‖by z‖ / (‖by z‖ + ‖own‖); NaN where both are 0."""
        return self.by_z / (self.by_z + self.own)


@dataclass(slots=True)
class _Leaves:
    """The outputs of the model's embeddings, as leaves."""

    found: list[Tensor] = field(default_factory=list)

    @contextmanager
    def watching(self, model: nn.Module) -> Iterator[None]:
        """While open, what embeddings give has no graph behind it."""

        def taken(_module: nn.Module, _args: Any, output: Any) -> Any:
            self.found.append(output.detach().requires_grad_())
            return self.found[-1]

        handles = [one.register_forward_hook(taken) for one in model.modules() if isinstance(one, nn.Embedding)]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()


def paths_of(calls: LatentCalls, batch: Batch, way: Reconstruction) -> Paths:
    """The gradients of each step's reconstruction in a batch of one sequence. Raises Unsupported.

    In one call z′ = z takes z's place as a leaf: ∂L_t/∂x with z′ fixed is the decoder's own way, and
    (∂z/∂x)ᵀ ∂L_t/∂z′ the way through the sample; both at the same embedded tokens x.
    """
    if batch.steps > MOST_STEPS:
        raise Unsupported(TOO_LONG.format(batch.steps, MOST_STEPS))
    leaves, cut = _Leaves(), list[Tensor]()

    def leaf(drawn: Drawn) -> Tensor:
        cut.append(drawn.sample.detach().requires_grad_())
        return cut[-1]

    with leaves.watching(calls.subject.model), torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
        told = calls.told(batch, leaf)
        if not leaves.found:
            raise Unsupported(NO_EMBEDDING)
        if not told.drawn.requires_grad or told.scores is None:
            raise Unsupported(NO_GRAPH)
        losses = way.losses(told.scores, batch)[0]
        rows = [_of_step(one, cut[0], told.drawn, leaves.found) for one in losses]
    at_z, by_z, own = (torch.tensor(column, dtype=torch.float64) for column in zip(*rows, strict=True))
    return Paths(at_z, by_z, own)


def _of_step(loss: Tensor, cut: Tensor, drawn: Tensor, leaves: list[Tensor]) -> tuple[float, float, float]:
    if bool(loss.isnan()) or not loss.requires_grad:
        return torch.nan, torch.nan, torch.nan
    at_z, *own = torch.autograd.grad(
        loss, [cut, *leaves], retain_graph=True, allow_unused=True, materialize_grads=True
    )  # fmt: skip
    by_z = torch.autograd.grad(
        drawn, leaves, at_z, retain_graph=True, allow_unused=True, materialize_grads=True
    )  # fmt: skip
    return _norm([at_z]), _norm(by_z), _norm(own)


def _norm(parts: Any) -> float:
    return float(torch.stack([one.double().norm() for one in parts]).norm())
