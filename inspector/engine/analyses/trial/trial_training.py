"""Training of copies of a model's parameters on the batches of its subject; the model is afterwards what it was.

A cure is something that changes such a copy, or the loop that trains it, before training begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from inspector.engine.analyses.trial.lessons import Lessons, own_training
from inspector.engine.analyses.trial.own_optimizer import OwnOptimizer
from inspector.engine.analyses.trial.subject_step import own_gradients, subject_step
from inspector.engine.analyses.trial.trial_steps import Trial, stand_ins
from inspector.engine.errors import Unsupported
from inspector.engine.model.batch import Batch
from inspector.engine.wording import error_text

Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(slots=True)
class Loop:
    """How a copy is trained.

    Attributes:
        optimizer: adam, adamw or sgd. rate: its learning rate, the largest of a group. betas: of Adam. decay: weight
            decay, the largest of a group.
        own: the optimizer of the training in the place of these, where it is known; rate, betas and decay are its own
            until a cure changes them. everything: whether it also steps what it does not have.
        decays: whether a parameter, by name and tensor, is decayed at all.
        clip: the norm to which gradients are clipped, infinite for none.
        warm: the share of the steps over which the rate rises in equal parts to what it is, 0 for none.
        wide: whether copies in half precision are kept and stepped in float32.
        train: whether every module is in training mode, also those that were not.
    """

    optimizer: str = "adam"
    rate: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    decay: float = 0.0
    decays: Callable[[str, Tensor], bool] = lambda _name, _tensor: True
    clip: float = float("inf")
    warm: float = 0.0
    wide: bool = False
    train: bool = False
    own: OwnOptimizer | None = None
    everything: bool = False
    note: str = ""
    """Why it is not the training's own optimizer."""

    @property
    def words(self) -> str:
        """In a few words."""
        told = [self.optimizer if self.own is None else self.own.words, f"learning rate {self.rate:.3g}"]
        told[0] += f" ({self.note})" if self.note else ""
        told += [f"weight decay {self.decay:g}"] if self.decay else []
        told += [f"gradients clipped at {self.clip:.4g}"] if np.isfinite(self.clip) else []
        return ", ".join(told)


@dataclass(slots=True)
class Copy:
    """Parameters that are trained, by name in the model's order, their loop, and the seed of the trial, of several."""

    trial: Trial
    loop: Loop
    held: dict[str, nn.Parameter] = field(default_factory=dict)
    seed: int = 0

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

    def unfreeze(self) -> list[str]:
        """Train what requires no gradient too; the names of that."""
        before, batch = self.held, self.trial.batch
        self.trial = Trial(self.trial.trace, frozen=True)
        self.trial.batch = batch
        fresh = dict(zip(self.trial.names, stand_ins(self.trial.parameters), strict=True))
        self.held = {name: before.get(name, one) for name, one in fresh.items()}
        return [name for name in fresh if name not in before]

    def stepper(self, over: Mapping[str, nn.Parameter] | None = None) -> torch.optim.Optimizer:
        """The optimizer of the loop, over the copies, or over these parameters of the same names."""
        loop, decayed, others = self.loop, list[nn.Parameter](), list[nn.Parameter]()
        held = self.held if over is None else over
        if loop.own is not None:
            plain = frozenset(name for name, one in held.items() if not loop.decays(name, one))
            betas = None if loop.betas == loop.own.betas else loop.betas
            scale = loop.rate / loop.own.rate
            return loop.own.over(held, scale=scale, betas=betas, plain=plain, everything=loop.everything)
        for name, one in held.items():
            (decayed if loop.decays(name, one) else others).append(one)
        groups = [{"params": decayed, "weight_decay": loop.decay}, {"params": others, "weight_decay": 0.0}]
        groups = [group for group in groups if group["params"]]
        if loop.optimizer == "sgd":
            return torch.optim.SGD(groups, lr=loop.rate)
        kind = torch.optim.AdamW if loop.optimizer == "adamw" else torch.optim.Adam
        return kind(groups, lr=loop.rate, betas=loop.betas)


def trained(copy: Copy, given: Lessons, iterations: int, seed: int, tell: Callable[[int], None]) -> tuple[Array, float]:
    """((iterations,) mean losses before each step, each of one batch; that over the judging batches after the last).

    Where a loss is not finite the rest is NaN. Raises Unsupported where the model cannot be trained.
    """
    losses, own = np.full(iterations, np.nan), copy.trial.subject.train_step is not None
    if own and copy.loop.wide:
        raise Unsupported("The subject's own train_step steps the parameters in their own type, not copies in float32.")
    copy.widen()
    step, batches = _by_the_subject(copy) if own else _by_the_loss(copy), given.order(seed)
    with _as_in_training(copy, seed):
        for done in range(iterations):
            tell(done)
            copy.trial.batch = next(batches)
            losses[done] = step(_share_of_rate(copy.loop.warm, done, iterations))
            if not np.isfinite(losses[done]):
                return losses, float("nan")
    return losses, loss_over(copy, given.judging)


def _share_of_rate(warm: float, done: int, iterations: int) -> float:
    """Of the learning rate, at one step of many: it rises to 1 over the first share `warm` of them."""
    return min(1.0, (done + 1) / max(1.0, warm * iterations))


def _by_the_loss(copy: Copy) -> Callable[[float], float]:
    """Makes a step of the optimizer along the gradient of the subject's loss; gives the loss before it."""
    trial, stepper = copy.trial, copy.stepper()
    rates = _rates(stepper)

    def step(share: float) -> float:
        with copy.in_place():
            loss, gradients = trial.gradients()
        if not np.isfinite(loss):
            return loss
        for one, gradient in zip(copy.held.values(), gradients, strict=True):
            one.grad = gradient.to(one.dtype)
        if np.isfinite(copy.loop.clip):
            nn.utils.clip_grad_norm_(copy.held.values(), copy.loop.clip)
        _warm(copy, stepper, rates, share)
        _stepped(copy, stepper)
        return loss

    return step


def _by_the_subject(copy: Copy) -> Callable[[float], float]:
    """The subject makes the step, with an optimizer of the loop's over the model's own parameters."""
    trial = copy.trial
    stepper = copy.stepper(dict(zip(trial.names, trial.parameters, strict=True)))
    rates = _rates(stepper)
    if np.isfinite(copy.loop.clip):
        stepper.register_step_pre_hook(partial(_clip, copy))

    def step(share: float) -> float:
        _warm(copy, stepper, rates, share)
        loss, after = subject_step(trial, stepper, [one.data for one in copy.held.values()])
        for one, value in zip(copy.held.values(), after, strict=True):
            one.data = value
        return loss

    return step


def _clip(copy: Copy, *_given: Any) -> None:
    nn.utils.clip_grad_norm_(copy.trial.parameters, copy.loop.clip)


def _rates(stepper: torch.optim.Optimizer) -> list[float]:
    return [float(group["lr"]) for group in stepper.param_groups]


def _stepped(copy: Copy, stepper: torch.optim.Optimizer) -> None:
    """Make the step. Raises Unsupported where an optimizer of the training's own cannot."""
    try:
        stepper.step()
    except Exception as fault:
        if copy.loop.own is None:
            raise
        raise Unsupported(f"{type(stepper).__name__} could not make a step of a copy: {error_text(fault)}") from None


def _warm(copy: Copy, stepper: torch.optim.Optimizer, rates: Sequence[float], share: float) -> None:
    """Set the rates of this step; rates that nothing warms up are the subject's own to change."""
    for group, rate in zip(stepper.param_groups, rates, strict=True) if copy.loop.warm else []:
        group["lr"] = share * rate


def loss_over(copy: Copy, batches: Sequence[Batch]) -> float:
    """The mean of the batches' mean losses, the model in the mode in which it was opened."""
    found = []
    with copy.trial.ready(), copy.in_place(), torch.no_grad():
        for batch in batches:
            copy.trial.batch = batch
            found.append(float(copy.trial.loss()))
    return float(np.mean(found))


@contextmanager
def _as_in_training(copy: Copy, seed: int) -> Iterator[None]:
    """With the random state of a seed, called as while it learns, and in training mode what was so before the app
    opened the model; everything where the loop says so."""
    trial = copy.trial
    forward, called = getattr(own_training(trial.subject), "forward", None), trial.call
    with trial.ready(seed), own_gradients(trial):
        for name, module in trial.subject.model.named_modules():
            module.training = module.training or copy.loop.train or name in trial.subject.set_to_eval
        trial.call = called if forward is None else partial(forward, trial.subject.model)
        try:
            yield
        finally:
            trial.call = called
