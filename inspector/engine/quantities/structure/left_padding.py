"""Do a sequence's outputs depend on the padding in front of it, where it was given with some?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from inspector.engine.analyses.structure.calls import Answer, Calls, sequences_of
from inspector.engine.analyses.structure.changes import SingleStep, alone
from inspector.engine.analyses.structure.findings import PLACE, Found, write
from inspector.engine.errors import NotApplicable, Unsupported
from inspector.engine.model.batch import Batch, NamedInput
from inspector.engine.model.subject import Subject
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Trace

ABOUT = Describe(
    kind="structure", compare="separate", scale="log", title="change of an output with the padding in front",
    formula="max_f |y'_t[f] − y_t[f]| / max |y| at the real steps, with and without the padding on the left",
    source="finite differences; huggingface/transformers, padding_side and position_ids",
)  # fmt: skip


BEGINNINGS = ("bos_token_id", "decoder_start_token_id")
"""Of a configuration: ids with which a sequence begins, which some models share with padding."""


@QUANTITIES.register("structure/left_padding")
@per_run(
    summary="whether a sequence's outputs depend on the padding in front of it", order=90, default=False,
    cost="three runs of the model", work=lambda run: run.call * 3,
)  # fmt: skip
def left_padding(trace: Trace, emit: Emitter) -> None:
    """Write (part, step) changes, one row, NaN at the steps of padding; nothing of a sequence without any in front.

    What is padding is what a mask marks, else the id that an embedding (`padding_idx`) or the configuration of the
    model (`pad_token_id`) declares as such. `structure/left_padding/steps`: how many; `…/masked`: 1 for a mask.
    """
    try:
        calls, one = Calls(trace), alone(trace.batch)
        masked = by_mask(trace.subject, one)
        amount = masked or by_id(trace.subject, one)
        if not amount:
            return
        first, second = alike(calls.settled(one), calls.answer(without(one, amount)))
        change = first_real(first, amount).change(second)[0]
    except (NotApplicable, SingleStep):
        return
    except Unsupported as reason:
        emit.refuse(f"{PLACE}:structure/left_padding", str(reason))
        return
    padding = torch.full((amount if first.steps else 0,), torch.nan, dtype=torch.float64)
    about = replace(ABOUT, labels={"part": (f"{amount} in front",)})
    dims = ("part", "step") if first.steps else ("part", "value")
    write(Found("left_padding", about, dims, torch.cat([padding, change])[None].numpy(), 8 * first.rounding), emit)
    emit.scalar("structure/left_padding/steps", float(amount))
    emit.scalar("structure/left_padding/masked", float(bool(masked)))


def by_mask(subject: Subject, batch: Batch) -> int:
    """Steps in front of the only sequence that a mask along it marks as padding; 0 where none does, or all are."""
    for name in sequences_of(batch):
        one = batch.named[name]
        if one.kind == "mask" and one.tensor is not None and one.tensor.dim() == 2:
            marks = subject.declared[name].marks if name in subject.declared else "real"
            if found := _in_front(one.tensor[0].bool() ^ (marks == "real")):
                return found
    return 0


def by_id(subject: Subject, batch: Batch) -> int:
    """The same of ids that are declared as padding, and with which no sequence begins by itself."""
    if batch.first.kind != "tokens" or batch.inputs.dim() != 2:
        return 0
    declared = [one.padding_idx for one in subject.model.modules() if isinstance(one, (nn.Embedding, nn.EmbeddingBag))]
    config = getattr(subject.model, "config", None)
    declared.append(getattr(config, "pad_token_id", None))
    begins = {getattr(config, name, None) for name in BEGINNINGS}
    ids = {one for one in declared if isinstance(one, int)} - begins
    return max((_in_front(batch.inputs[0] == one) for one in ids), default=0)


def _in_front(padding: Tensor) -> int:
    real = np.flatnonzero(~padding.cpu().numpy())
    return int(real[0]) if len(real) else 0


def alike(first: Answer, second: Answer) -> tuple[Answer, Answer]:
    """Both over steps, or neither: as many numbers as one of the two sequences has steps may look like steps."""
    if first.steps and second.steps:
        return first, second
    one, other = (Answer(each.values.reshape(1, 1, -1), steps=False) for each in (first, second))
    if one.values.shape != other.values.shape:
        raise Unsupported("The model's outputs have other forms with the padding in front and without it.")
    return one, other


def first_real(answer: Answer, amount: int) -> Answer:
    """An answer without what it says of the padding in front."""
    return Answer(answer.values[:, amount:], True) if answer.steps else answer


def without(batch: Batch, amount: int) -> Batch:
    """The batch of one sequence without so many steps in front, in every input that lies along its steps."""
    along, steps = set(sequences_of(batch)), batch.steps
    named = {
        name: _cut(one, amount) if name in along or _lies_along(one, steps) else one
        for name, one in batch.named.items()
    }
    return Batch.of(named, batch.primary, targets=batch.targets, title=batch.title)


def _lies_along(one: NamedInput, steps: int) -> bool:
    """Whether an array has a number for each step, as the positions of tokens do."""
    return one.kind == "other" and one.tensor is not None and one.tensor.dim() == 2 and one.tensor.shape[1] == steps


def _cut(one: NamedInput, amount: int) -> NamedInput:
    assert one.tensor is not None
    lengths = (one.lengths - amount).clamp(min=1) if one.axis else one.lengths
    return replace(one, tensor=one.tensor[:, amount:], lengths=lengths, names=tuple(row[amount:] for row in one.names))
