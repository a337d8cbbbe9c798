"""The results of a call, put into the trace: output, scores, the output's step axis and the loss, each rejected with a
reason where it has an unexpected form."""

from __future__ import annotations

from torch import Tensor

from inspector.engine.errors import Unsupported, model_error
from inspector.engine.pipeline.loss_steps import loss_steps
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.loss_unit import loss_unit
from inspector.engine.trace.target_steps import answer_of_input, output_steps, read_answer
from inspector.engine.trace.trace import Trace
from inspector.engine.wording import a_class
from inspector.records import Log

OWN_LOSS = "The loss and its gradients are the model's own: the subject gives none, and the output has `loss`."
WITHOUT_GRADIENTS = (
    "The output has a loss, but the model ran without gradients, since nothing in its code showed one. For gradients "
    "give the subject `loss=lambda output, batch: output.loss`."
)
SCALAR = (
    "The loss in the model's output is one number, so there is none by step (a `loss` of the subject's gives one, "
    "with reduction='none'). Gradients are those of the one number."
)


def keep_output(trace: Trace, output: object, emit: Emitter) -> None:
    """Store the output, its scores (b, t, v), and the output's own step axis where it has one. Raises ModelError."""
    subject, batch = trace.subject, trace.batch
    trace.output = output
    scores = subject.scores(output)
    trace.logits = None if scores is None else scores.detach().cpu()
    if isinstance(output, Tensor) and isinstance(scores, Tensor):
        trace.scores_are_output = output.data_ptr() == scores.data_ptr()
    if subject.answer is not None:
        _keep_answer(trace, output, emit)
    else:
        steps = output_steps(output, scores, batch.size)
        trace.answer = None if steps is None else answer_of_input(trace, steps)


def _keep_answer(trace: Trace, output: object, emit: Emitter) -> None:
    """Store the step axis of the output, or the reason why it is not known."""
    try:
        trace.answer = read_answer(trace.subject, output, trace.batch, trace.logits)
    except Unsupported as reason:
        emit.refuse("output:answer", str(reason))
    except (Exception, SystemExit) as fault:
        raise model_error(fault, f"`answer` of {trace.subject.name}") from fault


def loss_of(trace: Trace, output: object, emit: Emitter) -> Tensor | None:
    """The loss of the subject, or else of the output, stored by step where it has one value a step;
    None where there is none."""
    subject, batch = trace.subject, trace.batch
    try:
        loss: object = subject.loss_of(output, batch)
    except Unsupported as reason:
        emit.refuse("output:loss", str(reason))
        return None
    except (Exception, SystemExit) as fault:
        raise model_error(fault, f"The loss of {subject.name}") from fault
    if subject.loss is None:
        if loss is None:
            return None
        own = isinstance(loss, Tensor) and loss.requires_grad
        emit.sink.write(Log(OWN_LOSS if own else WITHOUT_GRADIENTS, "info" if own else "warning", "engine"))
    return keep_loss(trace, loss, emit)


def keep_loss(trace: Trace, loss: object, emit: Emitter) -> Tensor | None:
    """Store a loss by step only where it has one value a step, and reject it with the reason elsewhere.

    Returns the loss where it is a tensor, so that a gradient can be taken of its sum.
    """
    subject, batch = trace.subject, trace.batch
    if trace.answer is None and subject.answer is None and isinstance(loss, Tensor) and loss.dim() == 2:
        trace.answer = answer_of_input(trace, loss.shape[1])
    if isinstance(loss, Tensor):
        emit.loss_unit = loss_unit(loss, subject.loss_unit)
        trace.loss_carried = loss_steps(trace, trace.output, loss).cpu()
        trace.loss_terms = int(trace.loss_carried.sum())
    answer = trace.answer
    expected = (batch.size, batch.steps if answer is None else answer.steps)
    if not isinstance(loss, Tensor):
        emit.refuse("output:loss", f"The loss is {a_class(loss)}; expected a tensor of shape {expected}.")
        return None
    if tuple(loss.shape) == expected:
        trace.loss = loss.detach().cpu()
    elif subject.loss is None and not loss.dim():
        emit.refuse("output:loss", SCALAR)
        emit.scalar("output:loss/mean", float(loss.detach()))
    else:
        emit.refuse(
            "output:loss",
            f"The loss has shape {tuple(loss.shape)}; expected one value a step, {expected}: reduction='none', and NaN "
            "where a step carries none. Gradients are those of its sum.",
        )
        if loss.numel():
            emit.scalar("output:loss/mean", mean_loss(trace, loss))
    return loss


def mean_loss(trace: Trace, loss: Tensor) -> float:
    """The mean over the entries that carry a loss; NaN where one of these is, and where none does."""
    assert trace.loss_carried is not None
    return float(loss.detach().cpu().double()[trace.loss_carried].mean())
