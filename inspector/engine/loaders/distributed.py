"""Folders of torch.distributed.checkpoint: `.metadata` says which bytes of which file hold which part of each tensor.

torch's own reader unpickles `.metadata` without any restriction; here it is read by engine/model/distributed_metadata,
which runs nothing of it. Each part is what torch.save wrote, and is read weights-only.
"""

from __future__ import annotations

import io
import math
import os
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from inspector.capture.encrypted import encrypted
from inspector.capture.regular import in_words, is_a_file, open_regular
from inspector.engine.contracts import MAX_STEP, State
from inspector.engine.errors import InputError
from inspector.engine.model.distributed_metadata import METADATA, Stored, StoredPart, read_metadata
from inspector.engine.model.inside_folder import require_inside
from inspector.engine.model.one_directory import left_unread, named_twice, require_one_directory
from inspector.engine.model.safe_torch import require_safe_torch
from inspector.engine.registries import LOADERS
from inspector.records import counted
from inspector.records.plain_text import shortened
from inspector.records.unreadable import why_unreadable

STEPS = ("global_step", "step", "iteration", "iter", "epoch")
MOST_EMPTY = 1 << 16
"""Bytes by which tensors together may be larger than the files that hold them."""
SMALL = 1 << 20
"""Bytes of a value that is no tensor, up to which it is read to learn the step."""


class Distributed:
    """Reads the tensors of such a folder, whichever number of processes wrote it."""

    title = "Folder of torch.distributed.checkpoint"
    summary = "A folder with .metadata and *.distcp, as torch.distributed.checkpoint writes it; nothing of it is run."
    suffixes = ()
    folders = True

    def sniff(self, path: Path, head: bytes) -> bool:
        """A folder with the description of a distributed checkpoint."""
        return path.is_dir() and is_a_file(path / METADATA)

    def load(self, path: Path) -> State:
        """Every tensor, in the nested dict in which it was saved; the step beside them. Raises InputError."""
        require_safe_torch(path)
        stored = read_metadata(path)
        _check_room(path, stored)
        raw: dict[str, Any] = {}
        for name, one in stored.items():
            if one.dtype is not None:
                _put(raw, one.path, _tensor(path, name, one, one.dtype))
        told = _step(path, stored)
        if told is not None:
            raw.setdefault(told[1], told[0])
        found: State = LOADERS["torch"].found_in(raw, path)  # type: ignore[attr-defined]
        files = {part.file for one in stored.values() for part in one.parts}
        found.layout = f"torch.distributed checkpoint, {counted(len(files), 'file')}"
        return found

    def step(self, path: Path) -> tuple[int, str] | None:
        """The step that was saved beside the weights. Raises InputError."""
        require_safe_torch(path)
        told = _step(path, read_metadata(path))
        return None if told is None else (told[0], f"the key {told[1]!r}")

    def files(self, path: Path) -> list[Path]:
        """The description and the files with the parts."""
        return [
            one for one in sorted(path.iterdir()) if one.is_file() and (one.name == METADATA or one.suffix == ".distcp")
        ]


def _check_room(path: Path, stored: Mapping[str, Stored]) -> None:
    """Tensors claim no more than the files hold. Raises InputError."""
    claimed = sum(math.prod(one.shape) * one.dtype.itemsize for one in stored.values() if one.dtype is not None)
    files = {part.file for one in stored.values() for part in one.parts}
    for file in files:
        require_inside(path, file)
    try:
        held = sum((path / file).stat().st_size for file in files)
    except OSError as problem:
        raise InputError(
            f"{path.name} needs the file {Path(str(problem.filename)).name}, which is not in it."
        ) from None
    if claimed > held + MOST_EMPTY:
        raise InputError(f"{path.name} claims tensors of {claimed:,} bytes; its files have {held:,}.")


def _put(raw: dict[str, Any], keys: tuple[str, ...], value: Tensor) -> None:
    at = raw
    for key in keys[:-1]:
        below = at.setdefault(key, {})
        at = below if isinstance(below, dict) else {}
    at[keys[-1]] = value


def _tensor(path: Path, name: str, one: Stored, dtype: torch.dtype) -> Tensor:
    """A tensor put together from its parts. Raises InputError."""
    whole = torch.empty(one.shape, dtype=dtype)
    written = torch.zeros(one.shape, dtype=torch.bool) if len(one.parts) > 1 else None
    for part in one.parts:
        held = _read(path, name, part)
        if not isinstance(held, Tensor) or tuple(held.shape) != part.sizes or held.layout != torch.strided:
            raise InputError(
                f"{path.name}: a part of {shortened(name, 80)} is not the tensor of shape {part.sizes} that it "
                "is said to be."
            )
        region = tuple(slice(start, start + size) for start, size in zip(part.offsets, part.sizes, strict=True))
        whole[region] = held.to(dtype)
        if written is not None:
            written[region] = True
    if written is not None and not bool(written.all()):
        raise InputError(f"{path.name}: the parts of {shortened(name, 80)} overlap, and leave some of it out.")
    return whole


def _read(path: Path, name: str, part: StoredPart) -> Any:
    """What torch.save wrote as one part, read weights-only. Raises InputError."""
    try:
        with open_regular(path / part.file) as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(min(part.offset, size))
            data = file.read(part.length) if part.offset + part.length <= size else b""
    except OSError as problem:
        raise InputError(f"{path.name}/{part.file} cannot be read: {in_words(problem)}.") from None
    if len(data) != part.length:
        raise InputError(f"{path.name}/{part.file} is cut short: a part of {shortened(name, 80)} is not in it.")
    try:
        with io.BytesIO(data) as held, zipfile.ZipFile(held) as archive:
            require_one_directory(held)
            if named_twice(archive.namelist()) is not None:
                raise ValueError("two of its members have one name")
            locked = encrypted(archive.infolist())
            if locked is not None:
                raise ValueError(locked)
            if left_unread(archive.infolist()) is not None:
                raise ValueError("one of its members is no file of its length")
            if sum(member.file_size for member in archive.infolist()) > 4 * len(data) + MOST_EMPTY:
                raise ValueError("it unpacks to far more than it has")
            changed = archive.testzip()
        if changed is not None:
            raise ValueError(f"{shortened(changed, 60)} has changed since it was written")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except Exception as problem:  # noqa: BLE001 - damaged or hostile bytes may raise anything on their way
        unsafe = "weights_only" in str(problem)
        said = "it holds more than tensors and numbers" if unsafe else why_unreadable(problem)
        raise InputError(f"{path.name}/{part.file}: a part of {shortened(name, 80)} cannot be read ({said}).") from None


def _step(path: Path, stored: Mapping[str, Stored]) -> tuple[int, str] | None:
    """(step, key) of a number that was saved at the top, or of a tensor with one."""
    for key in STEPS:
        one = next((one for name, one in stored.items() if one.path == (key,) or name == key), None)
        if one is None or len(one.parts) != 1 or one.parts[0].length > SMALL:
            continue
        value = _read(path, key, one.parts[0])
        value = value.item() if isinstance(value, Tensor) and value.numel() == 1 else value
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MAX_STEP:
            return value, key
    return None


LOADERS.register("distributed")(Distributed())
