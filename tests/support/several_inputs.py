"""Models that read several inputs, each called in another way: the ones that tests of named inputs run."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
from listed import Listed
from torch import Tensor, nn

from inspector.engine.model.subject import adopt
from inspector.engine.pipeline import DEFAULTS, RunOptions, perform
from inspector.engine.pipeline.batches import make_batch
from inspector.engine.trace.trace import Trace

D = torch.float64

SOURCE, TARGET = tuple("abcdefg·"), tuple("ABCDE<")
"""Vocabularies: 8 letters that are read, 6 that are said."""


class Translator(nn.Module):
    """nn.Transformer between two embeddings: ids (b, s), ids (b, t) → scores (b, t, 6)."""

    def __init__(self) -> None:
        super().__init__()
        self.source, self.target = nn.Embedding(8, 8), nn.Embedding(6, 8)
        self.transformer = nn.Transformer(
            8, 2, num_encoder_layers=1, num_decoder_layers=1, dim_feedforward=16, dropout=0.0, batch_first=True
        )
        self.head = nn.Linear(8, 6)

    def forward(
        self, src: Tensor, tgt: Tensor, src_padding: Tensor | None = None, tgt_padding: Tensor | None = None
    ) -> Tensor:
        causal = torch.ones(tgt.shape[1], tgt.shape[1], dtype=torch.bool, device=tgt.device).triu(1)
        out = self.transformer(
            self.source(src), self.target(tgt), tgt_mask=causal, src_key_padding_mask=src_padding,
            tgt_key_padding_mask=tgt_padding, memory_key_padding_mask=src_padding,
        )  # fmt: skip
        scores: Tensor = self.head(out)
        return scores


class GruTranslator(nn.Module):
    """Two GRUs joined by a state: ids (b, s), ids (b, t) → scores (b, t, 6)."""

    def __init__(self) -> None:
        super().__init__()
        self.source, self.target = nn.Embedding(8, 5), nn.Embedding(6, 5)
        self.encoder, self.decoder = nn.GRU(5, 7, batch_first=True), nn.GRU(5, 7, batch_first=True)
        self.head = nn.Linear(7, 6)

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        _, context = self.encoder(self.source(src))
        scores: Tensor = self.head(self.decoder(self.target(tgt), context)[0])
        return scores


class FromMapping(nn.Module):
    """{"notes": (b, t, 3), "speaker": (b,) ids} → (b, t, 4)."""

    def __init__(self) -> None:
        super().__init__()
        self.speaker, self.rnn, self.head = nn.Embedding(5, 3), nn.GRU(3, 6, batch_first=True), nn.Linear(6, 4)

    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        scores: Tensor = self.head(self.rnn(batch["notes"] + self.speaker(batch["speaker"])[:, None])[0])
        return scores


class KeywordOnly(nn.Module):
    """Two sequences of equally many steps, by keyword alone."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.RNN(5, 4, batch_first=True)

    def forward(self, *, left: Tensor, right: Tensor) -> Tensor:
        out: Tensor = self.rnn(torch.cat((left, right), -1))[0]
        return out


@dataclass
class Output:
    """What Hugging Face's models return, in small."""

    logits: Tensor
    loss: Tensor | None = None


class LanguageModel(nn.Module):
    """input_ids, attention_mask and labels as Hugging Face's models take them; the loss shifts by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.rnn, self.head = nn.Embedding(8, 5), nn.LSTM(5, 6, batch_first=True), nn.Linear(6, 8)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, labels: Tensor | None = None) -> Output:
        states = self.rnn(self.embedding(input_ids))[0]
        if attention_mask is not None:
            states = states * attention_mask[..., None]
        logits = self.head(states)
        if labels is None:
            return Output(logits)
        loss = nn.functional.cross_entropy(logits[:, :-1].transpose(1, 2), labels[:, 1:], ignore_index=-100)
        return Output(logits, loss)


class Captioner(nn.Module):
    """image (b, c, h, w) and the caption so far (b, t) → scores of the next words (b, t, 6)."""

    def __init__(self) -> None:
        super().__init__()
        self.look = nn.Conv2d(3, 7, 3)
        self.words, self.rnn, self.head = nn.Embedding(6, 4), nn.GRU(4, 7, batch_first=True), nn.Linear(7, 6)

    def forward(self, image: Tensor, caption: Tensor) -> Tensor:
        seen = self.look(image).amax((2, 3))
        scores: Tensor = self.head(self.rnn(self.words(caption), seen[None])[0])
        return scores


class Continued(nn.Module):
    """An LSTM that goes on from states (layers, b, h)."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(3, 4, num_layers=2, batch_first=True)

    def forward(self, x: Tensor, h0: Tensor, c0: Tensor) -> Tensor:
        out: Tensor = self.rnn(x, (h0, c0))[0]
        return out


class Wrapped(nn.Module):
    """Passes on whatever it is given, as wrappers of models do."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.inner(*args, **kwargs)


class InOrder(Wrapped):
    """Takes arguments by their place alone."""

    def forward(self, *args: Any) -> Any:  # type: ignore[override]
        return self.inner(*args)


def made(kind: type[nn.Module], *args: Any) -> nn.Module:
    """A model with weights of its own seed, in double precision and eval mode."""
    torch.manual_seed(0)
    return kind(*args).double().eval()


def translation(kind: type[nn.Module] = GruTranslator, **more: Any) -> SimpleNamespace:
    """A subject with two inputs of tokens, as a user would write it."""
    inputs = {"src": {"kind": "tokens", "vocabulary": SOURCE}, "tgt": {"kind": "tokens", "vocabulary": TARGET}}
    return SimpleNamespace(model=made(kind), inputs={**inputs, **more.pop("inputs", {})}, **more)


def run(subject: Any, values: Any, look_at: int = 0, options: RunOptions = DEFAULTS) -> tuple[Trace, Listed]:
    """A subject run on values by name: its trace and its records."""
    sink, known = Listed(), adopt(subject)
    return perform(known, make_batch(known, values, 0, look_at), sink, options), sink


def numbers(count: int, width: int) -> Tensor:
    """(count, width) numbers, the same every time."""
    return torch.randn(count, width, generator=torch.Generator().manual_seed(count), dtype=D)
