"""Models that read a picture: its pixels as the folder's image processor makes them, and its grid of patches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from inspector.engine.errors import InputError
from inspector.engine.model.batch import Batch
from inspector.engine.model.subject import Subject
from inspector.engine.opening.hugging_face import heads
from inspector.engine.opening.hugging_face.library import FROM_DISK, one_line

PIXELS = "pixel_values"
PROCESSORS = ("preprocessor_config.json", "processor_config.json")
WHOLE = {
    "cls_token": "class token",
    "class_embedding": "class token",
    "distillation_token": "distillation token",
    "register_tokens": "register",
}
"""Last part of a parameter's name → what the position is called, in the order in which models put them."""


def subject_of(transformers: Any, folder: Path, model: Any, head: str) -> Subject:
    """The subject of a model of pictures."""
    described = {"kind": "image", **shape_of(model.config), "before": tokens_before(model)}
    described["pixels"] = _processor(transformers, folder)
    return Subject(
        model=model, name=folder.resolve().name, inputs={PIXELS: described},
        forward=_reads_picture, logits=heads.scores_once if head == "class" else heads.no_scores,
        loss=heads.class_loss if head == "class" else None,
        labels=heads.class_names(model.config) if head == "class" else None,
    )  # fmt: skip


def _reads_picture(model: nn.Module, batch: Batch) -> Any:
    return model(pixel_values=batch[PIXELS])


def _processor(transformers: Any, folder: Path) -> Callable[[Any], Tensor] | None:
    """What the folder's image processor makes of a picture; None where the folder has none. Raises InputError."""
    if not any((folder / name).is_file() for name in PROCESSORS):
        return None
    try:
        processor = transformers.AutoImageProcessor.from_pretrained(str(folder), **FROM_DISK)
    except Exception as fault:  # noqa: BLE001 - a processor of another release, or one whose library is missing
        raise InputError(f"The image processor of {folder} cannot be read ({one_line(fault)}).") from None

    def pixels(picture: Any) -> Tensor:
        made: Tensor = processor(images=picture, return_tensors="pt")[PIXELS][0]
        return made

    return pixels


def tokens_before(model: nn.Module) -> tuple[str, ...]:
    """Names of the tokens that a model of pictures puts in front of the patches, from the parameters that hold them.

    Counter-example: a model that puts such a token behind the patches; its positions would be named one too early.
    """
    found: list[str] = []
    held = {name.rpartition(".")[2]: value for name, value in model.named_parameters()}
    for name, said in WHOLE.items():
        if name in held:
            count = held[name].shape[-2] if held[name].dim() > 1 else 1
            found += [said] if count == 1 else [f"{said} {number}" for number in range(count)]
    return tuple(found)


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
