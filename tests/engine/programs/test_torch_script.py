"""TorchScript run by Python, against the scripted module and the module that it was made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import inspector
from inspector.engine.errors import InputError
from inspector.engine.model.batch import Batch
from inspector.engine.opening.open_subject import open_subject
from inspector.records import Load
from tests.support.programs import LAYERS, STEPS, TOKENS, WIDTH, Attends, ByHand, Tagger, ids, made, numbers, scripted

pytestmark = pytest.mark.filterwarnings("ignore")


def subject_of(path: Path, **arguments: Any) -> Any:
    return open_subject(Load(subject=str(path), trusted=True, arguments=arguments)).subject


@pytest.mark.parametrize("how", ["scripted", "traced"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("layer", LAYERS)
def test_a_recurrent_layer_is_seen_and_computes_what_the_program_does(
    layer: str, dtype: torch.dtype, how: str, tmp_path: Path
) -> None:
    model = made(Tagger(layer).to(dtype))
    path = scripted(model, tmp_path / "m.pt", None if how == "scripted" else numbers(dtype))
    subject = subject_of(path)
    x = torch.randn(1, STEPS, WIDTH, dtype=dtype)
    close = 1e-6 if dtype == torch.float32 else 1e-14
    with torch.no_grad():
        output = subject.run(Batch(inputs=x, lengths=torch.tensor([STEPS])))
        torch.testing.assert_close(output, torch.jit.load(path)(x), rtol=close, atol=close)
        torch.testing.assert_close(output, model(x), rtol=close, atol=close)
    place = {"projected": "rnn.lstm", "tanh": "rnn.rnn_tanh", "relu": "rnn.rnn_relu"}.get(layer, f"rnn.{layer}")
    with inspector.run(str(path), x[0], out=tmp_path / "a.inspect") as capture:
        assert f"{place}.l0:h" in capture.channels, sorted(capture.channels)
        known, _ = model.rnn(x)  # type: ignore[operator]
        last = next(name for name in (f"{place}.l1:h", f"{place}.l0:h") if name in capture.channels)
        width = capture.array(last).shape[-1]
        np.testing.assert_allclose(capture.array(last), known[0, :, :width].detach(), rtol=1e-5, atol=1e-6)
        assert f"{place}.l0:jacobian/spectral_norm" in capture.channels


def test_gradients_are_those_of_the_program(tmp_path: Path) -> None:
    path = scripted(made(Tagger("lstm")), tmp_path / "m.ts")
    subject, program = subject_of(path), torch.jit.load(path)
    subject.run(Batch(inputs=numbers(), lengths=torch.tensor([STEPS]))).square().sum().backward()
    program(numbers()).square().sum().backward()
    own = dict(subject.model.named_parameters())
    for name, value in program.named_parameters():
        torch.testing.assert_close(own[name].grad, value.grad, rtol=1e-4, atol=1e-5)


def test_a_loop_of_the_code_is_a_recurrence_with_its_names(tmp_path: Path) -> None:
    model = made(ByHand())
    x = torch.randn(13, WIDTH)  # of any length: a scripted loop has none of its own
    with inspector.run(str(scripted(model, tmp_path / "m.ts")), x, out=tmp_path / "a.inspect") as capture:
        assert "model:gate/z" in capture.channels and "model:jacobian/spectral_norm" in capture.channels
        states = next(name for name in capture.channels if name.startswith("model:h") and "/" not in name)
        with torch.no_grad():
            np.testing.assert_allclose(capture.array(states), model(x[None])[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("how", ["scripted", "traced"])
def test_attention_is_seen(how: str, tmp_path: Path) -> None:
    path = scripted(made(Attends()), tmp_path / "m.ts", None if how == "scripted" else ids())
    with inspector.run(str(path), torch.randint(TOKENS, (STEPS,)), out=tmp_path / "a.inspect") as capture:
        assert sum(name.endswith(":attention") for name in capture.channels) == 2
        assert "output:surprise" in capture.channels


def test_control_flow_and_lists_of_modules(tmp_path: Path) -> None:
    class Deep(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cells = nn.ModuleList([nn.GRUCell(WIDTH, WIDTH), nn.GRUCell(WIDTH, WIDTH)])
            self.scale = 0.5

        def forward(self, x: Tensor) -> Tensor:
            for cell in self.cells:
                h = torch.zeros(x.size(0), x.size(2), dtype=x.dtype)
                rows: list[Tensor] = []
                for t in range(x.size(1)):
                    h = cell(x[:, t], h)
                    rows.append(h * self.scale if t % 2 == 0 else h)
                x = torch.stack(rows, 1)
            return x

    model = made(Deep())
    path = scripted(model, tmp_path / "m.ts")
    subject = subject_of(path)
    assert "as it is" not in subject.rebuilt, subject.rebuilt
    with torch.no_grad():
        output = subject.run(Batch(inputs=numbers()[:, :6], lengths=torch.tensor([6])))
        torch.testing.assert_close(output, model(numbers()[:, :6]))


def test_numbers_of_a_tensor_are_read(tmp_path: Path) -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Linear(WIDTH, 2)

        def forward(self, x: Tensor) -> Tensor:
            y: list[float] = x.sum().reshape(1).tolist()
            return self.head(x) * y[0]  # type: ignore[no-any-return]

    model = made(Odd())
    subject = subject_of(scripted(model, tmp_path / "m.ts"))
    with torch.no_grad():
        output = subject.run(Batch(inputs=numbers(), lengths=torch.tensor([STEPS])))
        torch.testing.assert_close(output, model(numbers()))


def test_a_program_that_nothing_can_be_given_to_is_said(tmp_path: Path) -> None:
    class Pair(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            if x.dim() != 7:
                raise ValueError("seven axes")
            return x

    with pytest.raises(InputError, match=r"runs neither on token ids .* Wrap it in a callable of your own"):
        subject_of(scripted(Pair(), tmp_path / "m.ts"))


@pytest.mark.parametrize("gates", [1, 2, 3, 4])
def test_a_cell_that_reads_input_and_state_in_one_vector(gates: int, tmp_path: Path) -> None:
    class Joined(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.joined = nn.Linear(WIDTH + 5, 5 * gates)

        def forward(self, x: Tensor) -> Tensor:
            h = torch.zeros(x.shape[0], 5)
            for t in range(x.shape[1]):
                h = torch.tanh(self.joined(torch.cat([x[:, t], h], 1))[:, :5])
            return h

    model = Joined()
    subject = subject_of(scripted(model, tmp_path / "m.ts"))
    x = torch.randn(1, STEPS, WIDTH)
    assert subject.width == WIDTH
    torch.testing.assert_close(subject.run(Batch(inputs=x, lengths=torch.tensor([STEPS]))), model(x))


def test_the_error_of_a_program_is_quoted_from_its_beginning(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"stopped by RuntimeError: Given groups=1.* Wrap it"):
        subject_of(scripted(nn.Sequential(nn.Conv1d(3, 8, 3)), tmp_path / "m.ts"))


@pytest.mark.parametrize("content", [b"PK\x03\x04", b"", b"x" * 50])
def test_what_is_no_program_is_one_sentence(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "m.ts").write_bytes(content)
    with pytest.raises(InputError):
        subject_of(tmp_path / "m.ts")


def test_it_is_no_checkpoint(tmp_path: Path) -> None:
    path = scripted(made(Tagger("tanh")), tmp_path / "m.pt")
    with pytest.raises(InputError, match="is a TorchScript program, not a checkpoint"):
        open_subject(Load(subject="char-lstm", checkpoint=str(path), trusted=True))


class Encoder(nn.Module):
    """Two layers of a transformer, whose code takes another path where gradients are wanted."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(TOKENS, 8)
        self.layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)
        self.head = nn.Linear(8, TOKENS)

    def forward(self, x: Tensor) -> Tensor:
        """(b, t) → (b, t, v)."""
        return self.head(self.layers(self.table(x)))  # type: ignore[no-any-return]


def test_each_attention_is_seen_once(tmp_path: Path) -> None:
    path = scripted(made(Encoder()), tmp_path / "m.ts")
    with inspector.run(str(path), torch.randint(TOKENS, (STEPS,)), out=tmp_path / "a.inspect") as capture:
        maps = sorted(name for name in capture.channels if name.endswith(":attention"))
        assert maps == [f"layers.layers.{n}.self_attn:attention" for n in (0, 1)]


@pytest.mark.parametrize("how", ["scripted", "traced"])
def test_states_that_are_given_are_inputs(how: str, tmp_path: Path) -> None:
    class Carries(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = nn.LSTM(WIDTH, 5, batch_first=True)

        def forward(self, x: Tensor, h: Tensor, c: Tensor) -> Tensor:
            return self.rnn(x, (h, c))[0]  # type: ignore[no-any-return]

    model = made(Carries())
    given = numbers(), torch.randn(1, 1, 5), torch.randn(1, 1, 5)
    made_of = torch.jit.script(model) if how == "scripted" else torch.jit.trace(model, given)
    torch.jit.save(made_of, tmp_path / "m.ts")
    subject = subject_of(tmp_path / "m.ts")
    assert set(subject.inputs) == {"x", "h", "c"} and "as it is" not in subject.rebuilt
    with torch.no_grad():
        torch.testing.assert_close(subject.model(*given), model(*given))
