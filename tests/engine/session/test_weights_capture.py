"""A capture of weights against numpy's reading of the same file, in plain double precision."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from safetensors.torch import save_file
from torch import nn

from inspector.analysis.weights import (
    effective_rank,
    norms,
    singular_values,
    spectrum_sentence,
    stable_rank,
    weight_list,
)
from inspector.capture import Capture, open_capture
from inspector.engine.session.service import Service
from inspector.records import Analyse, Failure, InputSpec, Load, Run
from inspector.records import weights as layout


def capture_of(tmp_path: Path, first: Path, second: Path | None = None, *, tensors: Any = "always") -> Capture:
    """The capture of one file or two."""
    answers: list[Any] = []
    service = Service(answers.append)
    service.serve(Load(subject=str(first), tensors=tensors))
    path = tmp_path / f"{first.stem}-{second.stem if second else ''}.inspect"
    service.serve(Run(path=str(path), input=InputSpec(kind="weights", value=str(second or ""))))
    failed = [one.message for one in answers if isinstance(one, Failure)]
    assert not failed, failed
    return open_capture(path)


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    """Two files: a recurrent layer, a convolution, a matrix that only one of each has, one of another shape."""
    torch.manual_seed(0)
    first = {f"rnn.{name}": one for name, one in nn.LSTM(5, 4).state_dict().items()}
    first |= {"conv": torch.randn(3, 2, 5, 5), "same": torch.randn(6), "only": torch.ones(2), "shape": torch.ones(2, 3)}
    second = {name: one + 0.1 * torch.randn_like(one) for name, one in first.items() if name != "only"}
    second |= {"same": first["same"], "new": torch.zeros(3), "shape": torch.ones(3, 2)}
    save_file(first, tmp_path / "first.safetensors")
    save_file(second, tmp_path / "second.safetensors")
    return tmp_path / "first.safetensors", tmp_path / "second.safetensors"


def test_the_list_has_the_numbers_of_the_file(two: tuple[Path, Path], tmp_path: Path) -> None:
    own = load_file(two[0])
    with capture_of(tmp_path, two[0]) as capture:
        found = weight_list(capture, 0)
        assert found is not None and found.files == ("first.safetensors",)
        whole = [number for number, part in enumerate(found.parts) if not part.gate]
        assert {found.parts[number].name for number in whole} == set(own) and len(whole) == len(own)
        for number in whole:
            part, values = found.parts[number], own[found.parts[number].name].astype(np.float64)
            assert layout.shape_of(part.shapes[0]) == values.shape and part.types == ("float32",)
            wanted = [values.size, 0, 0, (values == 0).sum(), values.min(), values.max(), values.mean(), values.std(),
                      np.linalg.norm(values.ravel())]  # fmt: skip
            np.testing.assert_allclose(found.tables[0][number], wanted, rtol=1e-12, atol=1e-15)
            if values.max() > values.min():
                bins = np.histogram(values, 32, (values.min(), values.max()))[0]
                assert found.histograms[0][number].sum() == values.size
                assert (
                    np.abs(found.histograms[0][number] - bins).sum() <= 2
                )  # a value on an edge may fall on either side
            stored = capture.array(layout.channel_of(f"{part.name}:{layout.VALUES}"), 0)
            np.testing.assert_array_equal(stored, own[part.name])


def test_gates_are_the_blocks_of_rows(two: tuple[Path, Path], tmp_path: Path) -> None:
    own = load_file(two[0])
    with capture_of(tmp_path, two[0]) as capture:
        found = weight_list(capture, 0)
        assert found is not None
        gates = [part for part in found.parts if part.gate and part.name == "rnn.weight_ih_l0"]
        assert [(part.gate, part.order, part.block) for part in gates] == [
            ("input", "torch", (0, 0, 4)), ("forget", "torch", (0, 4, 8)), ("cell", "torch", (0, 8, 12)),
            ("output", "torch", (0, 12, 16)),
        ]  # fmt: skip
        forget = next(number for number, part in enumerate(found.parts) if part is gates[1])
        block = own["rnn.weight_ih_l0"][4:8].astype(np.float64)
        assert math.isclose(found.number(forget, "norm"), np.linalg.norm(block), rel_tol=1e-12)


def test_two_files_are_compared_as_vectors(two: tuple[Path, Path], tmp_path: Path) -> None:
    one, other = load_file(two[0]), load_file(two[1])
    with capture_of(tmp_path, *two) as capture:
        found = weight_list(capture, 0)
        assert found is not None
        there = {part.name: part.there for part in found.parts if not part.gate}
        assert there["only"] == (True, False) and there["new"] == (False, True) and there["same"] == (True, True)
        compared = 0
        for number, part in enumerate(found.parts):
            if part.gate or part.name in ("only", "new", "shape"):
                continue
            a, b = one[part.name].astype(np.float64).ravel(), other[part.name].astype(np.float64).ravel()
            moved = b - a
            wanted = [np.linalg.norm(moved) / np.linalg.norm(a), np.linalg.norm(b) / np.linalg.norm(a),
                      a @ b / np.linalg.norm(a) / np.linalg.norm(b), np.abs(moved).max(), np.linalg.norm(moved), 0,
                      float((a == b).all())]  # fmt: skip
            assert found.compared is not None
            np.testing.assert_allclose(found.compared[number, :7], wanted, rtol=1e-10, atol=1e-14)
            if moved.any():
                assert int(found.difference(number, "at")) == int(np.abs(moved).argmax())
            compared += 1
        assert compared == 6
        shape = next(number for number, part in enumerate(found.parts) if part.name == "shape")
        assert math.isnan(found.difference(shape, "equal"))


def test_keras_and_onnx_have_their_own_orders(tmp_path: Path) -> None:
    u, i = 3, 2
    rng = np.random.default_rng(0)
    arrays = {
        "lstm/kernel": rng.standard_normal((i, 4 * u)), "lstm/recurrent_kernel": rng.standard_normal((u, 4 * u)),
        "lstm/bias": rng.standard_normal(4 * u), "gru/recurrent_kernel": rng.standard_normal((u, 3 * u)),
        "gru/bias": rng.standard_normal((2, 3 * u)), "dense/kernel": rng.standard_normal((4, 4)),
        "x.W": rng.standard_normal((2, 4 * u, i)), "x.R": rng.standard_normal((2, 4 * u, u)),
        "x.B": rng.standard_normal((2, 8 * u)), "y.R": rng.standard_normal((1, 3 * u, u)),
    }  # fmt: skip
    np.savez(tmp_path / "w.npz", **arrays)
    with capture_of(tmp_path, tmp_path / "w.npz") as capture:
        found = weight_list(capture, 0)
        assert found is not None
        told = {name: [part.gate for part in found.parts if part.gate and part.name == name] for name in
                ("lstm.kernel", "gru.bias", "dense.kernel", "x.W", "x.B", "y.R")}  # fmt: skip
        assert told["lstm.kernel"] == ["input", "forget", "cell", "output"]
        assert told["gru.bias"] == ["update", "reset", "new"] and told["dense.kernel"] == []
        assert told["x.W"] == ["input", "output", "forget", "cell"] and told["y.R"] == []  # without W it is not known
        assert told["x.B"] == [f"{gate}, of {of}" for of in "WR" for gate in told["x.W"]]
        cell = next(n for n, part in enumerate(found.parts) if (part.name, part.gate) == ("x.W", "cell"))
        assert math.isclose(found.number(cell, "norm"), np.linalg.norm(arrays["x.W"][:, 3 * u :]), rel_tol=1e-12)
        new = next(n for n, part in enumerate(found.parts) if (part.name, part.gate) == ("gru.bias", "reset"))
        assert math.isclose(found.number(new, "norm"), np.linalg.norm(arrays["gru/bias"][:, u : 2 * u]), rel_tol=1e-12)


ODD = {
    "scalar": torch.tensor(3.5), "empty": torch.zeros(0, 7), "holes": torch.tensor([[1.0, math.nan], [-math.inf, -2]]),
    "int8": torch.arange(-8, 8, dtype=torch.int8), "bf16": torch.linspace(-3, 3, 12).bfloat16(),
    "f8": torch.linspace(-3, 3, 12).to(torch.float8_e4m3fn), "bool": torch.tensor([True, False]),
    "long": torch.tensor([2**62 + 1]), "f64": torch.tensor([1e300, -1e300], dtype=torch.float64),
    "complex": torch.tensor([3 + 4j]), "<b>x</b>": torch.ones(1), "\u202eevil": torch.ones(1), "": torch.ones(1),
    "a..b": torch.ones(1), "n" * 2_000: torch.ones(1),
}  # fmt: skip


def test_tensors_of_every_kind(tmp_path: Path) -> None:
    torch.save(ODD, tmp_path / "odd.pt")
    with capture_of(tmp_path, tmp_path / "odd.pt", tensors="if needed") as capture:
        found = weight_list(capture, 0)
        assert found is not None and [part.name for part in found.parts] == list(ODD)
        at = {part.name: number for number, part in enumerate(found.parts)}
        assert found.parts[at["scalar"]].shapes == ("",) and found.number(at["scalar"], "norm") == 3.5
        assert found.number(at["empty"], "count") == 0 and math.isnan(found.number(at["empty"], "norm"))
        assert [found.number(at["holes"], what) for what in ("nan", "inf", "min", "max")] == [1, 1, -2, 1]
        assert found.number(at["complex"], "norm") == 5
        assert math.isclose(found.number(at["f64"], "norm"), math.sqrt(2) * 1e300, rel_tol=1e-12)
        for name in ("bf16", "f8"):
            stored = capture.array(layout.channel_of(f"{name}:{layout.VALUES}"), 0)
            np.testing.assert_array_equal(stored, ODD[name].to(torch.float64).numpy())
        assert int(capture.array(f"long:{layout.VALUES}", 0)[0]) == 2**62 + 1


def test_a_large_tensor_has_a_picture_until_its_values_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inspector.engine.session.weights.run.MOST_EACH", 1_000)
    torch.manual_seed(0)
    values = torch.randn(1500, 700)
    values[3, 5] = math.nan
    save_file({"large": values, "small": torch.ones(3)}, tmp_path / "w.safetensors")
    answers: list[Any] = []
    service = Service(answers.append)
    service.serve(Load(subject=str(tmp_path / "w.safetensors"), tensors="always"))
    path = str(tmp_path / "w.inspect")
    service.serve(Run(path=path, input=InputSpec(kind="weights")))
    with open_capture(path) as capture:
        assert f"large:{layout.VALUES}" not in capture.channels
        cells = capture.array(f"large:{layout.CELLS}", 0)
        assert cells.shape == (500, 350)  # cells of 3 × 2
        grid = values.numpy().reshape(500, 3, 350, 2)
        farthest = np.where(-grid.min((1, 3)) > grid.max((1, 3)), grid.min((1, 3)), grid.max((1, 3)))
        np.testing.assert_array_equal(cells, farthest)
        assert math.isnan(cells[1, 2])
    service.serve(Analyse(path=path, quantities=(f"{layout.MORE}@0",)))
    with open_capture(path) as capture:
        np.testing.assert_array_equal(capture.array(f"large:{layout.VALUES}", 0), values.numpy())
    service.serve(Analyse(path=path, quantities=(f"{layout.MORE}@99",)))
    assert isinstance(answers[-1], Failure) and "weights/values@NUMBER" in answers[-1].message


def test_what_nothing_runs_says_so(two: tuple[Path, Path], tmp_path: Path) -> None:
    save_file({"w": torch.ones(2, 2)}, tmp_path / "w.safetensors")
    answers: list[Any] = []
    service = Service(answers.append)
    service.serve(Load(subject=str(tmp_path / "w.safetensors"), tensors="if needed"))
    assert answers[-1].kind == "weights"
    service.serve(Run(path=str(tmp_path / "x.inspect")))
    assert isinstance(answers[-1], Failure) and "no recurrent layers of torch's by name" in answers[-1].message
    assert not (tmp_path / "x.inspect").exists()
    service.serve(Load(subject=str(tmp_path / "w.safetensors")))  # as the command line asks for it
    assert isinstance(answers[-1], Failure)


def test_the_weights_of_a_model_are_those_that_it_has(tmp_path: Path) -> None:
    answers: list[Any] = []
    service = Service(answers.append)
    service.serve(Load(subject="char-gru"))
    service.serve(Run(path=str(tmp_path / "x.inspect"), input=InputSpec(kind="weights")))
    assert service.opened is not None
    with open_capture(tmp_path / "x.inspect") as capture:
        found = weight_list(capture, 0)
        assert found is not None
        own = service.opened.subject.model.state_dict()
        assert {part.name for part in found.parts if not part.gate} == set(own)
        gru = next(number for number, part in enumerate(found.parts) if part.name.endswith("weight_hh_l0"))
        norm = float(own[found.parts[gru].name].double().norm())
        assert math.isclose(found.number(gru, "norm"), norm, rel_tol=1e-12)


def test_what_a_matrix_spans() -> None:
    rng = np.random.default_rng(0)
    left, right = np.linalg.qr(rng.standard_normal((8, 8)))[0], np.linalg.qr(rng.standard_normal((5, 5)))[0]
    sigma = np.array([4.0, 4.0, 2.0, 1.0, 0.0])
    matrix = left[:, :5] * sigma @ right
    found = singular_values(matrix)
    np.testing.assert_allclose(found, sigma, atol=1e-12)
    shares = sigma[:4] / sigma.sum()
    assert math.isclose(effective_rank(found), math.exp(-sum(p * math.log(p) for p in shares)), rel_tol=1e-6)
    assert math.isclose(stable_rank(found), np.linalg.norm(matrix) ** 2 / 16, rel_tol=1e-12)
    assert math.isclose(effective_rank(np.ones(7)), 7, rel_tol=1e-12) and effective_rank(np.zeros(3)) == 0
    np.testing.assert_allclose(singular_values(matrix * 1e300), sigma * 1e300, rtol=1e-12, atol=1e288)
    assert "effective rank 7.0 of 7" in spectrum_sentence(np.ones(7))
    rows, columns, left_out = norms(np.array([[3.0, np.nan], [4e200, 1e200]]))
    np.testing.assert_allclose(rows, [3, math.hypot(4, 1) * 1e200])
    np.testing.assert_allclose(columns, [4e200, 1e200])
    assert left_out == 1
