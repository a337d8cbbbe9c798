"""Outputs and inputs with step axes of their own: their number of steps, their labels, the channels over them.

An encoder reads T_x steps and a decoder writes T_y others. Channels of the decoder lie over the output's step axis, so
that step 3 of the output is never shown as step 3 of the input. The output's steps are those that the subject's
`answer` gives; without it, those of the input that has as many steps as the output ("tgt", the target of the model).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import torch
from torch import Tensor

from inspector.engine.errors import Unsupported
from inspector.engine.model.batch import INPUT
from inspector.engine.model.model_output import candidates
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.trace.answer import Answer
from inspector.engine.trace.axis_records import name_layers, write_axes
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.initial_keys import number_keys
from inspector.engine.trace.own_axes import assign_reads, give_own_axis
from inspector.engine.trace.step_axes import (
    StepAxis,
    axes_beside,
    axis_at,
    axis_of_input,
    declared_axis,
    of_primary,
    patches_of,
)  # fmt: skip
from inspector.engine.trace.time_major import warn_of_time_major
from inspector.engine.trace.trace import Attention, Recurrence, Trace
from inspector.engine.wording import a_class
from inspector.records import ANSWER_DOMAIN, LAYER_DOMAIN, STEP_DOMAIN, Log, place_name

EXPECTED = (
    "`answer` gave {}; expected ids ({}, t) with a negative id at padding, or the labels of each of the {} sequences."
)
NOTHING = "`answer` gave nothing and the output has no scores ({}, t, v), so the steps of the answer are not known."
EMPTY = "The answer of the selected sequence has no steps."
AMBIGUOUS = (
    "The answer has as many steps as the input, so it is not known which layers run over the answer: all are shown "
    "over the input's steps. Name the answer's layers in `decoder`."
)
ALIKE = (
    "{0} and {1} have as many steps, so it is not known which layers run over {1}: all are shown over the steps of "
    "{0}. Name those of {1} in its `modules`, or in `decoder`; if both share their steps, declare `axis={0!r}` for {1}."
)

QUERY = "query"
"""Label domain of queries that are no steps of an input, where the keys are."""


def read_answer(subject: Subject, output: Any, batch: Batch, scores: Tensor | None) -> Answer:
    """The answer by the subject's `answer`; the model's most probable ids where it has none. Raises Unsupported."""
    assert subject.answer is not None
    found = subject.answer(output, batch)
    size, speaking = batch.size, _token_input(subject, batch)
    if found is None:
        if not isinstance(scores, Tensor) or scores.dim() != 3 or len(scores) != size:
            raise Unsupported(NOTHING.format(size))
        ids = scores.detach().argmax(-1).cpu()
        steps, names = ids.shape[1], _labels(subject, ids[batch.look_at].tolist(), scores.shape[-1], speaking)
        return Answer(steps, torch.full((size,), steps), None, names, vocabulary_of=speaking)
    if isinstance(found, Tensor):
        return _of_ids(subject, found, batch, None if scores is None else scores.shape[-1], speaking)
    if not isinstance(found, Sequence) or len(found) != size or not all(isinstance(row, Sequence) for row in found):
        raise Unsupported(EXPECTED.format(a_class(found), size, size))
    lengths = torch.tensor([len(row) for row in found])
    return Answer(int(lengths.max()), lengths, None, tuple(map(str, found[batch.look_at])))


def _of_ids(subject: Subject, found: Tensor, batch: Batch, width: int | None, speaking: str) -> Answer:
    size = batch.size
    if found.dim() != 2 or len(found) != size or found.is_floating_point():
        raise Unsupported(EXPECTED.format(f"{found.dtype} of shape {tuple(found.shape)}", size, size))
    ids = found.detach().cpu().long()
    places = torch.arange(1, ids.shape[1] + 1) * (ids >= 0)
    lengths = places.amax(1) if ids.shape[1] else torch.zeros(size, dtype=torch.int64)
    own = ids[batch.look_at, : int(lengths[batch.look_at])]
    names = _labels(subject, own.tolist(), width, speaking)
    return Answer(ids.shape[1], lengths, ids, names, vocabulary_of=speaking)


def _labels(subject: Subject, ids: list[int], width: int | None, speaking: str) -> tuple[str, ...]:
    known = subject.labels if subject.labels is not None else subject.vocabulary
    fitting = None if width is None else subject.classes(width, speaking)[1]
    names = fitting if fitting is not None else () if known is None else known
    return tuple("" if i < 0 else str(names[i]) if i < len(names) else str(i) for i in ids)


def _token_input(subject: Subject, batch: Batch) -> str:
    """The one input of tokens beside the primary one: the output's tokens are in its vocabulary, if it fits."""
    others = [name for name, one in batch.named.items() if one.kind == "tokens" and name != batch.primary]
    return others[0] if len(others) == 1 and others[0] in subject.declared else ""


def answer_of_input(trace: Trace, steps: int) -> Answer | None:
    """The steps of the named input whose step axis the output has, where it has `steps` of them; None where none.

    Where the primary input has as many, only an input whose layers are declared.
    """
    subject, others = trace.subject, trace.batch.others()
    fitting = [(name, one) for name, one in others if one.steps == steps]
    own = [pair for pair in fitting if subject.modules_over(pair[0]) or (subject.decoder and len(others) == 1)]
    chosen = own if len(own) == 1 or of_primary(trace, steps) else fitting
    if len(chosen) != 1:
        return None
    name, one = chosen[0]
    return Answer(one.steps, one.lengths, None, one.row_names(trace.look_at), source=name, vocabulary_of=name)


def output_steps(output: Any, scores: Tensor | None, size: int) -> int | None:
    """How many steps an output (b, t, …) has: that of its scores, else of the first tensor of three axes."""
    if scores is not None:
        return scores.shape[1] if scores.dim() == 3 else None
    found = (one for _, one in candidates(output) if one.dim() == 3 and one.shape[0] == size)
    return next((one.shape[1] for one in found), None)


def settle(trace: Trace, emit: Emitter) -> None:
    """Assign step axes and labels to whatever runs over the output, another input or layers; describe every axis."""
    _lay_out_all(trace, emit)
    warn_of_time_major(trace, emit)
    name_layers(trace, emit)
    write_axes(trace, emit)


def _lay_out_all(trace: Trace, emit: Emitter) -> None:
    answer = trace.answer
    if answer is not None:
        emit.labels(ANSWER_DOMAIN, answer.names)
        emit.step_domains["output"] = ANSWER_DOMAIN
        if not answer.length(trace.look_at):
            emit.refuse("output:answer", EMPTY)
    _name_inputs(trace, emit)
    assign_reads(trace)
    if axes_beside(trace) and (trace.recurrences or trace.attentions):
        _report_equal_lengths(trace, emit)
    for recurrence in trace.recurrences:
        if recurrence.domain != LAYER_DOMAIN:
            _lay_out_recurrence(trace, recurrence, emit)
    emit.moved_to_axes()
    for attention in trace.attentions if axes_beside(trace) else ():
        _lay_out_attention(trace, attention)
    for attention in trace.attentions:
        _name_source(trace, attention)
    number_keys(trace)


def _lay_out_recurrence(trace: Trace, recurrence: Recurrence, emit: Emitter) -> None:
    """The axis that the subject declares, that of the input whose steps were read, or that of as many steps."""
    reads = recurrence.reads
    if reads is not None and not reads.nothing:
        axis = declared_axis(trace, recurrence.place) or _axis_read(trace, recurrence)
    else:
        axis = axis_at(trace, recurrence.place, recurrence.steps)
        axis = axis if axis is not None or reads is None else _axis_of_output(trace, recurrence.steps)
        if axis is None and reads is None and of_primary(trace, recurrence.steps):
            return
    if axis is None:
        give_own_axis(trace, recurrence, emit)
    elif axis.domain != STEP_DOMAIN:
        _lay_out(recurrence, axis)
        emit.step_domains[place_name(recurrence.place)] = axis.domain


def _axis_read(trace: Trace, recurrence: Recurrence) -> StepAxis | None:
    """The axis of the input whose steps were read in their order, or each one late; None for another order."""
    reads = recurrence.reads
    axis = None if reads is None else axis_of_input(trace, reads.input)
    if reads is None or axis is None or not (reads.in_order(axis.steps) or reads.one_late(axis.steps)):
        return None
    own = _axis_of_output(trace, recurrence.steps) if reads.input != trace.batch.primary else None
    return own or axis  # a decoder reads its target, and has as many steps as the output


def _axis_of_output(trace: Trace, steps: int) -> StepAxis | None:
    """The axis of the output for a loop that reads no input and has as many iterations as the output has steps.

    Counter-example: a loop that refines its state as often as the output happens to have steps.
    """
    axes = axes_beside(trace)
    return next((axis for axis in axes if axis.domain == ANSWER_DOMAIN and axis.steps == steps), None)


def _name_inputs(trace: Trace, emit: Emitter) -> None:
    """The labels of the steps of every input beside the primary one, and the step axis of its own channels."""
    source = trace.answer.source if trace.answer is not None else ""
    answering = trace.batch.named[source].axis if source else ""
    for name, one in trace.batch.named.items():
        if name != trace.batch.primary and one.axis:
            emit.step_domains[place_name(f"{INPUT}.{name}")] = ANSWER_DOMAIN if one.axis == answering else one.axis
    for name, one in trace.batch.named.items():
        if one.grid is not None and one.before and not one.axis:
            places = product(range(one.grid[0]), range(one.grid[1]))
            emit.labels(patches_of(name), (*one.before, *(f"row {row}, column {column}" for row, column in places)))
    for _, one in trace.batch.others():
        if one.axis != answering and one.row_names(trace.look_at):
            emit.labels(one.axis, one.row_names(trace.look_at))


def _report_equal_lengths(trace: Trace, emit: Emitter) -> None:
    """Report inputs with as many steps as the primary input and no declared layers: their layers cannot be
    distinguished, except for those of which it was recorded what they read."""
    answer, subject, batch = trace.answer, trace.subject, trace.batch
    unknown = [one for one in trace.recurrences if one.reads is None and one.domain != LAYER_DOMAIN]
    if not unknown and not trace.attentions:
        return
    if answer is not None and not answer.source and of_primary(trace, answer.steps) and not subject.decoder:
        emit.sink.write(Log(AMBIGUOUS, "warning", "engine"))
    for name, one in batch.others():
        declared = subject.modules_over(name) or subject.decoder or (answer is not None and not answer.source)
        if of_primary(trace, one.steps) and not declared:
            emit.sink.write(Log(ALIKE.format(batch.primary, name), "warning", "engine"))


def _lay_out(recurrence: Recurrence, axis: StepAxis) -> None:
    recurrence.domain = axis.domain
    if not recurrence.reverse:  # backwards, the first step is wherever the kernel began
        held = slice(recurrence.base, recurrence.base + len(recurrence.lengths))
        recurrence.lengths = axis.lengths[held].clamp(max=recurrence.steps)


def _lay_out_attention(trace: Trace, attention: Attention) -> None:
    """Queries, and keys of as many positions in self-attention, get the axis; other keys get the primary input's."""
    shape = (attention.query if attention.weights is None else attention.weights).shape
    axis, keys = axis_at(trace, attention.place, attention.called_with or shape[-2]), _key_count(attention)
    if axis is None:
        _name_keys(trace, attention, keys)
        return
    attention.queries_from = axis.domain
    if not attention.source_known:
        return _cut(attention, axis.length(trace.look_at))
    if attention.keys_from != "source step" and (attention.first_query or keys == shape[-2]):
        attention.keys_from = "position" if attention.first_query else axis.domain
    else:  # one query and one key look like self-attention, until the rows of all calls are one map
        attention.keys_from = source_of(trace, attention.place, keys) or "source step"
    _cut(attention, axis.length(trace.look_at))


def source_of(trace: Trace, place: str, keys: int) -> str:
    """The step axis of the input that has as many steps as there are keys; "" where none has, or it is not known which.

    Of several that are equally long, the one whose name, or the name of whose modules, is part of the place's: a model
    that attends to two inputs has a module for each, and people name both alike. Counter-example: a module `day` that
    compares the day with the month, and attends to the latter. Else the one that cannot be what the decoder is given to
    say: that has as many steps as the answer, or one more. Counter-example: a second source that is as long as that.
    """
    batch, answer = trace.batch, trace.answer
    fitting = {batch.primary: STEP_DOMAIN} if keys in (batch.steps, batch.length) else {}
    for name, one in batch.others():
        own = answer is not None and answer.source == name
        if not own and keys in (one.steps, int(one.lengths[trace.look_at])):
            fitting[name] = one.axis
    parts = set(place.split("."))
    named = [name for name in fitting if {name, *trace.subject.modules_over(name)} & parts]
    spoken = () if answer is None else (answer.steps, answer.steps + 1)
    sources = [name for name in fitting if name == batch.primary or batch.named[name].steps not in spoken]
    for found in (named, list(fitting), sources):
        if len(found) == 1:
            return fitting[found[0]]
    patches = [axis.domain for axis in axes_beside(trace) if axis.domain in _patches(batch) and axis.steps == keys]
    return patches[0] if not fitting and len(patches) == 1 else ""


def _patches(batch: Batch) -> set[str]:
    """The axes of pictures that are cut into patches."""
    return {patches_of(name) for name, one in batch.named.items() if one.grid is not None and not one.axis}


def _name_keys(trace: Trace, attention: Attention, keys: int) -> None:
    """Keys of another sequence that has a step axis of its own, where the queries are the primary input's."""
    fitting = [axis for axis in axes_beside(trace) if axis.steps == keys]
    if attention.keys_from == "source step" and len(fitting) == 1 and not of_primary(trace, keys):
        attention.keys_from = fitting[0].domain


def _name_source(trace: Trace, attention: Attention) -> None:
    """Keys as many as the primary input has steps, where the queries are others: pooling over time, a decoder."""
    known = (attention.keys_from, attention.queries_from) == ("source step", "position")
    if known and of_primary(trace, _key_count(attention)):
        attention.keys_from, attention.queries_from = STEP_DOMAIN, QUERY


def _key_count(attention: Attention) -> int:
    return attention.key.shape[-2] if attention.weights is None else attention.weights.shape[-1]


def _cut(attention: Attention, length: int) -> None:
    """Cut off the rows that are padding of the output, and their keys where no row attends to a later key."""
    own = attention.keys_from == attention.queries_from
    square = own and _is_closed(attention, length)
    rows, keys = slice(length), slice(length) if square else slice(None)
    if attention.weights is not None:
        later = own and not bool(attention.weights[..., rows, length:].any())
        attention.weights = attention.weights[..., rows, slice(length) if later else slice(None)]
        keys = slice(length) if later else keys
    else:
        attention.query, attention.key = attention.query[..., rows, :], attention.key[..., keys, :]
    attention.margins = None if attention.margins is None else attention.margins[..., rows]
    attention.highest = None if attention.highest is None else attention.highest[..., rows]
    if attention.mask is not None:
        mask = attention.mask if attention.mask.shape[-2] == 1 else attention.mask[..., rows, :]
        attention.mask = mask if mask.shape[-1] == 1 else mask[..., keys]


def _is_closed(attention: Attention, length: int) -> bool:
    """Whether no row up to `length` may attend to a key from there on: by the causal triangle, or by its mask."""
    mask = attention.mask
    if attention.causal or mask is None or mask.dtype != torch.bool or mask.shape[-1] == 1:
        return attention.causal
    rows = slice(None) if mask.shape[-2] == 1 else slice(length)
    return not bool(mask[..., rows, length:].any())
