"""Files of other formats that say two things at once, or nothing that can be read."""

from __future__ import annotations

import io
import json
import struct
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inspector.engine.errors import InputError
from inspector.engine.opening.read_checkpoint import read_checkpoint

PLACE = '{"dtype":"F32","shape":[4],"data_offsets":[0,16]}'


def safetensors(path: Path, header: str | dict[str, Any], numbers: bytes) -> Path:
    text = (header if isinstance(header, str) else json.dumps(header)).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + numbers)
    return path


@pytest.mark.parametrize(
    ("header", "name"),
    [
        (f'{{"a":{PLACE},"a":{PLACE.replace("F32", "I32")}}}', "a"),
        (f'{{"a":{PLACE},"a":{PLACE.replace("[4]", "[2,2]")}}}', "a"),
        (f'{{"a":{PLACE},"\\u0061":{PLACE}}}', "a"),
        (f'{{"__metadata__":{{"step":"1","step":"2"}},"a":{PLACE}}}', "step"),
    ],
)
def test_a_header_with_two_entries_of_one_name_is_refused(tmp_path: Path, header: str, name: str) -> None:
    path = safetensors(tmp_path / "c.safetensors", header, bytes(16))
    with pytest.raises(InputError) as told:
        read_checkpoint(path)
    assert str(told.value) == f"c.safetensors is not read: its header has two entries named {name!r}."


def test_a_header_is_not_read_beyond_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "c.safetensors"
    with path.open("wb") as file:
        file.write(struct.pack("<Q", 17 << 20) + b"{")
        file.truncate(20 << 20)  # a hole
    with pytest.raises(InputError, match="its header says 17825792 bytes, the file has 20971520"):
        read_checkpoint(path)


def test_more_tensors_than_a_model_has_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    header = {f"t{n}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for n in range(12)}
    path = safetensors(tmp_path / "c.safetensors", header, b"")
    monkeypatch.setattr("inspector.engine.loaders.safetensors.MAX_TENSORS", 11)
    with pytest.raises(InputError, match="declares 12 tensors; at most 11 are read"):
        read_checkpoint(path)
    monkeypatch.setattr("inspector.engine.loaders.safetensors.MAX_TENSORS", 12)
    assert len(read_checkpoint(path).tensors) == 12


def test_numbers_of_less_than_a_byte_are_refused(tmp_path: Path) -> None:
    header = {"a": {"dtype": "F4", "shape": [4], "data_offsets": [0, 2]}}
    with pytest.raises(InputError, match="tensor a is of F4; numbers of less than a byte are not read"):
        read_checkpoint(safetensors(tmp_path / "c.safetensors", header, bytes(2)))


def test_a_file_that_cannot_be_mapped_is_refused_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one with a hole of a terabyte."""
    path = safetensors(tmp_path / "c.safetensors", f'{{"a":{PLACE}}}', bytes(16))
    assert read_checkpoint(path).tensors

    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("unable to mmap 1099511627868 bytes: Cannot allocate memory (12)")

    monkeypatch.setattr("inspector.engine.loaders.safetensors.safe_open", fails)
    with pytest.raises(InputError, match=r"^c\.safetensors is damaged or cut short: unable to mmap \d+ bytes: [^\n]*$"):
        read_checkpoint(path)


@pytest.mark.parametrize("dtype", [[("a", "f4")], "M8[D]", "V8"])
def test_arrays_of_no_numbers_alone_are_refused(tmp_path: Path, dtype: Any) -> None:
    np.save(tmp_path / "c.npy", np.zeros(3, dtype=dtype))
    with pytest.raises(InputError, match=r"^c\.npy holds no arrays of numbers\.$"):
        read_checkpoint(tmp_path / "c.npy")


def gguf(path: Path, *places: int) -> Path:
    """Tensors t0, t1, … of four numbers at offsets."""
    told = b"".join(
        struct.pack("<Q", 2) + f"t{n}".encode() + struct.pack("<IQIQ", 1, 4, 0, place) for n, place in enumerate(places)
    )
    header = b"GGUF" + struct.pack("<IQQ", 3, len(places), 0) + told
    path.write_bytes(header + bytes(-len(header) % 32) + np.ones(32, np.float32).tobytes())
    return path


@pytest.mark.parametrize("places", [(0, 0), (16, 8), ((1 << 64) - 32,)])
def test_gguf_tensors_that_lie_on_others_are_refused(tmp_path: Path, places: tuple[int, ...]) -> None:
    pytest.importorskip("gguf")
    assert set(read_checkpoint(gguf(tmp_path / "a.gguf", 32, 0)).tensors) == {"t0", "t1"}
    with pytest.raises(InputError, match=r"^c\.gguf is damaged or cut short: the numbers of t\d lie on others\.$"):
        read_checkpoint(gguf(tmp_path / "c.gguf", *places))


def test_a_keras_archive_with_two_members_of_one_name_is_refused(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "c.keras"
    with zipfile.ZipFile(path, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        archive.writestr("config.json", b"{}")
        for value in (1, 0):
            buffer = io.BytesIO()
            with h5py.File(buffer, "w") as file:
                file["layers/dense/vars/0"] = np.full((3, 2), value, np.float32)
            archive.writestr("model.weights.h5", buffer.getvalue())
    with pytest.raises(InputError, match=r"^c\.keras has two archive members named model\.weights\.h5; it is not read"):
        read_checkpoint(path)


CUT = """
import os, sys
from pathlib import Path
from inspector.engine.opening.read_checkpoint import read_checkpoint
state = read_checkpoint(Path(sys.argv[1]))
os.truncate(sys.argv[1], 100)
print(float(state.tensors["a"].sum()))
"""


def test_a_file_that_is_cut_later_ends_no_process(tmp_path: Path) -> None:
    """What was read of it is a copy: numbers in a file that is mapped end a process with SIGBUS where it is cut."""
    numbers = np.ones(1 << 20, np.float32)
    header = {"a": {"dtype": "F32", "shape": [1 << 20], "data_offsets": [0, numbers.nbytes]}}
    path = safetensors(tmp_path / "c.safetensors", header, numbers.tobytes())
    done = subprocess.run([sys.executable, "-c", CUT, str(path)], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, f"{1 << 20}.0\n"), done.stderr
