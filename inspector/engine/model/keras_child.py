"""Variables, configuration and version of a file of Keras, its HDF5 read in a process of its own."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from inspector.capture.regular import open_regular
from inspector.engine.errors import InputError
from inspector.engine.model.arrays_of_child import arrays_in, own_file, read_in_child
from inspector.engine.model.named_arrays import most_bytes
from inspector.engine.model.one_directory import named_twice, require_plain
from inspector.records.json_text import read_json
from inspector.records.plain_text import shortened

MOST_CONFIG = 16 << 20
WEIGHTS, CONFIG, METADATA = "model.weights.h5", "config.json", "metadata.json"
PIECE = 1 << 20
SCRIPT = """
import json
import sys
import h5py
import numpy as np
path, most, target = sys.argv[1], int(sys.argv[2]), sys.argv[3]
DEEPEST, MOST_TENSORS, MOST_CONFIG = 16, 50_000, 16 << 20
names, arrays, claimed = [], {}, 0

def is_own(group, name):  # no link to another file, or to another name
    return name in group and isinstance(group.get(name, getlink=True), h5py.HardLink)

def visit(group, above):
    global claimed
    for name in group:
        if not is_own(group, name) or len(above) > DEEPEST:
            continue
        one = group[name]
        if isinstance(one, h5py.Group):
            visit(one, (*above, name))
        elif isinstance(one, h5py.Dataset) and not one.external and not one.is_virtual and one.shape is not None:
            claimed += int(one.size) * int(one.dtype.itemsize)
            if claimed > most or len(names) >= MOST_TENSORS:
                sys.exit("it asks for far more memory than it has bytes")
            if one.dtype.kind in "biuf":
                arrays[f"a{len(names)}"] = one[()]
                names.append([*above, name])

def text(value):
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)

with h5py.File(path, "r") as file:
    config = file.attrs.get("model_config", "")
    version = text(file.attrs.get("keras_version", ""))[:40]
    held = [name for name in ("model_weights", "layers") if is_own(file, name)]
    visit(file[held[0]] if held else file, ())
    config = text(config) if len(config) <= MOST_CONFIG else ""
with open(target, "wb") as out:
    np.savez(out, **arrays)
print(json.dumps({"names": names, "config": config, "version": version}))
"""


@dataclass(frozen=True, slots=True)
class KerasFileRead:
    """{(group, …, name): variable} in the file's order, the configuration of the model, and Keras' version or ""."""

    variables: dict[tuple[str, ...], Tensor]
    config: Any
    version: str


def read_keras(path: Path) -> KerasFileRead:
    """A .h5 file, or a .keras archive with one. Raises InputError, and what a damaged archive raises."""
    with open_regular(path) as raw:
        if raw.read(2) != b"PK":
            return _read(path, path, None, "")
        with zipfile.ZipFile(raw) as archive, own_file() as inner:
            twice = named_twice(archive.namelist())
            if twice is not None:
                raise InputError(f"{path.name} has two archive members named {shortened(twice, 120)}; it is not read.")
            require_plain(path, archive.infolist())
            for name, most in ((CONFIG, MOST_CONFIG), (WEIGHTS, most_bytes(path))):
                if archive.getinfo(name).file_size > most:
                    raise InputError(f"{path.name}: {name} in it is larger than {most:,} bytes.")
            config, version = read_json(archive.read(CONFIG)), _version_in(archive)
            with archive.open(WEIGHTS) as weights:
                while piece := weights.read(PIECE):
                    inner.write(piece)
            inner.flush()
            return _read(path, Path(inner.name), config, version)


def _version_in(archive: zipfile.ZipFile) -> str:
    """Keras' version in the metadata of a .keras file; "" where there is none."""
    if METADATA not in archive.namelist() or archive.getinfo(METADATA).file_size > MOST_CONFIG:
        return ""
    told = read_json(archive.read(METADATA))
    return str(told.get("keras_version", "")) if isinstance(told, dict) else ""


def _read(path: Path, weights: Path, config: Any, version: str) -> KerasFileRead:
    with own_file() as target:
        told = read_in_child(path, SCRIPT, "h5py", "a Keras file", target, read=weights)
        names = [tuple(map(str, one)) for one in told["names"]]
        found = {
            name: one for name, one in zip(names, arrays_in(target, len(names), path), strict=True) if one is not None
        }
    if config is None and told["config"]:
        config = read_json(str(told["config"]))
    return KerasFileRead(found, config, version or str(told["version"]))
