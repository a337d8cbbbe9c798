"""Small trainings of every sort that are watched and not watched, and must end with the same bits."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

VOCABULARY, WIDTH, BATCH, STEPS = 11, 8, 4, 6


class Recurrent(nn.Module):
    """Embedding, a recurrent module of two layers with dropout, a head."""

    def __init__(self, kind: type[nn.RNNBase], *, checkpointed: bool = False) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.rnn = kind(WIDTH, WIDTH, num_layers=2, dropout=0.2, batch_first=True)  # type: ignore[call-arg]
        self.drop, self.head = nn.Dropout(0.1), nn.Linear(WIDTH, VOCABULARY)
        self.checkpointed = checkpointed

    def last(self, hidden: Tensor) -> Tensor:
        """Dropout and head."""
        found: Tensor = self.head(self.drop(F.relu(hidden)))
        return found

    def forward(self, ids: Tensor) -> Tensor:
        """Logits (b, t, v)."""
        hidden = self.rnn(self.embedding(ids))[0]
        if self.checkpointed:
            found: Tensor = checkpoint(self.last, hidden, use_reentrant=False)
            return found
        return self.last(hidden)


class Transformer(nn.Module):
    """Embedding, two encoder layers with dropout under a causal mask, a head."""

    def __init__(self, *, checkpointed: bool = False) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(WIDTH, 2, 16, dropout=0.1, batch_first=True) for _ in range(2)
        )
        self.head, self.checkpointed = nn.Linear(WIDTH, VOCABULARY), checkpointed

    def forward(self, ids: Tensor) -> Tensor:
        """Logits (b, t, v)."""
        hidden = self.embedding(ids)
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        for layer in self.layers:
            if self.checkpointed:
                hidden = checkpoint(layer, hidden, mask, use_reentrant=True)
            else:
                hidden = layer(hidden, src_mask=mask)
        found: Tensor = self.head(hidden)
        return found


class Cells(nn.Module):
    """Embedding, a cell that is called for each step, a rectifier that works in place, a head."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.cell = nn.Embedding(VOCABULARY, WIDTH), nn.LSTMCell(WIDTH, WIDTH)
        self.rectifier, self.head = nn.ReLU(inplace=True), nn.Linear(WIDTH, VOCABULARY)

    def forward(self, ids: Tensor) -> Tensor:
        """Logits (b, t, v)."""
        state, found = None, []
        for x in self.embedding(ids).unbind(1):
            state = self.cell(x, state)
            found.append(self.head(self.rectifier(state[0] * 1.0)))
        return torch.stack(found, 1)


def tied() -> nn.Module:
    """The head has the weights of the embedding."""
    model = Recurrent(nn.GRU)
    model.head.weight = model.embedding.weight
    return model


def normed() -> nn.Module:
    """A head whose weights are computed from others, and an embedding that is not trained."""
    model = Recurrent(nn.LSTM)
    nn.utils.parametrizations.weight_norm(model.head)
    model.embedding.requires_grad_(False)
    return model


MODELS: dict[str, Callable[[], nn.Module]] = {
    "rnn": lambda: Recurrent(nn.RNN),
    "gru": lambda: Recurrent(nn.GRU),
    "lstm": lambda: Recurrent(nn.LSTM),
    "transformer": Transformer,
    "lstm, checkpointed": lambda: Recurrent(nn.LSTM, checkpointed=True),
    "transformer, checkpointed": lambda: Transformer(checkpointed=True),
    "cells": Cells,
    "tied": tied,
    "normed": normed,
}
OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, 0.1, momentum=0.9),
    "adam": lambda parameters: torch.optim.Adam(parameters, 1e-2),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, 1e-2, weight_decay=0.1),
    "rmsprop": lambda parameters: torch.optim.RMSprop(parameters, 1e-2),
    "adagrad": lambda parameters: torch.optim.Adagrad(parameters, 1e-2),
    "adamw, fused": lambda parameters: torch.optim.AdamW(parameters, 1e-2, fused=True),
}


@dataclass(frozen=True)
class Case:
    """One training."""

    model: str = "lstm"
    optimizer: str = "adamw"
    accumulate: int = 1
    autocast: bool = False
    scaler: bool = False
    compiled: bool = False
    average: bool = False
    clip: float = 1.0
    skip: bool = False
    half: bool = False
    evaluate: bool = False
    schedule: bool = False
    """The rate falls with every step."""
    twice: bool = False
    """A loss is propagated twice, of one graph."""
    hooks: bool = False
    """Hooks of its own change what passes forward and backward."""
    fails: bool = False
    """Of ten batches one has ids that the model does not know; the training says so and goes on."""


def batches(count: int) -> Iterator[Tensor]:
    """Ids (b, t + 1), the same ones each time."""
    random = torch.Generator().manual_seed(5)
    for _ in range(count):
        yield torch.randint(0, VOCABULARY, (BATCH, STEPS + 1), generator=random)


def loss_of(model: nn.Module, ids: Tensor) -> Tensor:
    """Mean cross entropy of the next id."""
    return F.cross_entropy(model(ids[:, :-1]).float().flatten(0, 1), ids[:, 1:].flatten())


Attach = Callable[[nn.Module, torch.optim.Optimizer], Any]


def train(case: Case, iterations: int, attach: Attach | None = None) -> str:
    """Train; a hash of all parameters, buffers, averages, optimizer states, losses and the random state at the end."""
    torch.manual_seed(0)
    model = MODELS[case.model]()
    if case.half:
        model = model.to(torch.bfloat16)
    if case.hooks:
        model.head.register_forward_hook(lambda _module, _given, found: found * 0.5)  # type: ignore[union-attr]
        for one in model.parameters():
            one.register_hook(lambda gradient: gradient * 0.9)
    optimizer = OPTIMIZERS[case.optimizer](one for one in model.parameters() if one.requires_grad)
    called: nn.Module = torch.compile(model, backend="aot_eager") if case.compiled else model  # type: ignore[assignment]
    average = torch.optim.swa_utils.AveragedModel(model, use_buffers=True) if case.average else None
    with attach(called, optimizer) if attach is not None else nullcontext() as watcher:
        losses = _loop(case, iterations, called, optimizer, average)
        if watcher is not None:
            assert watcher.error is None, watcher.error
    kept = [*model.state_dict().values(), *losses, torch.get_rng_state()]
    kept += [] if average is None else list(average.state_dict().values())
    kept += [one for state in optimizer.state.values() for one in state.values() if isinstance(one, Tensor)]
    found = hashlib.sha256()
    for one in kept:
        found.update(
            one.detach().contiguous().view(torch.uint8).numpy().tobytes() if one.dim() else one.double().numpy()
        )
    return found.hexdigest()


def _loop(
    case: Case, iterations: int, model: nn.Module, optimizer: torch.optim.Optimizer, average: Any
) -> list[Tensor]:
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=7) if case.scaler else None
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.95) if case.schedule else None
    losses = []
    for n, ids in enumerate(batches(iterations * case.accumulate)):
        if case.fails and n % 10 == 7:
            losses.append(_refused(model, ids + VOCABULARY))
            continue
        with torch.autocast("cpu", torch.bfloat16, enabled=case.autocast):
            loss = loss_of(model, ids) / case.accumulate
        losses.append(loss.detach())
        if case.twice:
            loss.backward(retain_graph=True)
        (loss if scaler is None else scaler.scale(loss)).backward()
        if (n + 1) % case.accumulate:
            continue
        if case.skip and n % 5 == 3:
            optimizer.zero_grad()
            continue
        if scaler is not None:
            scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), case.clip)
        if scaler is None:
            optimizer.step()
        else:
            scaler.step(optimizer)
            scaler.update()
        optimizer.zero_grad()
        if schedule is not None:
            schedule.step()
        if average is not None:
            average.update_parameters(model)
        if case.evaluate and n % 10 == 0:
            model.eval()
            with torch.no_grad():
                losses.append(loss_of(model, ids))
            model.train()
    return losses


def _refused(model: nn.Module, ids: Tensor) -> Tensor:
    """What is raised for ids that the model does not know, as bytes."""
    try:
        loss_of(model, ids)
    except IndexError as problem:
        return torch.tensor(list(str(problem).encode()), dtype=torch.uint8)
    raise AssertionError("they are taken")
