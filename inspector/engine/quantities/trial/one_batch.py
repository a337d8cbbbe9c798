"""Can the model learn one batch by heart? A copy is trained on it."""

from __future__ import annotations

import numpy as np
import torch

from inspector.engine.analyses.trial.trial_steps import Trial, stand_ins
from inspector.engine.errors import Unsupported
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Trace
from inspector.records import LOSS_UNIT, Option
from inspector.records.catalogue import LOSS

PLACE = "model"
ABOUT = Describe(
    kind="trial", compare="separate", unit=LOSS_UNIT, title="loss while one batch is learned by heart",
    formula="mean loss of the batch before the first step of Adam on copies of the parameters, and after each",
    source="Karpathy 2019, A recipe for training neural networks: overfit one batch",
)  # fmt: skip
ITERATIONS = Option(name="iterations", type="int", default=100, low=1, high=100_000, help="Steps of training.")
RATE = Option(name="rate", type="float", default=0.01, help="Learning rate of Adam.")


@QUANTITIES.register("trial/one_batch")
@per_run(
    summary="whether a copy of the model learns this batch by heart", order=92, default=False, needs=(LOSS,),
    cost="100 steps of training on this batch", work=lambda run: run.call * 300, options=(ITERATIONS, RATE),
)  # fmt: skip
def one_batch(trace: Trace, emit: Emitter, iterations: int = 100, rate: float = 0.01) -> None:
    """Write (steps done,) losses, of 0 to all of them; training ends early where the loss is not finite.

    With dropout in training mode the loss of each step is one with other zeros, as in training.
    """
    try:
        trial = Trial(trace)
        losses = list[float]()
        held = stand_ins(trial.parameters)
        optimizer = torch.optim.Adam(held, lr=rate)
        with trial.ready():
            for done in range(iterations + 1):
                emit.check()
                emit.progress(min(done, iterations), iterations, "one batch")
                with trial.at([one.data for one in held]):
                    loss, gradients = trial.gradients()
                losses.append(loss)
                if done == iterations or not np.isfinite(loss):
                    break
                for one, gradient in zip(held, gradients, strict=True):
                    one.grad = gradient
                optimizer.step()
    except Unsupported as reason:
        emit.refuse(f"{PLACE}:trial/one_batch", str(reason))
        return
    name = f"{PLACE}:trial/one_batch"
    values = np.array(losses)
    emit.array(ABOUT.channel(name, ("iteration",), (len(values),), "float64", method=f"learning rate {rate:g}"), values)
    emit.scalar("trial/one_batch/iterations", float(iterations))
