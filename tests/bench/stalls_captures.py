"""The captures that `bench_stalls` opens. As a program: a training of ten iterations a second, written until it is
ended."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from inspector.capture import Writer
from inspector.records import Axis, Channel, Frame, Page, RunStart, RunStop

MANY, UNITS, TENTH = 100_000, 64, 0.1
LAYERS, HEADS, TOKENS = 12, 12, 256
CHEAP = ("states", "gates", "gradients", "output/loss", "saturation")


def states(names: dict[str, str], units: int = UNITS) -> list[Channel]:
    """Channels (step, unit) by their kind, and the norm of a gradient."""
    maps = [
        Channel(name=f"rnn:{name}", kind=kind, dims=("step", "unit"), shape=(None, units), title=name)
        for name, kind in names.items()
    ]
    return [*maps, Channel(name="rnn:gradient", kind="gradient", dims=("step",), shape=(None,), title="gradient")]


def page(channel: Channel, frame: int, first: int, steps: int, random: np.random.Generator) -> Page:
    """Numbers of some steps."""
    shape = tuple(steps if dim == "step" else UNITS for dim in channel.dims)
    return Page(channel.name, frame, (first,) + (0,) * (len(shape) - 1), random.random(shape).astype(np.float32))


def many(path: Path) -> None:
    """MANY steps: states and gates of 64 units, and the norm of a gradient."""
    random = np.random.default_rng(0)
    with Writer(path, RunStart(run="many", title="many steps")) as writer:
        writer.write(Frame(index=0))
        for channel in states({"h": "state", "i": "gate"}):
            writer.write(channel)
            for first in range(0, MANY, 32):
                writer.write(page(channel, 0, first, 32, random))
        writer.write(RunStop("done"))


def heads(path: Path) -> None:
    """A transformer without training, run on TOKENS tokens."""
    import torch
    from torch import nn

    import inspector

    class Transformer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(64, 192)
            layer = nn.TransformerEncoderLayer(192, HEADS, 384, batch_first=True, norm_first=True, dropout=0.0)
            self.layers = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
            mixed: torch.Tensor = self.layers(self.table(ids), mask=mask, is_causal=True)
            return mixed

    torch.manual_seed(0)
    inspector.run(Transformer().eval(), torch.randint(0, 64, (1, TOKENS)), out=path).close()


def two(folder: Path) -> None:
    """Runs of one sample on one text, at two checkpoints of its training."""
    import inspector

    text = "Alice was beginning to get very tired of sitting by her sister on the bank, " * 8
    for name, checkpoint in (("one", "0"), ("two", "")):
        inspector.run("char-lstm", text, out=folder / f"{name}.inspect", checkpoint=checkpoint, only=CHEAP).close()


def live(path: Path) -> None:
    """A training: a loss, a learning rate, norms of 40 gradients, and states of 64 steps each tenth of a second."""
    random, loss = np.random.default_rng(0), 4.0
    table = Channel(name="parameters:gradient/norm", kind="series", dims=("iteration", "parameter"),
                    shape=(None, None), title="gradient norm", scale="log")  # fmt: skip
    with Writer(path, RunStart(run="live", title="a training")) as writer:
        writer.write(Axis(name="iteration", title="iteration", unit="iteration"))
        for name, kind in (("iteration", "coordinate"), ("loss", "series"), ("lr", "series")):
            writer.write(Channel(name=f"training:{name}", kind=kind, dims=("iteration",), shape=(None,),
                                 dtype="float64", title=name))  # fmt: skip
        shown = states({"h": "state", "i": "gate"})
        for channel in (table, *shown):
            writer.write(channel)
        number = 0
        while True:
            began = time.monotonic()
            loss *= 0.999
            for name, value in (("iteration", number), ("loss", loss + 0.1 * random.random()), ("lr", 1e-3)):
                writer.write(Page(f"training:{name}", 0, (number,), np.array([value], np.float64)))
            writer.write(Page(table.name, 0, (number, 0), random.random((1, 40), np.float32)))
            writer.write(Frame(index=number, step=number))
            for channel in shown:
                writer.write(page(channel, number, 0, 64, random))
            writer.flush()
            number += 1
            time.sleep(max(0.0, TENTH - (time.monotonic() - began)))


if __name__ == "__main__":
    live(Path(sys.argv[1]) / "live.inspect")
