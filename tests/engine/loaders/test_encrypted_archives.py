"""Archives whose members need a password are refused in one sentence that says so, by every reader of archives."""

from __future__ import annotations

import json
import re
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from small_captures import capture_at
from torch import nn
from torch.distributed.checkpoint import save

from inspector.capture import CaptureError, open_capture, pack
from inspector.engine.errors import InputError
from inspector.engine.inputs.numbers import read_numbers
from inspector.engine.loaders.torch_export import TorchExport
from inspector.engine.loaders.torch_file import TorchFile
from inspector.engine.loaders.torch_script import TorchScript
from inspector.engine.model.keras_child import read_keras
from inspector.engine.opening.read_checkpoint import read_checkpoint

SAID = re.compile(r"archive member \S+ is encrypted, and no password is known; write the file without one\)?\.$")


def encrypted(path: Path) -> Path:
    """The same archive whose directory and headers say that all members are encrypted (APPNOTE 4.4.4, bit 0)."""
    data = bytearray(path.read_bytes())
    found = 0
    for magic, place in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        at = data.find(magic)
        while at >= 0:
            data[at + place] |= 1
            found += 1
            at = data.find(magic, at + 4)
    assert found >= 2
    path.write_bytes(data)
    return path


def checkpoint(folder: Path) -> Path:
    torch.save({"w": torch.ones(3)}, folder / "es.pt")
    return folder / "es.pt"


def arrays(folder: Path) -> Path:
    np.savez(folder / "a.npz", a=np.ones((3, 2)))
    return folder / "a.npz"


def keras(folder: Path) -> Path:
    with zipfile.ZipFile(folder / "m.keras", "w") as archive:
        archive.writestr("metadata.json", json.dumps({"keras_version": "3.0"}))
        archive.writestr("config.json", "{}")
        archive.writestr("model.weights.h5", bytes(100))
    return folder / "m.keras"


def scripted(folder: Path) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.script(nn.Linear(2, 2)).save(str(folder / "es.ts"))
    return folder / "es.ts"


def exported(folder: Path) -> Path:
    with zipfile.ZipFile(folder / "ep.pt2", "w") as archive:
        archive.writestr("ep/models/model.json", "{}")
    return folder / "ep.pt2"


READERS: dict[str, tuple[Callable[[Path], Path], Callable[[Path], object]]] = {
    "checkpoint": (checkpoint, read_checkpoint),
    "its step": (checkpoint, TorchFile().step),
    "arrays as weights": (arrays, read_checkpoint),
    "arrays as input": (arrays, lambda path: read_numbers(path, "")),
    "keras": (keras, read_keras),
    "TorchScript": (scripted, lambda path: TorchScript().program(path, path.read_bytes(), {})),
    "torch.export": (exported, lambda path: TorchExport().program(path, path.read_bytes(), {})),
}


@pytest.mark.parametrize("who", READERS)
def test_it_is_refused_in_one_sentence(who: str, tmp_path: Path) -> None:
    make, read = READERS[who]
    path = encrypted(make(tmp_path))
    with pytest.raises(InputError) as told:
        read(path)
    said = str(told.value)
    assert SAID.search(said) and said.startswith(path.name) and "\n" not in said, said


def test_a_part_of_a_folder_of_torch_distributed(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        save({"w": torch.ones(3)}, checkpoint_id=str(tmp_path / "c"), no_dist=True)
    for part in (tmp_path / "c").glob("*.distcp"):
        encrypted(part)
    with pytest.raises(InputError) as told:
        read_checkpoint(tmp_path / "c")
    assert SAID.search(str(told.value)), str(told.value)


def test_a_packed_capture(tmp_path: Path) -> None:
    packed = encrypted(pack(capture_at(tmp_path / "a.inspect"), tmp_path / "a.inspect.zip"))
    with pytest.raises(CaptureError) as told:
        open_capture(packed)
    assert SAID.search(str(told.value)), str(told.value)


@pytest.mark.parametrize(("bits", "method"), [(0x40, 0), (0x2000, 0), (0, 99)])
def test_the_other_ways_to_say_so(bits: int, method: int, tmp_path: Path) -> None:
    """Strong encryption, a hidden directory, and AES as other programs write it."""
    path = checkpoint(tmp_path)
    data = bytearray(path.read_bytes())
    at = data.find(b"PK\x01\x02")
    data[at + 8 : at + 10] = (int.from_bytes(data[at + 8 : at + 10], "little") | bits).to_bytes(2, "little")
    data[at + 10 : at + 12] = method.to_bytes(2, "little")
    path.write_bytes(data)
    with pytest.raises(InputError) as told:
        read_checkpoint(path)
    assert SAID.search(str(told.value)), str(told.value)
