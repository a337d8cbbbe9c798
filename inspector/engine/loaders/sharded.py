"""Weights in several files with an index beside them (`*.index.json`), as Hugging Face writes models that are large."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from inspector.capture.regular import in_words, open_regular
from inspector.engine.contracts import Loader, State
from inspector.engine.errors import InputError
from inspector.engine.model.inside_folder import require_inside
from inspector.engine.registries import LOADERS
from inspector.records import counted
from inspector.records.json_text import NamedTwiceError, read_json
from inspector.records.plain_text import shortened

SUFFIX = ".index.json"
MAX_INDEX = 64 << 20


class Sharded:
    """The index says which file holds each tensor; the files are read by the loaders of their formats."""

    title = "Weights in several files"
    summary = "The index (*.index.json) of weights in several files of safetensors or torch.save."
    suffixes = (SUFFIX,)

    def sniff(self, path: Path, head: bytes) -> bool:
        """By its name, and a first byte of JSON: other JSON files are no checkpoints."""
        return path.name.endswith(SUFFIX) and head.lstrip().startswith(b"{")

    def load(self, path: Path) -> State:
        """Every tensor that the index names, from the file that it names."""
        places = _weight_map(path)
        tensors: dict[str, Tensor] = {}
        files = sorted(set(places.values()))
        for file in files:
            held = _loader_of(path, file).load(path.parent / file).tensors
            wanted = [name for name, place in places.items() if place == file]
            lacking = [name for name in wanted if name not in held]
            if lacking:
                raise InputError(f"{path.name} says that {file} holds {shortened(lacking[0], 80)}, which is not in it.")
            tensors |= {name: held[name] for name in wanted}
        return State(tensors, f"{counted(len(files), 'file')} with an index")

    def step(self, path: Path) -> tuple[int, str] | None:
        """The step that one of the files tells. Raises InputError where one is missing or not whole."""
        told = []
        for file in sorted(set(_weight_map(path).values())):
            loader = _loader_of(path, file)
            told.append(getattr(loader, "step", lambda _path: None)(path.parent / file))
        return next((one for one in told if one is not None), None)


def _weight_map(path: Path) -> Mapping[str, str]:
    """{tensor: file}. Raises InputError."""
    try:
        with open_regular(path) as file:
            raw: Any = read_json(file.read(MAX_INDEX), once=True)
    except OSError as problem:
        raise InputError(f"{path.name} cannot be read: {in_words(problem)}.") from None
    except NamedTwiceError as problem:  # two files for one tensor
        raise InputError(f"{path.name} is not read: it {problem}.") from None
    except ValueError:
        raise InputError(f"{path.name} is not an index of weights: it is not whole JSON.") from None
    found = raw.get("weight_map") if isinstance(raw, dict) else None
    if not isinstance(found, dict) or not found or not all(isinstance(place, str) for place in found.values()):
        raise InputError(f"{path.name} is not an index of weights: it has no weight_map of tensors and files.")
    _check_files(path, set(found.values()))
    return found


def _check_files(path: Path, files: Iterable[str]) -> None:
    """The files lie beside the index, and exist. Raises InputError."""
    for file in sorted(files):
        if Path(file).name != file or "\\" in file:
            raise InputError(f"{path.name} names the file {shortened(file, 80)!r}; expected files beside it.")
        if not _is_there(path.parent / file):
            raise InputError(f"{path.name} needs the file {shortened(file, 80)}, which is not beside it.")
        require_inside(path.parent, file)


def _is_there(file: Path) -> bool:
    try:
        return file.is_file()
    except OSError:  # its name is longer than a file's can be
        return False


def _loader_of(path: Path, file: str) -> Loader:
    suffix = Path(file).suffix.lower()
    found = next((loader for _, loader in LOADERS.items() if suffix and suffix in loader.suffixes), None)
    if found is None:
        raise InputError(f"{path.name} names the file {shortened(file, 80)}, whose format is not known.")
    return found


LOADERS.register("sharded")(Sharded())
