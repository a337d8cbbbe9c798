"""Answers with steps of their own: how many steps there are, what they are called, and what runs over them.

An encoder reads T_x steps and a decoder says T_y others. What the decoder does is laid out over the answer's steps, so
that step 3 of the answer is never drawn as step 3 of the input.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from inspector.engine.errors import Unsupported
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.trace.answer import Answer
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Attention, Recurrence, Trace
from inspector.records import ANSWER_DOMAIN, STEP_DOMAIN, Log, place_name

EXPECTED = (
    "`answer` gave {}; expected ids ({}, t) with a negative id at padding, or the labels of each of the {} sequences."
)
NOTHING = "`answer` gave nothing and the output has no scores ({}, t, v), so the steps of the answer are not known."
EMPTY = "The answer of the sequence looked at has no steps."
AMBIGUOUS = (
    "The answer has as many steps as the input, so it cannot be told which layers run over the answer: all are drawn "
    "over the input's steps. Name the answer's in `decoder`."
)


def read_answer(subject: Subject, output: Any, batch: Batch, scores: Tensor | None) -> Answer:
    """What the subject says its answer is; the model's likeliest ids where it has none. Raises Unsupported."""
    assert subject.answer is not None
    found = subject.answer(output, batch)
    size = len(batch.lengths)
    if found is None:
        if not isinstance(scores, Tensor) or scores.dim() != 3 or len(scores) != size:
            raise Unsupported(NOTHING.format(size))
        ids = scores.detach().argmax(-1).cpu()
        steps = ids.shape[1]
        return Answer(steps, torch.full((size,), steps), None, _labels(subject, ids[batch.look_at].tolist()))
    if isinstance(found, Tensor):
        return _of_ids(subject, found, batch)
    if not isinstance(found, Sequence) or len(found) != size or not all(isinstance(row, Sequence) for row in found):
        raise Unsupported(EXPECTED.format(f"a {type(found).__name__}", size, size))
    lengths = torch.tensor([len(row) for row in found])
    return Answer(int(lengths.max()), lengths, None, tuple(map(str, found[batch.look_at])))


def _of_ids(subject: Subject, found: Tensor, batch: Batch) -> Answer:
    size = len(batch.lengths)
    if found.dim() != 2 or len(found) != size or found.is_floating_point():
        raise Unsupported(EXPECTED.format(f"{found.dtype} of shape {tuple(found.shape)}", size, size))
    ids = found.detach().cpu().long()
    places = torch.arange(1, ids.shape[1] + 1) * (ids >= 0)
    lengths = places.amax(1) if ids.shape[1] else torch.zeros(size, dtype=torch.int64)
    own = ids[batch.look_at, : int(lengths[batch.look_at])]
    return Answer(ids.shape[1], lengths, ids, _labels(subject, own.tolist()))


def _labels(subject: Subject, ids: list[int]) -> tuple[str, ...]:
    known = subject.labels if subject.labels is not None else subject.vocabulary
    names = () if known is None else known
    return tuple("" if i < 0 else str(names[i]) if i < len(names) else str(i) for i in ids)


def settle(trace: Trace, emit: Emitter) -> None:
    """Give what runs over the answer its steps, their lengths and their labels; nothing where there is no answer."""
    answer = trace.answer
    if answer is None:
        return
    emit.labels(ANSWER_DOMAIN, answer.names)
    emit.step_domains["output"] = ANSWER_DOMAIN
    if not answer.length(trace.look_at):
        emit.refuse("output:answer", EMPTY)
    equal = answer.steps in (trace.batch.inputs.shape[1], int(trace.batch.lengths.max()))
    if equal and not trace.subject.decoder and (trace.recurrences or trace.attentions):
        emit.sink.write(Log(AMBIGUOUS, "warning", "engine"))
    for recurrence in trace.recurrences:
        if runs_over(trace, recurrence.place, recurrence.steps):
            _lay_out(recurrence, answer)
            emit.step_domains[place_name(recurrence.place)] = ANSWER_DOMAIN
    for attention in trace.attentions:
        _lay_out_attention(trace, attention, answer)


def runs_over(trace: Trace, place: str, steps: int) -> bool:
    """Whether what happens at a place in so many steps happens over the answer's.

    The subject's word counts first; without it, the number of steps where that is not the input's as well.
    """
    if trace.answer is None:
        return False
    if trace.subject.decoder:
        return trace.subject.decodes(place)
    given = (trace.batch.inputs.shape[1], int(trace.batch.lengths.max()))
    return steps == trace.answer.steps and steps not in given


def _lay_out(recurrence: Recurrence, answer: Answer) -> None:
    recurrence.domain = ANSWER_DOMAIN
    if not recurrence.reverse:  # backwards, the first step is wherever the kernel began
        held = slice(recurrence.base, recurrence.base + len(recurrence.lengths))
        recurrence.lengths = answer.lengths[held].clamp(max=recurrence.steps)


def _lay_out_attention(trace: Trace, attention: Attention, answer: Answer) -> None:
    """Queries, and keys of as many positions in self-attention, are the answer's; other keys are the input's."""
    shape = (attention.query if attention.weights is None else attention.weights).shape
    queries = shape[-2]
    keys = attention.key.shape[-2] if attention.weights is None else shape[-1]
    if not runs_over(trace, attention.place, queries):
        return
    attention.queries_from = ANSWER_DOMAIN
    given = (trace.batch.inputs.shape[1], trace.batch.length)
    if attention.keys_from != "source step":
        attention.keys_from = "position" if attention.first_query else ANSWER_DOMAIN
    elif keys in given:
        attention.keys_from = STEP_DOMAIN
    _cut(attention, answer.length(trace.look_at))


def _cut(attention: Attention, length: int) -> None:
    """Take off the rows that are padding of the answer, and their keys where a later key is never looked at."""
    square = attention.keys_from == ANSWER_DOMAIN and attention.causal
    rows, keys = slice(length), slice(length) if square else slice(None)
    if attention.weights is not None:
        later = attention.keys_from == ANSWER_DOMAIN and not bool(attention.weights[..., rows, length:].any())
        attention.weights = attention.weights[..., rows, slice(length) if later else slice(None)]
        keys = slice(length) if later else keys
    else:
        attention.query, attention.key = attention.query[..., rows, :], attention.key[..., keys, :]
        attention.value = None if attention.value is None else attention.value[..., keys, :]
    if attention.mask is not None:
        mask = attention.mask if attention.mask.shape[-2] == 1 else attention.mask[..., rows, :]
        attention.mask = mask if mask.shape[-1] == 1 else mask[..., keys]
