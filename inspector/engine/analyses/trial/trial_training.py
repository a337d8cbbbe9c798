"""Training of copies of a model's parameters on the batches of its subject; the model is afterwards what it was.

A cure is something that changes such a copy, or the loop that trains it, before training begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from inspector.engine.analyses.trial.trial_steps import Trial, stand_ins
from inspector.engine.model.batch import Batch

Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(slots=True)
class Loop:
    """How a copy is trained.

    Attributes:
        optimizer: adam, adamw or sgd. rate: its learning rate. betas: of Adam. decay: weight decay.
        decays: whether a parameter, by name and tensor, is decayed at all.
        clip: the norm to which gradients are clipped, infinite for none.
        wide: whether copies in half precision are kept and stepped in float32.
    """

    optimizer: str = "adam"
    rate: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    decay: float = 0.0
    decays: Callable[[str, Tensor], bool] = lambda _name, _tensor: True
    clip: float = float("inf")
    wide: bool = False

    @property
    def words(self) -> str:
        """In a few words."""
        told = [self.optimizer, f"learning rate {self.rate:.3g}"]
        told += [f"weight decay {self.decay:g}"] if self.decay else []
        return ", ".join(told)


@dataclass(slots=True)
class Copy:
    """Parameters that are trained, by name in the model's order, and their loop."""

    trial: Trial
    loop: Loop
    held: dict[str, nn.Parameter] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.held = dict(zip(self.trial.names, stand_ins(self.trial.parameters), strict=True))

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Inside, the model has the copy's parameters, in its own dtypes: copies of them, where it writes to them."""
        pairs = zip(self.held.values(), self.trial.parameters, strict=True)
        with self.trial.at([copy.data.to(own.dtype) for copy, own in pairs]):
            yield

    def widen(self) -> None:
        """Keep the copies in float32 at least."""
        if self.loop.wide:
            for one in self.held.values():
                one.data = one.data.to(torch.promote_types(one.dtype, torch.float32))

    def stepper(self) -> torch.optim.Optimizer:
        """The optimizer of the loop, over the copies."""
        loop, decayed, others = self.loop, list[nn.Parameter](), list[nn.Parameter]()
        for name, one in self.held.items():
            (decayed if loop.decays(name, one) else others).append(one)
        groups = [{"params": decayed, "weight_decay": loop.decay}, {"params": others, "weight_decay": 0.0}]
        groups = [group for group in groups if group["params"]]
        if loop.optimizer == "sgd":
            return torch.optim.SGD(groups, lr=loop.rate)
        kind = torch.optim.AdamW if loop.optimizer == "adamw" else torch.optim.Adam
        return kind(groups, lr=loop.rate, betas=loop.betas)


def trained(
    copy: Copy, batches: Sequence[Batch], iterations: int, seed: int, tell: Callable[[int], None]
) -> tuple[Array, float]:
    """((iterations,) mean losses before each step, each of one batch; the mean over all batches after the last).

    Batches come in an order that the seed decides, each once before any comes again. Where a loss is not finite the
    rest is NaN. Raises Unsupported where the model cannot be trained.
    """
    trial, losses = copy.trial, np.full(iterations, np.nan)
    copy.widen()
    stepper, order = copy.stepper(), _order(len(batches), seed)
    with _as_in_training(trial, seed):
        for done in range(iterations):
            tell(done)
            trial.batch = batches[next(order)]
            with copy.in_place():
                losses[done], gradients = trial.gradients()
            if not np.isfinite(losses[done]):
                return losses, float("nan")
            for one, gradient in zip(copy.held.values(), gradients, strict=True):
                one.grad = gradient.to(one.dtype)
            if np.isfinite(copy.loop.clip):
                nn.utils.clip_grad_norm_(copy.held.values(), copy.loop.clip)
            stepper.step()
    return losses, loss_over(copy, batches)


def loss_over(copy: Copy, batches: Sequence[Batch]) -> float:
    """The mean of the batches' mean losses, the model in the mode in which it was opened."""
    found = []
    with copy.trial.ready(), copy.in_place(), torch.no_grad():
        for batch in batches:
            copy.trial.batch = batch
            found.append(float(copy.trial.loss()))
    return float(np.mean(found))


@contextmanager
def _as_in_training(trial: Trial, seed: int) -> Iterator[None]:
    """With the random state of a seed, and in training mode what was so before the app opened the model."""
    with trial.ready(seed):
        modules = dict(trial.subject.model.named_modules())
        for name in trial.subject.set_to_eval:
            if name in modules:
                modules[name].training = True
        yield


def _order(count: int, seed: int) -> Iterator[int]:
    drawn = np.random.default_rng(seed)
    while True:
        yield from drawn.permutation(count).tolist()
