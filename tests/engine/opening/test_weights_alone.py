"""Models rebuilt from weights alone compute what the models did whose weights these are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import inspector
from inspector.capture import Capture
from inspector.engine.errors import InputError
from inspector.engine.model.subject import Batch
from inspector.engine.opening.open_subject import open_subject
from inspector.engine.opening.weights_alone.rebuilt_model import turned
from inspector.records import Load

pytestmark = pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")
T = 7


class Tagger(nn.Module):
    """Ids, a stack of any kind, one output for each step; norm and bridge are in the file and not run."""

    def __init__(self, stack: nn.RNNBase, classes: int = 9) -> None:
        super().__init__()
        self.emb, self.norm, self.body = nn.Embedding(11, stack.input_size), nn.LayerNorm(3), nn.Module()
        self.body.rnn = stack
        width = (stack.proj_size or stack.hidden_size) * (2 if stack.bidirectional else 1)
        self.fc = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        return torch.as_tensor(self.fc(self.body.rnn(self.emb(x))[0]))


class Cells(nn.Module):
    """A linear layer, a cell in a loop."""

    def __init__(self, cell: nn.RNNCellBase) -> None:
        super().__init__()
        self.inp, self.cell = nn.Linear(4, cell.input_size), cell

    def forward(self, x: Tensor) -> Tensor:
        state, rows = None, []
        for step in self.inp(x).unbind(1):
            state = self.cell(step, state)
            rows.append(state[0] if isinstance(state, tuple) else state)
        return torch.stack(rows, 1)


STACKS: dict[str, Callable[[], nn.RNNBase]] = {
    "lstm": lambda: nn.LSTM(5, 6, batch_first=True),
    "two layers, both ways": lambda: nn.LSTM(5, 6, 2, batch_first=True, bidirectional=True),
    "projected": lambda: nn.LSTM(5, 6, 2, batch_first=True, proj_size=4, bidirectional=True),
    "gru without bias": lambda: nn.GRU(5, 6, 2, bias=False, batch_first=True),
    "rnn": lambda: nn.RNN(5, 6, batch_first=True),
}


def saved(model: nn.Module, folder: Path, name: str = "weights.pt") -> str:
    torch.save(model.state_dict(), folder / name)
    return str(folder / name)


def said(capture: Capture) -> str:
    return next(log.text for log in capture.logs if "rebuilt" in log.text)


def close(capture: Capture, name: str, known: Tensor) -> None:
    np.testing.assert_allclose(capture.array(name), known.detach().numpy(), atol=2e-6)


@pytest.mark.parametrize("kind", STACKS)
def test_a_rebuilt_model_computes_what_the_model_did(kind: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, ids = Tagger(STACKS[kind]()).eval(), torch.randint(11, (T,))
    last = f"body.rnn.l{model.body.rnn.num_layers - 1}"
    with inspector.run(saved(model, tmp_path), ids) as capture:
        states = model.body.rnn(model.emb(ids[None]))[0][0]
        width = capture.array(f"{last}:h").shape[1]
        close(capture, f"{last}:h", states[:, :width])
        told = said(capture)
        assert "emb: embedding of 11 tokens" in told and "fc: linear" in told
        assert "Not run: 2 tensors (norm.weight, norm.bias)" in told
        assert ("tanh as the nonlinearity" in told) == (kind == "rnn")


@pytest.mark.parametrize("cell", [nn.RNNCell(3, 5), nn.GRUCell(3, 5), nn.LSTMCell(3, 5)])
def test_cells_run_in_a_loop(cell: nn.RNNCellBase, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, x = Cells(cell).eval(), torch.randn(T, 4)
    with inspector.run(saved(model, tmp_path), x) as capture:
        close(capture, "cell:h", model(x[None])[0])


def test_weights_that_are_not_finite_are_told(tmp_path: Path) -> None:
    model = Tagger(nn.LSTM(5, 6, batch_first=True))
    with torch.no_grad():
        model.body.rnn.weight_hh_l0[0, :3] = torch.nan
    report = open_subject(Load(subject=saved(model, tmp_path))).report
    assert report is not None
    assert [(one.name, one.problem, one.detail) for one in report.mismatches] == [
        ("body.rnn.weight_hh_l0", "non-finite", "3 of 144 values")
    ]
    assert report.fits


def test_the_state_of_the_layers_themselves(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, x = nn.GRU(3, 5, 2), torch.randn(T, 3)
    with inspector.run(saved(model, tmp_path), x) as capture:
        close(capture, next(name for name in capture.channels if name.endswith("l1:h")), model(x[:, None])[0][:, 0])


def test_next_tokens_are_guessed_and_may_be_left_out(tmp_path: Path) -> None:
    path = saved(Tagger(nn.GRU(5, 6), classes=11), tmp_path)
    ids = torch.arange(T)
    with inspector.run(path, ids) as capture:
        assert "next tokens as the task" in said(capture) and any("loss" in name for name in capture.channels)
    with inspector.run(path, ids, arguments={"task": "none"}) as capture:
        assert "next tokens" not in said(capture).partition("Change it")[0]
        assert not any(name.startswith("rnn") and "gradient" in name for name in capture.channels)


def test_arguments_choose(tmp_path: Path) -> None:
    """An encoder and a decoder of one width: by itself, one is put behind the other."""
    torch.manual_seed(0)
    model = nn.ModuleDict({"enc": nn.RNN(4, 4, nonlinearity="relu", batch_first=True), "dec": nn.RNN(4, 4)})
    path, x = saved(model, tmp_path), torch.randn(T, 4)
    with inspector.run(path, x) as capture:
        assert {"enc.l0:h", "dec.l0:h"} <= set(capture.channels)
    with inspector.run(path, x, arguments={"layers": "enc", "nonlinearity": "relu"}) as capture:
        close(capture, "enc.l0:h", model["enc"](x[None])[0][0])
        assert "dec.l0:h" not in capture.channels and "Not run: 4 tensors" in said(capture)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"heads": 1}, "takes no argument 'heads'"), ({"layers": "no"}, "there are 'body.rnn'"),
        ({"head": "norm"}, "of two axes are the weights of emb, fc"), ({"nonlinearity": "elu"}, "expected tanh or relu"),
        ({"head": "emb"}, "emb is asked for twice"),
        ({"embedding": None, "before": "fc"}, "reads 5 numbers a step and fc gives 9"), ({"task": "next token"}, "of as many rows"),
        ({"gates": "ifgo"}, "its letters are those of rzn"), ({"gates": "rrz"}, "its letters are those of rzn"),
        ({"backward": "no"}, "this is for 'body.rnn'"),
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit_are_refused(arguments: dict[str, object], reason: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=reason):
        inspector.run(saved(Tagger(nn.GRU(5, 6)), tmp_path), torch.arange(T), arguments=arguments)


@pytest.mark.parametrize(("kind", "letters"), [("lstm", "iofg"), ("projected", "gifo"), ("gru without bias", "zrn")])
def test_the_order_of_gates_in_the_file_is_an_argument(kind: str, letters: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, ids = Tagger(STACKS[kind]()).eval(), torch.randint(11, (T,))
    own = "ifgo" if len(letters) == 4 else "rzn"
    state = dict(model.state_dict())
    for name, tensor in state.items():
        if ".rnn." in name and "weight_hr" not in name:
            blocks = dict(zip(own, tensor.chunk(len(own)), strict=True))
            state[name] = torch.cat([blocks[letter] for letter in letters])
    torch.save(state, tmp_path / "w.pt")
    last = f"body.rnn.l{model.body.rnn.num_layers - 1}"
    with inspector.run(str(tmp_path / "w.pt"), ids, arguments={"gates": letters}) as capture:
        states = model.body.rnn(model.emb(ids[None]))[0][0]
        close(capture, f"{last}:h", states[:, : capture.array(f"{last}:h").shape[1]])
        assert f"gates in the order {' '.join(letters)}" in said(capture)


def test_a_layer_that_reads_backward_leaves_padding_behind() -> None:
    x = torch.arange(10.0).reshape(2, 5, 1)
    found = turned(x, torch.tensor([5, 3]))[..., 0]
    assert found.tolist() == [[4, 3, 2, 1, 0], [7, 6, 5, 8, 9]]
    assert torch.equal(turned(turned(x, torch.tensor([5, 3])), torch.tensor([5, 3])), x)
    assert torch.equal(turned(x, None), x.flip(1))


def test_a_layer_that_reads_backward_gives_its_steps_in_their_order(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Tagger(nn.GRU(5, 6, batch_first=True)).eval()
    load = Load(subject=saved(model, tmp_path), arguments={"backward": "body.rnn"})
    subject, ids = open_subject(load).subject, torch.randint(11, (2, T))
    batch = Batch(ids, torch.tensor([T, T - 3]))
    found = subject.run(batch)
    for row, length in enumerate((T, T - 3)):
        states = model.body.rnn(model.emb(ids[row : row + 1, :length].flip(1)))[0].flip(1)
        torch.testing.assert_close(found[row, :length], model.fc(states)[0], atol=2e-6, rtol=0)


def test_weights_that_do_not_fit_together_are_told(tmp_path: Path) -> None:
    state = nn.LSTM(3, 4, 2).state_dict()
    state["weight_hh_l1"] = torch.zeros(16, 5)
    torch.save(state, tmp_path / "bad.pt")
    with pytest.raises(InputError, match=r"weight_hh_l1 is \(16, 5\), where \(16, 4\) would fit"):
        inspector.run(str(tmp_path / "bad.pt"), torch.randn(T, 3))
    torch.save(nn.Linear(3, 4).state_dict(), tmp_path / "linear.pt")
    with pytest.raises(InputError, match="no recurrent layers of torch's by name"):
        inspector.run(str(tmp_path / "linear.pt"), torch.randn(T, 3))


def test_a_folder_with_one_checkpoint_is_that_checkpoint(tmp_path: Path) -> None:
    saved(nn.GRU(3, 5), tmp_path, "only.pt")
    with inspector.run(str(tmp_path), torch.randn(T, 3)) as capture:
        assert "only.pt" in said(capture)
    saved(nn.GRU(3, 5), tmp_path, "second.pt")
    with pytest.raises(InputError, match="folder with 2 checkpoints"):
        inspector.run(str(tmp_path), torch.randn(T, 3))


def test_names_that_no_module_can_have_are_refused(tmp_path: Path) -> None:
    state = dict(nn.GRU(3, 5).state_dict()) | {"a..b": torch.zeros(2)}
    torch.save(state, tmp_path / "odd.pt")
    with pytest.raises(InputError, match="no name of a tensor in a module"):
        inspector.run(str(tmp_path / "odd.pt"), torch.randn(T, 3))
