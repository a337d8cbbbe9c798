"""Gradients through graphs of ONNX: where they come, against finite differences of onnxruntime; where they do not, none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

import inspector  # noqa: E402
from inspector.engine.opening.open_subject import open_subject  # noqa: E402
from inspector.records import Load  # noqa: E402

helper, numpy_helper = onnx.helper, onnx.numpy_helper
STEPS, WIDTH, HIDDEN, TOKENS = 12, 3, 4, 9
FLOAT, INT64 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64


def weights(*shape: int) -> np.ndarray:
    return (np.random.default_rng(sum(shape)).standard_normal(shape) * 0.5).astype(np.float32)


def graph(
    path: Path, nodes: list[Any], held: dict[str, Any], *, opset: int = 17, reads: Any = None, dims: Any = 3
) -> Path:
    """A file with these nodes: x (t, b, i) → y."""
    given = reads or helper.make_tensor_value_info("x", FLOAT, ["t", "b", WIDTH])
    made = helper.make_tensor_value_info("y", FLOAT, [None] * dims)
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in held.items()]
    whole = helper.make_graph(nodes, "graph", [given], [made], tensors)
    onnx.save(helper.make_model(whole, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), path)
    return path


def plain_rnn(name: str, x: str, out: str, width: int) -> tuple[list[Any], dict[str, Any]]:
    held = {
        f"W_{name}": weights(1, HIDDEN, width), f"R_{name}": weights(1, HIDDEN, HIDDEN),
        f"B_{name}": weights(1, 2 * HIDDEN),
    }  # fmt: skip
    node = helper.make_node("RNN", [x, *held], [f"{out}_4"], hidden_size=HIDDEN, name=f"/{name}/RNN")
    return [node, helper.make_node("Squeeze", [f"{out}_4", "one"], [out])], {**held, "one": np.array([1])}


def slopes(path: Path) -> tuple[float, float, str]:
    """(of the module, by differences of onnxruntime) along one direction, and what was rebuilt."""
    subject = open_subject(Load(subject=str(path))).subject
    session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    random = torch.Generator().manual_seed(4)
    x = torch.randn(STEPS, 1, WIDTH, generator=random).requires_grad_()
    (y,) = subject.model(x)
    reading, way = torch.randn(y.shape, generator=random), torch.randn(x.shape, generator=random)
    (y * reading).sum().backward()

    def at(distance: float) -> float:
        (found,) = session.run(None, {"x": (x.detach() + distance * way).numpy()})
        return float((found.astype(np.float64) * reading.numpy()).sum())

    return float((x.grad * way).sum()), (at(4e-3) - at(-4e-3)) / 8e-3, subject.rebuilt


def written(path: Path, kind: str) -> Path:
    """Two steps of three written into zeros, backwards, as exports of `y[t] = h` do."""
    index = np.array([[2], [-3]] if kind == "ScatterND" else [[[2, 0, -1]], [[0, 2, 1]]])
    nodes = [
        helper.make_node("Slice", ["x", "zero", "two"], ["x2"]),
        helper.make_node("Tanh", ["x2"], ["h"]),
        helper.make_node(kind, ["zeros", "index", "h"], ["y"], **({"axis": 0} if kind != "ScatterND" else {})),
    ]
    held = {"zero": np.array([0]), "two": np.array([2]), "index": index, "zeros": np.zeros((3, 1, WIDTH), np.float32)}
    return graph(path, nodes, held)


@pytest.mark.parametrize("kind", ["ScatterND", "ScatterElements"])
def test_what_is_written_into_a_tensor_has_its_gradient(kind: str, tmp_path: Path) -> None:
    own, expected, rebuilt = slopes(written(tmp_path / "m.onnx", kind))
    assert abs(own - expected) < 1e-3 < abs(expected) and "onnxruntime" not in rebuilt


@pytest.mark.parametrize(("axis", "kind"), [(1, "Softmax"), (2, "LogSoftmax"), (0, "Softmax")])
def test_softmax_before_operator_set_13(axis: int, kind: str, tmp_path: Path) -> None:
    path = graph(tmp_path / "m.onnx", [helper.make_node(kind, ["x"], ["y"], axis=axis)], {}, opset=11)
    own, expected, rebuilt = slopes(path)
    assert abs(own - expected) < 1e-3 < abs(expected) and "onnxruntime" not in rebuilt


@pytest.mark.parametrize("kind", ["ReduceMean", "ReduceMax", "ReduceL2", "ReduceLogSumExp"])
@pytest.mark.parametrize("keep", [0, 1])
def test_reductions_of_every_axis(kind: str, keep: int, tmp_path: Path) -> None:
    nodes = [helper.make_node(kind, ["x"], ["y"], keepdims=keep)]
    own, expected, rebuilt = slopes(graph(tmp_path / "m.onnx", nodes, {}, dims=3 * keep))
    assert abs(own - expected) < 1e-3 < abs(expected) and "onnxruntime" not in rebuilt


@pytest.mark.parametrize("by_row", [False, True])
def test_a_recurrent_layer_of_quantised_weights_is_seen(by_row: bool, tmp_path: Path) -> None:
    scale = (
        np.full(16, 1 / 64, np.float32) * np.linspace(0.5, 2, 16, dtype=np.float32) if by_row else np.float32(1 / 64)
    )
    zero = np.zeros(16, np.int8) if by_row else np.int8(3)
    held: dict[str, Any] = {
        "W8": np.round(weights(1, 16, WIDTH) * 64).astype(np.int8), "scale": scale, "zero": zero,
        "R8": np.round(weights(1, 16, HIDDEN) * 64).astype(np.int8),
    }  # fmt: skip
    nodes = [helper.make_node("DequantizeLinear", [f"{n}8", "scale", "zero"], [n], axis=1) for n in "WR"]
    nodes.append(helper.make_node("LSTM", ["x", "W", "R"], ["y"], hidden_size=HIDDEN))
    path = graph(tmp_path / "m.onnx", nodes, held, dims=4)
    own, expected, rebuilt = slopes(path)
    assert abs(own - expected) < 1e-3 < abs(expected) and "lstm.lstm: LSTM 3 → 4" in rebuilt
    layer = open_subject(Load(subject=str(path))).subject.model.get_submodule("lstm.lstm")
    real = (held["W8"][0].astype(float) - float(zero.max())) * (scale[:, None] if by_row else scale)
    order = [0, 2, 3, 1]  # i f g o of i o f c
    np.testing.assert_allclose(layer.weight_ih_l0.detach(), real.reshape(4, 4, WIDTH)[order].reshape(16, WIDTH))


def around_a_condition(path: Path) -> Path:
    """Tokens → RNN → (If, and a connection around it) → RNN → scores of tokens."""
    made = helper.make_tensor_value_info("z", FLOAT, [None] * 3)
    inner = [helper.make_graph([helper.make_node(op, ["s"], ["z"])], op, [], [made]) for op in ("Tanh", "Neg")]
    (first, held), (second, more) = plain_rnn("first", "e", "s", WIDTH), plain_rnn("second", "a", "h", HIDDEN)
    nodes = [
        helper.make_node("Transpose", ["ids"], ["turned"], perm=[1, 0]),
        helper.make_node("Gather", ["table", "turned"], ["e"]),
        *first,
        helper.make_node("If", ["yes"], ["q"], then_branch=inner[0], else_branch=inner[1]),
        helper.make_node("Add", ["q", "s"], ["a"]),
        *second,
        helper.make_node("Transpose", ["h"], ["rows"], perm=[1, 0, 2]),
        helper.make_node("MatMul", ["rows", "head"], ["y"]),
    ]
    held = {**held, **more, "table": weights(TOKENS, WIDTH), "head": weights(HIDDEN, TOKENS), "yes": np.array(True)}
    return graph(path, nodes, held, reads=helper.make_tensor_value_info("ids", INT64, ["b", "t"]))


def test_no_gradient_is_shown_of_what_goes_around_a_node_of_onnxruntime(tmp_path: Path) -> None:
    path = around_a_condition(tmp_path / "m.onnx")
    model = open_subject(Load(subject=str(path))).subject.model
    ids = torch.arange(STEPS)[None] % TOKENS
    model(ids)[0].square().sum().backward()
    reached = {name for name, one in model.named_parameters() if one.grad is not None}
    assert any("second" in name for name in reached) and not any("first" in name or "table" in name for name in reached)
    with inspector.run(str(path), ids[0], quantities=["gradients"], out=tmp_path / "a.inspect") as capture:
        shown = {name for name in capture.channels if "gradient/state_norm" in name}
    assert shown == {"second.rnn.l0:gradient/state_norm"}


def test_what_does_not_come_through_such_a_node_is_not_said_to_have_vanished(tmp_path: Path) -> None:
    path, ids = around_a_condition(tmp_path / "m.onnx"), torch.arange(STEPS) % TOKENS
    subject = open_subject(Load(subject=str(path))).subject
    subject.loss = lambda out, batch: torch.nn.functional.cross_entropy(
        scores_of(out).transpose(1, 2), batch.inputs, reduction="none"
    )
    with inspector.run(subject, ids, also=["influence", "bptt"], out=tmp_path / "a.inspect") as capture:
        assert "input:influence/loss" in capture.channels and "input:gradient/lag" not in capture.channels
        why = {one.channel: one.reason for one in capture.refusals}
        assert "onnxruntime computes the operation If" in why["input:gradient/lag"]
        shown = [name for name in capture.channels if "gradient" in name and name.startswith("first")]
        assert shown == []
    found = inspector.diagnose(tmp_path / "a.inspect").findings
    assert not [one for one in found if one.id in ("IN111", "IN201")]


def scores_of(out: Any) -> torch.Tensor:
    return torch.as_tensor(out[0] if isinstance(out, tuple) else out)


def test_gradients_behind_such_a_node_are_those_of_plain_torch(tmp_path: Path) -> None:
    model = open_subject(Load(subject=str(around_a_condition(tmp_path / "m.onnx")))).subject.model
    ids = torch.arange(STEPS)[None] % TOKENS
    model(ids)[0].square().sum().backward()
    first, second = model.get_submodule("first.rnn"), model.get_submodule("second.rnn")
    table = torch.from_numpy(weights(TOKENS, WIDTH))
    with torch.no_grad():
        state, _ = first(table[ids.T])
        between = state.tanh() + state
    output, _ = second(between)
    wanted = list(second.parameters())
    scores = output.transpose(0, 1) @ torch.from_numpy(weights(HIDDEN, TOKENS))
    for own, expected in zip(wanted, torch.autograd.grad(scores.square().sum(), wanted), strict=True):
        torch.testing.assert_close(own.grad, expected)


def test_weights_that_the_graph_cuts_and_joins_are_those_of_a_layer(tmp_path: Path) -> None:
    held: dict[str, Any] = {
        "turned": weights(1, WIDTH, 4 * HIDDEN), "upper": weights(1, 4, HIDDEN), "lower": weights(1, 12, HIDDEN),
        "half": np.float32(0.5),
    }  # fmt: skip
    nodes = [
        helper.make_node("Transpose", ["turned"], ["W"], perm=[0, 2, 1]),
        helper.make_node("Concat", ["upper", "lower"], ["joined"], axis=1),
        helper.make_node("Mul", ["joined", "half"], ["R"]),
        helper.make_node("LSTM", ["x", "W", "R"], ["y"], hidden_size=HIDDEN, name="/rnn/LSTM"),
    ]
    own, expected, rebuilt = slopes(graph(tmp_path / "m.onnx", nodes, held, dims=4))
    assert abs(own - expected) < 1e-3 < abs(expected) and "rnn.lstm: LSTM 3 → 4" in rebuilt


def test_weights_that_depend_on_the_input_are_not(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["mean"], keepdims=0),
        helper.make_node("Mul", ["W0", "mean"], ["W"]),
        helper.make_node("RNN", ["x", "W", "R"], ["y"], hidden_size=HIDDEN),
    ]
    held = {"W0": weights(1, HIDDEN, WIDTH), "R": weights(1, HIDDEN, HIDDEN)}
    path = graph(tmp_path / "m.onnx", nodes, held, dims=4)
    subject = open_subject(Load(subject=str(path))).subject
    session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    x = torch.randn(STEPS, 1, WIDTH, generator=torch.Generator().manual_seed(5)) + 2
    (found,) = session.run(None, {"x": x.numpy()})
    np.testing.assert_allclose(subject.model(x)[0].detach(), found, rtol=1e-5, atol=1e-6)
    assert "its weights are computed" in subject.rebuilt
