"""What does attention do with its scores? Read off autograd's graph of one call."""

from __future__ import annotations

import numpy as np
import torch

from inspector.engine.analyses.rerun import undisturbed
from inspector.engine.errors import Unsupported, model_error
from inspector.engine.hooks.score_facts import score_facts
from inspector.engine.model.tensors_within import tensors_within
from inspector.engine.model.uncompiled import uncompiled
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Trace
from inspector.records.scores import SCORES

NAME = "model:structure/scores"
NONE_SEEN = "No softmax over a product of queries and keys was seen in the graph of one call."
ABOUT = Describe(
    kind="structure", compare="separate", title="what attention does with its scores", labels={"statistic": SCORES},
    formula="factor c in softmax(c · q·k); matrix products on the shortest way between attention layers",
    source="Vaswani et al. 2017, arXiv 1706.03762, section 3.2.1",
)  # fmt: skip


@QUANTITIES.register("structure/scores")
@per_run(
    summary="how scores of attention are scaled, bent and turned, and whether layers have a way round", order=90,
    default=False, cost="one run of the model", work=lambda run: run.call * 1,
)  # fmt: skip
def scores(trace: Trace, emit: Emitter) -> None:
    """Write (statistic,); of attention in whose graph no softmax over a product of queries and keys is seen that is
    said, and nothing of a model without attention."""
    subject, batch = trace.subject, trace.subject.placed(trace.batch)
    try:
        with undisturbed(subject.model, trace.seed), uncompiled(subject.model), torch.enable_grad():
            output = subject.run(batch)
            found = score_facts([one for one in tensors_within(output) if one.grad_fn is not None])
    except (Exception, SystemExit) as fault:  # noqa: BLE001 - the user's code may raise anything
        reason = fault if isinstance(fault, Unsupported) else model_error(fault, "The model, called again,")
        emit.refuse(NAME, str(reason))
        return
    if found is not None:
        emit.array(ABOUT.channel(NAME, ("statistic",), (len(SCORES),), "float64"), np.array(found))
    elif trace.attentions:
        emit.refuse(NAME, NONE_SEEN)
