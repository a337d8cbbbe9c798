"""Is the loss given scores, or what a softmax has made of them already? Read off autograd's graph of one call."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from inspector.engine.analyses.rerun import undisturbed
from inspector.engine.errors import Unsupported, model_error
from inspector.engine.hooks.loss_broadcast import CROSSED, crosses_all
from inspector.engine.hooks.loss_nodes import WRONG, are_shares, origin, wrong_input
from inspector.engine.model.uncompiled import uncompiled
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Trace
from inspector.records.catalogue import LOSS

NAME = "model:structure/loss_input"
ABOUT = Describe(
    kind="structure", compare="separate", title="what the loss is given", limits=(0.0, len(WRONG) - 1.0),
    formula=", ".join(f"{n}: {word}" for n, word in enumerate(WRONG)),
    source="torch.nn.CrossEntropyLoss: the input is expected to contain unnormalised logits",
)  # fmt: skip


@QUANTITIES.register("structure/loss_input")
@per_run(
    summary="whether the loss is given scores or what a softmax made of them", order=90, default=False, needs=(LOSS,),
    cost="one run of the model", work=lambda run: run.call * 1,
)  # fmt: skip
def loss_input(trace: Trace, emit: Emitter) -> None:
    """Write (value,), one number; nothing where no cross-entropy of torch's is seen in the loss."""
    subject, batch = trace.subject, trace.subject.placed(trace.batch)
    try:
        with undisturbed(subject.model, trace.seed), uncompiled(subject.model), torch.enable_grad():
            output = subject.run(batch)
            loss = subject.loss_of(output, batch)
            if not isinstance(loss, Tensor) or loss.grad_fn is None:
                return
            scores = subject.scores(output)
            made = origin(scores) if isinstance(scores, Tensor) and are_shares(scores.detach()) else None
            found = wrong_input(loss, lambda node: made is not None and node is made)
            found = CROSSED if crosses_all(loss) else found
    except (Exception, SystemExit) as fault:  # noqa: BLE001 - the user's code may raise anything
        reason = fault if isinstance(fault, Unsupported) else model_error(fault, "The loss, called again,")
        emit.refuse(NAME, str(reason))
        return
    if found is not None:
        emit.array(ABOUT.channel(NAME, ("value",), (1,), "float64"), np.array([float(found)]))
