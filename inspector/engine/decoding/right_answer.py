"""The right answer to a sequence, as far as its subject knows it."""

from __future__ import annotations

import torch
from torch import Tensor

from inspector.engine.errors import InputError, ModelError, Unsupported, model_error
from inspector.engine.hooks.isolation import unchanged
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.trace.target_steps import read_answer


def right_answer(subject: Subject, batch: Batch, seed: int = 0) -> tuple[int, ...]:
    """The ids of the right answer to the only sequence of a batch, as far as the subject's loss is known at them; empty
    where none is known. Raises InputError or ModelError."""
    if subject.loss is None or subject.answer is None:
        return ()
    try:
        with unchanged(subject.model, seed), torch.no_grad():
            placed = subject.placed(batch)
            output = subject.run(placed)
            loss = subject.loss(output, placed)
            answer = read_answer(subject, output, placed, subject.scores(output))
    except Unsupported:
        return ()
    except (InputError, ModelError):
        raise
    except (Exception, SystemExit) as fault:  # the user's code may raise anything
        raise model_error(fault) from fault
    if answer.ids is None or not isinstance(loss, Tensor) or loss.shape != answer.ids.shape:
        return ()
    unknown = [*loss[0].isnan().tolist(), True]
    return tuple(answer.ids[0, : unknown.index(True)].tolist())
