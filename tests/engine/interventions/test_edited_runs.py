"""Edited runs: what a change of a token, a unit or a gate does, against a model that computes it directly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest
import torch
from models import OnlyOutput
from torch import Tensor, nn

from inspector.engine.errors import CancelledError, InputError
from inspector.engine.interventions.editor import WrittenOut
from inspector.engine.interventions.runs import LOOKED_FOR, perform_with_edits, plan_edits
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions
from inspector.records import Channel, Edit, Page, parse_edit

D = torch.float64


class Kept:
    def __init__(self) -> None:
        self.records: list[Any] = []

    def write(self, record: Any) -> None:
        self.records.append(record)

    def array(self, name: str, frame: int) -> Tensor:
        pages = [r for r in self.records if isinstance(r, Page) and r.channel == name and r.frame == frame]
        return torch.cat([torch.from_numpy(p.array.copy()) for p in sorted(pages, key=lambda p: p.offset)])

    def names(self) -> set[str]:
        return {r.name for r in self.records if isinstance(r, Channel)}


def run(model: nn.Module, x: Tensor, *edits: str, only: tuple[str, ...] = ("states", "gates")) -> Kept:
    """What a run with edits writes; `only` no quantities means those that are computed by default."""
    kept = Kept()
    subject = Subject(model=model, kind="vectors", width=x.shape[-1], loss=lambda o, b: o.square().sum(-1))
    batch = Batch(x, torch.full((x.shape[0],), x.shape[1]))
    options = RunOptions(only=only)
    plan = plan_edits(subject, batch, [parse_edit(edit) for edit in edits], options)
    perform_with_edits(subject, batch, kept, plan, options)
    return kept


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
@pytest.mark.parametrize("options", [{}, {"num_layers": 2, "bidirectional": True}, {"batch_first": True}], ids=str)
def test_modules_written_out_compute_the_same(kind: Any, options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    rnn = kind(3, 4, **options).double()
    x = torch.randn(5, 2, 3, dtype=D)
    expected, final = rnn(x)
    with WrittenOut(rnn).on():
        found, last = rnn(x)
    torch.testing.assert_close(found, expected)
    for a, b in zip(last if kind is nn.LSTM else (last,), final if kind is nn.LSTM else (final,), strict=True):
        torch.testing.assert_close(a, b)
    weights = list(rnn.parameters())
    for a, b in zip(*(torch.autograd.grad(y.square().sum(), weights) for y in (found, expected)), strict=True):
        torch.testing.assert_close(a, b)
    assert "forward" not in vars(rnn)
    one = torch.randn(5, 3, dtype=D)
    with WrittenOut(rnn).on():
        found = rnn(one)[0]
    torch.testing.assert_close(found, rnn(one)[0])


def lstm_loop(rnn: nn.LSTM, x: Tensor, unit: int, start: int) -> Tensor:
    """h of a one-layer LSTM whose forget gate of one unit is 0 from a step on."""
    h = c = x.new_zeros(1, 4)
    out = []
    for t in range(x.shape[1]):
        a = x[:, t] @ rnn.weight_ih_l0.T + rnn.bias_ih_l0 + h @ rnn.weight_hh_l0.T + rnn.bias_hh_l0
        i, f, g, o = a.chunk(4, -1)
        f = torch.sigmoid(f)
        if t >= start:
            f = torch.cat((f[:, :unit], torch.zeros_like(f[:, :1]), f[:, unit + 1 :]), -1)
        c = f * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        out.append(h)
    return torch.cat(out)


def test_a_gate_of_a_fused_module_is_held_from_a_step_on() -> None:
    torch.manual_seed(1)
    model = OnlyOutput(nn.LSTM(3, 4, batch_first=True)).double()
    x = torch.randn(1, 8, 3, dtype=D)
    kept = run(model, x, "rnn.l0:gate/forget[2]=0@3", only=())
    torch.testing.assert_close(kept.array("rnn.l0:h", 0), model(x)[0].detach())
    torch.testing.assert_close(kept.array("rnn.l0:h", 1), lstm_loop(model.rnn, x, 2, 3).detach())
    gate = kept.array("rnn.l0:gate/forget", 1)
    assert bool((gate[3:, 2] == 0).all()) and bool((gate[:3, 2] > 0).all())
    plain = kept.array("rnn.l0:gate/forget", 0)
    torch.testing.assert_close(gate[:3], plain[:3])
    one = {"jacobian/spectral_norm", "gradient/state_norm", "gate/input", "c"}
    assert {f"rnn.l0:{signal}" for signal in one} <= kept.names()


class Loop(nn.Module):
    """A cell in a loop that gives it no first state."""

    def __init__(self, cell: nn.Module) -> None:
        super().__init__()
        self.rnn = cell

    def forward(self, x: Tensor) -> Tensor:
        state: Any = None
        out = []
        for t in range(x.shape[1]):
            state = self.rnn(x[:, t], state)
            out.append(state[0] if isinstance(state, tuple) else state)
        return torch.stack(out, 1)


RELU = {"nonlinearity": "relu"}
MODULES: dict[str, Any] = {
    "rnn": lambda: OnlyOutput(nn.RNN(3, 4, batch_first=True)),
    "relu": lambda: OnlyOutput(nn.RNN(3, 4, batch_first=True, **RELU)),
    "gru": lambda: OnlyOutput(nn.GRU(3, 4, batch_first=True)),
    "lstm": lambda: OnlyOutput(nn.LSTM(3, 4, batch_first=True)),
    "rnn cell": lambda: Loop(nn.RNNCell(3, 4)), "relu cell": lambda: Loop(nn.RNNCell(3, 4, **RELU)),
    "gru cell": lambda: Loop(nn.GRUCell(3, 4)), "lstm cell": lambda: Loop(nn.LSTMCell(3, 4)),
}  # fmt: skip


@pytest.mark.parametrize("kind", sorted(MODULES))
def test_both_frames_have_the_same_gates_and_before_the_edit_the_same_jacobians(kind: str) -> None:
    """What an edited run computes step by step is the module itself, its first step from zeros included."""
    torch.manual_seed(6)
    place = "rnn" if "cell" in kind else "rnn.l0"
    kept = run(MODULES[kind]().double(), torch.randn(1, 7, 3, dtype=D), f"{place}:h[1]=0@4", only=())
    kinds = {channel.name: channel.kind for channel in kept.records if isinstance(channel, Channel)}
    pages = [page for page in kept.records if isinstance(page, Page)]
    gates, weights = (
        [{p.channel for p in pages if p.frame == frame and kinds[p.channel] == sort} for frame in (0, 1)]
        for sort in ("gate", "spectrum")
    )
    assert gates[0] == gates[1]
    if kind.startswith("lstm"):  # its gates lie one below the other in one product, which is taken apart by name
        assert {name for name in weights[0] if ":weight/" in name} == {
            name for name in weights[1] if ":weight/" in name
        }
    for signal in ("jacobian/spectral_norm", "jacobian/frobenius_norm"):
        first, second = (kept.array(f"{place}:{signal}", frame)[:4] for frame in (0, 1))
        torch.testing.assert_close(second, first, rtol=1e-6, atol=0)


def test_a_unit_of_a_state_is_ablated() -> None:
    torch.manual_seed(2)
    model = OnlyOutput(nn.GRU(3, 4, 2, batch_first=True)).double()
    x = torch.randn(1, 7, 3, dtype=D)
    kept = run(model, x, "rnn.l1:h[1]=0@2:5")
    h = kept.array("rnn.l1:h", 1)
    assert bool((h[2:5, 1] == 0).all()) and float(h[5, 1].abs()) > 0
    torch.testing.assert_close(kept.array("rnn.l0:h", 1), kept.array("rnn.l0:h", 0))
    torch.testing.assert_close(h[:2], kept.array("rnn.l1:h", 0)[:2])
    assert not torch.allclose(h[6], kept.array("rnn.l1:h", 0)[6])


class ByHand(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Linear(7, 8)

    def forward(self, x: Tensor) -> Tensor:
        h = x.new_zeros(x.shape[0], 4)
        out = []
        for t in range(x.shape[1]):
            z, n = self.w(torch.cat((x[:, t], h), -1)).chunk(2, -1)
            z = torch.sigmoid(z)
            n = torch.tanh(n)
            h = z * h + (1 - z) * n
            out.append(h)
        return torch.stack(out, 1)


def test_a_hand_written_gate_is_held() -> None:
    torch.manual_seed(3)
    model = ByHand().double()
    x = torch.randn(2, 6, 3, dtype=D)
    kept = run(model, x, "model:gate/z=1@2")
    h = kept.array("model:h", 1)
    torch.testing.assert_close(h[2:], h[1:2].expand(4, 4))
    assert not torch.allclose(kept.array("model:h", 0)[3], h[3])


def test_a_changed_token() -> None:
    torch.manual_seed(4)
    model = nn.Sequential(nn.Embedding(3, 4), OnlyOutput(nn.GRU(4, 5, batch_first=True)))
    kept = Kept()
    subject = Subject(model=model, kind="tokens", vocabulary="abc")
    batch = Batch(torch.tensor([[0, 1, 2, 0]]), torch.tensor([4]), (tuple("abca"),))
    perform_with_edits(subject, batch, kept, plan_edits(subject, batch, [parse_edit("input=c@1")]))
    expected = model(torch.tensor([[0, 2, 2, 0]]))[0].detach()
    torch.testing.assert_close(kept.array("1.rnn.l0:h", 1), expected)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ("rnn.l9:h=0", "no recurrence at 'rnn.l9'"), ("rnn.l0:gate/nose=0", "no 'gate/nose'; there are h"),
        ("rnn.l0:h[9]=0", "no unit 9"), ("rnn.l0:h=0@99", "no step 99"), ("input[0]=1@99", "steps 0 to 5"),
    ],
)  # fmt: skip
def test_edits_of_what_there_is_not(edit: str, said: str) -> None:
    model = OnlyOutput(nn.GRU(3, 4, batch_first=True))
    with pytest.raises(InputError, match=said):
        run(model, torch.randn(1, 6, 3), edit)
    assert "forward" not in vars(model.rnn)


@pytest.mark.parametrize(
    ("text", "edit"),
    [
        (
            "rnn.l0:gate/forget[3]=0@10:20",
            Edit(place="rnn.l0", signal="gate/forget", unit=3, value=0.0, start=10, stop=20),
        ),
        ("rnn.l0:h=1.5", Edit(place="rnn.l0", signal="h", value=1.5)),
        ("input==@4", Edit(place="input", text="=", start=4)),
        ("input[2]=0.5@1:3", Edit(place="input", unit=2, value=0.5, text="0.5", start=1, stop=3)),
    ],
)
def test_the_form_of_an_edit(text: str, edit: Edit) -> None:
    assert parse_edit(text) == edit
    assert parse_edit(str(edit)) == edit


@pytest.mark.parametrize("text", ["", "h=0", "rnn:h", "rnn:h=x", "input=a", "rnn:h=0@5:2", "rnn:h[x]=0"])
def test_what_is_no_edit(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse_edit(text)


class Packs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(3, 4, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        lengths = torch.full((x.shape[0],), x.shape[1])
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
        out, _ = nn.utils.rnn.pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        return out


def test_packed_sequences() -> None:
    torch.manual_seed(5)
    model = Packs().double()
    kept = run(model, torch.randn(1, 6, 3, dtype=D), "rnn.l0:h[0]=0@3")
    h = kept.array("rnn.l0:h", 1)
    assert bool((h[3:, 0] == 0).all())
    torch.testing.assert_close(h[:3], kept.array("rnn.l0:h", 0)[:3])
    with pytest.raises(InputError, match="one sequence alone"):
        run(model, torch.randn(2, 6, 3, dtype=D), "rnn.l0:h[0]=0@3")


def test_edits_through_the_python_door() -> None:
    import inspector

    with inspector.run("char-gru", "Alice was", edits=["rnn.l0:h[3]=0@4"]) as capture:
        assert len(capture.frames) == 2 and not capture.array("rnn.l0:h", 1)[4:, 3].any()
        assert capture.array("rnn.l0:h", 0)[4:, 3].all()
    with pytest.raises(InputError, match="is no edit"):
        inspector.run("char-gru", "Alice was", edits=["what"])


@pytest.mark.parametrize(("kind", "batch"), [(nn.RNN, 1), (nn.GRU, 2), (nn.LSTM, 1), (nn.LSTM, 2)])
@pytest.mark.parametrize("options", [{"num_layers": 2}, {"num_layers": 3}, {"num_layers": 2, "bidirectional": True}])
def test_every_layer_of_a_module_can_be_edited(kind: Any, options: dict[str, Any], batch: int) -> None:
    """The loop over layers that the written-out module has is no recurrence, whatever it makes anew for each layer."""
    torch.manual_seed(0)
    rnn = kind(3, 4, batch_first=True, **options).double()
    x = torch.randn(batch, 6, 3, dtype=D)
    sides = ["", ".reverse"] if options.get("bidirectional") else [""]
    places = [f"rnn.l{layer}{side}" for layer in range(options["num_layers"]) for side in sides]
    values = {place: 0.25 + n / 64 for n, place in enumerate(places)}  # each its own: a layer is not taken for another
    kept = run(OnlyOutput(rnn), x, *(f"{place}:h[1]={value}@2" for place, value in values.items()))
    for place, value in values.items():
        after = kept.array(f"{place}:h", 1)[:, 1]
        changed = after[:-2] if place.endswith(".reverse") else after[2:]
        torch.testing.assert_close(changed, torch.full_like(changed, value))


class NamedS(nn.Module):
    """One step of a layer; a large sum makes it run a second time."""

    def __init__(s, width: int) -> None:
        super().__init__()
        s.x, s.h = nn.Linear(width, 3), nn.Linear(3, 3)

    def forward(s, x: Tensor, h: Tensor) -> Tensor:
        return torch.tanh(s.x(x) + s.h(h))


class Adaptive(nn.Module):
    """Two layers; `clamp` (layer, step) → value by hand, else None."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([NamedS(5), NamedS(3)])
        self.clamp: dict[tuple[int, int], float] = {}

    def forward(self, x: Tensor) -> Tensor:
        rows = list(x.unbind(1))
        for n, layer in enumerate(self.layers):
            h = rows[0].new_zeros(len(x), 3)
            for t in range(len(rows)):
                h = layer(rows[t], h)
                if (n, t) in self.clamp:
                    h = torch.full_like(h, self.clamp[n, t])
                if float(h.detach().sum()) > 6:
                    h = layer(rows[t], h)
                rows[t] = h
        return torch.stack(rows, 1)


def test_an_edit_reaches_its_layer_whatever_the_first_parameter_is_called() -> None:
    """The first layer makes one more call in the edited run: steps of the second one are counted by themselves."""
    torch.manual_seed(0)
    model, x = Adaptive().double(), torch.randn(1, 7, 5, dtype=D)
    kept = run(model, x, "layers.0:h=9@5:6", "layers.1:h=0.25@3:4")
    model.clamp = {(0, 5): 9.0, (1, 3): 0.25}
    expected = model(x)[0].detach()
    torch.testing.assert_close(kept.array("layers.1:h", 1)[:4], expected[:4])
    assert (expected[3] == 0.25).all()


@pytest.mark.parametrize("edit", ["rnn.l0:gate/forget[1]=0@2", "attn:head[0]=0"])
def test_the_run_that_finds_what_is_changed_says_so_and_can_be_cancelled(edit: str) -> None:
    """Of a long sequence it takes as long as the edited run itself."""

    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn, self.attn = nn.LSTM(4, 4, batch_first=True), nn.MultiheadAttention(4, 2, batch_first=True)

        def forward(self, x: Tensor) -> Tensor:
            states = self.rnn(x)[0]
            return cast(Tensor, self.attn(states, states, states)[0])

    subject = Subject(model=Both().eval(), kind="vectors", width=4)
    batch, told = Batch(torch.randn(1, 6, 4), torch.tensor([6])), list[tuple[float, float, str]]()
    options = RunOptions(progress=lambda done, total, text: told.append((done, total, text)))
    plan_edits(subject, batch, [parse_edit(edit)], options)
    assert told and set(told) == {(0.0, 0.0, LOOKED_FOR)}
    with pytest.raises(CancelledError):
        plan_edits(subject, batch, [parse_edit(edit)], replace(options, cancelled=lambda: True))
