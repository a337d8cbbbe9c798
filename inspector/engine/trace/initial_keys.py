"""Keys that begin with a state before the first step: `[h0, h1, …]`, or zeros in place of the first key.

Key k is then the state after step k − 1, and not step k. That the first key is the initial state of a recurrence is
known from its values, which are compared with those of every recurrence of the run.
"""

from __future__ import annotations

import torch
from torch import Tensor

from inspector.engine.trace.trace import Attention, KeyEnds, Recurrence, Trace

STATES = "key 0 is the state before the first step of {}, key k the state after step k − 1"
ZEROS = "key 0 is a vector of zeros put before the others, key k is what was made after step k − 1"
STATE_KEYS = "state"
"""Label domain of such keys where the queries are no steps of the same sequence."""


def number_keys(trace: Trace) -> None:
    """Count the positions of such keys from the state before the first step."""
    for attention in trace.attentions:
        ends = attention.ends
        if ends is None or ends.count != _keys(attention) or attention.first_query:
            continue
        recurrence = next((one for one in trace.recurrences if _begins(one, ends, trace.look_at)), None)
        if recurrence is not None and _after_the_start(recurrence):
            _move(attention, STATES.format(recurrence.place), recurrence)
        elif recurrence is None and ends.fixed:
            _move(attention, ZEROS, None)


def _keys(attention: Attention) -> int:
    return attention.key.shape[-2] if attention.weights is None else attention.weights.shape[-1]


def _begins(recurrence: Recurrence, ends: KeyEnds, look_at: int) -> bool:
    """Whether keys are the initial state of a recurrence and the states after its first steps."""
    sample, last = look_at - recurrence.base, ends.count - 1
    held = sample in range(recurrence.states.shape[1])
    if recurrence.reverse or not held or last > recurrence.steps:
        return False
    states = recurrence.states[[0, 1, last], sample]
    return any(_equal(states[:, part], ends.rows) for part in (*recurrence.cell.parts.values(), slice(None)))


def _equal(states: Tensor, rows: Tensor) -> bool:
    return states.shape == rows.shape and torch.equal(states, rows.to(states.device, states.dtype))


def _after_the_start(recurrence: Recurrence) -> bool:
    """Whether the initial state belongs to no step.

    A step that is written before its loop is the loop's initial state: step i of the loop reads input i + 1 then. The
    first step reads what its initial state was made of too, so the second one is looked at.
    """
    reads = recurrence.reads
    return reads is None or len(reads) < 2 or (int(reads.low[1]), int(reads.high[1])) != (2, 2)


def _move(attention: Attention, note: str, recurrence: Recurrence | None) -> None:
    """Give such keys their positions, among which query 0 is at 1."""
    queries = attention.query.shape[-2] if attention.weights is None else attention.weights.shape[-2]
    domain = attention.queries_from if recurrence is None else recurrence.domain
    own = (attention.of_itself or not attention.source_known) and _keys(attention) == queries
    more = _keys(attention) == queries + 1 and attention.queries_from == domain
    if own or more:
        attention.first_query, attention.keys_from = 1, "position"
    else:
        attention.keys_from = STATE_KEYS
    attention.note = "; ".join(filter(None, (attention.note, note)))
