"""Models of an encoder and a decoder: two texts, the second one given (teacher forcing)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from inspector.engine.errors import Unsupported
from inspector.engine.model.batch import Batch
from inspector.engine.opening.hugging_face.heads import check_positions, extras, positions
from inspector.engine.opening.hugging_face.tokens import Tokens

SOURCE, TARGET = "input_ids", "decoder_input_ids"
NO_TARGET = f"What the decoder is to say was not given, so there is no loss: give {TARGET}=TEXT beside {SOURCE}=TEXT."


def first_id(config: Any, tokens: Tokens) -> int:
    """The id with which a decoder begins."""
    known = (getattr(config, name, None) for name in ("decoder_start_token_id", "bos_token_id", "pad_token_id"))
    return next((int(one) for one in known if isinstance(one, int)), 0)


def shifted(tokens: Tokens, first: int) -> Callable[[str], Tensor] | None:
    """Text to the ids that the decoder reads: one step late, after the first id; what ends a text is only predicted."""
    encode = tokens.encode
    if encode is None:
        return None

    def decoder_ids(text: str) -> Tensor:
        said = encode(text)
        return torch.cat([torch.tensor([first]), said[:-1] if tokens.ends else said])

    return decoder_ids


def inputs_of(model: Any, tokens: Tokens, rows: int, first: int) -> dict[str, dict[str, Any]]:
    """The two inputs, and the modules that run over the steps of each."""
    places = {id(module): name for name, module in model.named_modules()}
    parts = {SOURCE: (model.get_encoder(),), TARGET: (model.get_decoder(), model.get_output_embeddings())}
    modules = {name: tuple(places[id(one)] for one in own if id(one) in places) for name, own in parts.items()}
    both = {"kind": "tokens", "vocabulary": tokens.vocabulary, "size": rows}
    return {
        SOURCE: {**both, "encode": tokens.encode, "modules": modules[SOURCE]},
        TARGET: {**both, "encode": shifted(tokens, first), "modules": modules[TARGET], "optional": True},
    }


def reads_pair(model: nn.Module, first: int) -> Callable[[nn.Module, Batch], Any]:
    """The call with two texts; a decoder without one gets its first id alone."""
    more, most = extras(model), positions(model)

    def forward(model: nn.Module, batch: Batch) -> Any:
        source, target = batch[SOURCE], batch[TARGET]
        masks = {"attention_mask": batch.mask(SOURCE).long()}
        if target is None:
            target = torch.full((batch.size, 1), first, device=source.device)
        else:
            masks["decoder_attention_mask"] = batch.mask(TARGET).long()
        for ids in (source, target):
            check_positions(most, ids)
        return model(input_ids=source, decoder_input_ids=target, **masks, **more)

    return forward


def next_logits(model: nn.Module, first: int) -> Callable[[nn.Module, Batch, Tensor], Any]:
    """Logits (n, t + 1, v) of what the decoder says after each beginning (n, t) of the text that it is to say."""
    more, most = extras(model), positions(model)

    def following(model: nn.Module, batch: Batch, beginnings: Tensor) -> Any:
        source, many = batch[SOURCE], len(beginnings)
        read = torch.nn.functional.pad(beginnings, (1, 0), value=first)
        for ids in (source, read):
            check_positions(most, ids)
        mask = batch.mask(SOURCE).long().expand(many, -1)
        found = model(input_ids=source.expand(many, -1), attention_mask=mask, decoder_input_ids=read, **more)
        return found.logits

    return following


def forced_loss(end: int | None) -> Callable[[Any, Batch], Tensor]:
    """(b, t) over the decoder's steps: −ln p of what it reads next, and at its last step of the end of the text.

    NaN at padding, and at the last step where the tokenizer does not end a text.
    """

    def loss(output: Any, batch: Batch) -> Tensor:
        read = batch[TARGET]
        if read is None:
            raise Unsupported(NO_TARGET)
        steps = torch.arange(read.shape[1], device=read.device)
        last = steps == batch.named[TARGET].lengths.to(read.device)[:, None] - 1
        following = read.roll(-1, 1).masked_fill(last, end if end is not None else 0)
        losses = cross_entropy(output.logits.float().transpose(1, 2), following, reduction="none")
        carried = batch.mask(TARGET) if end is not None else batch.mask(TARGET) & ~last
        return losses.masked_fill(~carried, torch.nan)

    return loss
