"""The SHA-256 of a checkpoint's bytes stands in what is reported of it; a file that claims what it does not hold is
refused before it is read."""

from __future__ import annotations

import hashlib
import shutil
import struct
import subprocess
import tracemalloc
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
import torch
from captures import START
from safetensors.torch import save_file
from torch import nn

from inspector.capture import Writer, open_capture
from inspector.diagnosis.report.about import about
from inspector.engine.errors import InputError
from inspector.engine.model.pickle_opcodes import could_allocate
from inspector.engine.opening.checkpoint_files import read_and_hashed
from inspector.engine.opening.open_subject import open_subject
from inspector.engine.opening.read_checkpoint import read_checkpoint
from inspector.records import CheckpointReport, Load, RunStop, decode, encode
from inspector.records.report import to_meta

MODEL = """
import torch
from torch import nn
def make():
    return nn.Linear(3, 2)
"""


def saved(folder: Path, **options: bool) -> Path:
    path = folder / "weights.pt"
    torch.save(nn.Linear(3, 2).state_dict(), path, **options)
    return path


def pickled(name: str, number: int) -> bytes:
    """{"w": NAME(number)} of the module builtins or torch."""
    module, _, last = name.rpartition(".")
    call = b"c" + module.encode() + b"\n" + last.encode() + b"\nJ" + struct.pack("<i", number) + b"\x85R"
    return b"\x80\x02}X\x01\x00\x00\x00w" + call + b"s."


def archive(path: Path, content: bytes, *, again: str = "") -> Path:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("a/data.pkl", content)
        file.writestr("a/version", "3\n")
        if again:
            with pytest.warns(UserWarning, match="Duplicate name"):
                file.writestr("a/data.pkl", again)
    return path


# -- SHA-256


@pytest.mark.parametrize("ending", ["pt", "safetensors"])
def test_the_report_has_what_sha256sum_prints(ending: str, tmp_path: Path) -> None:
    path = saved(tmp_path)
    if ending == "safetensors":
        path = tmp_path / "weights.safetensors"
        save_file({name: value.clone() for name, value in nn.Linear(3, 2).state_dict().items()}, path)
    (tmp_path / "mine.py").write_text(MODEL)
    opened = open_subject(Load(subject=f"{tmp_path}/mine.py:make", checkpoint=str(path), trusted=True))
    program = shutil.which("sha256sum")
    expected = (
        subprocess.run([program, path], capture_output=True, text=True, check=True).stdout.split()[0]
        if program
        else hashlib.sha256(path.read_bytes()).hexdigest()
    )
    assert opened.report is not None and opened.report.sha256 == expected
    assert decode(encode(opened.report)) == opened.report


@pytest.mark.parametrize("tensors", ["never", "always"])
def test_so_does_that_of_weights_without_a_model(tensors: Literal["never", "always"], tmp_path: Path) -> None:
    """A model that is rebuilt from them, and their tensors alone."""
    path = tmp_path / "weights.pt"
    torch.save(nn.LSTM(3, 4).state_dict(), path)
    opened = open_subject(Load(subject=str(path), trusted=True, tensors=tensors))
    assert (opened.tensors is None) is (tensors == "never")
    assert opened.report is not None and opened.report.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_of_several_files_it_is_that_of_the_list(tmp_path: Path) -> None:
    for name in ("b", "a"):
        save_file({name: torch.ones(2)}, tmp_path / f"{name}.safetensors")
    index = tmp_path / "model.safetensors.index.json"
    index.write_text('{"weight_map": {"a": "a.safetensors", "b": "b.safetensors"}}')
    files = sorted([index, tmp_path / "a.safetensors", tmp_path / "b.safetensors"])
    listed = "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files)
    assert read_and_hashed(index, read_checkpoint)[1] == hashlib.sha256(listed.encode()).hexdigest()


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path)

    def read(file: Path) -> int:
        file.write_bytes(file.read_bytes() + b"more")
        return 1

    with pytest.raises(InputError, match=r"weights\.pt changed while it was being read"):
        read_and_hashed(path, read)


def test_the_overview_names_it(tmp_path: Path) -> None:
    meta = to_meta(CheckpointReport(path="w.pt", matched=1, total=1, sha256="ab" * 32))
    with Writer(tmp_path / "a.inspect", replace(START, meta=meta)) as writer:
        writer.write(RunStop("done"))
    with open_capture(tmp_path / "a.inspect") as capture:
        assert ("its SHA-256", "ab" * 32) in about(capture, list(capture.frames), "a.inspect")


# -- claims


@pytest.mark.parametrize("packed", [False, True], ids=["bare", "zip"])
@pytest.mark.parametrize("name", ["builtins.bytearray", "__builtin__.bytearray"])
def test_a_few_bytes_never_take_gigabytes(name: str, packed: bool, tmp_path: Path) -> None:
    content = pickled(name, 2_000_000_000)
    path = archive(tmp_path / "w.pt", content) if packed else tmp_path / "w.pt"
    if not packed:
        path.write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="asks for far more memory than its"):
            read_checkpoint(path)
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()


def test_a_number_that_is_stored_once_and_used_often_is_counted_as_often() -> None:
    once = b"(cbuiltins\nbytearray\nq\x00J" + struct.pack("<i", 1_000_000) + b"q\x01\x85R"
    again = b"h\x00h\x01\x85R" * 199
    assert could_allocate(b"\x80\x02" + once + again + b"t.") == 200_000_000
    assert could_allocate(b"\x80\x02" + once.replace(b"bytearray", b"frozenset") + b"t.") == 0


def test_tensors_that_are_not_in_the_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="claims 2400000000 bytes of numbers"):
        read_checkpoint(archive(tmp_path / "w.pt", pickled("torch.Tensor", 600_000_000)))


def test_a_bytearray_that_is_in_the_file_is_no_reason(tmp_path: Path) -> None:
    path = tmp_path / "w.pt"
    torch.save({"state_dict": nn.Linear(3, 2).state_dict(), "note": bytearray(b"abc"), "step": 7}, path)
    assert read_checkpoint(path).step == 7


def test_two_members_of_one_name_are_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "w.pt", pickled("torch.Tensor", 4), again="x")
    with pytest.raises(InputError, match=r"two archive members named a/data\.pkl"):
        read_checkpoint(path)
