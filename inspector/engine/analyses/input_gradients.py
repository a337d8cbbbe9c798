"""How outputs answer to inputs: the gradient of each step's score at the embedding of each input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from inspector.engine.analyses.attention.attended import following, scores_of
from inspector.engine.analyses.rerun import Entry, undisturbed
from inspector.engine.errors import Unsupported, model_error
from inspector.engine.model.subject import Batch
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Trace

MOST = 64
"""Queries whose gradient is taken, one backward pass each, evenly spaced."""
AGAIN = "The model, called again,"


def spaced(length: int, most: int = MOST) -> list[int]:
    """At most so many of the steps, evenly spaced, the first and the last among them."""
    picks = torch.linspace(0, length - 1, min(most, length), dtype=torch.float64).round().long()
    return [int(one) for one in picks]


def of_scores(trace: Trace, emit: Emitter, most: int = MOST) -> tuple[list[int], Tensor]:
    """(steps t, (t, s) ‖∂(largest score at t)/∂x_s‖ and 0 where it is not connected), x as embedded.

    One call, and one backward pass for each step; the selected sequence only. Raises Unsupported.
    """
    output, entry = called(trace)
    rows = scores_of(trace, output)
    steps = spaced(len(rows), most)
    best = rows.detach().argmax(-1)
    return steps, norms(trace, emit, entry, [rows[t, best[t]] for t in steps])


def called(trace: Trace) -> tuple[Any, Entry]:
    """(the output, with its graph; what entered, a leaf of it) of one more call on the batch. Raises Unsupported."""
    subject, batch = trace.subject, trace.batch
    given = Batch.of(batch.named, batch.primary, targets=batch.targets, look_at=batch.look_at, title=batch.title)
    entry = Entry(given)
    with undisturbed(subject.model, trace.seed), following(subject.model), entry.watching(subject.model):
        try:
            return subject.run(subject.placed(given)), entry
        except (Exception, SystemExit) as fault:  # noqa: BLE001 - the user's code may raise anything
            raise Unsupported(str(model_error(fault, AGAIN))) from None


def norms(trace: Trace, emit: Emitter, entry: Entry, numbers: Sequence[Tensor]) -> Tensor:
    """(number, s) norm of the gradient of each number at the selected sequence's inputs. Raises Unsupported."""
    if entry.leaf is None:
        raise Unsupported("No nn.Embedding and no recurrent layer reads the tokens, so they have no gradient.")
    found = []
    for done, number in enumerate(numbers):
        emit.check()
        emit.progress(done, len(numbers), "gradients at the inputs")
        if not number.requires_grad:
            raise Unsupported("The scores are not connected to the inputs by autograd (no_grad inside the model?).")
        (slope,) = torch.autograd.grad(number, entry.leaf, retain_graph=True, allow_unused=True)
        values = torch.zeros_like(entry.leaf) if slope is None else slope
        values = values.transpose(0, 1) if entry.transposed else values
        row = values[trace.look_at, : trace.batch.length]
        found.append(row.flatten(1).double().norm(dim=1).cpu())
    return torch.stack(found)
