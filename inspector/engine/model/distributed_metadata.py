"""What `.metadata` says of a torch.distributed checkpoint: which bytes of which file hold which part of each tensor.

It is a pickle, and a pickle may call anything that it can name. Here it can name sixteen things, and gets for each a
class of this file that holds what it is given and does nothing: no code of torch's, and none of the checkpoint's, runs.
Everything that is read from it is checked before it is used: types, sizes, and that it stays within the folder.
"""

from __future__ import annotations

import io
import math
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from inspector.capture.regular import in_words, open_regular
from inspector.engine.errors import InputError
from inspector.engine.model.pickle_opcodes import takes_room
from inspector.engine.model.pickle_parts import never_ends
from inspector.records.plain_text import shortened
from inspector.records.unreadable import why_unreadable

METADATA = ".metadata"
MAX_METADATA = 256 << 20
MAX_PARTS = 1_000_000
MAX_DIMS = 32


class _Held:
    """Stands for an object of torch's: the attributes that the pickle sets."""

    def __setstate__(self, state: Any) -> None:
        parts = state if isinstance(state, tuple) and len(state) == 2 else (state,)  # (attributes, slots)
        for one in parts:
            if isinstance(one, dict):
                self.__dict__.update((str(key), value) for key, value in one.items())
        self.__dict__.setdefault("state", state)


class _Ignored(_Held):
    """Something of which nothing is read."""

    def __new__(cls, *_given: Any) -> _Ignored:
        return super().__new__(cls)


class Metadata(_Held):
    """The whole."""


class TensorStorage(_Held):
    """A tensor: size, properties, parts."""


class BytesStorage(_Held):
    """A value that is no tensor."""


class Part(_Held):
    """Where a part lies in its tensor."""


class Place(_Held):
    """Where a part lies in the folder."""


class Index(_Held):
    """Which part of which tensor."""


class Properties(_Held):
    """Of a tensor; the pickle sets a tuple, of which the dtype is the first."""


def _size(given: Any = ()) -> tuple[int, ...]:
    """In the place of torch.Size."""
    if not isinstance(given, (tuple, list)) or len(given) > MAX_DIMS or not all(type(one) is int for one in given):
        raise pickle.UnpicklingError("a size is not made of whole numbers")
    return tuple(given)


def _nothing(*_given: Any) -> None:
    """In the place of functions of which nothing is needed."""


_OF_CHECKPOINTS = "torch.distributed.checkpoint.metadata"
KNOWN: dict[tuple[str, str], Any] = {
    (_OF_CHECKPOINTS, "Metadata"): Metadata,
    (_OF_CHECKPOINTS, "TensorStorageMetadata"): TensorStorage,
    (_OF_CHECKPOINTS, "BytesStorageMetadata"): BytesStorage,
    (_OF_CHECKPOINTS, "ChunkStorageMetadata"): Part,
    (_OF_CHECKPOINTS, "MetadataIndex"): Index,
    (_OF_CHECKPOINTS, "TensorProperties"): Properties,
    (_OF_CHECKPOINTS, "StorageMeta"): _Ignored,
    (_OF_CHECKPOINTS, "_MEM_FORMAT_ENCODING"): _nothing,
    ("torch.distributed.checkpoint.filesystem", "_StorageInfo"): Place,
    ("torch.distributed.checkpoint._fsspec_filesystem", "_StorageInfo"): Place,
    ("torch.serialization", "_get_layout"): _nothing,
    ("torch", "Size"): _size,
    ("pathlib", "PosixPath"): _Ignored,
    ("pathlib", "WindowsPath"): _Ignored,
    ("pathlib", "PurePosixPath"): _Ignored,
    ("pathlib._local", "PosixPath"): _Ignored,
}  # fmt: skip


class _Restricted(pickle.Unpickler):
    """Names what is KNOWN, and dtypes of torch; refuses everything else."""

    def find_class(self, module: str, name: str) -> Any:
        known = KNOWN.get((module, name))
        if known is not None:
            return known
        dtype = getattr(torch, name, None) if module == "torch" and name.isidentifier() else None
        if isinstance(dtype, torch.dtype):
            return dtype
        raise pickle.UnpicklingError(f"it names {shortened(module, 60)}.{shortened(name, 60)}")

    def persistent_load(self, _pid: Any) -> Any:
        raise pickle.UnpicklingError("it refers to something outside of it")


@dataclass(frozen=True, slots=True)
class StoredPart:
    """A part: the file in the folder, its bytes there, and where it lies in its tensor (empty for other values)."""

    file: str
    offset: int
    length: int
    offsets: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Stored:
    """A tensor (`dtype` is then given) or another value, and where in the nested dict it was."""

    path: tuple[str, ...]
    parts: tuple[StoredPart, ...]
    shape: tuple[int, ...] = ()
    dtype: torch.dtype | None = None


def read_metadata(folder: Path) -> dict[str, Stored]:
    """All that a checkpoint holds, by its flat name. Raises InputError."""
    try:
        with open_regular(folder / METADATA) as file:
            raw = file.read(MAX_METADATA + 1)
    except OSError as problem:
        raise InputError(f"{folder.name}/{METADATA} cannot be read: {in_words(problem)}.") from None
    if len(raw) > MAX_METADATA:
        raise InputError(f"{folder.name}/{METADATA} has more than {MAX_METADATA >> 20} MB; such a one is not read.")
    if takes_room(raw) or never_ends(raw):
        raise InputError(
            f"{folder.name}/{METADATA} is damaged, or asks for far more memory than its {len(raw):,} bytes."
        )
    try:
        return _stored(_Restricted(io.BytesIO(raw)).load())
    except InputError:
        raise
    except (RecursionError, MemoryError) as problem:
        raise InputError(f"{folder.name}/{METADATA} needs too much memory ({type(problem).__name__}).") from None
    except Exception as problem:  # noqa: BLE001 - a damaged or hostile pickle may raise anything on its way
        said = why_unreadable(problem)
        raise InputError(
            f"{folder.name}/{METADATA} is not that of a torch.distributed checkpoint, or it is damaged ({said}); "
            "nothing of it was run."
        ) from None


def _stored(found: Any) -> dict[str, Stored]:
    told, places = getattr(found, "state_dict_metadata", None), getattr(found, "storage_data", None)
    if not isinstance(found, Metadata) or not isinstance(told, dict) or not isinstance(places, dict):
        raise ValueError("it does not describe tensors")
    if len(places) > MAX_PARTS or len(told) > MAX_PARTS:
        raise ValueError(f"it has more than {MAX_PARTS:,} parts")
    paths = getattr(found, "planner_data", None)
    by_part = {_key(index): _place(place) for index, place in places.items()}
    return {
        name: _one(name, value, by_part, paths if isinstance(paths, dict) else {})
        for name, value in told.items() if isinstance(name, str)
    }  # fmt: skip


def _key(index: Any) -> tuple[str, tuple[int, ...]]:
    name, offset = getattr(index, "fqn", None), getattr(index, "offset", None)
    if not isinstance(index, Index) or not isinstance(name, str):
        raise ValueError("a part has no name")
    return name, () if offset is None else _numbers(offset)


def _place(place: Any) -> StoredPart:
    file, offset, length = (getattr(place, word, None) for word in ("relative_path", "offset", "length"))
    if not isinstance(file, str) or type(offset) is not int or type(length) is not int or min(offset, length) < 0:
        raise ValueError("a part has no place")
    if Path(file).name != file or "\\" in file or file.startswith(".."):
        raise ValueError(f"it names the file {shortened(file, 60)!r}, which is not one of the folder")
    if getattr(place, "transform_descriptors", None):
        raise ValueError("its parts are compressed, which is not read")
    return StoredPart(file, offset, length)


def _one(
    name: str, value: Any, by_part: dict[tuple[str, tuple[int, ...]], StoredPart], paths: dict[Any, Any]
) -> Stored:
    path = paths.get(name)
    nested = tuple(map(str, path)) if isinstance(path, tuple) and _are_words(path) else (name,)
    if not isinstance(value, TensorStorage):
        known = by_part.get((name, ()))
        return Stored(nested, () if known is None else (known,))
    shape = _numbers(getattr(value, "size", None))
    held: Any = getattr(value, "properties", None)
    state = getattr(held, "state", None)
    dtype = state[0] if isinstance(state, tuple) and state else getattr(held, "dtype", None)
    chunks = getattr(value, "chunks", None)
    if not isinstance(dtype, torch.dtype) or not isinstance(chunks, list):
        raise ValueError(f"{shortened(name, 80)} has no dtype or no parts")
    parts = [_part(name, chunk, shape, by_part) for chunk in chunks]
    if sum(math.prod(part.sizes) for part in parts) != math.prod(shape):
        raise ValueError(f"the parts of {shortened(name, 80)} are not all of it")
    return Stored(nested, tuple(parts), shape, dtype)


def _are_words(path: tuple[Any, ...]) -> bool:
    """Whether a place is made of names and positions: what refers to itself has a text that never ends."""
    return 0 < len(path) <= MAX_DIMS and all(isinstance(one, (str, int)) for one in path)


def _part(
    name: str, chunk: Any, shape: tuple[int, ...], by_part: dict[tuple[str, tuple[int, ...]], StoredPart]
) -> StoredPart:
    offsets, sizes = _numbers(getattr(chunk, "offsets", None)), _numbers(getattr(chunk, "sizes", None))
    if not len(offsets) == len(sizes) == len(shape):
        raise ValueError(f"a part of {shortened(name, 80)} has other axes than it")
    if any(start + size > length for start, size, length in zip(offsets, sizes, shape, strict=True)):
        raise ValueError(f"a part of {shortened(name, 80)} lies outside of it")
    place = by_part.get((name, offsets)) or (by_part.get((name, ())) if not any(offsets) else None)
    if place is None:
        raise ValueError(f"a part of {shortened(name, 80)} is in no file")
    return StoredPart(place.file, place.offset, place.length, offsets, sizes)


def _numbers(given: Any) -> tuple[int, ...]:
    if not isinstance(given, tuple) or not all(type(one) is int and one >= 0 for one in given):
        raise ValueError("a size or offset is not made of whole numbers")
    return given
