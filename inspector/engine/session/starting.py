"""How a run begins as a record, the same from the worker and from Python."""

from __future__ import annotations

import time
import uuid

import torch

from inspector.engine.model.subject import Batch
from inspector.engine.opening.open_subject import Opened, places
from inspector.records import RunStart
from inspector.records.report import to_meta


def run_start(opened: Opened, batch: Batch, *, subject: str, seed: int, device: str, made_by: str = "") -> RunStart:
    """All that is known before the run: the model's tree, the checkpoint and what it did to the model."""
    meta = {"torch": torch.__version__, "device": device}
    return RunStart(
        run=uuid.uuid4().hex, title=f"{opened.title}: {batch.title}" if batch.title else opened.title,
        subject=subject, checkpoint=opened.checkpoint, created=time.time(), seed=seed,
        places=places(opened.subject.model),
        meta={
            **meta,
            **({"made_by": made_by} if made_by else {}),
            **(to_meta(opened.report) if opened.report is not None else {}),
        },
    )  # fmt: skip
