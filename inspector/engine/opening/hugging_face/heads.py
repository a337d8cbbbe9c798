"""What a folder's model answers, by the name of its class: how it is called, its scores and its loss by step.

The losses are those of transformers, one value a step instead of their mean.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, pad

from inspector.engine.errors import InputError, Unsupported
from inspector.engine.model.batch import Batch
from inspector.engine.wording import text_of
from inspector.records import counted

IGNORED = -100
"""The target that marks a step without a loss, as in torch and transformers."""
HEADS: Mapping[str, str] = {
    "ForMaskedLM": "masked",
    "ForCausalLM": "causal",
    "LMHeadModel": "causal",
    "ForSequenceClassification": "class",
    "ForImageClassification": "class",
    "ForTokenClassification": "tags",
    "ForQuestionAnswering": "span",
}
"""End of a class's name → what it answers. transformers names all of its classes so; any other end is no head."""
NOTHING_MASKED = (
    "No token is masked, so a masked language model has no loss here: say which ones are, by their numbers from 0, in "
    "the option `mask` (--option mask=3)."
)
NO_TAGS = (
    "The classes of the tokens are not known, so there is no loss: give one for each token in the option `label`, "
    "- where there is none (--option label='- B-PER O -')."
)
NO_SPAN = (
    "Where the answer stands is not known, so there is no loss: give the numbers of its first and last token, from 0, "
    "in the option `label` (--option label='9 11')."
)
NO_LABEL = (
    "The class of this sequence is not known, so there is no loss: give it in the option `label` (--option label=NAME)."
)


def head_of(name: str) -> str:
    """The head of a class by its name: "masked", "causal", "class", "tags", or "" for a model without one."""
    return next((head for end, head in HEADS.items() if name.endswith(end)), "")


def class_names(config: Any) -> tuple[str, ...]:
    """The names of the classes of a classifier, in the order of its scores."""
    named: Mapping[Any, Any] = config.id2label
    return tuple(text_of(named[number]) for number in sorted(named))


def extras(model: nn.Module) -> dict[str, Any]:
    """What a call gets beside its inputs: no cache of keys, which only generation needs."""
    return {"use_cache": False} if "use_cache" in inspect.signature(model.forward).parameters else {}


def positions(model: Any) -> int | None:
    """How many positions the model has learned embeddings of; None where it computes them, or their number is not told.

    Some tables have up to two rows more than positions, for padding.
    """
    most = getattr(model.config, "max_position_embeddings", None)
    words = model.get_input_embeddings()
    tables = [one for one in model.modules() if isinstance(one, nn.Embedding) and one is not words]
    known = isinstance(most, int) and any(most <= one.num_embeddings <= most + 2 for one in tables)
    return most if known else None


def check_positions(most: int | None, ids: Tensor) -> None:
    """Raises InputError for more tokens than there are positions."""
    if most is not None and ids.shape[1] > most:
        raise InputError(f"The text has {counted(ids.shape[1], 'token')}; the model has {most} positions.")


def reads_text(
    model: nn.Module, types: Callable[[Tensor], Tensor] | None = None
) -> Callable[[nn.Module, Tensor, Tensor], Any]:
    """The call of a model that reads one text, or two as one sequence with their `types`; padding is masked."""
    more, most = extras(model), positions(model)
    taken = inspect.signature(model.forward).parameters
    masks = "attention_mask" in taken
    types = types if "token_type_ids" in taken else None

    def forward(model: nn.Module, inputs: Tensor, lengths: Tensor) -> Any:
        check_positions(most, inputs)
        real = torch.arange(inputs.shape[1], device=inputs.device) < lengths.to(inputs.device)[:, None]
        mask = {"attention_mask": real.long()} if masks else {}
        kinds = {} if types is None else {"token_type_ids": types(inputs) * real.long()}
        return model(input_ids=inputs, **mask, **kinds, **more)

    return forward


def scores_by_step(output: Any) -> Tensor | None:
    """(b, t, v) scores of an output with a head."""
    found: Tensor | None = output.logits
    return found


def scores_once(output: Any) -> Tensor | None:
    """(b, 1, classes) scores of an output with one answer for the whole sequence."""
    found: Tensor = output.logits
    return found[:, None]


def no_scores(output: Any) -> Tensor | None:
    """A model without a head has states, no scores."""
    return None


def next_token_loss(output: Any, batch: Batch) -> Tensor:
    """(b, t): −ln p of the token that follows each step, NaN at the last one and at padding."""
    following = batch.inputs[:, 1:]
    logits = output if isinstance(output, Tensor) else output.logits
    losses = cross_entropy(logits[:, :-1].float().transpose(1, 2), following, reduction="none")
    return pad(losses.masked_fill(~batch.mask()[:, 1:], torch.nan), (0, 1), value=torch.nan)


def masked_loss(output: Any, batch: Batch) -> Tensor:
    """(b, t): −ln p of the token that stood where one is masked, NaN elsewhere. Raises Unsupported without any."""
    return _loss_where_given(output, batch, NOTHING_MASKED)


def class_loss(output: Any, batch: Batch) -> Tensor:
    """(b, t): −ln p of the class at the last step of each sequence, NaN elsewhere. Raises Unsupported without one."""
    if batch.targets is None:
        raise Unsupported(NO_LABEL)
    losses = cross_entropy(output.logits.float(), batch.targets.reshape(-1), reduction="none")
    steps = torch.arange(batch.steps, device=losses.device)
    last = steps == batch.lengths.to(losses.device)[:, None] - 1
    return losses[:, None].where(last, torch.nan)


def tag_loss(output: Any, batch: Batch) -> Tensor:
    """(b, t): −ln p of the class of each token, NaN where none is given. Raises Unsupported without any."""
    return _loss_where_given(output, batch, NO_TAGS)


def _loss_where_given(output: Any, batch: Batch, missing: str) -> Tensor:
    if batch.targets is None:
        raise Unsupported(missing)
    losses = cross_entropy(
        output.logits.float().transpose(1, 2), batch.targets, reduction="none", ignore_index=IGNORED
    )  # fmt: skip
    return losses.masked_fill(batch.targets == IGNORED, torch.nan)


def span_loss(output: Any, batch: Batch) -> Tensor:
    """(b, t): −ln p(first token of the answer) there, −ln p(last one) there, over all steps; NaN elsewhere.

    Both at one step: their mean, so that the mean over steps is the loss of transformers. Raises Unsupported without.
    """
    if batch.targets is None:
        raise Unsupported(NO_SPAN)
    losses = torch.stack(
        [-scores.float().log_softmax(-1) for scores in (output.start_logits, output.end_logits)], dim=-1
    )
    marked = torch.stack([(batch.targets & 1) > 0, (batch.targets & 2) > 0], dim=-1) & (batch.targets > 0)[..., None]
    return losses.where(marked, torch.nan).nanmean(-1)


def tags_of(names: tuple[str, ...]) -> Callable[[str, Tensor], list[int]]:
    """What the option `label` says of each token: names or numbers of classes, "-" where there is none."""

    def read(given: str, ids: Tensor) -> list[int]:
        words = given.replace(",", " ").split()
        known = {**{str(number): number for number in range(len(names))}, **{name: n for n, name in enumerate(names)}}
        wrong = next((word for word in words if word != "-" and word not in known), None)
        if wrong is not None or len(words) != len(ids):
            listed = ", ".join(names[:12]) + (" …" if len(names) > 12 else "")
            raise ValueError(f"one of {listed}, or -, for each of {counted(len(ids), 'token')}")
        return [IGNORED if word == "-" else known[word] for word in words]

    return read


def span_of(given: str, ids: Tensor) -> list[int]:
    """What the option `label` says of an answer within the text: 1 at its first token, 2 at its last, 3 at both."""
    words = given.replace(",", " ").split()
    if len(words) not in (1, 2) or not all(w.isascii() and w.isdigit() and int(w) < len(ids) for w in words):
        raise ValueError(f"the numbers of the first and last token of the answer, from 0 to {len(ids) - 1}")
    first, last = int(words[0]), int(words[-1])
    return [(step == first) + 2 * (step == last) for step in range(len(ids))]
