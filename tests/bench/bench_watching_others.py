"""What watching costs, beside what else people watch trainings with: CPU time of watched iterations against plain ones.

The models and the method are those of `bench_watching`; every library is called as its own documentation says, and is
left out where it is not installed: wandb (offline, `watch(log="all")`), tensorboard (histograms of all parameters and
gradients), trainscope, neurolens (without its viewer) and torchmortem. CPU time is that of this process: what W&B
does in a process of its own is not in it. Two models, one process, turns in random order.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from bench_watching import BATCH, STEPS, VOCABULARY, Lstm, Transformer, compared
from harness import Row
from torch import Tensor, nn

import inspector

ROUNDS, TURN = 10, 10
"""A turn is ten iterations, so that what is recorded at every tenth is in each."""
Logged = Callable[[int, Tensor], None]
"""What a loop calls between the backward pass and the optimizer's step: (iteration, loss)."""


def nothing(*_: Any) -> Logged:
    """A plain training."""
    return lambda _n, _loss: None


def ours(cost: str, every: int) -> Callable[..., Logged]:
    """`inspector.watch`."""

    def begin(model: nn.Module, optimizer: Any, folder: Path, close: ExitStack) -> Logged:
        close.enter_context(inspector.watch(model, optimizer, folder / "run.inspect", cost=cost, every=every))
        return lambda _n, _loss: None

    return begin


def wandb(every: int) -> Callable[..., Logged]:
    """W&B, offline; histograms of parameters and gradients."""

    def begin(model: nn.Module, _optimizer: Any, folder: Path, close: ExitStack) -> Logged:
        import wandb

        run = wandb.run  # its hooks write to the process's one run
        if run is None:
            folder.mkdir(parents=True, exist_ok=True)
            run = wandb.init(mode="offline", dir=str(folder), settings=wandb.Settings(silent=True))
            close.callback(run.finish)
        run.watch(model, log="all", log_freq=every)
        return lambda n, loss: run.log({"loss": loss.detach()}) if n % every == 0 else None

    return begin


def tensorboard(every: int) -> Callable[..., Logged]:
    """TensorBoard; histograms of parameters and gradients."""

    def begin(model: nn.Module, _optimizer: Any, folder: Path, close: ExitStack) -> Logged:
        from torch.utils.tensorboard import SummaryWriter

        writer = SummaryWriter(str(folder))
        close.callback(writer.close)

        def log(n: int, loss: Tensor) -> None:
            if n % every:
                return
            writer.add_scalar("loss", loss.item(), n)
            for name, tensor in model.named_parameters():
                writer.add_histogram(name, tensor.detach(), n)
                writer.add_histogram(f"{name}/gradient", tensor.grad, n)

        return log

    return begin


def trainscope(model: nn.Module, optimizer: Any, folder: Path, close: ExitStack) -> Logged:
    """Its defaults; each iteration."""
    from trainscope import TrainScope
    from trainscope.core.config import TrainScopeConfig

    scope = TrainScope(model, optimizer, config=TrainScopeConfig(run_dir=str(folder))).attach()
    close.callback(scope.detach)
    return lambda n, loss: scope.step(loss.item(), batch_index=n)


def neurolens(model: nn.Module, optimizer: Any, _folder: Path, _close: ExitStack) -> Logged:
    """Its defaults; each iteration, with nobody looking."""
    from neurolens.monitor import monitor  # `neurolens.monitor` is this module once it was called

    watcher = monitor(model, optimizer)
    return lambda n, loss: watcher.step(n, loss=loss)


def torchmortem(model: nn.Module, optimizer: Any, _folder: Path, close: ExitStack) -> Logged:
    """Its defaults; each iteration."""
    from torchmortem import Autopsy

    autopsy = close.enter_context(Autopsy(model, optimizer=optimizer))
    return lambda _n, loss: autopsy.step(loss=loss.item())


SORTS: dict[str, tuple[str, Callable[..., Logged]]] = {
    "plain": ("torch", nothing),
    "plain again": ("torch", nothing),
    "inspector light, every=1": ("torch", ours("light", 1)),
    "inspector normal, every=1": ("torch", ours("normal", 1)),
    "inspector normal, every=10": ("torch", ours("normal", 10)),
    "trainscope": ("trainscope", trainscope),
    "neurolens": ("neurolens", neurolens),
    "torchmortem": ("torchmortem", torchmortem),
    "W&B watch(log='all'), every 1": ("wandb", wandb(1)),
    "W&B watch(log='all'), every 10": ("wandb", wandb(10)),
    "TensorBoard histograms, every 1": ("tensorboard", tensorboard(1)),
    "TensorBoard histograms, every 10": ("tensorboard", tensorboard(10)),
}
"""Name → (package that it needs, what begins it). trainscope begins before W&B: it would write to a run of W&B's too."""


def training(
    make: Callable[[], nn.Module], folder: Path, begin: Callable[..., Logged], close: ExitStack
) -> Callable[[], float]:
    """A function that trains for one turn and returns the CPU seconds of the process, all its threads."""
    torch.manual_seed(0)
    model = make()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    batches = torch.randint(0, VOCABULARY, (8, BATCH, STEPS + 1))
    log = begin(model, optimizer, folder, close)
    count = 0

    def turn() -> float:
        nonlocal count
        began = time.process_time()
        for _ in range(TURN):
            ids = batches[count % len(batches)]
            output = model(ids[:, :-1])
            loss = nn.functional.cross_entropy(output.flatten(0, 1), ids[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            log(count, loss)
            optimizer.step()
            count += 1
        return time.process_time() - began

    return turn


def rows(rounds: int = ROUNDS) -> list[Row]:
    """One thread. `ours` and `other` are the ratio and 1."""
    torch.set_num_threads(1)
    os.environ.setdefault("WANDB_SILENT", "true")
    there = {name: begin for name, (package, begin) in SORTS.items() if find_spec(package) is not None}
    found = []
    for model, make in (("LSTM", Lstm), ("transformer", Transformer)):
        with tempfile.TemporaryDirectory(prefix="watching-") as folder, ExitStack() as close:
            turns = {
                name: training(make, Path(folder) / str(n), begin, close)
                for n, (name, begin) in enumerate(there.items())
            }
            results = compared(turns, rounds)
        for name, (ratio, low, high) in results.items():
            if name != "plain":
                note = f"95 % interval {low:.3f} … {high:.3f}"
                found.append(Row(f"{model}: {name} / plain (CPU time)", ratio, 1.0, ratio, "", note))
    return found
