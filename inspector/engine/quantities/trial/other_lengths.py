"""Time and memory of a step of training, at this length and at others."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from inspector.engine.analyses.trial.other_lengths import of_length
from inspector.engine.analyses.trial.trial_steps import Trial
from inspector.engine.errors import Unsupported
from inspector.engine.model.batch import Batch
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Trace
from inspector.records.catalogue import LOSS

PLACE = "model"
STATISTICS = ("steps", "seconds", "least seconds", "most seconds", "bytes")
ABOUT = Describe(
    kind="trial", compare="separate", title="time and memory of a step of training, by length",
    formula="seconds of a forward and a backward pass, median of {}; bytes that autograd keeps in between",
    source="torch.autograd.graph.saved_tensors_hooks: each storage once, without those of parameters and inputs",
    labels={"statistic": STATISTICS},
)  # fmt: skip
REPEATS = 5
LONGEST = 1.0
"""Seconds of a step from which it is not repeated."""
FEWEST = 2
"""Steps of the shortest batch."""


@QUANTITIES.register("trial/other_lengths")
@per_run(
    summary="time and memory of a step of training, at this length and at others", order=92, default=False,
    needs=(LOSS,), cost="some 24 steps of training", work=lambda run: run.call * 80,
)  # fmt: skip
def other_lengths(trace: Trace, emit: Emitter) -> None:
    """Write (statistic, length), and the scalars `trial/other_lengths/steps` (of this batch), `…/fixed`: bytes of
    parameters, gradients and the two moments of Adam. Lengths that the model cannot take are left out."""
    name = f"{PLACE}:trial/other_lengths"
    try:
        trial = Trial(trace)
        own = trial.batch
        rows = [_measured(trial, own, own.steps)]
        for steps in _others(own.steps):
            emit.check()
            try:
                rows.append(_measured(trial, own, steps))
            except Unsupported:
                continue  # a table of positions that is as long as this, say
    except Unsupported as reason:
        emit.refuse(name, str(reason))
        return
    table = np.array(sorted(rows)).T
    about = {"formula": ABOUT.formula.format(REPEATS), "method": f"batch of {own.size}, on {own.inputs.device.type}"}
    emit.array(ABOUT.channel(name, ("statistic", "length"), table.shape, "float64", **about), table)
    emit.scalar("trial/other_lengths/steps", float(own.steps))
    emit.scalar(
        "trial/other_lengths/fixed", float(4 * sum(one.numel() * one.element_size() for one in trial.parameters))
    )


def _others(steps: int) -> list[int]:
    """A quarter, half and twice as many; of few steps, four and eight times."""
    found = {steps // 4, steps // 2, 2 * steps} if steps >= 4 * FEWEST else {2 * steps, 4 * steps, 8 * steps}
    return sorted(found - {steps})


def _measured(trial: Trial, own: Batch, steps: int) -> list[float]:
    """One column of the table. Raises Unsupported."""
    trial.batch = of_length(own, steps)
    with trial.ready():
        kept = _kept(trial)
        seconds = [_timed(trial)]
        seconds += [_timed(trial) for _ in range(REPEATS - 1) if seconds[0] < LONGEST]
    return [float(steps), float(np.median(seconds)), min(seconds), max(seconds), float(kept)]


def _timed(trial: Trial) -> float:
    began = time.perf_counter()
    trial.gradients()
    if trial.parameters[0].device.type != "cpu":
        torch.accelerator.synchronize()
    return time.perf_counter() - began


def _kept(trial: Trial) -> int:
    """Bytes of storages that a forward pass leaves for the backward pass. The first call, which also warms up."""
    known = {one.untyped_storage().data_ptr() for one in _held(trial)}
    sizes: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in known:
            sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = trial.loss()  # held until the count is made: a freed storage's address would be given again
        found = sum(sizes.values())
    del loss
    return found


def _held(trial: Trial) -> Sequence[Tensor]:
    """Parameters, buffers and inputs: they are in memory in any case."""
    inputs = [one.tensor for one in trial.batch.named.values() if one.tensor is not None]
    targets = [trial.batch.targets] if isinstance(trial.batch.targets, Tensor) else []
    return [*trial.subject.model.parameters(), *trial.subject.model.buffers(), *inputs, *targets]
