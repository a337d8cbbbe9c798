"""An environment whose torch has faults by which a checkpoint runs code: its checkpoints are refused, others are read."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch.torch_version import TorchVersion

from inspector.engine.errors import InputError
from inspector.engine.loaders.distributed import Distributed
from inspector.engine.loaders.torch_file import TorchFile
from inspector.engine.opening.read_checkpoint import read_checkpoint

WEIGHTS = {"weight": torch.ones(2, 3)}


@pytest.mark.parametrize("version", ["1.13.1", "2.5.1+cu121", "2.9.1"])
def test_a_file_of_torch_is_refused(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, old in (("new.pt", False), ("old.pt", True)):
        path = tmp_path / name
        torch.save(WEIGHTS, path, _use_new_zipfile_serialization=not old)
        monkeypatch.setattr(torch, "__version__", TorchVersion(version))
        for read in (read_checkpoint, TorchFile().step):
            with pytest.raises(InputError) as told:
                read(path)
            said = str(told.value)
            assert said.startswith(f"{name} is not read: ") and f"torch {version} " in said and "2.10" in said
        monkeypatch.undo()
        assert torch.equal(read_checkpoint(path).tensors["weight"], WEIGHTS["weight"])


def test_a_folder_of_torch_distributed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from torch.distributed.checkpoint.state_dict_saver import save

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        save(WEIGHTS, checkpoint_id=tmp_path / "c", no_dist=True)
    assert Distributed().load(tmp_path / "c").tensors
    monkeypatch.setattr(torch, "__version__", TorchVersion("2.5.1"))
    for read in (Distributed().load, Distributed().step):
        with pytest.raises(InputError, match=r"c is not read: .* torch 2\.5\.1 "):
            read(tmp_path / "c")


@pytest.mark.parametrize("version", ["2.10.0", "2.10.0a0+git", "2.13.0+cpu", "3.0"])
def test_later_ones_read_it(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.save(WEIGHTS, tmp_path / "c.pt")
    monkeypatch.setattr(torch, "__version__", TorchVersion(version))
    assert read_checkpoint(tmp_path / "c.pt").tensors


def test_safetensors_is_read_by_any(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_file(WEIGHTS, tmp_path / "c.safetensors")
    monkeypatch.setattr(torch, "__version__", TorchVersion("2.5.1"))
    assert read_checkpoint(tmp_path / "c.safetensors").tensors
