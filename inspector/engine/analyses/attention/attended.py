"""The model called again, with what the heads of its attention pass on and the gradient of one number at each of them.

The number is the loss, or the score of one class at one step. Every quantity of attention beside gradient reads the
same call: it is made once for each number and kept in the trace.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from inspector.engine.analyses.rerun import undisturbed
from inspector.engine.errors import Unsupported, model_error
from inspector.engine.model.subject import Batch
from inspector.engine.model.uncompiled import uncompiled
from inspector.engine.registries import PROBES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.heads import take_all
from inspector.engine.trace.products import Products
from inspector.engine.trace.step_axes import axes_beside
from inspector.engine.trace.trace import Attention, Trace
from inspector.records import Option

LOSS, SCORE = "loss", "score"
OF = Option(
    name="of", type="choice", default=LOSS, choices=(LOSS, SCORE),
    help="Of what the gradient is: the loss, or the score of one class at one step.",
)  # fmt: skip
STEP = Option(
    name="step", type="int", default=-1, low=-1,
    help="Of which step: −1 is all steps of the loss, and the last step with a score.",
)  # fmt: skip
TOKEN = Option(
    name="token", type="int", default=-1, low=-1, help="Of which class the score is: −1 is the most probable one."
)
TARGET = (OF, STEP, TOKEN)
AGAIN = "The model, called again,"
NOT_SEEN = "its softmax was not seen when the model was called again"
NO_NUMBER = "There is neither a loss nor a score at every step, so there is nothing to take a gradient of."
NO_SCORES = "There are no scores at every step, so no class can be chosen."
CUT = "The {} is not connected to any attention by autograd (no_grad or detach inside the model?)."
NO_STEP = "There is no step {}: the {} has the steps 0 to {}."


@dataclass(frozen=True, slots=True)
class Target:
    """The number whose gradient is taken; see the options of the same names."""

    of: str = LOSS
    step: int = -1
    token: int = -1


@dataclass(slots=True)
class Attended:
    """What one more call gave.

    Attributes:
        attentions: with their heads, and the gradient at them.
        of: what the gradient is of, as text; unit: of that number.
        value: that number.
        sign: −1 where a smaller number is better (a loss), 1 else.
    """

    attentions: list[Attention]
    of: str
    value: float
    sign: float


@dataclass(slots=True)
class KnownAttended:
    """The calls that were made, by their target."""

    by_target: dict[Target, Attended] = field(default_factory=dict)
    values: list[Attention] | None = None
    products: dict[str, list[Products] | str] | None = None


def attended(trace: Trace, target: Target) -> Attended:
    """Call the model again and take one gradient, or what an earlier call gave. Raises Unsupported with the reason."""
    known = trace.findings.of(KnownAttended).by_target
    if target not in known:
        with undisturbed(trace.subject.model, trace.seed), following(trace.subject.model):
            known[target] = _call(trace, target)
    return known[target]


def values_again(trace: Trace) -> list[Attention]:
    """The attentions of one more call with what their heads pass on, without a gradient. Raises Unsupported."""
    known = trace.findings.of(KnownAttended)
    if known.values is None:
        made = next(iter(known.by_target.values()), None)
        if made is not None:
            return made.attentions
        with undisturbed(trace.subject.model, trace.seed), torch.no_grad():
            known.values = recorded(trace)[1]
        for attention in known.values:
            for call in attention.heads.calls if attention.heads is not None else ():
                call.take = call.put = None
    return known.values


@contextmanager
def following(model: nn.Module) -> Iterator[None]:
    """Inside, every parameter of floating point needs a gradient, so that autograd follows frozen models too."""
    frozen = [one for one in model.parameters() if one.is_floating_point() and not one.requires_grad]
    for one in frozen:
        one.requires_grad_(True)
    try:
        with torch.enable_grad(), uncompiled(model):
            yield
    finally:
        for one in frozen:
            one.requires_grad_(False)


def on_other_input(trace: Trace, ids: Tensor) -> list[Attention]:
    """The attentions of one more call in which the selected sequence has as many other tokens (t,).

    Raises Unsupported.
    """
    batch = trace.batch
    changed = Batch.of(batch.named, batch.primary, targets=batch.targets, look_at=batch.look_at, title=batch.title)
    changed.inputs = batch.inputs.clone()
    changed.inputs[batch.look_at, : len(ids)] = ids.to(changed.inputs)
    with undisturbed(trace.subject.model, trace.seed), torch.no_grad():
        return recorded(trace, changed)[1]


def with_gradients(batch: Batch) -> Batch:
    """The batch with numbers that need a gradient, so that what is made of them before any parameter has one too."""
    if not batch.inputs.is_floating_point():
        return batch
    own = Batch.of(batch.named, batch.primary, targets=batch.targets, look_at=batch.look_at, title=batch.title)
    own.inputs = batch.inputs.detach().clone().requires_grad_()
    return own


def products_again(trace: Trace) -> dict[str, list[Products] | str]:
    """Of what the scores of each attention that the model computes itself are made, by place, from one more call; or
    why that is not known. Raises Unsupported."""
    known = trace.findings.of(KnownAttended)
    if known.products is None:
        with undisturbed(trace.subject.model, trace.seed), following(trace.subject.model):
            made = recorded(trace, products=True)[1]
        known.products = {one.place: one.products or NOT_SEEN for one in made if one.weights is not None}
    return known.products


def recorded(
    trace: Trace, batch: Batch | None = None, *, products: bool = False, lineages: bool = False
) -> tuple[Any, list[Attention]]:
    """The output of one more call, with its graph, and its attentions with their heads; with what their scores are made
    of, and of which earlier ones they were computed, where that is asked. Raises Unsupported."""
    subject, given = trace.subject, batch or trace.batch
    given = with_gradients(given) if products else given
    fresh = Trace(
        subject, subject.placed(given), seed=trace.seed, passing_on=True, products=products, lineages=lineages
    )
    fresh.batch_axes = dict(trace.batch_axes)
    emit = Emitter(Unshown())
    probe = PROBES["attention"]()
    probe.attach(subject.model, fresh, emit)
    try:
        output = subject.run(fresh.batch)
    except (Exception, SystemExit) as fault:  # noqa: BLE001 - the user's code may raise anything
        raise Unsupported(str(model_error(fault, AGAIN))) from None
    finally:
        probe.detach()
    probe.finish(fresh, emit)
    _name_keys(trace, fresh.attentions)
    _name_axes(trace, fresh.attentions)
    return output, fresh.attentions


def _name_keys(trace: Trace, again: list[Attention]) -> None:
    """A call without a graph does not show of which sequence keys are: it is as in the run that is shown."""
    known = {one.place: one for one in trace.attentions if one.source_asked}
    for one in again:
        before = known.get(one.place)
        if before is not None and one.of_itself and not one.first_query and not before.of_itself:
            one.keys_from = before.keys_from if not before.source_known else "source step"
        elif before is not None and not one.of_itself and before.of_itself and not before.first_query:
            one.keys_from = one.queries_from


def _name_axes(trace: Trace, again: list[Attention]) -> None:
    """Maps of one attention lie over the axes that the run gave to it, so that they are found beside its weights.

    Only where a run has several: elsewhere all attention is over the steps of the one input.
    """
    shown = {one.place: one for one in trace.attentions}
    for one in again if axes_beside(trace) else ():
        before = shown.get(one.place)
        if before is not None and before.of_itself == one.of_itself and before.first_query == one.first_query:
            one.queries_from, one.keys_from = before.queries_from, before.keys_from


class Unshown:
    """A sink for a call that is not shown."""

    def write(self, record: Any) -> None:
        """Nothing is kept."""


def _call(trace: Trace, target: Target) -> Attended:
    output, attentions = recorded(trace)
    number, text, sign = chosen(trace, output, target)
    heads = [one.heads for one in attentions if one.heads is not None]
    calls = [call for one in heads for call in one.calls]
    if not number.requires_grad or (calls and not any(call.edge for call in calls)):
        raise Unsupported(CUT.format(text))
    take_all(heads, number)
    return Attended(attentions, text, float(number.detach()), sign)


def chosen(trace: Trace, output: Any, target: Target) -> tuple[Tensor, str, float]:
    """(the number with its graph, what it is, its sign as `Attended` has it). Raises Unsupported."""
    if target.of == LOSS and trace.loss_given:
        return *_of_loss(trace, output, target.step), -1.0
    if target.of == LOSS and trace.logits is None:
        raise Unsupported(NO_NUMBER)
    return *of_score(trace, output, target.step, target.token), 1.0


def _of_loss(trace: Trace, output: Any, step: int) -> tuple[Tensor, str]:
    try:
        loss = trace.subject.loss_of(output, trace.subject.placed(trace.batch))
    except (Exception, SystemExit) as fault:  # noqa: BLE001 - the user's code may raise anything
        raise Unsupported(str(model_error(fault, "The loss, called again,"))) from None
    if not isinstance(loss, Tensor):
        raise Unsupported(NO_NUMBER)
    carried = ~loss.isnan() if trace.loss_carried is None else trace.loss_carried.to(loss.device)
    if step < 0 or trace.loss is None:
        return torch.where(carried, loss, 0.0).sum(), "loss, summed over its steps"
    length = trace.batch.length if trace.answer is None else trace.answer.length(trace.look_at)
    if step >= length:
        raise Unsupported(NO_STEP.format(step, "loss", length - 1))
    return loss[trace.look_at, step], f"loss of step {step}"


def of_score(trace: Trace, output: Any, step: int = -1, token: int = -1) -> tuple[Tensor, str]:
    """(the score of one class at one step of the selected sequence, as text). Raises Unsupported."""
    rows = scores_of(trace, output)
    at = len(rows) - 1 if step < 0 else step
    if at >= len(rows):
        raise Unsupported(NO_STEP.format(step, "output", len(rows) - 1))
    index = int(rows[at].detach().argmax()) if token < 0 else token
    if index >= rows.shape[1]:
        raise Unsupported(f"There is no class {index}: the scores have {rows.shape[1]} classes.")
    return rows[at, index], f"score of class {index}{class_name(trace, rows.shape[1], index)} at step {at}"


def scores_of(trace: Trace, output: Any) -> Tensor:
    """(t, v) the scores of the selected sequence, with their graph, without padding. Raises Unsupported."""
    scores = trace.subject.scores(output)
    if not isinstance(scores, Tensor) or scores.dim() != 3:
        raise Unsupported(NO_SCORES)
    length = trace.batch.length if trace.answer is None else trace.answer.length(trace.look_at)
    return scores[trace.look_at, : min(length, scores.shape[1])]


def class_name(trace: Trace, width: int, index: int) -> str:
    """ " ('the')", or "" where classes have no names."""
    names = trace.subject.classes(width)[1]
    return f" ({names[index]!r})" if names is not None else ""
