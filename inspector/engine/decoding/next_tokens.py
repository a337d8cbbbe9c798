"""What may follow the beginning of an answer, from whatever a subject offers.

A subject says it by `next_logits(model, batch, beginnings)`; one that predicts the next token of its only input needs
nothing: its answer continues that input.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from inspector.engine.errors import InputError, ModelError, model_error
from inspector.engine.hooks.isolation import unchanged
from inspector.engine.model.batch import Batch, NamedInput, selected
from inspector.engine.model.batching import as_input
from inspector.engine.model.subject import Subject
from inspector.engine.wording import a_class

NOTHING_OFFERED = (
    "{} does not say what may follow the beginning of an answer, so nothing can be decoded. Give it "
    "`next_logits=lambda model, batch, beginnings: …`, (n, t) ids to (n, v) logits, or `next_token=True` where its "
    "only sequence goes on."
)
EXPECTED = "`next_logits` of {} gave {} for {} beginnings of {} tokens; expected (n, v) or (n, {}, v) logits."
NOT_NUMBERS = "After {} the logits of {} have NaN, so no token can be chosen."
NO_LIKELIHOOD = "After {} the logits of {} rule out every token."


class NextTokens:
    """ln p of what may follow, for one sequence of a batch. Raises InputError where the subject does not offer it."""

    def __init__(self, subject: Subject, batch: Batch, seed: int = 0) -> None:
        self.subject, self.seed = subject, seed
        self.batch = batch if batch.size == 1 else selected(batch, [batch.look_at])
        self.continues = subject.next_logits is None
        """Whether answers continue the sequence that is read, instead of being said about it."""
        self.by_step = self.continues
        """Whether the logits of every step are given, so that an answer can be run as a whole; known once asked."""
        self.width = 0
        """How many tokens there are; known once asked."""
        if self.continues and not (subject.next_token and _reads_only_this(subject, self.batch)):
            raise InputError(NOTHING_OFFERED.format(subject.name))

    def __call__(self, beginnings: Sequence[tuple[int, ...]]) -> Tensor:
        """(n, v) ln p, float64 on the CPU, after each of n beginnings of one length.

        Raises ModelError or InputError.
        """
        with unchanged(self.subject.model, self.seed), torch.no_grad():
            scores = self._scores(torch.tensor(beginnings, dtype=torch.long).view(len(beginnings), -1))
        self.by_step, self.width = self.continues or scores.dim() == 3, scores.shape[-1]
        last = (scores if scores.dim() == 2 else scores[:, -1]).detach().double().cpu()
        for row, beginning in zip(last, beginnings, strict=True):
            if bool(row.isnan().any()):
                raise ModelError(NOT_NUMBERS.format(list(beginning), self.subject.name))
            if not bool((row > -torch.inf).any()):
                raise ModelError(NO_LIKELIHOOD.format(list(beginning), self.subject.name))
        return torch.log_softmax(last, dim=-1)

    def _scores(self, beginnings: Tensor) -> Tensor:
        try:
            placed = self.subject.placed(self.batch)
            found = self._continued(beginnings) if self.continues else self.said(beginnings, placed)
        except (InputError, ModelError):
            raise
        except (Exception, SystemExit) as fault:  # the user's code may raise anything
            raise model_error(fault) from fault
        many, length = beginnings.shape
        form = tuple(found.shape) if isinstance(found, Tensor) else ()
        if not form or form[0] != many or (len(form) != 2 and form[1:-1] != (length + 1,)):
            given = f"shape {form}" if form else a_class(found)
            raise InputError(EXPECTED.format(self.subject.name, given, many, length, length + 1))
        assert isinstance(found, Tensor)
        return found

    def said(self, beginnings: Tensor, batch: Batch) -> Any:
        """What the subject's `next_logits` gives for a batch on the model's device."""
        assert self.subject.next_logits is not None
        return self.subject.next_logits(self.subject.model, batch, beginnings.to(_device(self.subject.model)))

    def _continued(self, beginnings: Tensor) -> Tensor | None:
        scores = self.subject.scores(self.subject.run(self.subject.placed(self.after(beginnings))))
        return None if scores is None else scores[:, -1]

    def after(self, beginnings: Tensor) -> Batch:
        """The sequence with each of some answers behind it."""
        read = self.batch.inputs[0, : self.batch.length].cpu()
        rows = [torch.cat((read, row)) for row in beginnings]
        name = self.batch.primary
        view = self.subject.view(name, self.subject.declared[name]) if self.subject.declared else self.subject
        one: NamedInput = replace(as_input(view, rows), axis=self.batch.first.axis)
        return Batch.of({name: one}, name, title=self.batch.title)


def _reads_only_this(subject: Subject, batch: Batch) -> bool:
    """Whether the model reads one sequence of tokens and nothing else."""
    return batch.first.kind == "tokens" and len(batch.named) == 1 and len(subject.declared) <= 1


def _device(model: nn.Module) -> torch.device:
    return next((one.device for one in model.parameters()), torch.device("cpu"))
