"""Weights that other programs wrote: numpy, MATLAB, llama.cpp, Keras; with Keras' formulas written out in float64."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import h5py
import numpy as np
import numpy.typing as npt
import pytest
import scipy.io
import torch
from torch import nn

import inspector
from inspector.engine.errors import InputError
from inspector.engine.opening.read_checkpoint import read_checkpoint

Array = npt.NDArray[Any]
W, U, T = 3, 4, 6


def read(path: Path) -> dict[str, torch.Tensor]:
    return read_checkpoint(path).tensors


def arrays() -> dict[str, Array]:
    make = np.random.default_rng(0)
    return {"rnn.weight_ih_l0": make.normal(size=(U, W)), "rnn.weight_hh_l0": make.normal(size=(U, U)).astype("f4")}


def test_arrays_of_numpy_by_name(tmp_path: Path) -> None:
    own = arrays()
    np.savez(tmp_path / "w.npz", **own, words=np.array(["a", "b"]))
    with (tmp_path / "other.weights").open("wb") as file:
        np.savez_compressed(file, **{name.replace(".", "/"): one for name, one in own.items()})
    np.save(tmp_path / "alone.npy", own["rnn.weight_ih_l0"])
    for path in (tmp_path / "w.npz", tmp_path / "other.weights"):
        found = read(path)
        assert set(found) == set(own)
        for name, one in own.items():
            np.testing.assert_array_equal(found[name].numpy(), one)
    np.testing.assert_array_equal(read(tmp_path / "alone.npy")["alone"].numpy(), own["rnn.weight_ih_l0"])
    x = np.random.default_rng(1).normal(size=(T, W))
    with inspector.run(str(tmp_path / "w.npz"), x.astype("f8")) as capture:
        h, known = np.zeros(U), []
        for row in x.astype("f8"):
            h = np.tanh(own["rnn.weight_ih_l0"].astype("f8") @ row + own["rnn.weight_hh_l0"].astype("f8") @ h)
            known.append(h)
        np.testing.assert_allclose(capture.array("rnn.l0:h"), np.array(known), atol=1e-6)


def test_objects_and_bombs_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "objects.npz", a=np.array([{"a": 1}], dtype=object))
    with pytest.raises(InputError, match="never unpickled"):
        read(tmp_path / "objects.npz")
    np.savez_compressed(tmp_path / "bomb.npz", a=np.zeros(40_000_000, np.int8), b=np.zeros(40_000_000, np.int8))
    with pytest.raises(InputError, match="far more than"):
        read(tmp_path / "bomb.npz")
    with zipfile.ZipFile(tmp_path / "twice.npz", "w") as archive:
        for name in ("a/b.npy", "a.b.npy"):
            with archive.open(name, "w") as file:
                np.lib.format.write_array(file, np.zeros(2))
    with pytest.raises(InputError, match=r"two arrays named 'a\.b'"):
        read(tmp_path / "twice.npz")


def test_arrays_of_matlab(tmp_path: Path) -> None:
    own = {name.replace(".", "_"): one for name, one in arrays().items()}
    scipy.io.savemat(tmp_path / "w.mat", {**own, "said": "text", "held": {"a": 1.0}, "flag": np.array([[True]])})
    found = read(tmp_path / "w.mat")
    assert set(found) == {*own, "flag"}
    for name, one in own.items():
        np.testing.assert_array_equal(found[name].numpy(), one)
    (tmp_path / "cut.mat").write_bytes((tmp_path / "w.mat").read_bytes()[:200])
    with pytest.raises(InputError, match=r"cut\.mat is damaged"):
        read(tmp_path / "cut.mat")


def test_weights_of_llama(tmp_path: Path) -> None:
    make = np.random.default_rng(0)
    plain, many = make.normal(size=(3, 5)).astype("f4"), make.normal(size=(4, 64)).astype("f4")
    writer = gguf.GGUFWriter(str(tmp_path / "w.gguf"), "llama")
    writer.add_tensor("blk.0.attn_q.weight", plain)
    writer.add_tensor("half", plain.astype("f2"))
    kind = gguf.GGMLQuantizationType.Q8_0
    writer.add_tensor("many", gguf.quants.quantize(many, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    state = read_checkpoint(tmp_path / "w.gguf")
    assert state.layout == "GGUF, llama"
    np.testing.assert_array_equal(state.tensors["blk.0.attn_q.weight"].numpy(), plain)
    np.testing.assert_array_equal(state.tensors["half"].numpy(), plain.astype("f2"))
    # Q8_0: blocks of 32 with one scale, |w| / 127 of the largest, itself in half precision
    steps = np.abs(many.reshape(4, 2, 32)).max(-1, keepdims=True) / 127
    assert (np.abs(state.tensors["many"].numpy().reshape(4, 2, 32) - many.reshape(4, 2, 32)) <= 0.52 * steps).all()
    (tmp_path / "cut.gguf").write_bytes((tmp_path / "w.gguf").read_bytes()[:150])
    with pytest.raises(InputError, match=r"cut\.gguf is damaged"):
        read(tmp_path / "cut.gguf")


def sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def lstm(x: Array, kernel: Array, recurrent: Array, bias: Array) -> Array:
    """keras.layers.LSTMCell: z = x W + h U + b in the order i, f, c, o."""
    h, c, rows = np.zeros(U), np.zeros(U), []
    for row in x:
        i, f, g, o = np.split(row @ kernel + h @ recurrent + bias, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        rows.append(h)
    return np.array(rows)


def gru(x: Array, kernel: Array, recurrent: Array, bias: Array) -> Array:
    """keras.layers.GRUCell with reset_after: z, r, h; h' = z h + (1 - z) hh."""
    h, rows = np.zeros(U), []
    for row in x:
        given, state = np.split(row @ kernel + bias[0], 3), np.split(h @ recurrent + bias[1], 3)
        z, r = sigmoid(given[0] + state[0]), sigmoid(given[1] + state[1])
        h = z * h + (1 - z) * np.tanh(given[2] + r * state[2])
        rows.append(h)
    return np.array(rows)


def simple(x: Array, kernel: Array, recurrent: Array, bias: Array) -> Array:
    h, rows = np.zeros(U), []
    for row in x:
        h = np.tanh(row @ kernel + bias + h @ recurrent)
        rows.append(h)
    return np.array(rows)


CELLS: dict[str, tuple[Callable[..., Array], int, tuple[int, ...]]] = {
    "LSTM": (lstm, 4, (4 * U,)), "GRU": (gru, 3, (2, 3 * U)), "SimpleRNN": (simple, 1, (U,)),
}  # fmt: skip


def variables(kind: str) -> list[Array]:
    make = np.random.default_rng(2)
    _, gates, bias = CELLS[kind]
    return [make.normal(size=shape).astype("f4") for shape in ((W, gates * U), (U, gates * U), bias)]


def keras_three(path: Path, kind: str, own: list[Array], layers: list[dict[str, Any]] | None, zipped: bool) -> None:
    """A file as Keras 3 writes it: numbered variables below layers/CLASS; the configuration in a .keras beside it."""
    at = path.with_suffix(".weights.h5") if zipped else path
    name = {"LSTM": "lstm", "GRU": "gru", "SimpleRNN": "simple_rnn"}[kind]
    with h5py.File(at, "w") as file:
        for number, one in enumerate(own):
            file[f"layers/{name}/cell/vars/{number}"] = one
        file["layers/dense/vars/0"] = np.ones((U, 2), "f4")
        file["layers/dense/vars/1"] = np.zeros(2, "f4")
        file["layers/elsewhere"] = h5py.ExternalLink("/etc/passwd", "/")
    if zipped:
        with zipfile.ZipFile(path, "w") as archive:
            archive.write(at, "model.weights.h5")
            archive.writestr("config.json", json.dumps({"class_name": "Sequential", "config": {"layers": layers}}))
        at.unlink()


def layer(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"class_name": kind, "config": {"name": name, **more}}


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("kind", CELLS)
def test_recurrent_layers_of_keras(kind: str, zipped: bool, tmp_path: Path) -> None:
    own, x = variables(kind), np.random.default_rng(3).normal(size=(T, W)).astype("f4")
    path = tmp_path / ("model.keras" if zipped else "model.h5")
    keras_three(path, kind, own, [layer(kind, "first_7"), layer("Dense", "last_3", activation="softmax")], zipped)
    with inspector.run(str(path), x) as capture:
        (name,) = [name for name in capture.channels if name.endswith(".l0:h")]
        np.testing.assert_allclose(capture.array(name), CELLS[kind][0](x, *own), atol=1e-6)
        told = next(log.text for log in capture.logs if "rebuilt" in log.text)
        assert ("which the file does not tell" in told) != zipped and "dense: linear 4 → 2" in told


def test_layers_by_their_names_of_keras_two(tmp_path: Path) -> None:
    own, x = variables("GRU"), np.random.default_rng(3).normal(size=(T, W)).astype("f4")
    with h5py.File(tmp_path / "old.h5", "w") as file:
        for key, one in zip(("kernel:0", "recurrent_kernel:0", "bias:0"), own, strict=True):
            file[f"model_weights/gru_5/gru_5/gru_cell/{key}"] = one
        file.attrs["model_config"] = json.dumps({"config": {"layers": [layer("GRU", "gru_5", reset_after=True)]}})
    with inspector.run(str(tmp_path / "old.h5"), x) as capture:
        np.testing.assert_allclose(capture.array("gru_5.l0:h"), gru(x, *own), atol=1e-6)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"recurrent_activation": "hard_sigmoid"}, "its recurrent_activation is 'hard_sigmoid'"),
        ({"activation": "selu"}, "its activation is 'selu'"), ({"go_backwards": True}, "backwards"),
    ],
)  # fmt: skip
def test_layers_that_torch_does_not_have_are_not_run(settings: dict[str, Any], reason: str, tmp_path: Path) -> None:
    path = tmp_path / "model.keras"
    keras_three(path, "LSTM", variables("LSTM"), [layer("LSTM", "a", **settings), layer("Dense", "b")], True)
    with pytest.raises(InputError, match=reason):
        inspector.run(str(path), np.zeros((T, W)))


HARD: dict[str, Callable[[Array], Array]] = {
    "2": lambda x: np.clip(0.2 * x + 0.5, 0, 1), "3": lambda x: np.clip(x / 6 + 0.5, 0, 1),
}  # fmt: skip


@pytest.mark.parametrize("version", HARD)
@pytest.mark.parametrize("after", [False, True])
def test_gates_of_keras_that_torch_does_not_have(after: bool, version: str, tmp_path: Path) -> None:
    """keras.layers.GRUCell: without reset_after the reset gate multiplies the state before the product."""
    own, x = variables("GRU"), np.random.default_rng(3).normal(size=(T, W))
    kernel, recurrent, bias = own[0], own[1], own[2] if after else own[2][0]
    settings = layer("GRU", "g", recurrent_activation="hard_sigmoid", reset_after=after)
    keras_three(tmp_path / "m.h5", "GRU", [kernel, recurrent, bias], None, False)
    with h5py.File(tmp_path / "m.h5", "a") as file:
        file.attrs["model_config"] = json.dumps({"config": {"layers": [settings, layer("Dense", "d")]}})
        file.attrs["keras_version"] = f"{version}.4.1"
    h, known, hard = np.zeros(U), [], HARD[version]
    uz, ur, uh = np.split(recurrent.astype("f8"), 3, axis=1)
    for row in x.astype("f4").astype("f8"):
        xz, xr, xh = np.split(row @ kernel + (bias[0] if after else bias), 3)
        bz, br, bh = np.split(bias[1] if after else np.zeros(3 * U), 3)
        z, r = hard(xz + h @ uz + bz), hard(xr + h @ ur + br)
        candidate = np.tanh(xh + (r * (h @ uh + bh) if after else (r * h) @ uh))
        h = z * h + (1 - z) * candidate
        known.append(h)
    with inspector.run(str(tmp_path / "m.h5"), x.astype("f4")) as capture:
        np.testing.assert_allclose(capture.array("gru:h"), np.array(known), atol=2e-6)
        told = next(log.text for log in capture.logs if "rebuilt" in log.text)
        assert "gru: GRU of Keras 3 → 4 (activation tanh, recurrent_activation hard_sigmoid" in told


def test_a_gru_without_biases_or_configuration_is_not_run(tmp_path: Path) -> None:
    keras_three(tmp_path / "m.h5", "GRU", variables("GRU")[:2], None, False)
    with pytest.raises(InputError, match="no configuration says where its reset gate is"):
        inspector.run(str(tmp_path / "m.h5"), np.zeros((T, W)))


def test_an_lstm_with_relu_is_run_as_keras_has_it(tmp_path: Path) -> None:
    own, x = [one / 2 for one in variables("LSTM")], np.random.default_rng(3).normal(size=(T, W)).astype("f4")
    keras_three(tmp_path / "m.keras", "LSTM", own, [layer("LSTM", "a", activation="relu"), layer("Dense", "b")], True)
    h, c, known = np.zeros(U), np.zeros(U), []
    for row in x.astype("f8"):
        i, f, g, o = np.split(row @ own[0] + h @ own[1] + own[2], 4)
        c = sigmoid(f) * c + sigmoid(i) * np.maximum(g, 0)
        h = sigmoid(o) * np.maximum(c, 0)
        known.append(h)
    with inspector.run(str(tmp_path / "m.keras"), x) as capture:
        np.testing.assert_allclose(capture.array("lstm:h"), np.array(known), atol=1e-5, rtol=1e-5)


def test_nothing_is_run_behind_a_layer_that_is_not_rebuilt(tmp_path: Path) -> None:
    path, own = tmp_path / "model.keras", variables("SimpleRNN")
    keras_three(
        path, "SimpleRNN", own,
        [layer("SimpleRNN", "a", activation="relu"), layer("LayerNormalization", "n"), layer("Dense", "b")], True,
    )  # fmt: skip
    x = np.random.default_rng(3).normal(size=(T, W)).astype("f4")
    with inspector.run(str(path), x) as capture:
        told = next(log.text for log in capture.logs if "rebuilt" in log.text)
        assert (
            "n (LayerNormalization) is not rebuilt; from there on nothing is run" in told
            and "dense: linear" not in told
        )
        h, known = np.zeros(U), []
        for row in x.astype("f8"):
            h = np.maximum(row @ own[0] + own[2] + h @ own[1], 0)
            known.append(h)
        np.testing.assert_allclose(capture.array("simple_rnn.l0:h"), np.array(known), rtol=1e-5, atol=1e-5)


def test_damaged_files_and_missing_libraries_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keras_three(tmp_path / "whole.h5", "LSTM", variables("LSTM"), None, False)
    (tmp_path / "cut.h5").write_bytes((tmp_path / "whole.h5").read_bytes()[:600])
    with pytest.raises(InputError, match=r"cut\.h5 is damaged or no Keras file"):
        read(tmp_path / "cut.h5")
    with h5py.File(tmp_path / "bomb.h5", "w") as file:
        file.create_dataset("layers/dense/vars/0", shape=(1 << 20, 1 << 20), chunks=(1, 1024), dtype="f4")
    with pytest.raises(InputError, match="far more memory"):
        read(tmp_path / "bomb.h5")
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)
    with pytest.raises(InputError, match=r"needs h5py to be read: pip install 'sequence-inspector\[formats\]'"):
        read(tmp_path / "whole.h5")


def test_a_state_dict_of_torch_is_still_one(tmp_path: Path) -> None:
    torch.save(nn.GRU(W, U).state_dict(), tmp_path / "w.pt")
    assert set(read(tmp_path / "w.pt")) == set(nn.GRU(W, U).state_dict())


def test_a_reader_that_dies_takes_nothing_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """scipy's reader ends its process at some damaged files."""
    scipy.io.savemat(tmp_path / "w.mat", {"a": np.ones((2, 2))})
    monkeypatch.setattr("inspector.engine.model.matlab_child.SCRIPT", "import os; os.kill(os.getpid(), 9)")
    with pytest.raises(InputError, match="the reader of scipy ended at it"):
        read(tmp_path / "w.mat")


@pytest.mark.parametrize(
    ("header", "why"),
    [
        ("{B'descr': '<f8', 'fortran_order': False, 'shape': (0, 3), }", "its header is damaged"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': open('x'), }", "its header is code"),
    ],
)
def test_headers_that_are_no_dictionary_of_literals_are_refused(tmp_path: Path, header: str, why: str) -> None:
    """The first has keys of two types, which cannot be sorted; the second was quoted as "<ast.Call object at 0x…>"."""
    text = header.ljust(117) + "\n"
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode())
    with pytest.raises(InputError, match=re.escape(why)) as refused:
        read(tmp_path / "a.npy")
    assert "0x" not in str(refused.value)
