"""Every tensor operation of the run, forward and backward, with numbers by which another run can be compared with it.

The model is called again for that, alone: probes would be among the operations.
"""

from __future__ import annotations

import torch
from torch import Tensor

from inspector.engine.analyses.operations.channels import write
from inspector.engine.analyses.operations.recorder import OperationRecorder
from inspector.engine.analyses.rerun import undisturbed
from inspector.engine.errors import model_error
from inspector.engine.model.batch import Batch
from inspector.engine.model.uncompiled import uncompiled
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import per_run
from inspector.engine.trace.trace import Trace
from inspector.records import OPERATIONS


@QUANTITIES.register("operations")
@per_run(
    summary="every tensor operation, forward and backward, with what `inspector diverge` compares", order=95,
    default=False, cost="the model runs again, each operation twice, some ten times slower",
    work=lambda run: run.call * 40,
)  # fmt: skip
def operations(trace: Trace, emit: Emitter) -> None:
    """Write the channels of analyses/operations/channels.py: names, lines, modules, inputs and outputs.

    Gradients are those of the sum of the loss, by parameter, as in the run itself; without a loss, only forward.
    """
    model = trace.subject.model
    with undisturbed(model, trace.seed), uncompiled(model), torch.enable_grad():
        batch = trace.subject.placed(trace.batch)
        recorder = OperationRecorder(model, _given(batch))
        try:
            with recorder:
                results = _run(trace, batch)
            for name, one in results:
                recorder.name(name, one)
        except (Exception, SystemExit) as fault:  # noqa: BLE001 - the user's model may raise anything
            emit.refuse(f"{OPERATIONS}:name", str(model_error(fault, "The model, called again,")))
    write(recorder, emit)


def _given(batch: Batch) -> list[tuple[str, Tensor]]:
    given = [(f"the input {name}", one.tensor) for name, one in batch.named.items()]
    given.append(("the targets", batch.targets))
    return [(name, one) for name, one in given if isinstance(one, Tensor)]


def _run(trace: Trace, batch: Batch) -> list[tuple[str, Tensor]]:
    """Forward, and backward where there is a loss: (name, tensor) of the loss and of each parameter's gradient."""
    subject = trace.subject
    output = subject.run(batch)
    loss = subject.loss_of(output, batch)
    if not isinstance(loss, Tensor) or not loss.requires_grad:
        return []
    carried = trace.loss_carried
    total = loss.sum() if carried is None else torch.where(carried.to(loss.device), loss, 0.0).sum()
    named = [(name, one) for name, one in subject.model.named_parameters() if one.requires_grad]
    found = torch.autograd.grad(total, [one for _, one in named], allow_unused=True)
    pairs = zip(named, found, strict=True)
    return [("loss", loss.detach()), *((f"gradient of {name}", g) for (name, _), g in pairs if g is not None)]
