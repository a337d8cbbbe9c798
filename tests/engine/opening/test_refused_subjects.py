"""Things that are no subject and no checkpoint: each is told what it is, and what to give in its place."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inspector.engine.errors import InputError
from inspector.engine.opening.checkpoint_matching import fit
from inspector.engine.opening.open_subject import open_subject
from inspector.engine.opening.read_checkpoint import read_checkpoint
from inspector.records import Load


def weights(path: Path, *names: str) -> Path:
    path.mkdir()
    for name in names:
        torch.save({"w": torch.ones(2)}, path / name)
    return path


def refused(subject: Path) -> str:
    with pytest.raises(InputError) as caught:
        open_subject(Load(subject=str(subject), trusted=True))
    return str(caught.value)


def test_a_folder_with_one_checkpoint(tmp_path: Path) -> None:
    folder = weights(tmp_path / "one", "last.pt")
    assert f"--checkpoint {folder / 'last.pt'}" in refused(folder)
    with pytest.raises(InputError, match=r"is a folder; the checkpoint in it is .*last\.pt"):
        read_checkpoint(folder)


def test_a_folder_with_several_checkpoints_or_none(tmp_path: Path) -> None:
    two, none = weights(tmp_path / "two", "a.pt", "b.pt"), weights(tmp_path / "none")
    assert "a folder with 2 checkpoints" in refused(two) and "a.pt, b.pt" in refused(two)
    assert "name the file in it that makes the model" in refused(none)
    with pytest.raises(InputError, match=r"the checkpoints in it are a\.pt, b\.pt"):
        read_checkpoint(two)
    with pytest.raises(InputError, match="there is no checkpoint in it"):
        read_checkpoint(none)


@pytest.mark.parametrize("suffix", [".jit", ".torchscript", ".ptl", ".ts"])
def test_a_torchscript_program(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"model{suffix}"
    path.write_bytes(b"PK\x03\x04")
    assert "is damaged, or no TorchScript program" in refused(path)


def test_a_checkpoint_without_values_is_refused_in_one_sentence(tmp_path: Path) -> None:
    model, path = torch.nn.LSTM(2, 3, device="meta"), tmp_path / "meta.pt"
    torch.save(model.state_dict(), path)
    with pytest.raises(InputError, match=r"meta\.pt has 4 of 4 tensors without values.*'meta'.*weight_ih_l0"):
        fit(torch.nn.LSTM(2, 3), read_checkpoint(path), path)


def test_a_callable_that_a_file_lacks_is_told_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("from torch import nn\n\n\ndef make():\n    return nn.GRU(1, 2)\n")
    assert refused(tmp_path / "mine.py:nothing") == "mine.py has no 'nothing'; it has make."
