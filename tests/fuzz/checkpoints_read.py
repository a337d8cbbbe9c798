"""What every target of checkpoints tries: read, its step, what it would be rebuilt as, and fitted into a model."""

from __future__ import annotations

from pathlib import Path

import torch
from made_checkpoints import model
from target import require_sentence

from inspector.engine.contracts import State
from inspector.engine.errors import InputError
from inspector.engine.opening.checkpoint_files import read_and_hashed
from inspector.engine.opening.checkpoint_matching import fit
from inspector.engine.opening.read_checkpoint import loader_of, read_checkpoint
from inspector.engine.opening.weights_alone.open_weights import open_weights

torch.set_num_threads(1)


def read_all(path: Path) -> State:
    """The state of a checkpoint, looked at as the window looks at it. Raises InputError."""
    loader = loader_of(path)
    told = getattr(loader, "step", None)
    state, _ = read_and_hashed(path, read_checkpoint)
    if told is not None:
        told(path)
    for one in state.tensors.values():
        one.detach().double().sum() if one.is_floating_point() else one.numel()
    for use in (_fitted, _rebuilt):
        try:
            use(state, path)
        except InputError as problem:
            require_sentence(str(problem).replace(str(path), path.name))
    return state


def _fitted(state: State, path: Path) -> None:
    target = model()
    report, plan = fit(target, state, path)
    for mismatch in report.mismatches[:20]:
        str(mismatch)
    plan.apply(target)


def _rebuilt(state: State, path: Path) -> None:
    open_weights(state, path, {})
