"""Checkpoints that are folders or several files: Hugging Face's, shards with an index, torch.distributed's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from sweeping import sharded
from torch import nn

from inspector.engine.errors import InputError
from inspector.engine.opening.checkpoint_matching import fit
from inspector.engine.opening.read_checkpoint import loader_of, read_checkpoint


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))


def check_whole(path: Path) -> None:
    report, plan = fit(model(), read_checkpoint(path), path)
    assert report.fits and report.matched == 4
    assert all(torch.equal(plan.tensors[name], value) for name, value in model().state_dict().items())


@pytest.mark.parametrize("kind", ["safetensors", "bin"])
def test_shards_are_read_by_their_index_alone_or_in_their_folder(tmp_path: Path, kind: str) -> None:
    index = sharded(tmp_path / "checkpoint-7", model().state_dict(), kind)
    check_whole(index)
    check_whole(index.parent)
    assert read_checkpoint(index).layout == "2 files with an index"


def test_an_index_that_lacks_or_leaves_its_folder_is_refused(tmp_path: Path) -> None:
    index = sharded(tmp_path / "c", model().state_dict())
    (index.parent / "model-00002-of-00002.safetensors").rename(tmp_path / "elsewhere.safetensors")
    with pytest.raises(InputError, match=r"needs the file model-00002-of-00002\.safetensors, which is not beside it"):
        read_checkpoint(index)
    index.write_text(json.dumps({"weight_map": {"0.weight": "../elsewhere.safetensors"}}))
    with pytest.raises(InputError, match="expected files beside it"):
        read_checkpoint(index)
    index.write_text(json.dumps({"weight_map": {"2.weight": "model-00001-of-00002.safetensors"}}))
    with pytest.raises(InputError, match=r"holds 2\.weight, which is not in it"):
        read_checkpoint(index)
    index.write_text('{"weight_map": ')
    with pytest.raises(InputError, match="not whole JSON"):
        read_checkpoint(index)


def test_a_folder_of_hugging_faces_has_the_step_of_its_trainer(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint-500"
    folder.mkdir()
    save_file(model().state_dict(), folder / "model.safetensors")
    torch.save({"state": {0: torch.zeros(99)}}, folder / "optimizer.pt")
    check_whole(folder)
    assert read_checkpoint(folder).step is None and loader_of(folder).step(folder) is None  # type: ignore[attr-defined]
    (folder / "trainer_state.json").write_text(json.dumps({"global_step": 512, "epoch": 1.0}))
    assert read_checkpoint(folder).step == 512
    assert loader_of(folder).step(folder) == (512, "global_step in trainer_state.json")  # type: ignore[attr-defined]


def test_the_step_is_read_without_the_tensors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = model().state_dict()
    torch.save({"state_dict": state, "global_step": 12, "epoch": 1}, tmp_path / "a.ckpt")
    torch.save({"model": state, "epoch": 3}, tmp_path / "b.pt")
    torch.save(state, tmp_path / "c.pt")
    torch.save({"model": state, "step": 9}, tmp_path / "d.pt", _use_new_zipfile_serialization=False)
    save_file(state, tmp_path / "e.safetensors", {"iteration": "40"})
    told = {path.name: loader_of(path).step(path) for path in sorted(tmp_path.iterdir())}  # type: ignore[attr-defined]
    assert told == {
        "a.ckpt": (12, "the key 'global_step'"), "b.pt": (3, "the key 'epoch'"), "c.pt": None,
        "d.pt": (9, "the key 'step'"), "e.safetensors": (40, "the key 'iteration'"),
    }  # fmt: skip


@pytest.mark.parametrize("name", ["model.safetensors", "checkpoint-3", "c/model.safetensors.index.json"])
def test_the_step_of_what_is_half_written_is_not_told(tmp_path: Path, name: str) -> None:
    """Where a folder is followed, such a checkpoint is waited for."""
    state = model().state_dict()
    (tmp_path / "checkpoint-3").mkdir()
    (tmp_path / "checkpoint-3" / "trainer_state.json").write_text(json.dumps({"global_step": 3}))
    for folder in (tmp_path, tmp_path / "checkpoint-3"):
        save_file(state, folder / "model.safetensors", {"step": "5"})
    sharded(tmp_path / "c", state)
    path = tmp_path / name
    step = loader_of(path).step  # type: ignore[attr-defined]
    assert step(path) == {
        "model.safetensors": (5, "the key 'step'"),
        "checkpoint-3": (3, "global_step in trainer_state.json"),
    }.get(name)
    for part in (tmp_path / "model.safetensors", *path.parent.glob("*2.safetensors"), *path.glob("model.safetensors")):
        part.write_bytes(part.read_bytes()[:-4])
    with pytest.raises(InputError, match="damaged or cut short"):
        step(path)


def test_a_folder_of_something_else_is_still_told(tmp_path: Path) -> None:
    torch.save(model().state_dict(), tmp_path / "a.pt")
    with pytest.raises(InputError, match=r"is a folder; the checkpoint in it is"):
        read_checkpoint(tmp_path)


def test_an_index_that_names_two_files_for_one_tensor_is_refused(tmp_path: Path) -> None:
    index = sharded(tmp_path / "c", model().state_dict())
    text = index.read_text()
    first = json.dumps({"0.weight": "model-00002-of-00002.safetensors"})[1:-1]
    index.write_text(text.replace('"weight_map": {', f'"weight_map": {{{first}, ', 1))
    with pytest.raises(InputError, match=r"is not read: it has two entries named '0\.weight'"):
        read_checkpoint(index)
