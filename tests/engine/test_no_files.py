"""A pipe, a socket, a device or a folder in the place of a sequence, a checkpoint or a model's code hangs nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from obstacles import SAID, call, put

from inspector.engine.errors import InputError, Unsupported
from inspector.engine.inputs.text import read_vocabulary
from inspector.engine.model.subject import Subject
from inspector.engine.model.training_log import read_history
from inspector.engine.opening.open_subject import import_file
from inspector.engine.opening.read_checkpoint import read_checkpoint
from inspector.engine.registries import INPUTS
from inspector.records import InputSpec

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="no named pipes among files"),
    pytest.mark.timeout(60),
]
SEQUENCES = ("x.txt", "x.ids", "x.npy", "x.npz", "x.csv", "x.wav", "x.flac")


@pytest.mark.parametrize("kind", SAID)
@pytest.mark.parametrize("name", SEQUENCES)
def test_in_the_place_of_a_sequence(tmp_path: Path, kind: str, name: str) -> None:
    put(kind, tmp_path / name)
    subject = Subject(torch.nn.RNN(1, 1), "m", kind="vectors", width=1)
    with pytest.raises(InputError, match=SAID[kind]):
        INPUTS["file"].make(subject, InputSpec(kind="file", value=str(tmp_path / name)), 0)


@pytest.mark.parametrize("kind", SAID)
@pytest.mark.parametrize("suffix", ["safetensors", "pt", "ckpt", "bin"])
def test_in_the_place_of_a_checkpoint(tmp_path: Path, kind: str, suffix: str) -> None:
    put(kind, tmp_path / f"x.{suffix}")
    with pytest.raises(
        InputError, match="is a folder; there is no checkpoint in it" if kind == "folder" else SAID[kind]
    ):
        read_checkpoint(tmp_path / f"x.{suffix}")


@pytest.mark.parametrize("kind", SAID)
def test_in_the_place_of_code_a_vocabulary_and_the_history_of_training(tmp_path: Path, kind: str) -> None:
    for name in ("x.py", "x.txt", "history.json"):
        put(kind, tmp_path / name)
    with pytest.raises(InputError, match=SAID[kind]):
        import_file(tmp_path / "x.py")
    with pytest.raises(InputError, match=SAID[kind]):
        read_vocabulary(str(tmp_path / "x.txt"))
    with pytest.raises(Unsupported, match=SAID[kind]):
        read_history(str(tmp_path / "x.safetensors"))


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        ("pipe", ["run", "char-gru", "--input", "x.npy"]),
        ("pipe", ["run", "char-gru", "--checkpoint", "x.pt"]),
        ("pipe", ["run", "x.py:make"]),
        ("circle", ["run", "x.safetensors"]),
    ],
)
def test_the_command_ends_with_one_sentence(tmp_path: Path, kind: str, arguments: list[str]) -> None:
    for name in ("x.npy", "x.py", "x.safetensors", "x.pt"):
        put(kind, tmp_path / name)
    assert SAID[kind] in call(*arguments, cwd=tmp_path, expect=2)
