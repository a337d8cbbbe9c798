"""Batches of texts that go on in the next one or are shuffled, trainings on them, and what a watch recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import inspector
from inspector.capture import open_capture

SYMBOLS, ROWS, STEPS = 8, 12, 9
NAMES = ("rows", "follows", "others", "within")


def texts(rows: int, steps: int, seed: int = 0, told: float = 0.6) -> Tensor:
    make = np.random.default_rng(seed)
    ids = np.zeros((rows, steps), dtype=np.int64)
    ids[:, 0] = make.integers(0, SYMBOLS, rows)
    for t in range(1, steps):
        ids[:, t] = np.where(
            make.random(rows) < told, (3 * ids[:, t - 1] + 1) % SYMBOLS, make.integers(0, SYMBOLS, rows)
        )
    return torch.from_numpy(ids)


def cut(state: Any) -> Any:
    if isinstance(state, Tensor):
        return state.detach()
    return None if state is None else tuple(one.detach() for one in state)


Batches = Iterator[Tensor]


def going_on(told: float = 0.6, iterations: int = 60, rows: int = ROWS) -> Batches:
    yield from texts(rows, STEPS * iterations, told=told).split(STEPS, 1)


def shuffled(told: float = 0.6, iterations: int = 60, rows: int = ROWS) -> Batches:
    pieces = list(going_on(told, 2 * iterations, rows))
    order = np.random.default_rng(1).permutation(len(pieces))[:iterations]
    yield from (pieces[n] for n in order)


def train(
    path: Path | None, model: nn.Module, batches: Batches, keeps: Callable[[Any], Any] = cut, *, turn: bool = False,
    every: int = 2, between: Callable[[nn.Module], None] = lambda model: None,
) -> list[float]:  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    state: Any = None
    losses = []
    watcher = None if path is None else inspector.watch(model, optimizer, path, every=every)
    for ids in batches:
        logits, state = model(ids.T.contiguous() if turn else ids, state)
        state = keeps(state)
        loss = nn.functional.cross_entropy(logits.reshape(-1, SYMBOLS), (ids.T if turn else ids).reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        between(model)
    if watcher is not None:
        watcher.close()
    return losses


def series(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    with open_capture(path) as capture:
        names = {name: f"training:carried/{name}" for name in NAMES}
        found = {
            key: np.ma.filled(np.ma.asarray(capture.array(name), float), np.nan)
            if name in capture.channels
            else np.empty(0)
            for key, name in names.items()
        }
        return {key: one[:, 0] if one.ndim == 2 else one for key, one in found.items()}  # lag 1


def fired(path: Path) -> list[str]:
    return [one.message for one in inspector.diagnose(path).findings if one.id == "IN210"]
