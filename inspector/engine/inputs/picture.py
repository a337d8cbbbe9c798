"""Pictures from files, as the subject's image processor makes them, or as numbers from 0 to 1."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from inspector.engine.errors import InputError
from inspector.engine.model.batching import MORE_FILES, ask, check_array, more_of, pad, regular_file, tensor_of
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.model.text_targets import LABEL, class_of
from inspector.engine.registries import INPUTS
from inspector.records import InputSpec
from inspector.records.unreadable import why_unreadable

FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP")
MAX_PIXELS = 50_000_000
"""A compressed file may claim any number."""


class Picture:
    """Pictures of equal size after the processor; `options["files"]` adds more, `label` is their class."""

    title = "Picture"
    summary = "Pictures from .png, .jpg, .bmp, .gif or .webp, for models that read an image."
    reads = ("image",)
    suffixes = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp")
    options = (MORE_FILES, LABEL)

    def make(self, subject: Subject, spec: InputSpec, seed: int) -> Batch:
        """(b, c, h, w) pictures."""
        if subject.kind != "image":
            raise InputError(f"{subject.name} does not read an image, so it cannot be run on a picture.")
        paths = [regular_file(path) for path in (spec.value, *more_of(spec, "files"))]
        rows = [check_array(subject, _row(subject, path)) for path in paths]
        label = spec.options.get(LABEL.name)
        target = None if label is None else class_of(subject, label)
        return pad(subject, rows, targets=[target] * len(rows), title=paths[0].name, look_at=spec.look_at)


def _row(subject: Subject, path: Path) -> Tensor:
    picture, reads = read_picture(path), subject.reads
    if reads is not None and reads.pixels is not None:
        return tensor_of(ask(subject, "pixels", reads.pixels, picture))
    numbers = torch.from_numpy(picture).permute(2, 0, 1) / 255
    single = reads is not None and reads.shape is not None and reads.shape[0] == 1
    return numbers.mean(0, keepdim=True) if single else numbers


def read_picture(path: Path) -> npt.NDArray[np.uint8]:
    """(h, w, 3) whole numbers from 0 to 255. Raises InputError."""
    try:
        images: Any = importlib.import_module("PIL.Image")
    except ImportError:
        raise InputError(
            f"{path.name} is a picture, which needs pillow to be read: pip install 'sequence-inspector[hf]'."
        ) from None
    try:
        with images.open(path, formats=FORMATS) as file:
            if file.width * file.height > MAX_PIXELS:
                raise InputError(
                    f"{path.name} has {file.width} × {file.height} pixels; at most {MAX_PIXELS:,} are read."
                )
            return _of_16_bits(file) if file.mode.startswith("I") else np.array(file.convert("RGB"), dtype=np.uint8)
    except InputError:
        raise
    except Exception as problem:  # noqa: BLE001 - decoders raise errors of many classes on damaged files
        raise InputError(f"{path.name} cannot be read as a picture: {why_unreadable(problem)}.") from None


def _of_16_bits(file: Any) -> npt.NDArray[np.uint8]:
    """Grey values of 16 bits as of 8, 65,535 being 255: pillow's own conversion cuts all above 255 off."""
    grey = np.clip(np.asarray(file).astype(np.int64), 0, 65_535)
    return np.repeat(((grey + 128) // 257).astype(np.uint8)[:, :, None], 3, axis=2)


INPUTS.register("picture")(Picture())
