"""A step of training as the subject makes it: its `train_step(model, batch, optimizer)`, on a copy of the parameters.

The model's own parameters are what it steps; their tensors are those of the copy meanwhile, and the gradients that they
had before are put back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from torch import Tensor

from inspector.engine.analyses.trial.trial_steps import Trial
from inspector.engine.errors import Unsupported, model_error
from inspector.engine.wording import a_class

WHO = "train_step of the subject"
RETURNED = "train_step of the subject returned {}; expected the mean loss before its step, a number or a tensor of one."


@contextmanager
def own_gradients(trial: Trial) -> Iterator[None]:
    """Inside, the parameters have no gradient yet; afterwards the gradients and flags that they had before."""
    known = [(one, one.grad, one.requires_grad) for one in trial.subject.model.parameters()]
    try:
        for one, _, _ in known:
            one.grad = None
        yield
    finally:
        for one, gradient, flag in known:
            one.grad = gradient
            one.requires_grad_(flag)


def subject_step(trial: Trial, optimizer: Any, held: list[Tensor]) -> tuple[float, list[Tensor]]:
    """Let the subject make one step of its model at these values; (mean loss before it, the values after it).

    Raises Unsupported with one line about what its code raised, or where it returned no loss.
    """
    step = trial.subject.train_step
    assert step is not None
    with trial.at(held):
        try:
            said = step(trial.subject.model, trial.batch, optimizer)
        except (Exception, SystemExit) as fault:  # noqa: BLE001 - the user's code may raise anything
            raise Unsupported(str(model_error(fault, WHO))) from None
        after = [one.data for one in trial.parameters]  # a step may put other tensors there
    return _loss(said), after


def _loss(said: Any) -> float:
    if isinstance(said, Tensor) and said.numel() == 1:
        return float(said.detach())
    if isinstance(said, (int, float, np.number)) and not isinstance(said, bool):
        return float(said)
    shape = f" of shape {tuple(said.shape)}" if isinstance(said, Tensor) else ""
    raise Unsupported(RETURNED.format("nothing" if said is None else f"{a_class(said)}{shape}"))
