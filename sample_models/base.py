"""What all samples share: the Sample, checkpoints on disk, and the training loop."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors.torch import load_file, save
from torch import Tensor, nn

FOLDER = Path(__file__).parent
SAVED_AT = (0, 20, 80, 320, 1280, 3200)
"""Training steps whose weights are kept: early ones close together, where most changes."""
MEASUREMENTS = 80
"""How often `Training.measure` is asked over a training, in even distances and whenever weights are kept."""


class Batch(Protocol):
    """The part of a batch that a loss reads: inputs (b, t, …), lengths (b,), targets."""

    inputs: Tensor
    lengths: Tensor
    targets: Any


@dataclass(slots=True)
class Plain:
    """A batch as the training loop makes it."""

    inputs: Tensor
    lengths: Tensor
    targets: Any = None
    named: Mapping[str, Plain] = field(default_factory=dict)
    """The inputs by name, of a model that reads more than one; the first of them is `inputs` too."""

    def __contains__(self, name: object) -> bool:
        """Whether there is an input of that name."""
        return name in self.named

    def __getitem__(self, name: str) -> Tensor:
        """The tensor of an input by its name."""
        return self.named[name].inputs


@dataclass(slots=True)
class Training:
    """How a sample is trained: `draw(generator)` gives the next batch; gradients are clipped where `clip` says so.

    `forward(model, batch)` is how the model is called while it learns, where that is not how it is called afterwards
    (states cut off for truncated backpropagation). `measure()` gives numbers by name that are noted on the way.
    """

    draw: Callable[[torch.Generator], Plain]
    rate: float = 3e-3
    clip: float | None = 1.0
    steps: int = SAVED_AT[-1]
    forward: Callable[[nn.Module, Plain], Any] | None = None
    measure: Callable[[], Mapping[str, float]] | None = None


@dataclass(slots=True)
class Sample:
    """A model with its conventions: how text becomes ids, what the loss of a step is, ready sequences to run."""

    model: nn.Module
    name: str
    kind: str
    vocabulary: Sequence[str] | None = None
    labels: Sequence[str] | None = None
    encode: Callable[[str], Tensor] | None = None
    width: int | None = None
    picture: tuple[int, int] | None = None
    """(rows, columns) of the picture that the vectors of all steps are, row by row."""
    forward: Callable[..., Any] | None = None
    """(model, inputs, lengths), or (model, batch) where there are several `inputs`."""
    inputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What the model reads by name, where that is more than one sequence."""
    logits: Callable[[Any], Tensor] | None = None
    loss: Callable[[Any, Batch], Tensor] | None = None
    next_token: bool = False
    answer: Callable[[Any, Batch], Any] | None = None
    decoder: str | Sequence[str] = ()
    next_logits: Callable[[nn.Module, Batch, Tensor], Tensor] | None = None
    """(model, batch of one sequence, beginnings (n, l) of answers) → scores (n, l + 1, v) of what may follow each."""
    end_token: int | None = None
    """The symbol that ends an answer."""
    examples: Mapping[str, Any] = field(default_factory=dict)
    training: Training | None = None
    data: Callable[[], Mapping[str, Any]] | None = None
    """Many sequences by name, written as examples are."""


def checkpoints(stem: str) -> list[Path]:
    """The checkpoints of a sample's file, in the order of training."""
    return sorted((FOLDER / "checkpoints" / stem).glob("step-*.safetensors"))


def load(model: nn.Module, path: Path) -> None:
    """Put a checkpoint's weights into a model; every tensor must fit."""
    model.load_state_dict(load_file(path))


def write_checkpoint(model: nn.Module, folder: Path, step: int, seed: int, loss: float) -> Path:
    """Write `step-NNNNNN.safetensors` so that it is either whole or not there."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"step-{step:06d}.safetensors"
    tensors = {name: tensor.detach().contiguous() for name, tensor in model.state_dict().items()}
    about = {"step": str(step), "seed": str(seed), "loss": f"{loss:.4g}"}
    partial = path.with_suffix(".part")
    partial.write_bytes(_sorted_header(save(tensors, about)))
    partial.replace(path)
    return path


def _sorted_header(data: bytes) -> bytes:
    """The same file with its JSON header sorted: safetensors writes metadata in random order."""
    length = int.from_bytes(data[:8], "little")
    header = json.dumps(json.loads(data[8 : 8 + length]), sort_keys=True, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + data[8 + length :]


@dataclass(slots=True)
class History:
    """What training looked like, at every step: the batch's mean loss and the gradient's norm before any clipping.

    `measured`: columns of what was measured now and then, "step" among them.
    """

    clip: float | None
    loss: list[float] = field(default_factory=list)
    gradient_norm: list[float] = field(default_factory=list)
    measured: dict[str, list[float]] = field(default_factory=dict)

    def measure(self, step: int, values: Mapping[str, float]) -> None:
        """Note what was measured before a step."""
        for name, value in {"step": step, **values}.items():
            self.measured.setdefault(name, []).append(value)

    def write(self, folder: Path) -> Path:
        """Write `history.json`: `clip`, and the columns `step`, `loss` (nat), `gradient_norm`, to four digits.

        `measured` has columns of its own where anything was measured.
        """
        path = folder / "history.json"
        columns = {"loss": self.loss, "gradient_norm": self.gradient_norm}
        whole: dict[str, Any] = {"clip": self.clip, "step": list(range(len(self.loss))), **_rounded(columns)}
        if self.measured:
            whole["measured"] = _rounded(self.measured)
        path.write_text(json.dumps(whole, separators=(",", ":"), ensure_ascii=False) + "\n", encoding="utf-8")
        return path


def _rounded(columns: Mapping[str, Sequence[float]]) -> dict[str, list[float]]:
    """Steps as they are, everything else to four digits."""
    return {
        name: [value if name == "step" else float(f"{value:.4g}") for value in values]
        for name, values in columns.items()
    }


@contextmanager
def seeded(seed: int = 0) -> Iterator[None]:
    """A seeded random state inside, the caller's own afterwards: building a sample disturbs nobody."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def vary_layers(stack: nn.Module) -> None:
    """Initialise every module again: nn.TransformerEncoder copies one layer, so all would start with equal weights."""
    for module in stack.modules():
        for name in ("reset_parameters", "_reset_parameters"):
            if hasattr(module, name):
                getattr(module, name)()
                break


def train(
    sample: Sample,
    folder: Path,
    *,
    seed: int = 0,
    steps: int | None = None,
    saved_at: Sequence[int] = SAVED_AT,
    tell: Callable[[str], None] = lambda _text: None,
) -> None:
    """Train with Adam on the sample's own batches; write its checkpoints and `history.json` into `folder`.

    Same seed, same bits (on one thread), also of a model that samples.
    """
    with seeded(seed):
        _train(sample, folder, seed, steps, saved_at, tell)


def _train(
    sample: Sample,
    folder: Path,
    seed: int,
    steps: int | None,
    saved_at: Sequence[int],
    tell: Callable[[str], None],
) -> None:
    plan = sample.training
    assert plan is not None and sample.loss is not None
    last = plan.steps if steps is None else steps
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(sample.model.parameters(), lr=plan.rate)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda s: 0.5 * (1 + math.cos(math.pi * min(1, s / max(1, last))))
    )
    sample.model.train()
    history = History(plan.clip)
    mean = math.nan
    for step in range(last + 1):
        batch = plan.draw(generator)
        output = run(sample, batch) if plan.forward is None else plan.forward(sample.model, batch)
        loss = sample.loss(output, batch)
        value = loss.nansum() / (~loss.isnan()).sum()
        mean = value.item() if math.isnan(mean) else 0.95 * mean + 0.05 * value.item()
        if step in saved_at or step == last:
            write_checkpoint(sample.model, folder, step, seed, mean)
            tell(f"{sample.name} step {step}: loss {mean:.3f} nat")
        if plan.measure is not None and (step % max(1, last // MEASUREMENTS) == 0 or step in saved_at or step == last):
            history.measure(step, plan.measure())
        optimizer.zero_grad()
        value.backward()
        history.loss.append(value.item())
        history.gradient_norm.append(_clip(sample.model, plan.clip))
        optimizer.step()
        schedule.step()
    history.write(folder)
    sample.model.eval()


def _clip(model: nn.Module, threshold: float | None) -> float:
    """Scale all gradients together by min(1, threshold / ‖g‖₂), or by nothing; ‖g‖₂ as it was before."""
    found = [weight for weight in model.parameters() if weight.grad is not None]
    if threshold is not None:
        return float(nn.utils.clip_grad_norm_(found, threshold))
    return float(nn.utils.get_total_norm([weight.grad for weight in found if weight.grad is not None]))


def run(sample: Sample, batch: Batch) -> Any:
    """The model's output on a batch, called as its author means it."""
    if sample.forward is not None and sample.inputs:
        return sample.forward(sample.model, batch)
    if sample.forward is not None:
        return sample.forward(sample.model, batch.inputs, batch.lengths)
    return sample.model(batch.inputs)
