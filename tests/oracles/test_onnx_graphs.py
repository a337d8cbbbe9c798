"""Whole graphs of ONNX, as torch exports them and written here, against onnxruntime; and files that are hostile."""

from __future__ import annotations

import importlib
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

import inspector  # noqa: E402
from inspector.engine.errors import InputError  # noqa: E402
from inspector.engine.model.batch import Batch  # noqa: E402
from inspector.engine.opening.open_subject import open_subject  # noqa: E402
from inspector.records import Load  # noqa: E402
from tests.support.onnx_graphs import STEPS as NODE_STEPS  # noqa: E402
from tests.support.onnx_graphs import graph, saved  # noqa: E402
from tests.support.programs import LAYERS, STEPS, TOKENS, WIDTH, Attends, ByHand, Tagger, ids, made, numbers  # noqa: E402

helper, numpy_helper = onnx.helper, onnx.numpy_helper


def exported(model: nn.Module, x: torch.Tensor, path: Path, *, free: bool = True) -> Path:
    """The file that torch.onnx writes; lengths are free where the model allows it."""
    axes = {"x": {0: "batch", 1: "steps"}} if free else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, (x,), path, dynamo=False, input_names=["x"], output_names=["y"], dynamic_axes=axes)
    return path


def subject_of(path: Path) -> Any:
    return open_subject(Load(subject=str(path))).subject


def by_onnxruntime(path: Path, x: torch.Tensor) -> np.ndarray:
    session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    found: np.ndarray = session.run(None, {session.get_inputs()[0].name: x.numpy()})[0]
    return found


@pytest.mark.parametrize("layer", [name for name in LAYERS if name != "projected"])
def test_layers_of_torch_come_back(layer: str, tmp_path: Path) -> None:
    model = made(Tagger(layer))
    path = exported(model, numbers(), tmp_path / "m.onnx")
    x = torch.randn(2, 14, WIDTH)
    subject = subject_of(path)
    with torch.no_grad():
        output = subject.run(Batch(inputs=x, lengths=torch.tensor([14, 14])))
    np.testing.assert_allclose(output.numpy(), by_onnxruntime(path, x), rtol=2e-5, atol=2e-6)
    with (
        inspector.run(str(path), x[0], out=tmp_path / "a.inspect") as capture,
        inspector.run(model, x[0], out=tmp_path / "b.inspect") as own,
    ):
        ours = {name: name.replace("rnn.", f"rnn.{type(model.rnn).__name__.lower()}.", 1) for name in own.channels
                if name.startswith("rnn.l0") and ("gate" in name or name.endswith(":h")) and name.count("/") < 2}  # fmt: skip
        assert ours
        for name, other in ours.items():
            np.testing.assert_allclose(capture.array(other), own.array(name), rtol=1e-5, atol=1e-6)


def test_gradients_are_those_of_the_module(tmp_path: Path) -> None:
    model = made(Tagger("lstm"))
    subject = subject_of(exported(model, numbers(), tmp_path / "m.onnx"))
    x = numbers().requires_grad_()
    subject.run(Batch(inputs=x, lengths=torch.tensor([STEPS]))).square().sum().backward()
    assert x.grad is not None
    ours = x.grad.clone()
    x.grad = None
    model(x).square().sum().backward()
    torch.testing.assert_close(ours, x.grad, rtol=1e-4, atol=1e-5)


def test_a_loop_that_was_written_out_is_a_recurrence(tmp_path: Path) -> None:
    model = made(ByHand())
    path = exported(model, numbers(), tmp_path / "m.onnx", free=False)
    with inspector.run(str(path), numbers()[0], out=tmp_path / "a.inspect") as capture:
        states = next(name for name in capture.channels if name.startswith("model:add") and "/" not in name)
        np.testing.assert_allclose(capture.array(states), by_onnxruntime(path, numbers())[0], rtol=1e-5, atol=1e-6)
        assert "model:jacobian/spectral_norm" in capture.channels and "model:gate/sigmoid" in capture.channels


def test_attention_is_seen(tmp_path: Path) -> None:
    path = exported(made(Attends()), ids(), tmp_path / "m.onnx")
    x = torch.randint(TOKENS, (13,))
    with inspector.run(str(path), x, out=tmp_path / "a.inspect") as capture:
        assert sum(name.endswith(":attention") for name in capture.channels) == 2
        assert "output:surprise" in capture.channels
    with torch.no_grad():
        output = subject_of(path).run(Batch(inputs=x[None], lengths=torch.tensor([13])))
    np.testing.assert_allclose(output.numpy(), by_onnxruntime(path, x[None]), rtol=2e-5, atol=2e-6)


def of_nodes(*nodes: Any, held: Any = (), steps: Any = "steps", outputs: tuple[str, ...] = ("y",)) -> Any:
    """A graph from x (1, steps, i)."""
    given = [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, steps, WIDTH])]
    made = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in outputs]
    body = helper.make_graph(list(nodes), "graph", given, made, list(held))
    return helper.make_model(body, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def test_what_has_no_translation_is_left_to_onnxruntime_and_said(tmp_path: Path) -> None:
    model = of_nodes(
        helper.make_node("Tanh", ["x"], ["a"]), helper.make_node("MeanVarianceNormalization", ["a"], ["b"], axes=[2]),
        helper.make_node("Sigmoid", ["b"], ["y"]),
    )  # fmt: skip
    path = saved(model, tmp_path / "m.onnx")
    subject = subject_of(path)
    assert (
        "MeanVarianceNormalization is computed by onnxruntime, since it has no translation here; no gradient"
        in subject.rebuilt
    )
    with torch.no_grad():
        output = subject.run(Batch(inputs=numbers(), lengths=torch.tensor([STEPS])))
    np.testing.assert_allclose(output.numpy(), by_onnxruntime(path, numbers()), rtol=1e-5, atol=1e-6)


def test_control_flow_is_said(tmp_path: Path) -> None:
    body = helper.make_graph(
        [helper.make_node("Add", ["h", "row"], ["sum"]), helper.make_node("Tanh", ["sum"], ["new"]),
         helper.make_node("Identity", ["new"], ["out"])], "body",
        [helper.make_tensor_value_info("h", 1, [1, WIDTH]), helper.make_tensor_value_info("row", 1, [1, WIDTH])],
        [helper.make_tensor_value_info("new", 1, [1, WIDTH]), helper.make_tensor_value_info("out", 1, [1, WIDTH])],
    )  # fmt: skip
    zero = numpy_helper.from_array(np.zeros((1, WIDTH), np.float32), "zero")
    node = helper.make_node(
        "Scan", ["zero", "x"], ["last", "y"], num_scan_inputs=1, body=body, scan_input_axes=[1], scan_output_axes=[1]
    )
    path = saved(of_nodes(node, held=[zero]), tmp_path / "m.onnx")
    subject = subject_of(path)
    assert "Scan is computed by onnxruntime, since its steps stay inside it" in subject.rebuilt
    with torch.no_grad():
        output = subject.run(Batch(inputs=numbers(), lengths=torch.tensor([STEPS])))
    np.testing.assert_allclose(output.numpy(), by_onnxruntime(path, numbers()), rtol=1e-5, atol=1e-6)


def test_a_length_that_is_fixed_is_refused_in_a_sentence(tmp_path: Path) -> None:
    subject = subject_of(saved(graph("GRU"), tmp_path / "m.onnx"))
    with pytest.raises(InputError, match=rf"takes exactly {NODE_STEPS} steps on axis 0 of x, and 5 were given"):
        subject.run(Batch(inputs=torch.zeros(1, 5, WIDTH), lengths=torch.tensor([5])))


def external(location: str, folder: Path, *, length: int | None = None) -> Path:
    """A graph whose W lies in a file beside it."""
    model = graph("RNN")
    tensor = next(one for one in model.graph.initializer if one.name == "W")
    data = tensor.raw_data
    (folder / "w.bin").write_bytes(data)
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (
        ("location", location),
        ("offset", "0"),
        ("length", str(len(data) if length is None else length)),
    ):
        tensor.external_data.add(key=key, value=value)
    return saved(model, folder / "m.onnx")


def test_tensors_in_a_file_beside_it_are_read(tmp_path: Path) -> None:
    assert "rnn.rnn: RNN 3 → 4" in subject_of(external("w.bin", tmp_path)).rebuilt


@pytest.mark.parametrize("location", ["../w.bin", "/etc/passwd", "link", "", "w\0.bin"])
def test_files_elsewhere_are_not(location: str, tmp_path: Path) -> None:
    folder = tmp_path / "inside"
    folder.mkdir()
    (tmp_path / "w.bin").write_bytes(b"\0" * 1000)
    (folder / "link").symlink_to(tmp_path / "w.bin")
    with pytest.raises(InputError, match="lies outside the folder of the graph"):
        subject_of(external(location, folder))


@pytest.mark.parametrize(("length", "said"), [(1 << 60, "is not in w.bin"), (7, "is not in w.bin")])
def test_a_file_beside_it_that_is_too_short(length: int, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        subject_of(external("w.bin", tmp_path, length=length))


def test_a_tensor_that_claims_more_than_the_file_holds(tmp_path: Path) -> None:
    model = graph("RNN")
    model.graph.initializer[0].dims[0] = 1 << 50
    with pytest.raises(InputError, match=r"tensor W has \d+ bytes, where \d+ would fit"):
        subject_of(saved(model, tmp_path / "m.onnx"))
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    with pytest.raises(InputError, match="claims far more numbers than the file holds"):
        subject_of(saved(model, tmp_path / "m.onnx"))


@pytest.mark.parametrize("cut", [0.1, 0.5, 0.9, 0.999])
def test_a_file_that_is_cut_is_one_sentence(cut: float, tmp_path: Path) -> None:
    path = saved(graph("LSTM"), tmp_path / "m.onnx")
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * cut)])
    with pytest.raises(InputError) as told:
        subject_of(path)
    assert "\n" not in str(told.value) and len(str(told.value)) < 400


def test_without_the_library_it_is_said_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(graph("LSTM"), tmp_path / "m.onnx")

    def missing(name: str, *_: Any) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(InputError, match=r"pip install 'sequence-inspector\[onnx\]'"):
        subject_of(path)


def test_a_length_that_is_said_to_be_free_and_is_not(tmp_path: Path) -> None:
    """torch's export of nn.MultiheadAttention has the length of its example in a reshape."""
    path = exported(made(Multihead()), ids(), tmp_path / "m.onnx")
    subject = subject_of(path)
    assert f"Its input x is any × {STEPS}" in subject.rebuilt
    with torch.no_grad():
        output = subject.run(Batch(inputs=ids(), lengths=torch.tensor([STEPS])))
    np.testing.assert_allclose(output.numpy(), by_onnxruntime(path, ids()), rtol=2e-5, atol=2e-6)


class Multihead(nn.Module):
    """Attention of several heads."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.inner, self.norm = (
            nn.Embedding(TOKENS, 8),
            nn.MultiheadAttention(8, 2, batch_first=True),
            nn.LayerNorm(8),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(b, t) → (b, t, 8)."""
        y = self.table(x)
        return self.norm(y + self.inner(y, y, y)[0])  # type: ignore[no-any-return]


def test_weights_that_an_export_names_once_stay_weights(tmp_path: Path) -> None:
    """Equal weights are one tensor and copies of it: norms in them are still torch's."""

    class Norms(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.two(torch.tanh(self.one(x)))  # type: ignore[no-any-return]

    assert "onnxruntime, since" not in subject_of(exported(Norms().eval(), numbers(), tmp_path / "m.onnx")).rebuilt
