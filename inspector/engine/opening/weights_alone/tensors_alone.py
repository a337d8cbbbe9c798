"""A checkpoint as its tensors and nothing else: a model that holds them by name and is never called."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from inspector.engine.contracts import State
from inspector.engine.errors import InputError
from inspector.engine.model.subject import Subject
from inspector.engine.opening.weights_alone.rebuilt_model import keep
from inspector.records import CheckpointReport


class Tensors(nn.Module):
    """The tensors of a file in the tree that their names say."""


def tensors_alone(state: State, path: Path, sha256: str) -> tuple[Subject, CheckpointReport]:
    """What stands for a model that is not known. Names that no module can have leave the tree empty; nothing is lost
    by that, since what is shown is read from `state`."""
    model = Tensors()
    try:
        with torch.no_grad():
            keep(model, {name: one.detach() for name, one in state.tensors.items()})
    except (InputError, RuntimeError):  # a type that cannot be a parameter, or a name that no module can have
        model = Tensors()
    for parameter in model.parameters():
        parameter.requires_grad = False
    report = CheckpointReport(
        path=str(path), layout=state.layout, matched=len(state.tensors), total=len(state.tensors), step=state.step,
        others=state.others, sha256=sha256,
    )  # fmt: skip
    return Subject(model=model, name=path.name, kind="other"), report
