"""Parameters without a gradient in a first step: do they have one in the second, or on other inputs?

A factor that begins at 0 (the second matrix of LoRA, the gates of ReZero, a last layer of zeros) keeps the gradient
from what it is multiplied with until it has moved; an expert has one only on inputs that its router sends there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor

from inspector.engine.analyses.structure.changes import Replacing
from inspector.engine.analyses.trial.trial_steps import Trial
from inspector.engine.errors import Unsupported
from inspector.engine.model.outside_modules import outside_modules

INPUTS = 8
"""Other inputs that are drawn. Counter-example: an expert that a router chooses for none of them."""


def unfound(trial: Trial) -> list[str]:
    """Names of parameters for which the loss has a gradient, and that lie in plain lists, where no optimizer that is
    made from the model's parameters finds them."""
    kept = outside_modules(trial.subject.model)
    if not kept:
        return []
    with trial.ready(), torch.enable_grad():
        loss = trial.loss()
        given = torch.autograd.grad(loss, [one for _, one in kept], allow_unused=True) if loss.requires_grad else ()
    return [name for (name, _), one in zip(kept, given, strict=False) if one is not None and bool((one != 0).any())]


def moving_later(trial: Trial, stepped: Sequence[Tensor], idle: Iterable[int]) -> list[int]:
    """Which of some parameters have a gradient once all have made a step."""
    try:
        with trial.at([one.data for one in stepped]), trial.ready():
            _, gradients = trial.gradients()
    except Unsupported:
        return []
    return [n for n in idle if bool((gradients[n] != 0).any())]


def moving_elsewhere(trial: Trial, idle: Iterable[int]) -> list[int]:
    """Which of some parameters have a gradient on another input, where every step has another id or other numbers."""
    left, found = set(idle), list[int]()
    for gradients in _on_others(trial) if left else ():
        found += [n for n in sorted(left) if bool((gradients[n] != 0).any())]
        left -= set(found)
        if not left:
            break
    return sorted(found)


def _on_others(trial: Trial) -> Iterator[list[Tensor]]:
    given, own = trial.trace.batch, trial.batch
    if given.first.kind not in ("tokens", "vectors"):
        return
    places = [(row, step) for row, length in enumerate(given.lengths.tolist()) for step in range(length)]
    for seed in range(INPUTS):
        try:
            trial.batch = trial.subject.placed(Replacing(trial.subject, given, seed).at(given, places))
            with trial.ready():
                _, gradients = trial.gradients()
        except Unsupported:
            return
        finally:
            trial.batch = own
        yield gradients
