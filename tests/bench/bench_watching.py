"""What watching costs a training: CPU time of watched iterations against plain ones, in turns, with its interval.

The two models of about 1.5 M parameters: an LSTM language model and a transformer of four layers, batch 16 × 64 tokens.
Plain against plain is the resolution of the method: what lies within its interval cannot be told apart from nothing.
"Passes alone" is the floor of the numbers that are exact: the norms of all gradients twice (before and after clipping),
a copy of the weights before the step, and one look at both after it, with nothing else around them.
Sampling by a share of the wall time is not in the table: here the wall time of one training contains the turns of all.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from harness import Row
from torch import Tensor, nn

import inspector
from inspector.engine.watch.measures.in_cache import differences

VOCABULARY, BATCH, STEPS = 1000, 16, 64
ROUNDS, TURN = 16, 5
"""Rounds in which each takes one turn of so many iterations."""


class Lstm(nn.Module):
    """1.55 M parameters."""

    def __init__(self, vocabulary: int = VOCABULARY, width: int = 256) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.rnn = nn.LSTM(width, width, 2, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, ids: Tensor) -> Tensor:
        """Logits."""
        found: Tensor = self.head(self.rnn(self.embedding(ids))[0])
        return found


class Transformer(nn.Module):
    """1.3 M parameters, four layers."""

    def __init__(self, vocabulary: int = VOCABULARY, width: int = 144) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True) for _ in range(4)
        )
        self.head = nn.Linear(width, vocabulary)

    def forward(self, ids: Tensor) -> Tensor:
        """Logits."""
        hidden = self.embedding(ids)
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        for layer in self.layers:
            hidden = layer(hidden, src_mask=mask, is_causal=True)
        found: Tensor = self.head(hidden)
        return found


class Passes:
    """The passes over memory that the preset normal cannot do without, as hooks of the optimizer."""

    def __init__(self, parameters: list[nn.Parameter], optimizer: torch.optim.Optimizer) -> None:
        self.parameters = parameters
        self.weights = [one.detach() for one in parameters]
        self.before = [one.clone() for one in self.weights]
        optimizer.register_step_pre_hook(lambda *_: self.begins())
        optimizer.register_step_post_hook(lambda *_: self.ended())

    def gradients(self) -> None:
        """Norms of all gradients."""
        torch.stack(torch._foreach_norm([one.grad for one in self.parameters if one.grad is not None]))

    def begins(self) -> None:
        """Norms again, and the copy."""
        self.gradients()
        torch._foreach_copy_(self.before, self.weights)

    def ended(self) -> None:
        """What changed."""
        differences(self.before, self.weights)


def training(
    make: Callable[[], nn.Module], folder: Path, options: dict[str, Any] | None, close: ExitStack
) -> Callable[[], float]:
    """A function that trains for one turn and returns the CPU seconds of the process, all its threads."""
    torch.manual_seed(0)
    model = make()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    batches = torch.randint(0, VOCABULARY, (8, BATCH, STEPS + 1))
    floor = Passes(list(model.parameters()), optimizer) if options == ALONE else None
    if options is not None and floor is None:
        close.enter_context(inspector.watch(model, optimizer, folder / "run.inspect", **options))

    def turn() -> float:
        began = time.process_time()
        for n in range(TURN):
            ids = batches[n % len(batches)]
            output = model(ids[:, :-1])
            nn.functional.cross_entropy(output.flatten(0, 1), ids[:, 1:].flatten()).backward()
            if floor is not None:
                floor.gradients()
            optimizer.step()
            optimizer.zero_grad()
        return time.process_time() - began

    return turn


def compared(turns: dict[str, Callable[[], float]], rounds: int) -> dict[str, tuple[float, float, float]]:
    """By name (median ratio to "plain", and its interval of about 95 % by order statistics), turns in random order."""
    ratios: dict[str, list[float]] = {name: [] for name in turns}
    order = list(turns)
    shuffled = random.Random(0)
    for number in range(rounds + 1):
        shuffled.shuffle(order)
        seconds = {name: turns[name]() for name in order}
        for name in turns if number else ():
            ratios[name].append(seconds[name] / seconds["plain"])
    return {name: (statistics.median(values), *interval(values)) for name, values in ratios.items()}


def interval(values: list[float]) -> tuple[float, float]:
    """Order statistics that enclose the median with about 95 %: n/2 ± √n."""
    ordered, half = sorted(values), len(values) ** 0.5
    low, high = int(len(values) / 2 - half), int(len(values) / 2 + half)
    return ordered[max(0, low)], ordered[min(len(values) - 1, high)]


ALONE: dict[str, Any] = {"passes": "alone"}
SORTS: dict[str, dict[str, Any] | None] = {
    "plain": None,
    "plain again": None,
    "passes alone, every=1": ALONE,
    "light, every=1": {"cost": "light", "every": 1},
    "light, every=10": {"cost": "light", "every": 10},
    "normal, every=1": {"cost": "normal", "every": 1},
    "normal, every=10": {"cost": "normal", "every": 10},
}


def rows(rounds: int = ROUNDS) -> list[Row]:
    """One thread. `ours` and `other` are the ratio and 1."""
    torch.set_num_threads(1)
    found = []
    for name, make in (("LSTM", Lstm), ("transformer", Transformer)):
        with tempfile.TemporaryDirectory(prefix="watching-") as folder, ExitStack() as close:
            turns = {
                sort: training(make, Path(folder) / str(n), options, close)
                for n, (sort, options) in enumerate(SORTS.items())
            }
            results = compared(turns, rounds)
        same = results["plain again"]
        for sort, (ratio, low, high) in results.items():
            if sort == "plain":
                continue
            aim = "" if sort.startswith(("plain", "passes")) else "≤ 1.10" if sort.endswith("=1") else "≤ 1.02"
            apart = "" if sort == "plain again" or low > same[2] else ", not told apart from plain"
            note = f"95 % interval {low:.3f} … {high:.3f}{apart}"
            found.append(Row(f"{name}: {sort} / plain (CPU time)", ratio, 1.0, ratio, aim, note))
    return found
