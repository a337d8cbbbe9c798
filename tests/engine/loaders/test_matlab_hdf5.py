"""MATLAB files of version 7.3: HDF5 after a block of text, as MATLAB's documentation of MAT-files describes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch

from inspector.engine.errors import InputError
from inspector.engine.opening.read_checkpoint import read_checkpoint

HEAD = b"MATLAB 7.3 MAT-file, Platform: GLNXA64, Created on: Tue Nov 24 12:00:00 2026 HDF5 schema 1.00 ."


def read(path: Path) -> dict[str, torch.Tensor]:
    return read_checkpoint(path).tensors


def started(path: Path) -> h5py.File:
    return h5py.File(path, "w", userblock_size=512)


def finish(path: Path) -> None:
    with path.open("r+b") as raw:
        raw.write(HEAD.ljust(116) + bytes(8) + b"\x00\x02IM")


def put(group: Any, name: str, array: np.ndarray[Any, Any], kind: str, **more: Any) -> None:
    """As MATLAB's save writes an array: its axes the other way round."""
    one = group.create_dataset(name, data=array.T, **more)
    one.attrs["MATLAB_class"] = np.bytes_(kind)


def test_arrays_have_the_shape_that_matlab_shows(tmp_path: Path) -> None:
    make = np.random.default_rng(0)
    weight, small = make.normal(size=(3, 5)), make.normal(size=(2, 3, 4)).astype("f4")
    path = tmp_path / "w.mat"
    with started(path) as file:
        put(file, "W", weight, "double", chunks=(2, 2), compression="gzip")
        put(file, "small", small, "single")
        put(file, "count", np.array([[2**60 + 1]], dtype="i8"), "int64")
        put(file, "flag", np.array([[1, 0]], dtype="u1"), "logical")
        put(file, "said", np.array([[104, 105]], dtype="u2"), "char")
        file["W"].attrs["H5PATH"] = b"/"
        both = np.zeros((2, 3), dtype=[("real", "f8"), ("imag", "f8")])
        both["real"], both["imag"] = np.arange(6).reshape(2, 3), 1.5
        put(file, "z", both, "double")
        file.create_dataset("none", data=np.array([0, 7], dtype="u8"))
        file["none"].attrs["MATLAB_class"], file["none"].attrs["MATLAB_empty"] = np.bytes_("double"), np.uint8(1)
        net = file.create_group("net")
        net.attrs["MATLAB_class"] = np.bytes_("struct")
        put(net, "W", weight * 2, "double")
        net.create_group("deep").attrs["MATLAB_class"] = np.bytes_("struct")
        put(net["deep"], "b", weight[:1], "double")
        refs = file.create_group("#refs#")
        put(refs, "a", weight, "double")
        cell = file.create_dataset("cell", data=np.array([[refs["a"].ref]], dtype=h5py.ref_dtype))
        cell.attrs["MATLAB_class"] = np.bytes_("cell")
        sparse = file.create_group("sparse")
        sparse.attrs["MATLAB_class"], sparse.attrs["MATLAB_sparse"] = np.bytes_("double"), np.uint64(3)
        put(sparse, "data", weight[:1], "double")
    finish(path)
    found = read(path)
    assert set(found) == {"W", "small", "count", "flag", "z", "none", "net.W", "net.deep.b"}
    for name, expected in (("W", weight), ("small", small), ("net.W", weight * 2), ("net.deep.b", weight[:1])):
        np.testing.assert_array_equal(found[name].numpy(), expected)
        assert found[name].numpy().dtype == expected.dtype
    assert found["count"].item() == 2**60 + 1 and found["none"].shape == (0, 7)
    assert found["flag"].tolist() == [[1, 0]]
    np.testing.assert_array_equal(found["z"].numpy(), np.arange(6).reshape(2, 3) + 1.5j)


def test_a_gru_of_such_a_file_runs_as_torch_does(tmp_path: Path) -> None:
    torch.manual_seed(0)
    gru = torch.nn.GRU(3, 4)
    path = tmp_path / "gru.mat"
    with started(path) as file:
        for name, tensor in gru.state_dict().items():
            array = tensor.numpy()
            put(file, name, array if array.ndim > 1 else array[None], "single")
    finish(path)
    found = read(path)
    for name, tensor in gru.state_dict().items():
        assert torch.equal(found[name].reshape(tensor.shape), tensor)


def test_links_to_other_files_are_not_followed(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["secret"] = np.ones(3)
    path = tmp_path / "w.mat"
    np.ones(4).tofile(tmp_path / "raw.bin")
    with started(path) as file:
        put(file, "own", np.ones((2, 2)), "double")
        file["outside"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "/secret")
        file["soft"] = h5py.SoftLink("/own")
        file.create_dataset("stored", shape=(4,), dtype="f8", external=[(str(tmp_path / "raw.bin"), 0, 32)])
        layout = h5py.VirtualLayout(shape=(3,), dtype="f8")
        layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "secret", shape=(3,))
        file.create_virtual_dataset("virtual", layout)
    finish(path)
    assert set(read(path)) == {"own"}


def test_what_cannot_be_read_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bomb.mat"
    with started(path) as file:
        made = file.create_dataset("a", shape=(1 << 34,), dtype="f8", chunks=(1 << 16,), compression="gzip")
        made.attrs["MATLAB_class"] = np.bytes_("double")
    finish(path)
    with pytest.raises(InputError, match=r"bomb\.mat is damaged or no MATLAB file: it asks for 137,438,953,472 bytes"):
        read(path)
    path = tmp_path / "empty.mat"
    with started(path) as file:
        made = file.create_dataset("a", data=np.array([3, 7], dtype="u8"))
        made.attrs["MATLAB_class"], made.attrs["MATLAB_empty"] = np.bytes_("double"), np.uint8(1)
    finish(path)
    with pytest.raises(InputError, match="an empty one that is not empty"):
        read(path)
    path = tmp_path / "line.mat"
    with started(path) as file:
        put(file, "a\nb", np.ones((1, 2)), "double")
        put(file, "c", np.zeros((1, 2)), "double")
    finish(path)
    assert set(read(path)) == {"a\nb", "c"}
    cut = tmp_path / "cut.mat"
    for size in (20, 512, 700, path.stat().st_size - 200):
        cut.write_bytes(path.read_bytes()[:size])
        with pytest.raises(InputError, match=r"cut\.mat is damaged or no MATLAB file|holds no arrays of numbers"):
            read(cut)
    monkeypatch.setattr("inspector.engine.model.arrays_of_child.importlib.util.find_spec", lambda _name: None)
    with pytest.raises(InputError, match=r"line\.mat is a MATLAB file, which needs h5py to be read"):
        read(path)
