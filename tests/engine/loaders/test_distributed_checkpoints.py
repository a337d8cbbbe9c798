"""Folders of torch.distributed.checkpoint: read whole, from several processes too, and hostile ones run nothing."""

from __future__ import annotations

import io
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.distributed.checkpoint import save
from torch.distributed.checkpoint.metadata import Metadata

from inspector.engine.errors import InputError
from inspector.engine.opening.checkpoint_matching import fit
from inspector.engine.opening.read_checkpoint import loader_of, read_checkpoint


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))


def written(folder: Path, state: dict[str, Any]) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        save(state, checkpoint_id=folder, no_dist=True)
    return folder


def trained() -> dict[str, Any]:
    own = model()
    optimizer = torch.optim.Adam(own.parameters())
    own(torch.ones(2, 3)).sum().backward()
    optimizer.step()
    return {"model": own.state_dict(), "optimizer": optimizer.state_dict(), "step": 70, "loader": [1, {"epoch": 2}]}


def test_the_weights_and_the_step_are_those_that_were_saved(tmp_path: Path) -> None:
    state = trained()
    folder = written(tmp_path / "step-70", state)
    found = read_checkpoint(folder)
    assert found.layout == "torch.distributed checkpoint, 1 file" and found.step == 70
    assert set(found.tensors) == set(state["model"])
    assert all(torch.equal(found.tensors[name], value) for name, value in state["model"].items())
    assert loader_of(folder).step(folder) == (70, "the key 'step'")  # type: ignore[attr-defined]
    report, _plan = fit(model(), found, folder)
    assert report.fits and report.matched == 4


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64, torch.int64, torch.float32])
def test_every_dtype_and_a_tensor_without_axes(tmp_path: Path, dtype: torch.dtype) -> None:
    state = {"a": torch.arange(12).to(dtype).view(3, 4).T, "scalar": torch.tensor(3).to(dtype)}
    found = read_checkpoint(written(tmp_path / "d", {"model": state})).tensors
    assert all(torch.equal(found[name], value) and found[name].dtype == dtype for name, value in state.items())


SHARDED = """
import sys, warnings, torch, torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint import save
from torch.distributed.fsdp import fully_shard
warnings.simplefilter("ignore")
rank = int(sys.argv[2])
torch.set_num_threads(1)
dist.init_process_group("gloo", store=dist.FileStore(sys.argv[1] + "/port", 2), rank=rank, world_size=2)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 2))
if rank == 0:
    torch.save(model.state_dict(), sys.argv[1] + "/plain.pt")
from torch.distributed.device_mesh import init_device_mesh
fully_shard(model, mesh=init_device_mesh("cpu", (2,)))
save({"model": model.state_dict(), "step": 3}, checkpoint_id=sys.argv[1] + "/sharded")
dist.destroy_process_group()
"""


def test_shards_of_two_processes_are_put_together(tmp_path: Path) -> None:
    (tmp_path / "sharded.py").write_text(SHARDED)
    command = [sys.executable, str(tmp_path / "sharded.py"), str(tmp_path)]
    running = [subprocess.Popen([*command, str(rank)], stderr=subprocess.PIPE, text=True) for rank in range(2)]
    try:
        errors = [one.communicate(timeout=120)[1] for one in running]
    finally:
        for one in running:
            one.kill()
    assert all(one.returncode == 0 for one in running), errors
    found = read_checkpoint(tmp_path / "sharded")
    plain = torch.load(tmp_path / "plain.pt", weights_only=True)
    assert found.layout == "torch.distributed checkpoint, 2 files" and found.step == 3
    assert set(found.tensors) == set(plain)
    assert all(torch.equal(found.tensors[name], value) for name, value in plain.items())


# -- damaged and hostile ones


class Evil:
    """Makes a file when it is unpickled by Python's own pickle."""

    def __init__(self, canary: Path) -> None:
        self.canary = str(canary)

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (self.canary, "w")


def changed(folder: Path, change: Callable[[Any], Any]) -> None:
    metadata = pickle.loads((folder / ".metadata").read_bytes())
    result = change(metadata)
    (folder / ".metadata").write_bytes(pickle.dumps(metadata if result is None else result))


def hostile(canary: Path) -> Iterator[tuple[str, Callable[[Metadata], Any]]]:
    def first(metadata: Any) -> Any:
        return next(value for value in metadata.storage_data.values())

    def weight(metadata: Any) -> Any:
        return metadata.state_dict_metadata["model.0.weight"]

    def enlarge(metadata: Any) -> None:
        weight(metadata).size = weight(metadata).chunks[0].sizes = torch.Size([1 << 30, 3])

    yield "names", lambda m: setattr(m, "planner_data", Evil(canary))
    yield "names", lambda _m: Evil(canary)
    yield "names", lambda m: setattr(m, "storage_meta", pickle.Unpickler)
    yield "names", lambda m: m.planner_data.__setitem__("x", torch.load)
    yield "does not describe", lambda _m: {"state_dict_metadata": {}}
    yield "not one of the folder", lambda m: setattr(first(m), "relative_path", "../../etc/passwd")
    yield "not one of the folder", lambda m: setattr(first(m), "relative_path", "/etc/passwd")
    yield "has no place", lambda m: setattr(first(m), "offset", -1)
    yield "has no place", lambda m: setattr(first(m), "length", "9")
    yield "cut short|cannot be read", lambda m: setattr(first(m), "length", 1 << 40)
    yield "lies outside|are not all", lambda m: setattr(weight(m).chunks[0], "sizes", torch.Size([4000, 3000]))
    yield "are not all", lambda m: weight(m).chunks.clear()
    yield "claims tensors", enlarge
    yield "compressed", lambda m: setattr(first(m), "transform_descriptors", ["zstd"])
    yield "not made of whole numbers", lambda m: setattr(weight(m).chunks[0], "offsets", (0.5, 0))


def test_hostile_descriptions_are_refused_and_nothing_runs(tmp_path: Path) -> None:
    canary = tmp_path / "ran"
    for n, (said, change) in enumerate(hostile(canary)):
        folder = written(tmp_path / f"d{n}", {"model": model().state_dict()})
        changed(folder, change)
        with pytest.raises(InputError, match=said) as refused:
            read_checkpoint(folder)
        assert "\n" not in str(refused.value) and not canary.exists(), n


def test_a_part_that_is_hostile_is_refused(tmp_path: Path) -> None:
    """A part is a file of torch.save inside a file: one that names a function is not read."""
    folder = written(tmp_path / "d", {"model": model().state_dict()})
    stream = io.BytesIO()
    torch.save(Evil(tmp_path / "ran"), stream)
    (file,) = folder.glob("*.distcp")
    begin = file.stat().st_size
    with file.open("ab") as out:
        out.write(stream.getvalue())

    def point(metadata: Any) -> None:
        for place in metadata.storage_data.values():
            place.offset, place.length = begin, len(stream.getvalue())

    changed(folder, point)
    with pytest.raises(InputError, match=r"holds more than tensors and numbers|cannot be read"):
        read_checkpoint(folder)
    assert not (tmp_path / "ran").exists()


def test_damaged_bytes_anywhere_are_one_sentence(tmp_path: Path) -> None:
    folder = written(tmp_path / "d", {"model": {"a": torch.arange(4.0)}})
    whole = (folder / ".metadata").read_bytes()
    for at in range(0, len(whole), 7):
        (folder / ".metadata").write_bytes(whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1 :])
        try:
            read_checkpoint(folder)
        except InputError as problem:
            assert "\n" not in str(problem)
    (folder / ".metadata").write_bytes(whole)
    (file,) = folder.glob("*.distcp")
    data = file.read_bytes()
    for at in range(0, len(data), 5):
        file.write_bytes(data[:at] + bytes([data[at] ^ 0x41]) + data[at + 1 :])
        try:
            found = read_checkpoint(folder).tensors
        except InputError as problem:
            assert "\n" not in str(problem)
        else:
            assert torch.equal(found["a"], torch.arange(4.0)), "a changed number is noticed"
    file.unlink()
    with pytest.raises(InputError, match=r"needs the file __0_0\.distcp, which is not in it"):
        read_checkpoint(folder)
