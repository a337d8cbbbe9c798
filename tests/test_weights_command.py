"""`inspector weights`: tensors of a checkpoint and of two, against numpy in double precision."""

from __future__ import annotations

import json
import venv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from commands import call
from safetensors.torch import save_file
from torch import nn

from inspector.engine.analyses import tensor_statistics
from inspector.engine.analyses.tensor_statistics import difference, summary


def asked(*words: str, cwd: Path) -> Any:
    return json.loads(call("weights", *words, "--json", cwd=cwd).stdout)


@pytest.mark.parametrize("block", [3, 1 << 20])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.int32])
def test_a_summary_is_that_of_numpy(dtype: torch.dtype, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_statistics, "BLOCK", block)
    tensor = (torch.randn(5, 7, generator=torch.Generator().manual_seed(1)) * 9).to(dtype)
    found, numbers = summary(tensor.T), np.array(tensor.tolist(), dtype=np.float64).T
    expected = {"min": numbers.min(), "max": numbers.max(), "mean": numbers.mean(), "std": numbers.std()}
    for key, value in {**expected, "norm": np.linalg.norm(numbers)}.items():
        assert found[key] == pytest.approx(value, rel=1e-12, abs=1e-12), key
    assert found["singular_values"] == pytest.approx(np.linalg.svd(numbers, compute_uv=False), rel=1e-10)
    assert found["histogram"] == np.histogram(numbers, 32)[0].tolist()


@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_squares_of_extreme_numbers_neither_overflow_nor_vanish(scale: float) -> None:
    found = summary(torch.tensor([[3.0, 0.0], [0.0, 4.0]], dtype=torch.float64) * scale)
    assert found["norm"] == pytest.approx(5 * scale)
    assert found["singular_values"] == pytest.approx([4 * scale, 3 * scale])


def test_what_is_not_finite_is_counted_and_left_out() -> None:
    found = summary(torch.tensor([[1.0, float("nan")], [float("-inf"), 3.0]]))
    assert (found["nan"], found["inf"], found["mean"], found["no_spectrum"]) == (1, 1, 2.0, "not finite")
    assert summary(torch.full((2,), float("nan")))["mean"] is None


@pytest.mark.parametrize("shape", [(), (1,), (0,), (2, 0), (1, 2, 3, 2, 2)])
def test_any_number_of_axes_has_a_summary(shape: tuple[int, ...]) -> None:
    found = summary(torch.full(shape, 2.0))
    count = int(np.prod(shape))
    assert found["count"] == count
    assert found["mean"] == (2.0 if count else None)
    assert found["no_spectrum"] == "no matrix"


def test_complex_numbers_are_summed_up_by_magnitude() -> None:
    assert summary(torch.tensor([3 + 4j, 0j]))["max"] == pytest.approx(5.0)


def test_a_difference_names_its_place_and_leaves_out_what_is_not_finite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_statistics, "BLOCK", 2)
    first = torch.tensor([[1.0, 2.0, 2.0], [float("nan"), 4.0, 0.0]])
    second = torch.tensor([[1.0, 2.0, 2.0], [float("nan"), 1.0, float("inf")]])
    found = difference(first, second)
    assert (found["equal"], found["left_out"], found["largest"], found["at"]) == (False, 2, 3.0, [1, 1])
    assert (found["norm"], found["relative"]) == (3.0, pytest.approx(3 / 5))
    assert difference(first, first.clone())["equal"]


def test_large_whole_numbers_that_differ_are_not_equal() -> None:
    assert not difference(torch.tensor([2**53]), torch.tensor([2**53 + 1]))["equal"]


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_gates_of_recurrent_weights_stand_apart(kind: type[nn.RNNBase], tmp_path: Path) -> None:
    model = kind(3, 4)
    torch.save(model.state_dict(), tmp_path / "a.pt")
    entry = next(one for one in asked("a.pt", cwd=tmp_path)["tensors"] if one["name"] == "weight_hh_l0")
    names = ["input", "forget", "cell", "output"] if kind is nn.LSTM else ["reset", "update", "new"]
    rows = np.array(model.weight_hh_l0.tolist())
    assert [one["gate"] for one in entry["gates"]] == names
    for number, one in enumerate(entry["gates"]):
        assert one["norm"] == pytest.approx(np.linalg.norm(rows[4 * number : 4 * number + 4]))
    assert f"    {names[1]:<7} " in call("weights", "a.pt", cwd=tmp_path).stdout


def test_tensors_of_one_memory_are_named(tmp_path: Path) -> None:
    shared = torch.ones(2, 2)
    torch.save({"embedding.weight": shared, "head.weight": shared.detach()}, tmp_path / "a.pt")
    assert [one["same_memory_as"] for one in asked("a.pt", cwd=tmp_path)["tensors"]] == ["", "embedding.weight"]


def test_scalars_empty_tensors_and_many_axes_are_listed(tmp_path: Path) -> None:
    given = {"s": torch.tensor(3), "e": torch.ones(0, 2), "m": torch.ones(1, 2, 1, 2, 1), "h": torch.ones(2).bfloat16()}
    torch.save(given, tmp_path / "a.pt")
    assert call("weights", "a.pt", cwd=tmp_path).stdout.splitlines() == [
        "s  int64 ()  3 … 3, mean 3, std 0, norm 3",
        "e  float32 (0, 2)  no elements",
        "m  float32 (1, 2, 1, 2, 1)  1 … 1, mean 1, std 0, norm 2",
        "h  bfloat16 (2)  1 … 1, mean 1, std 0, norm 1.414",
    ]
    compared = call("weights", "a.pt", "a.pt", cwd=tmp_path)
    assert [line.split()[1] for line in compared.stdout.splitlines()] == ["equal"] * 4


def test_two_files_of_different_formats_are_compared(tmp_path: Path) -> None:
    torch.save({"a": torch.ones(3), "b": torch.ones(2), "c": torch.ones(2), "x": torch.ones(1)}, tmp_path / "1.pt")
    save_file({"a": torch.ones(3), "b": torch.tensor([1.0, 2.0]), "c": torch.ones(3), "y": torch.ones(1)},
              tmp_path / "2.safetensors")  # fmt: skip
    printed = call("weights", "1.pt", "2.safetensors", cwd=tmp_path)
    assert printed.stdout.splitlines() == [
        "a  equal",
        "b  relative norm 0.7071, norm 1, largest 1 at [1]",
        "c  shapes differ: (2) and (3)",
        "x  only in the first",
        "y  only in the second",
    ]
    assert printed.stderr.strip() == "1 of 3 common tensors equal"


def test_unreadable_files_get_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello")
    for name in ("a.txt", "none.pt"):
        assert len(call("weights", name, cwd=tmp_path, expect=2).stderr.strip().splitlines()) == 1


def test_a_folder_is_its_only_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    torch.save({"a": torch.ones(3)}, tmp_path / "run" / "last.pt")
    assert call("weights", "run", cwd=tmp_path).stdout.startswith("a  float32 (3)")
    assert call("weights", "run", "run/last.pt", cwd=tmp_path).stdout.startswith("a  equal")
    torch.save({"a": torch.ones(3)}, tmp_path / "run" / "first.pt")
    said = call("weights", "run", cwd=tmp_path, expect=2).stderr.strip()
    assert "first.pt, last.pt" in said and "\n" not in said


def test_an_interpreter_without_this_package_is_named_in_one_sentence(tmp_path: Path) -> None:
    torch.save({"a": torch.ones(3)}, tmp_path / "a.pt")
    venv.create(tmp_path / "bare", with_pip=False)
    said = call("weights", "a.pt", "--python", str(tmp_path / "bare"), cwd=tmp_path, expect=1).stderr.strip()
    assert " has no " in said and "install" in said and "\n" not in said
