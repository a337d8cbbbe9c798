"""About how much memory a run will take, told before it begins: counted from the widths of the model's layers.

A run records what every layer computes at every step, with gradients; attention is one number for each pair of
positions. The counts are multiplied by what runs of several models took (`FACTORS`), of which single runs were between
half and twice as much. Counter-example: a model that calls a layer many times within a step takes as many times more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import nn

from inspector.engine.cells.family import sequence_family, step_family
from inspector.engine.devices.memory import free_bytes, main_memory
from inspector.engine.errors import InputError
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.trace.emitter import Sink
from inspector.records import Log

SPREAD = 2.0
"""Runs took between the estimate divided by this and the estimate times this."""
RECURRENT, PLAIN, PAIRS = 14.0, 18.0, 4.0
"""Numbers in main memory for each state and gate of a recurrence, each result of a layer, each attention weight."""
ON_DEVICE = 0.4
"""The share of these that a device holds too, until the run has ended: values and gradients, no results of analyses."""
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
    rows = batch.size * batch.steps
    widths = sum(weight * width for weight, width in _widths(model))
    pairs = sum(one.num_heads for one in model.modules() if isinstance(one, nn.MultiheadAttention))
    entries = rows * widths + PAIRS * batch.size * batch.steps**2 * pairs
    there = 0.0 if device.type == "cpu" else ON_DEVICE * entries * size
    return Needed(device, there, entries * size)


def _widths(model: nn.Module) -> Iterator[tuple[float, int]]:
    """(numbers kept for each, how many) of every layer and step of a sequence."""
    inside: set[nn.Module] = set()
    for module in model.modules():
        if module in inside:
            continue
        family = sequence_family(module) or step_family(module)
        if family is not None:
            inside |= set(module.modules())
            stack = family.stack(module)
            with torch.no_grad():
                cell = family.from_module(module, family.weights(module))
            yield RECURRENT, stack.layers * stack.directions * cell.state_size * (1 + len(cell.gate_names))
        elif isinstance(module, nn.Linear | nn.Embedding):
            yield PLAIN, module.weight.shape[0 if isinstance(module, nn.Linear) else 1]


def told(subject: Subject, batch: Batch) -> str:
    """What to say before a run, "" where it takes little. Raises InputError where it cannot fit."""
    found = needed(subject, batch)
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
