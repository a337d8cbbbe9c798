"""Formats that are refused are asked about after the loaders: a loader for one of them is one new file and wins."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from inspector.engine.contracts import State
from inspector.engine.errors import InputError
from inspector.engine.opening.read_checkpoint import read_checkpoint
from inspector.engine.registries import LOADERS


class Found:
    """A loader for files of some names."""

    summary = "A loader of a test."

    def __init__(self, *suffixes: str) -> None:
        self.suffixes = suffixes

    def sniff(self, path: Path, head: bytes) -> bool:
        return path.suffix in self.suffixes

    def load(self, path: Path) -> State:
        return State({"w": torch.ones(2)}, "of a test")


@pytest.fixture
def loaders(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The registry, put back afterwards."""
    LOADERS.load()
    for name in ("_entries", "_origins"):
        monkeypatch.setattr(LOADERS, name, dict(getattr(LOADERS, name)))
    yield


def program(path: Path) -> Path:
    """A file that looks like a TorchScript program."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("c/constants.pkl", b"")
        archive.writestr("c/data.pkl", b"")
    return path


READ = {"m.gguf": b"GGUF\x03\0\0\0" + b"\0" * 40, "m.h5": b"\x89HDF\r\n\x1a\n" + b"\0" * 40}
FILES = {
    "m.onnx": b"\x08\x07\x12\x04" + b"x" * 40,
}


@pytest.mark.parametrize("name", [*FILES, "m.pt"])
def test_a_new_loader_for_a_refused_format_wins(tmp_path: Path, loaders: None, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(FILES[name]) if name in FILES else program(path)
    with pytest.raises(InputError, match=r"(ONNX|TorchScript)"):
        read_checkpoint(path)
    LOADERS.register("new")(Found(path.suffix))
    assert read_checkpoint(path).layout == "of a test"


@pytest.mark.parametrize("name", READ)
def test_a_file_that_is_read_is_what_it_begins_with(tmp_path: Path, name: str) -> None:
    for suffix in (".safetensors", ".pt", ""):
        path = tmp_path / f"named{suffix}"
        path.write_bytes(READ[name])
        with pytest.raises(InputError, match=r"holds no tensors|is damaged or no Keras file"):
            read_checkpoint(path)


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_what_it_begins_with_whatever_it_is_called(tmp_path: Path, name: str) -> None:
    for suffix in (".safetensors", ".pt", ""):
        path = tmp_path / f"named{suffix}"
        path.write_bytes(FILES[name])
        with pytest.raises(InputError, match="ONNX"):
            read_checkpoint(path)
