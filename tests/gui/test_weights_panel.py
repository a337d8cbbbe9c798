"""The panel of weights against the file: the list, the map, what stands beside it, two files, slices, hostile names."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from opened import finish, opened
from safetensors.numpy import load_file
from safetensors.torch import save_file
from torch import nn

from inspector.gui.panel.weights.beside import BESIDE
from inspector.gui.panels.weights import DIFFERENCE, Weights
from inspector.gui.window.main_window import Window
from inspector.records import InputSpec


@pytest.fixture
def window(qtbot: object) -> Iterator[Window]:
    with opened(qtbot, process=False, background=False) as made:
        yield made


def shown(window: Window, qtbot: Any, path: Path) -> Weights:
    """The panel of a file that was opened without a model."""
    opened_alone(window, qtbot, path)
    return panel_of(window)


def opened_alone(window: Window, qtbot: Any, path: Path) -> None:
    """A file without a model, and what is run of it."""
    qtbot.waitUntil(lambda: window.session.catalog is not None, timeout=60_000)
    window.open_path(str(path))
    qtbot.waitUntil(lambda: window.session.capture is not None, timeout=60_000)
    finish(window, qtbot)


def panel_of(window: Window) -> Weights:
    """The panel, which draws something."""
    panel = window.panels.made["weights"]
    assert isinstance(panel, Weights) and panel.state == "figure", panel.stack.error.toPlainText()
    return panel


def choose(panel: Weights, name: str, gate: str = "") -> None:
    """The row of a tensor, as the keyboard chooses it."""
    assert panel.found is not None
    number = next(n for n, part in enumerate(panel.found.parts) if (part.name, part.gate) == (name, gate))
    panel.table.chosen.emit(panel.numbers.index(number))
    assert panel.state == "figure", panel.stack.error.toPlainText()
    assert panel.listed is not None and panel.listed.name == name


def cells(panel: Weights) -> Any:
    """What the map draws of all that is in view, at one cell a pixel."""
    assert panel._map is not None
    rows, columns = panel._map.shape
    found, rect = panel._map.look((0, 0, columns, rows), (columns, rows))
    assert rect == (0, 0, columns, rows)
    return found


def test_a_file_that_is_not_rebuilt_is_listed_and_drawn(window: Window, qtbot: Any, tmp_path: Path) -> None:
    torch.manual_seed(0)
    save_file({"a.weight": torch.randn(6, 4), "b": torch.randn(5)}, tmp_path / "w.safetensors")
    own = load_file(tmp_path / "w.safetensors")
    panel = shown(window, qtbot, tmp_path / "w.safetensors")
    assert window.docking.enlarged == "weights" and window.models.dialog is None
    table = panel.table.numbers
    assert [table.names[row] for row in table.order] == list(own)
    headings = list(table.headings)
    norm = [table.cell(row, headings.index("norm")) for row in range(2)]
    assert norm == [f"{np.linalg.norm(one.astype(float)):.4g}" for one in own.values()]
    choose(panel, "a.weight")
    np.testing.assert_array_equal(cells(panel), own["a.weight"])
    for what in BESIDE:
        panel.second.setCurrentText(what)
        assert panel.state == "figure", (what, panel.stack.error.toPlainText())
    panel.second.setCurrentText("singular values")
    (line,) = panel.page.ranks.lines
    sigma = np.linalg.svd(own["a.weight"].astype(float), compute_uv=False)
    np.testing.assert_allclose(10 ** line.getData()[1], sigma, rtol=1e-10)
    panel.second.setCurrentText("norms of columns")
    np.testing.assert_allclose(
        panel.page.beside.lines[0].getData()[1], np.linalg.norm(own["a.weight"].astype(float), axis=0), rtol=1e-12
    )
    choose(panel, "b")
    np.testing.assert_array_equal(panel.page.line.lines[0].getData()[1], own["b"])


def bars(panel: Weights) -> list[tuple[np.ndarray, np.ndarray]]:
    """(edges, heights) of each histogram beside the map."""
    return [(line.xData, line.yData) for line in panel.page.beside.lines]


def test_histograms_have_the_counts_of_numpy(window: Window, qtbot: Any, tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    tensors = {
        "heavy": random.standard_t(3, (40, 50)).astype(np.float32),
        "holes": np.where(random.random((30, 20)) < 0.1, np.nan, random.normal(size=(30, 20))).astype(np.float32),
        "same": np.full((3, 5), -2.0, np.float32),
        "nothing": np.full((2, 2), np.nan, np.float32),
    }
    tensors["holes"][0, :2] = (np.inf, -np.inf)
    np.savez(tmp_path / "w.npz", **tensors)
    panel = shown(window, qtbot, tmp_path / "w.npz")
    panel.second.setCurrentText("histogram")
    for name in ("heavy", "holes"):
        choose(panel, name)
        ((edges, heights),) = bars(panel)
        finite = tensors[name][np.isfinite(tensors[name])].astype(np.float64)
        counts, expected = np.histogram(finite, bins=len(heights))
        np.testing.assert_allclose(edges, expected, rtol=1e-6)
        np.testing.assert_array_equal(heights, counts)
        assert heights.sum() == finite.size
    bad = int((~np.isfinite(tensors["holes"])).sum())
    assert f"{bad} not finite left out" in panel.page.beside.titleLabel.lines[0]
    choose(panel, "same")
    ((edges, heights),) = bars(panel)
    assert list(heights) == [15] and edges[0] < -2 < edges[1], "equal numbers have one bar"
    choose(panel, "nothing")
    assert bars(panel) == []


def test_histograms_of_two_files_and_of_gates_are_densities(window: Window, qtbot: Any, tmp_path: Path) -> None:
    torch.manual_seed(1)
    files = {name: {"w": torch.randn(20, 30) * scale} for name, scale in (("a", 1.0), ("b", 3.0))}
    for name, tensors in files.items():
        save_file(tensors, tmp_path / f"{name}.safetensors")
    opened_alone(window, qtbot, tmp_path / "a.safetensors")
    window.run(InputSpec(kind="weights", value=str(tmp_path / "b.safetensors")))
    finish(window, qtbot)
    panel = panel_of(window)
    choose(panel, "w")
    panel.second.setCurrentText("histogram")
    drawn = bars(panel)
    assert len(drawn) == 2
    for (edges, heights), tensors in zip(drawn, files.values(), strict=True):
        expected, at = np.histogram(tensors["w"].numpy().astype(np.float64), bins=len(heights), density=True)
        np.testing.assert_allclose(edges, at, rtol=1e-6)
        np.testing.assert_allclose(heights, expected, rtol=1e-6)


def test_the_list_is_searched_and_sorted(window: Window, qtbot: Any, tmp_path: Path) -> None:
    scale = {f"layer.{n}.weight": torch.full((3, 3), float((n * 7) % 20)) for n in range(20)}
    save_file(scale, tmp_path / "w.safetensors")
    panel = shown(window, qtbot, tmp_path / "w.safetensors")
    panel.search.setText("LAYER.1 weight")
    names = [panel.table.numbers.names[row] for row in panel.table.numbers.order]
    assert sorted(names) == sorted(name for name in scale if "layer.1" in name)
    panel.search.clear()
    at = list(panel.table.numbers.headings).index("norm")
    panel.table.sorted_by.emit(at)
    norms = [float(scale[panel.table.numbers.names[row]].norm()) for row in panel.table.numbers.order]
    assert norms == sorted(norms, reverse=True)
    panel.search.setText("no such tensor")
    assert not panel.table.numbers.order and panel.state == "figure"


def test_gates_are_rows_of_their_own(window: Window, qtbot: Any, tmp_path: Path) -> None:
    torch.manual_seed(0)
    save_file(dict(nn.GRU(5, 4).state_dict()), tmp_path / "w.safetensors")
    opened_alone(window, qtbot, tmp_path / "w.safetensors")  # rebuilt and run: its weights on demand
    window.weights.look()
    finish(window, qtbot)
    panel = panel_of(window)
    own = load_file(tmp_path / "w.safetensors")["weight_ih_l0"]
    choose(panel, "weight_ih_l0", "update")
    np.testing.assert_array_equal(cells(panel), own[4:8])
    choose(panel, "weight_ih_l0")
    assert [line.value() for line in panel.page.gates] == [-0.5, 3.5, 7.5]
    panel.second.setCurrentText("histogram of each gate")
    drawn = bars(panel)
    assert len(drawn) == 3
    for at, (edges, heights) in zip((0, 4, 8), drawn, strict=True):
        expected, ends = np.histogram(own[at : at + 4].astype(np.float64), bins=len(heights), density=True)
        np.testing.assert_allclose(edges, ends, rtol=1e-6)
        np.testing.assert_allclose(heights, expected, rtol=1e-6)
    panel.gates.setChecked(False)
    assert len(panel.numbers) == 4


def test_gates_of_keras_lie_along_columns(window: Window, qtbot: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    np.savez(
        tmp_path / "w.npz",
        **{"lstm/kernel": rng.standard_normal((2, 12)), "lstm/recurrent_kernel": rng.random((3, 12))},
    )
    panel = shown(window, qtbot, tmp_path / "w.npz")  # no model is open that could read it as a sequence
    choose(panel, "lstm.kernel")
    assert [(line.value(), line.angle) for line in panel.page.gates] == [(at - 0.5, 90) for at in (0, 3, 6, 9)]
    np.save(tmp_path / "v.npy", rng.random((4, 5)))
    window.open_path(str(tmp_path / "v.npy"))
    qtbot.waitUntil(lambda: window.session.subject.endswith("v.npy"), timeout=60_000)
    finish(window, qtbot)
    assert panel_of(window).listed.name == "v"  # type: ignore[union-attr]


def test_two_files_stand_beside_each_other(window: Window, qtbot: Any, tmp_path: Path) -> None:
    torch.manual_seed(0)
    first = {"a": torch.randn(6, 4), "b": torch.randn(3, 3), "c": torch.ones(2)}
    save_file(first, tmp_path / "first.safetensors")
    second = {"a": first["a"], "b": first["b"] * 1.5, "d": torch.ones(2)}
    save_file(second, tmp_path / "second.safetensors")
    opened_alone(window, qtbot, tmp_path / "first.safetensors")
    window.run(InputSpec(kind="weights", value=str(tmp_path / "second.safetensors")))
    finish(window, qtbot)
    panel = panel_of(window)
    table = panel.table.numbers
    told = {table.names[row]: table.cell(row, list(table.headings).index("differs")) for row in table.order}
    assert told == {"a": "equal", "b": "in values", "c": "only in the first", "d": "only in the second"}
    assert table.names[table.order[0]] == "b" and panel.listed is not None and panel.listed.name == "b"
    assert float(table.cell(table.order[0], list(table.headings).index("norm ratio"))) == 1.5
    assert panel.files.currentText() == DIFFERENCE
    np.testing.assert_allclose(cells(panel), 0.5 * first["b"].numpy(), rtol=1e-6)
    panel.files.setCurrentText("second.safetensors")
    np.testing.assert_array_equal(cells(panel), second["b"].numpy())
    choose(panel, "d")
    assert panel.state == "figure"


def test_axes_are_cut_where_there_are_more_than_two(window: Window, qtbot: Any, tmp_path: Path) -> None:
    torch.manual_seed(0)
    values = torch.randn(4, 3, 2, 5, 6)
    save_file({"conv": values}, tmp_path / "w.safetensors")
    panel = shown(window, qtbot, tmp_path / "w.safetensors")
    np.testing.assert_array_equal(cells(panel), values[0, 0, 0].numpy())
    for spin, at in zip(panel.slices.spins, (3, 2, 1), strict=False):
        spin.setValue(at)
    np.testing.assert_array_equal(cells(panel), values[3, 2, 1].numpy())
    panel.slices.axes.setCurrentText("0 × 3")
    assert [spin.value() for spin in panel.slices.spins[:3]] == [2, 1, 1]  # axes 1, 2 and 4 keep what fits them
    np.testing.assert_array_equal(cells(panel), values[:, 2, 1, :, 1].numpy())


def test_tensors_of_every_kind_are_drawn(window: Window, qtbot: Any, tmp_path: Path) -> None:
    kinds = {
        "scalar": torch.tensor(3.5), "empty": torch.zeros(0, 7), "holes": torch.tensor([[1.0, math.nan], [math.inf, 2]]),
        "int8": torch.randint(-8, 8, (5, 4), dtype=torch.int8), "bf16": torch.randn(4, 4).bfloat16(),
        "f8": torch.randn(4, 4).to(torch.float8_e5m2), "bool": torch.rand(4, 4) > 0.5,
        "large": torch.tensor([[1e300, -1e300]], dtype=torch.float64), "long": torch.tensor([2**62 + 1]),
        "<b>bold</b>": torch.ones(2, 2), "\u202egnirts": torch.ones(2, 2), "line\nbreak": torch.ones(2),
        "n" * 2_000: torch.ones(2, 2), "same": torch.full((3, 3), 2.0), "complex": torch.tensor([[3 + 4j]]),
    }  # fmt: skip
    torch.save(kinds, tmp_path / "w.pt")
    panel = shown(window, qtbot, tmp_path / "w.pt")
    for name in kinds:
        choose(panel, name)
        for what in BESIDE:
            panel.second.setCurrentText(what)
            assert panel.state == "figure", (name, what, panel.stack.error.toPlainText())
        panel.grab()
        assert panel.figure.fault == ""
    table = panel.table.numbers
    drawn = [table.data(table.index(row, 0)) for row in range(table.rowCount())]
    assert not any("\u202e" in text or "\n" in text for text in drawn)
    assert any("<b>bold</b>" in text for text in drawn)  # as it is, not as markup


@pytest.mark.parametrize("content", [(10**15).to_bytes(8, "little") + b"{}" * 90, b"\x08\0\0\0\0\0\0\0not json"])
def test_a_damaged_file_is_refused_in_one_line(window: Window, qtbot: Any, content: bytes, tmp_path: Path) -> None:
    (tmp_path / "w.safetensors").write_bytes(content)
    told: list[str] = []
    window.tell = lambda text, details="": told.append(text)  # type: ignore[method-assign]
    qtbot.waitUntil(lambda: window.session.catalog is not None, timeout=60_000)
    window.open_path(str(tmp_path / "w.safetensors"))
    qtbot.waitUntil(lambda: bool(told), timeout=60_000)
    assert len(told) == 1 and "w.safetensors" in told[0] and "\n" not in told[0]
    assert window.session.loaded is None and window.session.capture is None


def test_every_number_of_a_large_tensor_is_asked_for(
    window: Window, qtbot: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inspector.engine.session.weights.run.MOST_EACH", 1_000)
    torch.manual_seed(0)
    values = torch.randn(1200, 30)
    save_file({"large": values}, tmp_path / "w.safetensors")
    panel = shown(window, qtbot, tmp_path / "w.safetensors")
    assert panel._map is not None and panel._map.shape == (1200, 30) and panel._map.source.shape == (400, 30)
    assert panel.ask.isVisibleTo(panel)
    panel.second.setCurrentText("singular values")
    assert not panel.page.ranks.lines  # not of a picture
    panel.ask.click()
    finish(window, qtbot)
    assert panel.state == "figure" and not panel.ask.isVisibleTo(panel)
    np.testing.assert_array_equal(cells(panel), values.numpy())
    (line,) = panel.page.ranks.lines
    sigma = np.linalg.svd(values.double().numpy(), compute_uv=False)
    np.testing.assert_allclose(10 ** line.getData()[1], sigma, rtol=1e-9)
