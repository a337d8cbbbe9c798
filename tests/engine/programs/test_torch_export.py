"""Programs of torch.export, against the modules that they were made of and against torch's own running of them."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import inspector
from inspector.capture import Capture
from inspector.engine.errors import InputError, ModelError
from inspector.engine.model.batch import Batch
from inspector.engine.opening.open_subject import open_subject
from inspector.records import Load
from tests.support.programs import LAYERS, STEPS, TOKENS, WIDTH, Attends, ByHand, Tagger, exported, ids, made, numbers

pytestmark = pytest.mark.filterwarnings("ignore")


def subject_of(path: Path, **arguments: Any) -> Any:
    return open_subject(Load(subject=str(path), trusted=True, arguments=arguments)).subject


def captured(path: Path, x: Tensor, out: Path, **more: Any) -> Capture:
    return inspector.run(str(path), x, out=out, **more)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("layer", LAYERS)
def test_a_recurrent_layer_is_seen_and_computes_what_the_module_does(
    layer: str, dtype: torch.dtype, tmp_path: Path
) -> None:
    model = made(Tagger(layer).to(dtype))
    path = exported(model, numbers(dtype), tmp_path / "m.pt2")
    subject = subject_of(path)
    x = torch.randn(1, STEPS, WIDTH, dtype=dtype)
    with torch.no_grad():
        output = subject.run(Batch(inputs=x, lengths=torch.tensor([STEPS])))
        expected = model(x)
    close = 1e-6 if dtype == torch.float32 else 1e-14
    torch.testing.assert_close(output, expected, rtol=close, atol=close)
    kind = {"lstm": "lstm", "projected": "lstm", "gru": "gru", "tanh": "rnn_tanh", "relu": "rnn_relu"}[layer]
    place = f"rnn.{kind}"
    with (
        captured(path, x[0], tmp_path / "a.inspect") as capture,
        inspector.run(model, x[0], out=tmp_path / "b.inspect") as own,
    ):
        known = [name for name in own.channels if name.startswith("rnn.l")]
        assert len(known) > 20
        for name in known:
            ours = name.replace("rnn.", f"{place}.", 1)
            assert ours in capture.channels, sorted(capture.channels)
            if ":h" in name or (":gate/" in name and "/saturation" not in name):
                np.testing.assert_allclose(capture.array(ours), own.array(name), rtol=1e-5, atol=1e-6)


def test_gradients_reach_the_weights_of_the_program(tmp_path: Path) -> None:
    model = made(Tagger("lstm"))
    subject = subject_of(exported(model, numbers(), tmp_path / "m.pt2"))
    x = numbers()
    subject.run(Batch(inputs=x, lengths=torch.tensor([STEPS]))).square().sum().backward()
    model(x).square().sum().backward()
    own = dict(subject.model.named_parameters())
    for name, value in model.named_parameters():
        assert own[name].grad is not None and value.grad is not None
        torch.testing.assert_close(own[name].grad, value.grad, rtol=1e-4, atol=1e-5)


def test_a_loop_that_was_written_out_is_a_recurrence_again(tmp_path: Path) -> None:
    model = made(ByHand())
    path = exported(model, numbers(), tmp_path / "m.pt2")
    assert f"repeats the same operations {STEPS} times" in subject_of(path).rebuilt
    with captured(path, numbers()[0], tmp_path / "a.inspect") as capture:
        (place,) = {name for name in capture.channels if name.endswith(":jacobian/spectral_norm")}
        states = next(one for one in capture.channels if one.startswith("model:add") and one.count("/") == 0)
        with torch.no_grad():
            np.testing.assert_allclose(capture.array(states), model(numbers())[0], rtol=1e-5, atol=1e-6)
        assert "model:gate/sigmoid" in capture.channels and place == "model:jacobian/spectral_norm"
        np.testing.assert_allclose(capture.array(place), jacobian_norms(model.double()), rtol=1e-4)


def jacobian_norms(model: nn.Module) -> np.ndarray:
    """The spectral norm of ∂h_t/∂h_{t−1}, by autograd of the step alone, in double precision."""
    x, h, norms = numbers(torch.float64), torch.zeros(5, dtype=torch.float64), []

    def step(h: Tensor, x: Tensor) -> Tensor:
        z = torch.sigmoid(model.gate(torch.cat([x, h])))  # type: ignore[operator]
        return z * h + (1 - z) * torch.tanh(model.inner(x) + model.back(h))  # type: ignore[operator]

    for row in x[0]:
        jacobian = torch.autograd.functional.jacobian(lambda h, row=row: step(h, row), h)
        norms.append(float(torch.linalg.matrix_norm(jacobian, 2)))
        h = step(h, row).detach()
    return np.array(norms)


def test_attention_is_seen_by_products_and_by_the_function(tmp_path: Path) -> None:
    model = made(Attends())
    length = torch.export.Dim("length", min=2, max=99)
    path = exported(model, ids(), tmp_path / "m.pt2", dynamic_shapes=({1: length},))
    x = torch.randint(TOKENS, (14,))
    with captured(path, x, tmp_path / "a.inspect") as capture:
        maps = [name for name in capture.channels if name.endswith(":attention")]
        assert len(maps) == 2
        with torch.no_grad():
            q, k = model.query(model.table(x)), model.key(model.table(x))  # type: ignore[operator]
            scores = q @ k.T / 8**0.5
            plain = torch.softmax(scores, -1)
            causal = torch.softmax(scores.masked_fill(torch.ones(14, 14).triu(1).bool(), -torch.inf), -1)
        found = [capture.array(name)[0].astype(np.float32) for name in maps]
        for known in (plain, causal):
            assert min(float(np.abs(one - known.numpy()).max()) for one in found) < 1e-3
        assert "output:surprise" in capture.channels


def test_sizes_that_are_fixed_are_said_and_others_refused(tmp_path: Path) -> None:
    path = exported(made(Tagger("gru")), numbers(), tmp_path / "m.pt2")
    subject = subject_of(path)
    assert f"Its input x is 1 × {STEPS} × {WIDTH}: these sizes were fixed" in subject.rebuilt
    with pytest.raises(InputError, match=rf"takes exactly {STEPS} steps on axis 1 of x, and 4 were given"):
        subject.run(Batch(inputs=torch.zeros(1, 4, WIDTH), lengths=torch.tensor([4])))


def test_a_batch_of_a_fixed_size_reads_the_sequence_as_often(tmp_path: Path) -> None:
    model = made(Tagger("tanh"))
    subject = subject_of(exported(model, numbers().repeat(3, 1, 1), tmp_path / "m.pt2"))
    with torch.no_grad():
        output = subject.run(Batch(inputs=numbers(), lengths=torch.tensor([STEPS])))
        torch.testing.assert_close(output, model(numbers()))


def test_time_may_come_first(tmp_path: Path) -> None:
    class TimeFirst(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = nn.GRU(WIDTH, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.rnn(x)[0]  # type: ignore[no-any-return]

    model = made(TimeFirst())
    subject = subject_of(exported(model, numbers().transpose(0, 1), tmp_path / "m.pt2"))
    with torch.no_grad():
        output = subject.run(Batch(inputs=numbers(), lengths=torch.tensor([STEPS])))
        torch.testing.assert_close(output, model(numbers().transpose(0, 1)).transpose(0, 1))


def test_a_layer_that_drops_at_random_is_left_and_said(tmp_path: Path) -> None:
    class Drops(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = nn.LSTM(WIDTH, 4, 2, dropout=0.5, batch_first=True)

        def forward(self, x: Tensor) -> Tensor:
            return self.rnn(x)[0]  # type: ignore[no-any-return]

    path = exported(made(Drops()).train(), numbers(), tmp_path / "m.pt2")
    assert "as it is" in subject_of(path).rebuilt or "drops numbers" in subject_of(path).rebuilt


@pytest.mark.parametrize("cut", [0.2, 0.7, 0.99])
def test_a_file_that_is_cut_is_one_sentence(cut: float, tmp_path: Path) -> None:
    path = exported(made(Tagger("gru")), numbers(), tmp_path / "m.pt2")
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * cut)])
    with pytest.raises(InputError, match=r"^m\.pt2 is .*cut short.*\.$"):
        subject_of(path)


def test_a_compiled_package_holds_no_graph(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "m.pt2", "w") as archive:
        archive.writestr("m/archive_format", "pt2")
        archive.writestr("m/data/aotinductor/model/x.so", b"\x7fELF")
    with pytest.raises(InputError, match="compiled by AOTInductor, machine code without a graph"):
        subject_of(tmp_path / "m.pt2")


def test_what_is_no_program_is_said(tmp_path: Path) -> None:
    (tmp_path / "m.pt2").write_bytes(b"x" * 30)
    with pytest.raises(InputError, match="damaged or cut short"):
        subject_of(tmp_path / "m.pt2")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("m/models/model.json", "{}")
    (tmp_path / "m.pt2").write_bytes(buffer.getvalue())
    with pytest.raises(ModelError, match=r"^Reading m\.pt2 raised"):
        subject_of(tmp_path / "m.pt2")


def test_arguments_that_do_not_exist_are_named(tmp_path: Path) -> None:
    path = exported(made(Tagger("tanh")), numbers(), tmp_path / "m.pt2")
    with pytest.raises(InputError, match="takes no argument 'layers'; there are kind, task, time_first"):
        subject_of(path, layers=3)
    with pytest.raises(InputError, match="The kind asked for is 'music'; expected tokens or vectors or other"):
        subject_of(path, kind="music")


def test_it_is_no_checkpoint(tmp_path: Path) -> None:
    path = exported(made(Tagger("tanh")), numbers(), tmp_path / "m.pt2")
    with pytest.raises(InputError, match=r"is a program of torch\.export, not a checkpoint"):
        open_subject(Load(subject="char-lstm", checkpoint=str(path), trusted=True))
