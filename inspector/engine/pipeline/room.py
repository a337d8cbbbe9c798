"""About how much memory a run will take, told before it begins: counted from the widths of the model's layers.

A run records what every layer computes at every step, with gradients; attention is one number for each pair of
positions. The numbers kept for each were fitted to the main memory that runs took (nn.LSTM of 200 to 100,000 steps, a
hand-written GRU of 512 and 100,000, a transformer of 512 positions), which lay within `SPREAD` of what is counted here.
Counter-example: a model that calls a layer many times within a step takes as many times more. What a device holds was
not measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import nn

from inspector.engine.cells.base import Cell
from inspector.engine.cells.family import sequence_family, step_family
from inspector.engine.devices.memory import free_bytes
from inspector.engine.errors import InputError
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.trace.emitter import Sink
from inspector.records import Log
from inspector.transport.memory import main_memory

SPREAD = 2.0
"""Runs took between the estimate divided by this and the estimate times this."""
RECURRENT, WRITTEN, PLAIN, PAIRS = 4.0, 41.0, 4.0, 0.5
"""Numbers in main memory for each state and gate of a recurrent module, each result of a layer where the steps are
written by hand and every operation is recorded, each result of a layer elsewhere, each attention weight."""
FIXED = 80 << 20
"""Bytes of any run: libraries that are loaded, buffers of the capture."""
BLOCK = 64
"""Steps whose Jacobians, in float64, are in memory together."""
ON_DEVICE = 0.4
"""The share that a device holds too, until the run has ended: values and gradients, no results of analyses."""
FEWEST = 256 << 20
"""Bytes below which nothing is said."""
NOTABLE = 0.1
"""The share of the free memory below which nothing is said."""


@dataclass(frozen=True, slots=True)
class Needed:
    """About how many bytes a run takes on its device (0 where that is the CPU) and in main memory."""

    device: torch.device
    on_device: float
    in_main: float


def needed(subject: Subject, batch: Batch) -> Needed:
    """An estimate for a run of the subject on a batch."""
    model = subject.model
    device = next((one.device for one in model.parameters()), torch.device("cpu"))
    size = next((one.element_size() for one in model.parameters() if one.is_floating_point()), 4)
    heads = sum(one.num_heads for one in model.modules() if isinstance(one, nn.MultiheadAttention)) + _configured(model)
    recurrent = list(_recurrent(model))
    by_hand = not heads and not any(sequence_family(one) for one in model.modules())
    widths = sum(layers * cell.state_size * (1 + len(cell.gate_names)) for layers, cell in recurrent) * RECURRENT
    widths += _plain(model) * (WRITTEN if by_hand else PLAIN)
    steps = _positions(batch)
    kept = size * batch.size * steps * (widths + PAIRS * heads * steps)
    jacobians = max((8 * BLOCK * cell.state_size**2 for _, cell in recurrent), default=0)
    return Needed(device, 0.0 if device.type == "cpu" else ON_DEVICE * kept, FIXED + jacobians + kept)


def _positions(batch: Batch) -> int:
    """Steps of the primary input; of a picture its patches with what stands before them, as far as its grid is known.

    Counter-example: a model that merges patches from layer to layer, which has fewer of them later.
    """
    first = batch.first
    if first.axis or first.grid is None:
        return batch.steps
    return first.grid[0] * first.grid[1] + len(first.before)


def _recurrent(model: nn.Module) -> Iterator[tuple[int, Cell]]:
    """(layers in all directions, a cell) of every recurrent module."""
    for module in model.modules():
        family, one = sequence_family(module), step_family(module)
        if family is not None:
            stack = family.stack(module)
            yield stack.layers * stack.directions, family.from_module(module, family.weights(module))
        elif one is not None:
            yield 1, one.from_module(module, one.weights(module))


def _configured(model: nn.Module) -> int:
    """Heads in all layers as a model of transformers' says, whose attention is no module of torch's.

    A decoder that reads an encoder attends to itself and to the encoder: with equally many layers in both, three times
    a layer.
    """
    config = getattr(model, "config", None)
    layers, heads = (getattr(config, name, None) for name in ("num_hidden_layers", "num_attention_heads"))
    if not isinstance(layers, int) or not isinstance(heads, int):
        return 0
    return layers * heads * (3 if getattr(config, "is_encoder_decoder", False) is True else 1)


def _plain(model: nn.Module) -> int:
    """Results of all linear layers and embeddings for one step; GPT-2's linear layers call their width `nf`."""
    linear = sum(one.out_features for one in model.modules() if isinstance(one, nn.Linear))
    linear += sum(nf for one in model.modules() if isinstance(nf := getattr(one, "nf", None), int))
    return linear + sum(one.embedding_dim for one in model.modules() if isinstance(one, nn.Embedding))


def told(subject: Subject, batch: Batch) -> str:
    """What to say before a run, "" where it takes little. Raises InputError where it cannot fit."""
    try:
        found = needed(subject, batch)
    except Exception:  # noqa: BLE001 - families of other packages may raise anything; a run does not end for an estimate
        return ""
    parts = [("main memory", found.in_main, main_memory())]
    if found.on_device:
        parts.insert(0, (str(found.device), found.on_device, free_bytes(found.device)))
    said = []
    for where, wanted, free in parts:
        if free is not None and wanted / SPREAD > free:
            raise InputError(
                f"This run would take about {_size(wanted)} of {where}, {_size(wanted / SPREAD)} at least, and "
                f"{_size(free)} are free; run fewer or shorter sequences, or one of a batch alone."
            )
        if wanted >= FEWEST and (free is None or wanted >= NOTABLE * free):
            has = "" if free is None else f" of {_size(free)} that are free"
            said.append(f"about {_size(wanted)} ({_size(wanted / SPREAD)} to {_size(SPREAD * wanted)}){has} of {where}")
    return f"This run will take {' and '.join(said)}." if said else ""


def _size(count: float) -> str:
    return f"{count / 2**30:.2g} GiB" if count >= 2**30 else f"{count / 2**20:.2g} MiB"


def say_room(sink: Sink, sentence: str) -> None:
    """The estimate as a message of the run, where there is one."""
    if sentence:
        sink.write(Log(sentence, "info", "engine"))
