"""The record of the beginning of a run, the same from the worker, from Python and in a training loop."""

from __future__ import annotations

import hashlib
import time
import uuid
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from inspector.engine.model.subject import adopt
from inspector.engine.opening.open_subject import Opened, places
from inspector.records import SHAPES, RunStart
from inspector.records.plain_text import plain_line
from inspector.records.report import to_meta


def run_start(
    opened: Opened, sequence: str = "", *, subject: str, seed: int = 0, device: str = "cpu", made_by: str = ""
) -> RunStart:
    """All that is known before the run: the model's tree, the checkpoint and how it matched the model."""
    meta = {"torch": torch.__version__, "device": device}
    return RunStart(
        run=uuid.uuid4().hex, title=plain_line(f"{opened.title}: {sequence}" if sequence else opened.title),
        subject=subject, checkpoint=opened.checkpoint, created=time.time(), seed=seed,
        places=places(opened.subject.model),
        meta={
            **meta, **shapes_of(opened.subject.model),
            **({"made_by": made_by} if made_by else {}),
            **(to_meta(opened.report) if opened.report is not None else {}),
        },
    )  # fmt: skip


def shapes_of(model: nn.Module) -> dict[str, str]:
    """A mark of the names and shapes of all parameters, {"shapes": hexadecimal}; nothing where some have none yet."""
    every = list(model.named_parameters())
    if any(is_lazy(one) for _, one in every):
        return {}
    told = "\n".join(f"{name} {tuple(one.shape)}" for name, one in every)
    return {SHAPES: hashlib.sha256(told.encode()).hexdigest()[:16]}


def start_of(model: Any, title: str = "") -> RunStart:
    """The same for a model that other code made and runs."""
    subject = adopt(model)
    where = next((str(parameter.device) for parameter in subject.model.parameters()), "cpu")
    return run_start(Opened(subject, title or subject.name), subject=subject.name, device=where)
