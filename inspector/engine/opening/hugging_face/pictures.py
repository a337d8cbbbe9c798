"""Models that read a picture: its pixels as the folder's image processor makes them, and its grid of patches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import nn

from inspector.engine.model.batch import Batch
from inspector.engine.model.subject import Subject
from inspector.engine.opening.hugging_face import heads

PIXELS = "pixel_values"


def subject_of(transformers: Any, folder: Path, model: Any, head: str) -> Subject:
    """The subject of a model of pictures."""
    config = model.config
    labels = config.id2label if head == "class" else None
    return Subject(
        model=model, name=folder.resolve().name, inputs={PIXELS: {"kind": "image", **shape_of(config)}},
        forward=_reads_picture, logits=heads.scores_once if head == "class" else heads.no_scores,
        loss=heads.class_loss if head == "class" else None,
        labels=None if labels is None else tuple(str(labels[number]) for number in sorted(labels)),
    )  # fmt: skip


def _reads_picture(model: nn.Module, batch: Batch) -> Any:
    return model(pixel_values=batch[PIXELS])


def shape_of(config: Any) -> dict[str, Any]:
    """The shape of a picture and the grid of its patches, as far as the configuration says."""
    size, patch = _pair(getattr(config, "image_size", None)), _pair(getattr(config, "patch_size", None))
    if size is None:
        return {}
    found: dict[str, Any] = {"shape": (int(getattr(config, "num_channels", 3)), *size)}
    if patch is not None and size[0] >= patch[0] and size[1] >= patch[1]:
        found["grid"] = (size[0] // patch[0], size[1] // patch[1])
    return found


def _pair(given: Any) -> tuple[int, int] | None:
    """(height, width) of what is one number or two."""
    if isinstance(given, int):
        return given, given
    if isinstance(given, (list, tuple)) and len(given) == 2 and all(isinstance(one, int) for one in given):
        return int(given[0]), int(given[1])
    return None
