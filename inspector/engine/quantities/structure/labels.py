"""Which input is each output asked for: its own, the next one, or one further? Exact, from the data and the loss."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from inspector.engine.analyses.rerun import undisturbed
from inspector.engine.errors import Unsupported, model_error
from inspector.engine.model.batch import Batch
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Trace
from inspector.records.catalogue import LOSS

PLACE = "model"
SHIFTS = (-2, -1, 0, 1, 2, 3)
ABOUT = Describe(
    kind="structure", compare="separate", title="targets that are the input so many steps later",
    formula="share of targets with y_t = x_{t+s}, t the step of the scores from which the loss takes the target",
    source="huggingface/transformers: labels are shifted inside the model", labels={"value": tuple(map(str, SHIFTS))},
)  # fmt: skip


@QUANTITIES.register("structure/labels")
@per_run(
    summary="which input each output is asked for: its own, the next, or one further", order=90, default=False,
    needs=(LOSS,), cost="one run of the model", work=lambda run: run.call * 3,
)  # fmt: skip
def labels(trace: Trace, emit: Emitter) -> None:
    """Write (value,) shares by shift, and the scalar `structure/labels/targets`, how many were compared.

    Nothing without targets that are ids along the steps of the inputs, unless the subject says that it predicts the
    next token: then its loss may take the targets from its inputs, of which one is replaced, for the loss alone.
    """
    batch, targets = trace.batch, trace.batch.targets
    if batch.first.kind != "tokens" or batch.inputs.dim() != 2:
        return
    if targets is None and trace.subject.next_token:
        _from_inputs(trace, emit, batch)
        return
    if not isinstance(targets, Tensor):
        return
    if targets.is_floating_point() or targets.shape != batch.inputs.shape:
        return
    try:
        moved = _moved(trace, batch, targets)
    except Unsupported as reason:
        emit.refuse(f"{PLACE}:structure/labels", str(reason))
        return
    shares, count = _shares(batch, targets, moved)
    emit.scalar("structure/labels/targets", float(count))
    emit.array(ABOUT.channel(f"{PLACE}:structure/labels", ("value",), (len(SHIFTS),), "float64"), shares)


def _from_inputs(trace: Trace, emit: Emitter, batch: Batch) -> None:
    """Of a loss that reads its targets off the inputs: at three steps of the sequence, which scores one id meets."""
    real = int(batch.lengths[batch.look_at])
    try:
        found = {_met(trace, batch, batch.inputs, at) for at in {real // 4, real // 2, (3 * real) // 4}}
    except Unsupported:
        return  # a loss that reads targets in a way of its own, of which nothing is known
    shifts = {shift for shift, _ in found}
    if len(shifts) == 1 and (shift := shifts.pop()) in SHIFTS:
        emit.scalar("structure/labels/targets", float(min(count for _, count in found)))
        about = ABOUT.channel(f"{PLACE}:structure/labels", ("value",), (len(SHIFTS),), "float64")
        emit.array(about, np.array([float(one == shift) for one in SHIFTS]))


def _shares(batch: Batch, targets: Tensor, moved: int) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], int]:
    """(share by shift, number of targets), where targets[t + moved] is what the scores of step t are asked for."""
    inputs, wanted, counts = batch.inputs.cpu(), targets.cpu(), []
    steps = torch.arange(inputs.shape[1])
    total = 0
    for shift in SHIFTS:
        at = (
            steps + shift - moved
        )  # targets[u] is asked at step u − moved, and is compared with input u − moved + shift
        there = (at >= 0) & (at < inputs.shape[1])
        real = there & (at < batch.lengths[:, None]) & (wanted >= 0)
        same = (inputs[:, at.clamp(0, inputs.shape[1] - 1)] == wanted) & real
        counts.append(float(same.sum() / real.sum()) if bool(real.any()) else 0.0)
        total = max(total, int(real.sum()))
    return np.array(counts), total


def _moved(trace: Trace, batch: Batch, targets: Tensor) -> int:
    """How many steps after those of the scores the loss takes its targets: 1 where it shifts them itself.

    One target is replaced: the scores whose gradient changes are those that were asked for it. Raises Unsupported.
    """
    known = torch.nonzero(targets[batch.look_at] >= 0).flatten().tolist()
    classes = 0 if trace.logits is None else trace.logits.shape[-1]
    if len(known) < 3 or classes < 2:
        raise Unsupported("Fewer than three targets, or no scores, so it cannot be seen which input is asked for.")
    at = known[len(known) // 2]
    return _met(trace, batch, targets, at)[0]


def _met(trace: Trace, batch: Batch, ids: Tensor, at: int) -> tuple[int, int]:
    """(how many steps after the scores that it meets the id of step `at` lies, how many steps have scores that the loss
    asks for): `ids` are the targets, or the inputs where there are none. Raises Unsupported."""
    subject, row = trace.subject, batch.look_at
    other = ids.clone()
    classes = 0 if trace.logits is None else trace.logits.shape[-1]
    other[row, at] = (int(other[row, at]) + 1) % max(1, classes)
    try:
        with undisturbed(subject.model, trace.seed), torch.enable_grad():
            output = subject.run(subject.placed(batch))
            scores = subject.scores(output)
            if not isinstance(scores, Tensor) or not scores.requires_grad:
                raise Unsupported("The scores have no gradient, so it cannot be seen which of them a target meets.")
            found = [_gradient(trace, output, scores, one) for one in (ids, other)]
    except (Exception, SystemExit) as fault:
        if isinstance(fault, Unsupported):
            raise
        raise Unsupported(str(model_error(fault, "The loss, called again,"))) from None
    steps = torch.nonzero((found[0] != found[1])[row].flatten(1).any(1)).flatten().tolist()
    if len(steps) != 1:
        raise Unsupported("A target that is replaced changes the gradient of several scores, or of none.")
    return int(at - steps[0]), int((found[0] != 0).flatten(2).any(2).sum())


def _gradient(trace: Trace, output: object, scores: Tensor, ids: Tensor) -> Tensor:
    """Of the loss by the scores, with these targets; where there are none, with these inputs, for the loss alone."""
    given = trace.batch
    batch = Batch.of(given.named, given.primary, targets=None if given.targets is None else ids, look_at=given.look_at)
    if given.targets is None:
        batch.inputs = ids
    loss = trace.subject.loss_of(output, trace.subject.placed(batch))
    if not isinstance(loss, Tensor) or not loss.requires_grad:
        raise Unsupported(
            "The loss is not computed from the targets again, so it cannot be seen what they are asked of."
        )
    gradient = torch.autograd.grad(loss.nansum(), scores, retain_graph=True, allow_unused=True)[0]
    if gradient is None:
        raise Unsupported("The loss does not use the scores, so it cannot be seen which of them a target meets.")
    return gradient.detach().cpu()
