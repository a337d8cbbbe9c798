"""What changed from one checkpoint to another: against numpy, from files with and without prefixes, and in one line."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from commands import call
from safetensors.torch import save_file

from inspector.engine.errors import InputError
from inspector.engine.session.parameter_changes import parameter_changes
from inspector.records import CompareCheckpoints, ParameterChange, ParameterChanges, decode, encode


def tensors(seed: int) -> dict[str, torch.Tensor]:
    made = torch.Generator().manual_seed(seed)
    return {
        "rnn.weight": torch.randn(4, 3, generator=made), "head.bias": torch.randn(5, generator=made).to(torch.float16),
        "steps": torch.tensor([seed]), "fixed": torch.ones(2),
    }  # fmt: skip


def test_norms_of_changes_are_those_of_numpy_the_largest_first(tmp_path: Path) -> None:
    a, b = tensors(1), tensors(2)
    save_file(a, tmp_path / "a.safetensors")
    torch.save({"model": b, "step": 20}, tmp_path / "b.pt")
    found = parameter_changes(tmp_path / "a.safetensors", tmp_path / "b.pt")
    by_name = {one.name: one for one in found.changes}
    for name in a:
        first, second = a[name].double().numpy(), b[name].double().numpy()
        one, size = by_name[name], np.linalg.norm(second - first)
        assert one.change == pytest.approx(size, rel=1e-12) and one.first == pytest.approx(np.linalg.norm(first))
        assert one.relative == pytest.approx(size / np.linalg.norm(first), rel=1e-12)
        assert one.largest == np.abs(second - first).max() and one.elements == first.size
    sizes = [one.relative for one in found.changes]
    assert sizes == sorted(sizes, reverse=True) and found.changes[-1].name == "fixed" and found.steps == (-1, 20)


def test_prefixes_of_wrappers_shapes_and_names_of_one_side(tmp_path: Path) -> None:
    torch.save({"w": torch.zeros(3), "v": torch.ones(2), "gone": torch.ones(1)}, tmp_path / "a.pt")
    torch.save({"module.w": torch.ones(3), "module.v": torch.ones(4), "module.new": torch.ones(1)}, tmp_path / "b.pt")
    found = {one.name: one for one in parameter_changes(tmp_path / "a.pt", tmp_path / "b.pt").changes}
    assert found["w"].relative == math.inf and found["w"].change == pytest.approx(math.sqrt(3))
    assert found["v"].problem == "of shape (2,) in a.pt, (4,) in b.pt"
    assert (found["gone"].problem, found["new"].problem) == ("only a.pt has it", "only b.pt has it")


def test_numbers_that_are_not_finite_come_first(tmp_path: Path) -> None:
    torch.save({"w": torch.ones(3), "v": torch.ones(2)}, tmp_path / "a.pt")
    torch.save({"w": torch.tensor([1.0, math.nan, 1.0]), "v": 9 * torch.ones(2)}, tmp_path / "b.pt")
    found = parameter_changes(tmp_path / "a.pt", tmp_path / "b.pt").changes
    assert found[0].name == "w" and math.isnan(found[0].relative)


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    torch.save({"w": torch.ones(3)}, tmp_path / "a.pt")
    torch.save({"u": torch.ones(3)}, tmp_path / "b.pt")
    with pytest.raises(InputError, match=r"a.pt and b.pt have no tensor in common: w and u"):
        parameter_changes(tmp_path / "a.pt", tmp_path / "b.pt")
    with pytest.raises(InputError, match="There is no checkpoint"):
        parameter_changes(tmp_path / "a.pt", tmp_path / "c.pt")


def test_request_and_answer_travel_as_records() -> None:
    request = CompareCheckpoints(first="a.pt", second="b.pt", generation=3)
    one = ParameterChange(name="w", shape=(2, 3), elements=6, change=math.nan, relative=math.inf)
    answer = ParameterChanges(first="a.pt", second="b.pt", changes=(one,), steps=(1, -1))
    assert decode(encode(request)) == request
    assert repr(decode(encode(answer))) == repr(answer)


def test_the_command_prints_and_writes_them(tmp_path: Path) -> None:
    save_file(tensors(1), tmp_path / "a.safetensors")
    save_file({**tensors(2), "fixed": torch.ones(2)}, tmp_path / "b.safetensors")
    printed = call("compare", "a.safetensors", "b.safetensors", cwd=tmp_path).stdout
    assert "first: a.safetensors\nsecond: b.safetensors\n" in printed
    assert "fixed       equal in every one of 2 numbers" in printed and "steps       relative change 1 (" in printed
    told = json.loads(call("compare", "a.safetensors", "b.safetensors", "--json", cwd=tmp_path).stdout)
    assert {one["name"] for one in told["parameters"]} == set(tensors(1))
    call("compare", "a.safetensors", "b.safetensors", "--out", "p.csv", cwd=tmp_path)
    assert (tmp_path / "p.csv").read_text().startswith("name,relative,change,first,second,largest,elements,problem")
    (tmp_path / "bad.pt").write_bytes(b"no checkpoint at all")
    done = call("compare", "a.safetensors", "bad.pt", cwd=tmp_path, expect=2)
    assert done.stderr.count("\n") == 1
