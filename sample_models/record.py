"""Record trainings again: `python -m sample_models.record NAME|all [--steps N]`. The one file here that uses inspector.

Same seed, same numbers (on one thread, with the same kernels); times differ.
"""

from __future__ import annotations

import argparse
import importlib
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

import inspector
from sample_models.base import FOLDER
from sample_models.trainings.plan import Plan, mean_loss

HERE = FOLDER / "trainings"
SHARED = ("__init__", "plan", "recall")
QUANTITIES = (
    "input", "states", "gates", "output/loss", "gradients", "jacobian/spectral_norm", "jacobian/spectral_radius",
    "jacobian/lag", "gradient/lag_map", "units", "saturation", "health",
)  # fmt: skip
"""What each frame has: enough to see what is wrong, in a file that can be mailed."""


def names() -> list[str]:
    """Files of recorded trainings."""
    return [path.stem for path in sorted(HERE.glob("*.py")) if path.stem not in SHARED]


def record(plan: Plan, path: Path, steps: int | None = None, tell: Callable[[str], None] = lambda _text: None) -> None:
    """Train as planned, watched, into a capture at `path`."""
    from inspector.engine.model.subject import Batch

    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    probe = Batch(plan.probe.inputs, plan.probe.lengths, targets=plan.probe.targets)
    with inspector.watch(
        plan.model, plan.optimizer, path, every=plan.every, probe=probe, probe_loss=plan.loss,
        probe_every=plan.probe_every, quantities=QUANTITIES,
    ) as watcher:  # fmt: skip
        for iteration in range(1, (plan.steps if steps is None else steps) + 1):
            if iteration in plan.notes:
                watcher.note(plan.notes[iteration])
            batch = plan.draw(generator)
            loss = mean_loss(plan.loss(plan.model(batch.inputs), batch))
            plan.optimizer.zero_grad()
            loss.backward()
            if plan.clip is not None:
                nn.utils.clip_grad_norm_(plan.model.parameters(), plan.clip)
            plan.optimizer.step()
            if iteration % 100 == 0:
                tell(f"{path.stem} iteration {iteration}: loss {loss.item():.3f}")
    if watcher.error is not None:
        raise RuntimeError(watcher.error)


def say(text: str) -> None:
    """One line on stderr."""
    sys.stderr.write(text + "\n")


def main() -> int:
    """Record one training or all of them."""
    parser = argparse.ArgumentParser(description="Record trainings again.")
    parser.add_argument("name", choices=["all", *names()])
    parser.add_argument("--steps", type=int, default=None)
    given = parser.parse_args()
    torch.set_num_threads(1)  # sums in the same order: the same bits on every machine with the same kernels
    for name in names() if given.name == "all" else [given.name]:
        path, fresh = HERE / f"{name}.inspect", HERE / f"{name}.new.inspect"
        shutil.rmtree(fresh, ignore_errors=True)
        record(importlib.import_module(f"sample_models.trainings.{name}").build(), fresh, given.steps, say)
        shutil.rmtree(path, ignore_errors=True)  # only now: an interrupted run leaves the old capture
        fresh.rename(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
