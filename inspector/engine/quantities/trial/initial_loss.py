"""The loss before training beside that of a guess that knows nothing."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Trace
from inspector.records.catalogue import LOSS

ABOUT = Describe(
    kind="trial", compare="separate", unit="nat", title="loss beside that of even probabilities",
    formula="mean loss; ln V, V classes", source="Karpathy 2019, A recipe for training neural networks",
    labels={"statistic": ("mean", "even")},
)  # fmt: skip
IN_NATS = {"nat": 1.0, "bit": math.log(2.0)}


@QUANTITIES.register("trial/initial_loss")
@per_run(
    summary="the mean loss beside that of even probabilities", order=19, default=False, needs=(LOSS,),
    cost="nearly nothing", work=lambda run: run.call * 1,
)  # fmt: skip
def initial_loss(trace: Trace, emit: Emitter) -> None:
    """Write (statistic,): the mean loss in nats, and ln V of even probabilities over V classes; and the scalar
    `trial/initial_loss/trained`: 1 where weights were loaded. Only of a log-likelihood over classes."""
    scores, nats = trace.logits, IN_NATS.get(emit.loss_unit)
    if trace.loss is None or scores is None or nats is None or not isinstance(scores, Tensor):
        return
    carried = trace.loss_carried
    loss = trace.loss.detach() if carried is None else trace.loss.detach()[carried.to(trace.loss.device)]
    classes = int(torch.isfinite(scores).any(0).flatten(0, -2).any(0).sum()) if scores.dim() > 1 else 0
    if classes < 2 or not loss.numel():
        return
    values = np.array([float(loss.double().mean()) * nats, math.log(classes)])
    emit.array(ABOUT.channel("model:trial/initial_loss", ("statistic",), (2,), "float64"), values)
    emit.scalar("trial/initial_loss/trained", float(bool(trace.subject.checkpoint)))
