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
}
"""End of a class's name → what it answers. transformers names all of its classes so; any other end is no head."""
NOTHING_MASKED = (
    "No token is masked, so a masked language model has no loss here: say which ones are, by their numbers from 0, in "
    "the option `mask` (--option mask=3)."
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


def reads_text(model: nn.Module) -> Callable[[nn.Module, Tensor, Tensor], Any]:
    """The call of a model that reads one text; padding is masked."""
    more, most = extras(model), positions(model)
    masks = "attention_mask" in inspect.signature(model.forward).parameters

    def forward(model: nn.Module, inputs: Tensor, lengths: Tensor) -> Any:
        check_positions(most, inputs)
        real = torch.arange(inputs.shape[1], device=inputs.device) < lengths.to(inputs.device)[:, None]
        mask = {"attention_mask": real.long()} if masks else {}
        return model(input_ids=inputs, **mask, **more)

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
    losses = cross_entropy(output.logits[:, :-1].float().transpose(1, 2), following, reduction="none")
    return pad(losses.masked_fill(~batch.mask()[:, 1:], torch.nan), (0, 1), value=torch.nan)


def masked_loss(output: Any, batch: Batch) -> Tensor:
    """(b, t): −ln p of the token that stood where one is masked, NaN elsewhere. Raises Unsupported without any."""
    if batch.targets is None:
        raise Unsupported(NOTHING_MASKED)
    losses = cross_entropy(
        output.logits.float().transpose(1, 2), batch.targets, reduction="none", ignore_index=IGNORED
    )  # fmt: skip
    return losses.masked_fill(batch.targets == IGNORED, torch.nan)


def class_loss(output: Any, batch: Batch) -> Tensor:
    """(b, t): −ln p of the class at the last step of each sequence, NaN elsewhere. Raises Unsupported without one."""
    if batch.targets is None:
        raise Unsupported(NO_LABEL)
    losses = cross_entropy(output.logits.float(), batch.targets.reshape(-1), reduction="none")
    steps = torch.arange(batch.steps, device=losses.device)
    last = steps == batch.lengths.to(losses.device)[:, None] - 1
    return losses[:, None].where(last, torch.nan)
