"""Every layout is read and fitted; nothing in a checkpoint is ever executed."""

from __future__ import annotations

import io
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from inspector.engine.errors import InputError
from inspector.engine.opening.checkpoint_matching import fit
from inspector.engine.opening.open_subject import open_subject
from inspector.engine.opening.read_checkpoint import read_checkpoint
from inspector.records import Load


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))


def other(target: nn.Module) -> dict[str, torch.Tensor]:
    torch.manual_seed(1)
    return {name: torch.randn_like(value) for name, value in target.state_dict().items()}


def prefixed(state: dict[str, torch.Tensor], prefix: str) -> dict[str, torch.Tensor]:
    return {prefix + name: value for name, value in state.items()}


LAYOUTS: dict[str, Any] = {
    "plain": lambda s: s,
    "state_dict": lambda s: {"state_dict": s, "epoch": 3},
    "model": lambda s: {"model": s, "optimizer": {"state": {}, "param_groups": [{"lr": 0.1}]}, "step": 7},
    "model_state_dict": lambda s: {"model_state_dict": s, "optimizer_state_dict": {"state": {0: {"exp_avg": torch.zeros(99)}}}},
    "net": lambda s: {"net": s},
    "deep": lambda s: {"checkpoint": {"model": s}},
    "ddp": lambda s: prefixed(s, "module."),
    "compiled": lambda s: prefixed(s, "_orig_mod."),
    "both": lambda s: prefixed(s, "module._orig_mod."),
    "lightning": lambda s: {
        "state_dict": prefixed(s, "model."), "pytorch-lightning_version": "2.0", "global_step": 12, "epoch": 1,
        "hyper_parameters": {"lr": 0.1}, "optimizer_states": [], "loops": {},
    },
}  # fmt: skip


@pytest.mark.parametrize("old", [False, True], ids=["zip", "old format"])
@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_every_layout_fits(tmp_path: Path, layout: str, old: bool) -> None:
    target = model()
    state = other(target)
    path = tmp_path / "c.pt"
    torch.save(LAYOUTS[layout](state), path, _use_new_zipfile_serialization=not old)
    report, plan = fit(target, read_checkpoint(path), path)
    assert report.fits and report.matched == report.total == 4, report
    plan.apply(target)
    for name, value in target.state_dict().items():
        assert torch.equal(value, state[name])
    assert report.step == {"model": 7, "lightning": 12, "state_dict": 3}.get(layout)


def test_safetensors_with_its_step(tmp_path: Path) -> None:
    target = model()
    save_file(other(target), tmp_path / "c.safetensors", {"step": "40"})
    report, _ = fit(target, read_checkpoint(tmp_path / "c.safetensors"), tmp_path / "c.safetensors")
    assert report.fits and report.step == 40 and report.layout == "safetensors"


def test_the_report_names_every_problem(tmp_path: Path) -> None:
    target = model()
    state = other(target)
    state["0.weight"] = torch.zeros(9, 9)
    state["extra"] = torch.zeros(2)
    state["1.weight"] = state["1.weight"].half()
    state["1.weight"][0, 0] = float("nan")
    del state["0.bias"]
    torch.save(state, tmp_path / "c.pt")
    report, plan = fit(target, read_checkpoint(tmp_path / "c.pt"), tmp_path / "c.pt")
    problems = {(m.name, m.problem) for m in report.mismatches}
    assert problems == {
        ("0.weight", "shape"), ("extra", "unexpected"), ("0.bias", "missing"), ("1.weight", "dtype"), ("1.weight", "non-finite"),
    }  # fmt: skip
    assert not report.fits and set(plan.tensors) == {"1.weight", "1.bias"}
    details = {m.name: m.detail for m in report.mismatches if m.problem in ("missing", "unexpected", "shape")}
    wanted = {name: tuple(value.shape) for name, value in target.state_dict().items()}
    assert details == {
        "0.weight": f"checkpoint (9, 9), model {wanted['0.weight']}", "extra": "shape (2,)",
        "0.bias": f"model {wanted['0.bias']}",
    }  # fmt: skip


def test_tied_weights_may_be_absent(tmp_path: Path) -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.head = nn.Embedding(5, 3), nn.Linear(3, 5, bias=False)
            self.head.weight = self.embedding.weight

    torch.save({"embedding.weight": torch.zeros(5, 3)}, tmp_path / "c.pt")
    report, _ = fit(Tied(), read_checkpoint(tmp_path / "c.pt"), tmp_path / "c.pt")
    assert report.fits and [m.problem for m in report.mismatches] == ["tied"]


class Evil:
    def __init__(self, canary: str) -> None:
        self.canary = canary

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.canary}",)


@pytest.mark.parametrize("kind", ["zip", "old", "bare"])
def test_a_malicious_pickle_is_refused_with_its_globals_and_never_runs(tmp_path: Path, kind: str) -> None:
    canary, path = tmp_path / "canary", tmp_path / "c.pt"
    payload = {"model": {"w": torch.zeros(2)}, "x": Evil(str(canary))}
    if kind == "bare":
        path.write_bytes(pickle.dumps(payload["x"], protocol=2))
    else:
        torch.save(payload, path, _use_new_zipfile_serialization=kind == "zip")
    with pytest.raises(InputError) as told:
        read_checkpoint(path)
    sentence = str(told.value)
    assert not canary.exists() and "weights_only" not in sentence and len(sentence) < 400
    if kind == "zip":
        assert "system" in sentence and "state_dict()" in sentence


@pytest.mark.parametrize("suffix", ["pt", "safetensors"])
def test_a_checkpoint_cut_anywhere_is_told_in_one_sentence(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"c.{suffix}"
    if suffix == "pt":
        torch.save(other(model()), path)
    else:
        save_file(other(model()), path)
    whole = path.read_bytes()
    for size in [0, 1, 7, 8, 9, 60, *range(100, len(whole), max(1, len(whole) // 12))]:
        path.write_bytes(whole[:size])
        with pytest.raises(InputError) as told:
            read_checkpoint(path)
        assert "\n" not in str(told.value) and path.name in str(told.value)


def test_a_compression_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "c.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("c/data.pkl", b"\0" * (200 << 20))
    with pytest.raises(InputError, match=r"^c\.pt unpacks to far more"):
        read_checkpoint(path)


def test_programs_are_named_and_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("c/constants.pkl", b"")
        archive.writestr("c/code/__torch__.py", b"")
    with pytest.raises(InputError, match="TorchScript"):
        read_checkpoint(path)
    for name, said in (("m.onnx", "ONNX"), ("m.pt2", "torch.export"), ("m.h5", "HDF5")):
        (tmp_path / name).write_bytes(b"x" * 20)
        with pytest.raises(InputError, match=said):
            read_checkpoint(tmp_path / name)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
def test_a_fifo_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "c.pt")
    with pytest.raises(InputError, match="not an ordinary file"):
        read_checkpoint(tmp_path / "c.pt")


def test_sparse_and_overlapping_tensors_are_refused(tmp_path: Path) -> None:
    torch.save({"w": torch.zeros(1).expand(10**9)}, tmp_path / "c.pt")
    with pytest.raises(InputError, match="does not hold"):
        read_checkpoint(tmp_path / "c.pt")
    torch.save({"w": torch.eye(3).to_sparse()}, tmp_path / "d.pt")
    with pytest.raises(InputError, match="dense"):
        read_checkpoint(tmp_path / "d.pt")


def test_depth_and_breadth_are_bounded(tmp_path: Path) -> None:
    nested: dict[str, Any] = {"w": torch.zeros(1)}
    for _ in range(40):
        nested = {"x": nested}
    torch.save(nested, tmp_path / "c.pt")
    with pytest.raises(InputError, match="without named tensors"):
        read_checkpoint(tmp_path / "c.pt")


def test_nothing_is_loaded_until_the_user_agrees(tmp_path: Path) -> None:
    file = tmp_path / "m.py"
    file.write_text("from torch import nn\ndef make(size=4):\n    return nn.GRU(3, size)\nready = nn.GRU(3, 2)\n")
    torch.save({"weight_ih_l0": torch.ones(12, 3)}, tmp_path / "c.pt")
    load = Load(subject=f"{file}:make", checkpoint=str(tmp_path / "c.pt"), trusted=True)
    opened = open_subject(load)
    assert opened.pending and not torch.equal(opened.subject.model.weight_ih_l0, torch.ones(12, 3))
    agreed = open_subject(Load(subject=load.subject, checkpoint=load.checkpoint, trusted=True, partial=True))
    assert torch.equal(agreed.subject.model.weight_ih_l0, torch.ones(12, 3))
    assert not agreed.subject.model.training
    assert open_subject(Load(subject=f"{file}:ready", trusted=True)).subject.model.hidden_size == 2
    for subject, said in ((f"{file}:absent", "it has make"), (f"{file}", "which callable"), ("a.b:c", "no module"),
                          (f"{tmp_path}/none.py:x", "no file")):  # fmt: skip
        with pytest.raises(InputError, match=said):
            open_subject(Load(subject=subject, trusted=True))


def test_garbage_is_no_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "c.bin").write_bytes(io.BytesIO(b"hello world" * 10).getvalue())
    with pytest.raises(InputError, match="not a checkpoint of a known format"):
        read_checkpoint(tmp_path / "c.bin")


def stretches(path: Path) -> dict[str, tuple[int, int]]:
    """(first, stop) of the bytes of every member of an archive, by its name without the folder."""
    with zipfile.ZipFile(path) as archive:
        found = {}
        for member in archive.infolist():
            with path.open("rb") as file:
                file.seek(member.header_offset)
                head = file.read(30)
            first = (
                member.header_offset + 30 + int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:], "little")
            )
            found[member.filename.partition("/")[2]] = first, first + member.compress_size
    return found


def flipped(path: Path, at: int, bit: int = 4) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1 << bit
    path.write_bytes(data)


@pytest.mark.parametrize("name", ["data/0", "data/3", "data.pkl", "byteorder"])
def test_one_flipped_bit_in_a_torch_file_is_told(tmp_path: Path, name: str) -> None:
    path = tmp_path / "c.pt"
    torch.save(other(model()), path)
    assert read_checkpoint(path).tensors
    first, stop = stretches(path)[name]
    for at in {first, (first + stop) // 2, stop - 1}:
        flipped(path, at)
        with pytest.raises(InputError) as told:
            read_checkpoint(path)
        assert str(told.value) == f"c.pt is damaged: archive member c/{name} has changed since it was written."
        flipped(path, at)
    assert read_checkpoint(path).tensors, "and put back it is whole"


def test_a_bit_anywhere_in_a_torch_file_changes_no_number(tmp_path: Path) -> None:
    path, whole = tmp_path / "c.pt", other(model())
    torch.save(whole, path)
    for at in range(0, path.stat().st_size, 7):
        flipped(path, at, at % 8)
        try:
            found = read_checkpoint(path).tensors
        except InputError as problem:
            assert "\n" not in str(problem) and "c.pt" in str(problem)
        else:
            assert all(torch.equal(found[name], value) for name, value in whole.items()), f"byte {at}"
        flipped(path, at, at % 8)


def test_a_torch_file_without_checksums_is_read(tmp_path: Path) -> None:
    """torch writes 0 in their place where it is told not to compute them."""
    before, whole = torch.serialization.get_crc32_options(), other(model())
    torch.serialization.set_crc32_options(False)
    try:
        torch.save(whole, tmp_path / "c.pt")
    finally:
        torch.serialization.set_crc32_options(before)
    found = read_checkpoint(tmp_path / "c.pt").tensors
    assert all(torch.equal(found[name], value) for name, value in whole.items())


def repacked(tmp_path: Path, method: int) -> Path:
    """A torch file whose archive was packed anew."""
    torch.save(other(model()), tmp_path / "a.pt")
    with zipfile.ZipFile(tmp_path / "a.pt") as source, zipfile.ZipFile(tmp_path / "c.pt", "w", method) as target:
        for member in source.infolist():
            target.writestr(member.filename, source.read(member))
    return tmp_path / "c.pt"


def test_a_compressed_member_that_has_changed_is_told(tmp_path: Path) -> None:
    path = repacked(tmp_path, zipfile.ZIP_DEFLATED)
    assert read_checkpoint(path).tensors
    first, stop = stretches(path)["data/0"]
    flipped(path, (first + stop) // 2)
    with pytest.raises(InputError) as told:
        read_checkpoint(path)
    assert str(told.value) == "c.pt is damaged: archive member a/data/0 has changed since it was written."


def test_what_torch_cannot_unpack_is_not_unpacked(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^c\.pt is packed with zip method 14; torch reads 0 "):
        read_checkpoint(repacked(tmp_path, zipfile.ZIP_LZMA))
