"""LSTM, GRU and RNN of ONNX, in every form, against onnxruntime and against the reference of the format itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("onnxruntime")
onnx = pytest.importorskip("onnx")

import onnxruntime  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

import inspector  # noqa: E402
from inspector.engine.model.batch import Batch  # noqa: E402
from inspector.engine.model.subject import Subject  # noqa: E402
from inspector.engine.opening.open_subject import open_subject  # noqa: E402
from inspector.engine.programs.onnx.model import Assembly, assemble  # noqa: E402
from inspector.records import Load  # noqa: E402
from tests.support.onnx_graphs import HIDDEN, STEPS, WIDTH, graph, saved  # noqa: E402

FORMS: list[dict[str, Any]] = [
    {"kind": kind, "direction": direction, **more}
    for kind in ("LSTM", "GRU", "RNN")
    for direction in ("forward", "reverse", "bidirectional")
    for more in (
        {}, {"biases": False}, {"states": True}, {"clip": 0.3}, {"lengths": [7]}, {"free": True},
        {"lengths": [7, 12, 4], "batch": 3, "states": True},
        *(({"peepholes": True}, {"input_forget": 1}, {"peepholes": True, "clip": 0.4, "states": True}) if kind == "LSTM" else ()),
        *(({"linear_before_reset": 1}, {"linear_before_reset": 1, "states": True, "clip": 0.5}) if kind == "GRU" else ()),
    )
]  # fmt: skip
ACTIVATIONS: list[dict[str, Any]] = [
    {"kind": "RNN", "activations": ["Relu"]},
    {"kind": "RNN", "activations": ["Affine"], "activation_alpha": [0.5], "activation_beta": [0.1]},
    {"kind": "RNN", "activations": ["LeakyRelu"], "activation_alpha": [0.2]},
    {"kind": "RNN", "activations": ["ScaledTanh"], "activation_alpha": [0.7], "activation_beta": [1.3]},
    {"kind": "RNN", "activations": ["Softsign"]}, {"kind": "RNN", "activations": ["Elu"], "activation_alpha": [0.6]},
    {"kind": "GRU", "activations": ["HardSigmoid", "Relu"], "activation_alpha": [0.25], "activation_beta": [0.4]},
    {"kind": "LSTM", "activations": ["HardSigmoid", "Softsign", "Tanh"]},
    {"kind": "LSTM", "direction": "bidirectional", "activations": ["Sigmoid", "Tanh", "Relu", "HardSigmoid", "Tanh", "Tanh"]},
]  # fmt: skip


def opened(model: Any, path: Path, **arguments: Any) -> Subject:
    return open_subject(Load(subject=str(saved(model, path)), arguments=arguments)).subject


def ran(subject: Subject, x: np.ndarray) -> list[np.ndarray]:
    """What the torch module makes of x, in the order of the graph's outputs and as it returns them."""
    with torch.no_grad():
        return [one.numpy() for one in subject.model(torch.from_numpy(x))]


def numbers(model: Any) -> np.ndarray:
    axes = model.graph.input[0].type.tensor_type
    kind = np.float64 if axes.elem_type == onnx.TensorProto.DOUBLE else np.float32
    shape = [axis.dim_value or STEPS for axis in axes.shape.dim]
    return np.random.default_rng(5).normal(size=shape).astype(kind)


@pytest.mark.parametrize("form", [*FORMS, *ACTIVATIONS], ids=str)
def test_a_node_computes_what_onnxruntime_does(form: dict[str, Any], tmp_path: Path) -> None:
    model = graph(**form)
    subject = opened(model, tmp_path / "rnn.onnx")
    x = numbers(model)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    expected = session.run(None, {"x": x})
    for made, given in zip(ran(subject, x), expected, strict=True):
        np.testing.assert_allclose(made, given, rtol=2e-5, atol=2e-6)
    assert "onnxruntime, since" not in subject.rebuilt, subject.rebuilt


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("more", [{}, {"states": True, "biases": False}], ids=str)
def test_in_double_precision_it_is_the_formats_reference(kind: str, more: dict[str, Any], tmp_path: Path) -> None:
    """onnxruntime has no recurrent nodes in double precision; the reference of ONNX is plain numpy, one direction."""
    model = graph(kind, dtype=np.float64, **({"linear_before_reset": 1} if kind == "GRU" else {}), **more)
    x = numbers(model)
    names = [one.name for one in model.graph.output]
    expected = ReferenceEvaluator(model).run(None, {"x": x})
    shown = {name: torch.from_numpy(np.array(one)) for name, one in zip(names, expected, strict=True)}
    work = Assembly(onnx, onnxruntime, model, tmp_path / "rnn.onnx", {**shown, "x": torch.from_numpy(x)})
    module = assemble(work, ["x"], names)
    assert not work.foreign
    with torch.no_grad():
        for made, given in zip(module(torch.from_numpy(x)), expected, strict=True):
            np.testing.assert_allclose(made.numpy(), given, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_the_batch_may_come_first(kind: str, tmp_path: Path) -> None:
    """onnxruntime refuses layout 1; the reference of ONNX has it."""
    model = graph(kind, layout=1, states=True, **({"linear_before_reset": 1} if kind == "GRU" else {}))
    x = numbers(model)
    expected = ReferenceEvaluator(model).run(None, {"x": x})
    for made, given in zip(ran(opened(model, tmp_path / "rnn.onnx"), x), expected, strict=True):
        np.testing.assert_allclose(made, given, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("form", [
    {"kind": "LSTM"}, {"kind": "LSTM", "peepholes": True}, {"kind": "GRU"}, {"kind": "GRU", "linear_before_reset": 1},
    {"kind": "RNN"}, {"kind": "LSTM", "input_forget": 1, "clip": 0.8},
], ids=str)  # fmt: skip
def test_gates_states_and_jacobians_are_there(form: dict[str, Any], tmp_path: Path) -> None:
    """States are onnxruntime's; Jacobians those of a plain numpy step, by central differences in double precision."""
    model = graph(**form, free=True)
    subject = opened(model, tmp_path / "rnn.onnx")
    x = torch.from_numpy(numbers(model)[:, 0])
    with inspector.run(subject, x, out=tmp_path / "a.inspect") as capture:
        places = {name.partition(":")[0] for name in capture.channels if ":jacobian/spectral_norm" in name}
        assert len(places) == 1, sorted(capture.channels)
        (place,) = places
        states = [name for name in capture.channels if name.startswith(f"{place}:") and name.endswith((":h", ":new_h"))]
        assert states, sorted(capture.channels)
        gates = [name for name in capture.channels if f"{place}:gate/" in name or f"{place}:candidate" in name]
        assert form["kind"] == "RNN" or len(gates) >= 2, sorted(capture.channels)
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        expected = session.run(None, {"x": x.numpy()[:, None]})[0][:, 0, 0]
        np.testing.assert_allclose(capture.array(states[0]), expected, rtol=2e-5, atol=2e-6)
        norms = capture.array(f"{place}:jacobian/spectral_norm")
    np.testing.assert_allclose(norms, jacobian_norms(model, form, x.numpy().astype(np.float64)), rtol=1e-3)


def jacobian_norms(model: Any, form: dict[str, Any], x: np.ndarray) -> np.ndarray:
    """The spectral norm of every step's Jacobian of the whole state."""
    held = {one.name: onnx.numpy_helper.to_array(one)[0].astype(np.float64) for one in model.graph.initializer}
    state, norms, small = np.zeros(HIDDEN * (2 if form["kind"] == "LSTM" else 1)), [], 1e-6
    for row in x:
        sides = [
            [numpy_step(form, held, row, state + sign * small * one) for sign in (1, -1)] for one in np.eye(len(state))
        ]
        norms.append(np.linalg.norm(np.stack([(a - b) / (2 * small) for a, b in sides], 1), 2))
        state = numpy_step(form, held, row, state)
    return np.array(norms)


def numpy_step(form: dict[str, Any], held: dict[str, np.ndarray], x: np.ndarray, state: np.ndarray) -> np.ndarray:
    """One step as the schemas of ONNX write it: the state h, or h and c."""
    n, h, clip = HIDDEN, state[:HIDDEN], form.get("clip", np.inf)
    w, r, (wb, rb) = held["W"], held["R"], held["B"].reshape(2, -1)

    def sigmoid(value: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-np.clip(value, -clip, clip)))

    def tanh(value: np.ndarray) -> np.ndarray:
        return np.tanh(np.clip(value, -clip, clip))

    if form["kind"] == "RNN":
        return tanh(w @ x + r @ h + wb + rb)
    if form["kind"] == "GRU":
        z, reset = np.split(sigmoid((w @ x + r @ h + wb + rb)[: 2 * n]), 2)
        given, back = (w @ x + wb)[2 * n :], r[2 * n :]
        inner = (
            reset * (back @ h + rb[2 * n :]) if form.get("linear_before_reset") else back @ (reset * h) + rb[2 * n :]
        )
        return (1 - z) * tanh(given + inner) + z * h
    c, p = state[n:], np.split(held.get("P", np.zeros(3 * n)), 3)
    i, o, f, g = np.split(w @ x + r @ h + wb + rb, 4)
    i = sigmoid(i + p[0] * c)
    f = 1 - i if form.get("input_forget") else sigmoid(f + p[2] * c)
    c = f * c + i * tanh(g)
    return np.concatenate([sigmoid(o + p[1] * c) * np.tanh(c), c])


def test_weights_are_read_without_a_model(tmp_path: Path) -> None:
    from inspector.engine.opening.read_checkpoint import read_checkpoint

    model = graph("LSTM")
    state = read_checkpoint(saved(model, tmp_path / "rnn.onnx"))
    assert set(state.tensors) == {"W", "R", "B"} and state.tensors["W"].shape == (1, 16, WIDTH)


def test_a_batch_of_sequences_is_read(tmp_path: Path) -> None:
    subject = opened(graph("LSTM", free=True), tmp_path / "rnn.onnx")
    x = torch.randn(1, 9, WIDTH)
    with torch.no_grad():
        output = subject.run(Batch(inputs=x, lengths=torch.tensor([9])))
    assert len(output) == 3
