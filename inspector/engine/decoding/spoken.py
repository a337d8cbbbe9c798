"""A model while it says a chosen answer, as a subject that runs like any other: for a frame with every quantity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from inspector.engine.decoding.next_tokens import NextTokens
from inspector.engine.model.batch import Batch
from inspector.engine.model.subject import Subject
from inspector.engine.trace.step_axes import names_in


def spoken(next_tokens: NextTokens, tokens: Sequence[int]) -> tuple[Subject, Batch]:
    """The subject and the batch that say these tokens.

    The output's steps are the tokens, each step's scores those of what follows the tokens before it, and the loss is
    −ln p of the token in nats. Where answers continue what is read, the batch is the whole, with the subject's own
    loss. `next_logits` has to give logits of every step.
    """
    ids = torch.tensor([list(tokens)], dtype=torch.long)
    if next_tokens.continues:
        return next_tokens.subject, next_tokens.after(ids)

    def forward(_model: Any, batch: Batch) -> Any:
        return next_tokens.said(ids[:, :-1], batch)

    def loss(scores: Tensor, _batch: Batch) -> Tensor:
        wanted = ids.to(scores.device)
        return torch.nn.functional.cross_entropy(scores.float().transpose(1, 2), wanted, reduction="none")

    given = _given_answers(next_tokens.subject, next_tokens.batch, next_tokens.width)
    modules = [one for name in given for one in next_tokens.subject.modules_over(name)]
    made = replace(
        next_tokens.subject, forward=forward, answer=lambda _output, _batch: ids, loss=loss, next_token=False,
        logits=lambda output: output, decoder=(*names_in(next_tokens.subject.decoder), *modules),
    )  # fmt: skip
    return made, _without(next_tokens.batch, given)


def _given_answers(subject: Subject, batch: Batch, width: int) -> list[str]:
    """Texts beside the one that is read that are the right answer, which a decoder is given (teacher forcing).

    Such a text is optional, or the only other one, with as many entries in its vocabulary as there are logits. Counter-
    example: a second text that is read, in the vocabulary in which the answer is said.
    """
    texts = {name: one for name, one in subject.declared.items() if one.kind == "tokens" and name != batch.primary}
    alone = len(texts) == 1
    return [name for name, one in texts.items() if one.optional or (alone and len(one.vocabulary or ()) == width)]


def _without(batch: Batch, names: Sequence[str]) -> Batch:
    """The batch with some inputs left out: what is searched for takes their place."""
    if not names:
        return batch
    named = {name: replace(one, tensor=None) if name in names else one for name, one in batch.named.items()}
    return Batch.of(named, batch.primary, targets=batch.targets, look_at=batch.look_at, title=batch.title)
