"""Fixed points at every held input, judged by torch's own cells and by the user's own modules, in float64."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from kept import Kept
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from inspector.engine.analyses.constant_inputs import numbered
from inspector.engine.cells.function_cell import FunctionStep
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform
from inspector.engine.quantities.dynamics import fixed_points as fixed_points_file
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Recurrence, Trace
from sample_models import cells

D = torch.float64
H, LENGTHS = 4, (30, 17)
KINDS = ["rnn", "relu", "gru", "lstm"]
Step = Callable[[Tensor], Tensor]
"""The slow way: one state (s,) to the next one."""


class Net(nn.Module):
    """Two layers in both directions, over vectors or over an embedding of ids."""

    def __init__(self, kind: str, vocabulary: int = 0) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, 3) if vocabulary else None
        options = {"num_layers": 2, "bidirectional": True, "batch_first": True}
        kinds = {"rnn": nn.RNN, "relu": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}
        more = {"nonlinearity": "relu"} if kind == "relu" else {}
        self.rnn: nn.RNNBase = kinds[kind](3, H, **options, **more)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        x = x if self.embedding is None else self.embedding(x)
        sequence = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return pad_packed_sequence(self.rnn(sequence)[0], batch_first=True)[0]


def observe(model: nn.Module, inputs: Tensor, look_at: int = 0, lengths: tuple[int, ...] = ()) -> tuple[Trace, Kept]:
    kept = Kept()
    tokens = not inputs.is_floating_point()
    subject = Subject(
        model=model, kind="tokens" if tokens else "vectors", vocabulary="abc\nefg" if tokens else None,
        width=None if tokens else inputs.shape[-1],
        forward=(lambda model, x, lengths: model(x, lengths)) if isinstance(model, Net) else None,
    )  # fmt: skip
    size = torch.tensor(lengths or [inputs.shape[1]] * len(inputs))
    return perform(subject, Batch(inputs, size, look_at=look_at), kept, RunOptions(only=("fixed_points",))), kept


def torchs_step(net: Net, place: str, x: Tensor) -> Step:
    """torch's own cell with the weights of one layer and direction, its input held."""
    layer = int(place.split(".l")[1][0])
    suffix = f"_l{layer}" + ("_reverse" if "reverse" in place else "")
    kind = {nn.LSTM: nn.LSTMCell, nn.GRU: nn.GRUCell}.get(type(net.rnn))
    cell = kind(len(x), H) if kind else nn.RNNCell(len(x), H, nonlinearity=net.rnn.nonlinearity)
    for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        getattr(cell, name).data = getattr(net.rnn, name + suffix).data
    if isinstance(cell, nn.LSTMCell):
        return lambda state: torch.cat(cell(x[None], (state[None, :H], state[None, H:])), 1)[0]
    return lambda state: cell(x[None], state[None])[0]


def judge(kept: Kept, place: str, steps: dict[str, Step]) -> dict[str, int]:
    """Every point stays where it is under the step that its input's label names; how many points each input has."""
    states = torch.tensor(kept.array(f"{place}:fixed_points/states"), dtype=D)
    numbers = kept.array(f"{place}:fixed_points/statistics")
    eigenvalues = kept.array(f"{place}:fixed_points/eigenvalues")
    names = kept.channel(f"{place}:fixed_points/inputs").labels["input"]
    assert set(names) == set(steps)
    for state, values, found in zip(states, numbers.T, eigenvalues, strict=True):
        speed, fixed, stable, radius, timescale, unstable, held = values
        step = steps[names[int(held)]]
        assert float((step(state) - state).detach().norm()) == pytest.approx(speed, abs=1e-9)
        assert fixed == (speed <= 1e-9 * (1 + float(state.norm())))
        moduli = np.abs(np.linalg.eigvals(torch.autograd.functional.jacobian(step, state).numpy()))
        np.testing.assert_allclose(np.hypot(*found.T), np.sort(moduli)[::-1], rtol=1e-5, atol=1e-6)
        assert radius == pytest.approx(moduli.max(), rel=1e-6) and stable == (radius < 1)
        assert unstable == (moduli > 1).sum()
        assert timescale == pytest.approx(1 / abs(math.log(radius)) if radius > 0 else 0, rel=1e-4)
    counts = np.bincount(numbers[6].astype(int), minlength=len(names))
    np.testing.assert_array_equal(kept.array(f"{place}:fixed_points/inputs"), counts)
    assert kept.scalar(f"{place}:fixed_points/count") == len(states) > 0
    assert (np.diff(numbers[6]) >= 0).all(), "by input"
    return dict(zip(names, counts.tolist(), strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_points_at_the_mean_at_zero_and_at_steps_of_a_series(kind: str) -> None:
    """Inputs that never come twice are held at six steps, numbered as in the sequence in both directions."""
    torch.manual_seed(0)
    net = Net(kind).double().eval()
    trace, kept = observe(net, torch.randn(2, 30, 3, dtype=D), 1, LENGTHS)
    assert len(trace.recurrences) == 4 and not kept.reasons()
    for item in trace.recurrences:
        x = item.x[:17, 1]
        rows = {"mean input": x.mean(0), "zero input": torch.zeros_like(x[0])}
        for t in (0, 3, 6, 10, 13, 16):
            rows[f"step {16 - t if item.reverse else t}"] = x[t]
        judge(kept, item.place, {name: torchs_step(net, item.place, row) for name, row in rows.items()})


@pytest.mark.parametrize("kind", KINDS)
def test_points_at_the_most_frequent_tokens(kind: str) -> None:
    """The first layer at the token's embedding; the one above at the mean of what it is given where the token is."""
    torch.manual_seed(1)
    net = Net(kind, vocabulary=7).double().eval()
    assert net.embedding is not None
    ids = torch.tensor([[0, 1, 1, 3, 3, 3, 2, 4, 4, 5, 5, 5, 6, 6, 6, 6], [2] * 16])
    trace, kept = observe(net, ids, 0, (16, 9))
    shown = {3: "'\n'", 6: "'g'", 5: "'f'", 1: "'b'", 4: "'e'", 0: "'a'"}  # 'c' comes once, as 'a' does, but later
    for item in trace.recurrences:
        given = item.x[:16, 0].flip(0) if item.reverse else item.x[:16, 0]
        rows = {"mean input": given.mean(0), "zero input": torch.zeros_like(given[0])}
        for number, name in shown.items():
            own = given[ids[0] == number]
            first = ".l0" in item.place
            exact = first or len(own) == 1
            rows[name if exact else f"mean at {name}"] = net.embedding.weight[number].detach() if first else own.mean(0)
        judge(kept, item.place, {name: torchs_step(net, item.place, row) for name, row in rows.items()})


def test_few_different_vectors_are_called_by_their_numbers() -> None:
    torch.manual_seed(0)
    net = Net("gru").double().eval()
    x = torch.tensor([[0.0, 1, 0], [1, 0, 0.25]], dtype=D)[torch.tensor([0, 1, 1, 0, 1] * 4)][None]
    _, kept = observe(net, x)
    first = kept.channel("rnn.l0:fixed_points/inputs").labels["input"]
    assert first == ("mean input", "zero input", "input 1, 0, 0.25", "input 0, 1, 0")
    above = kept.channel("rnn.l1:fixed_points/inputs").labels["input"]
    assert above[2:] == ("mean at input 1, 0, 0.25", "mean at input 0, 1, 0")


def test_rows_are_numbered_by_what_they_hold() -> None:
    rows = torch.tensor([[0.0, 1], [1, 1], [-0.0, 1], [1, 1], [0, 1.5]])
    found = numbered(rows)
    same = (rows[:, None] == rows[None]).all(2)
    assert torch.equal(found[:, None] == found[None], same) and found.tolist() == [0, 1, 0, 1, 2]
    assert numbered(torch.zeros(3, 0)).unique().numel() == 3
    ids = torch.randint(0, 5, (40, 1))
    assert torch.equal(numbered(ids)[:, None] == numbered(ids)[None], ids == ids.T)


def bistable(inputs: Tensor) -> Kept:
    """h' = tanh(2h + x) of one unit, at the distinct values of its inputs (t,); the states go through all of (−1, 1)."""
    cell = FunctionStep(lambda x, s: torch.tanh(2 * s + x), {"h": slice(0, 1)})
    x = inputs[:, None, None]
    states = torch.linspace(-1, 1, len(x) + 1, dtype=D)[:, None, None]
    item = Recurrence("mine", "Mine", cell, x, states, torch.tensor([len(x)]))
    kept = Kept()
    trace = Trace(Subject(model=nn.Identity(), kind="vectors"), Batch(x.transpose(0, 1), item.lengths), [item])
    QUANTITIES["fixed_points"].run(trace, Emitter(kept))
    return kept


def test_an_input_that_is_held_decides_how_many_points_there_are() -> None:
    """At 0: ±0.957504 stable and 0 with slope 2. At ±1 only one is left: the fold is at |x| = 2√½ − atanh√½ ≈ 0.533."""
    kept = bistable(torch.tensor([-1.0, 1.0] * 30, dtype=D))
    labels = kept.channel("mine:fixed_points/inputs").labels["input"]
    assert dict(zip(labels, kept.array("mine:fixed_points/inputs"), strict=True)) == {
        "mean input (zero input)": 3, "input -1": 1, "input 1": 1,
    }, "equal inputs once"  # fmt: skip
    points, numbers = kept.array("mine:fixed_points/states")[:, 0], kept.array("mine:fixed_points/statistics")
    own = numbers[6] == 0
    order = points[own].argsort()
    np.testing.assert_allclose(points[own][order], [-0.957504, 0.0, 0.957504], atol=1e-5)
    assert numbers[2][own][order].tolist() == [1, 0, 1] and numbers[5][own][order].tolist() == [0, 1, 0]
    np.testing.assert_allclose(numbers[3][own][order], [2 * (1 - 0.957504**2), 2.0, 2 * (1 - 0.957504**2)], rtol=1e-4)
    (alone,) = points[numbers[6] == 2]
    assert alone == pytest.approx(math.tanh(2 * alone + 1)) and alone > 0.9


class Stepping(nn.Module):
    """A cell of the user's own in a loop, over vectors or over an embedding of ids."""

    def __init__(self, cell: nn.Module, vocabulary: int = 0) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, 3) if vocabulary else nn.Identity()
        self.cell = cell

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(len(x), H, dtype=next(self.cell.parameters()).dtype)
        out = []
        for x_t in self.embedding(x).unbind(1):
            h = self.cell(x_t, h)
            out.append(h)
        return torch.stack(out, 1)


class Elman(nn.Module):
    """h' = tanh(U x + W h): what enters from outside is U x, whose mean is that of the mean input."""

    def __init__(self, gain: float = 1.0) -> None:
        super().__init__()
        self.u, self.w = nn.Linear(3, H), nn.Linear(H, H, bias=False)
        with torch.no_grad():
            self.w.weight.mul_(gain)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        return torch.tanh(self.u(x) + self.w(h))


class Mixed(Elman):
    """A step that goes through another type and back."""

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        return torch.tanh(self.u(x).double() + self.w(h)).float()


class InPlace(Elman):
    """A step that writes into what it has made."""

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        return self.w(h).add_(self.u(x)).tanh_()


class Branching(Elman):
    """Two programs: the state is halved where the input is negative."""

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        after = super().forward(x, h)
        return after if float(x[0, 0]) > 0 else 0.5 * after


def own_step(cell: nn.Module, x: Tensor) -> Step:
    return lambda state: cell(x[None], state[None])[0]


@pytest.mark.parametrize("make", [Elman, InPlace, lambda: cells.TextbookGruCell(3, H)])
@pytest.mark.parametrize("b", [1, 2])
def test_a_hand_written_step_is_run_again_at_what_it_was_given(make: Callable[[], nn.Module], b: int) -> None:
    torch.manual_seed(0)
    model = Stepping(make()).double().eval()
    x = torch.randn(b, 20, 3, dtype=D)
    trace, kept = observe(model, x, look_at=b - 1)
    (item,) = trace.recurrences
    assert not kept.reasons()
    rows = {"mean input": x[b - 1].mean(0)} | {f"step {t}": x[b - 1, t] for t in (0, 4, 8, 11, 15, 19)}
    steps = {name: own_step(model.cell, row) for name, row in rows.items()}
    if isinstance(model.cell, Elman):  # U x + b is computed before the step: it is 0, and not x
        steps["zero where the input enters"] = lambda state: torch.tanh(model.cell.w(state))
    else:
        steps["zero input"] = own_step(model.cell, torch.zeros(3, dtype=D))
    judge(kept, item.place, steps)


def test_a_hand_written_step_at_tokens_in_float64_although_the_model_is_not() -> None:
    torch.manual_seed(0)
    model = Stepping(Elman(3.0), vocabulary=7).eval()
    ids = torch.tensor([[0, 0, 0, 3, 3, 1, 0, 0]])
    trace, kept = observe(model, ids)
    (item,) = trace.recurrences
    entering = model.embedding(ids[0]).detach()
    model.double()
    rows = {"mean input": entering.double().mean(0)}
    rows |= {f"'{'abc'[i] if i < 3 else chr(10)}'": model.embedding.weight[i].detach() for i in (0, 3, 1)}
    place = item.place
    states, numbers = kept.array(f"{place}:fixed_points/states"), kept.array(f"{place}:fixed_points/statistics")
    names = kept.channel(f"{place}:fixed_points/inputs").labels["input"]
    zero = "zero where the input enters"
    assert set(names) == {*rows, zero} and len(states)
    steps = {name: own_step(model.cell, row) for name, row in rows.items()}
    steps[zero] = lambda state: torch.tanh(model.cell.w(state))
    for state, values in zip(torch.tensor(states), numbers.T, strict=True):
        moved = steps[names[int(values[6])]](state).detach() - state
        assert float(moved.norm()) == pytest.approx(values[0], abs=1e-6)  # what enters was rounded to float32
    assert (numbers[0][numbers[1] > 0] < 1e-9 * 3).all() and numbers[1].any()
    assert "float64" in kept.channel(f"{place}:fixed_points").method


def test_a_step_that_names_its_type_keeps_it_and_branches_have_no_mean() -> None:
    torch.manual_seed(0)
    _, kept = observe(Stepping(Mixed()).eval(), torch.randn(1, 20, 3))
    assert "precision of the model" in kept.channel("cell:fixed_points").method
    numbers = kept.array("cell:fixed_points/statistics")
    assert numbers[1].any() and numbers[0].max() < 1e-4
    x = torch.randn(1, 20, 3, dtype=D)
    model = Stepping(Branching()).double().eval()
    _, kept = observe(model, x)
    steps = {f"step {t}": own_step(model.cell, x[0, t]) for t in (0, 4, 8, 11, 15, 19)}
    judge(kept, "cell", steps)


class OwnFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, a: Tensor) -> Tensor:
        out = a.tanh()
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, gradient: Tensor) -> Tensor:
        return gradient * (1 - ctx.saved_tensors[0] ** 2)


class Opaque(Elman):
    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        found: Tensor = OwnFunction.apply(self.u(x) + self.w(h))
        return found


class Stack(nn.Module):
    """Layers one above the other."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(H, H) for _ in range(6))

    def forward(self, x: Tensor) -> Tensor:
        h = x[:, 0]
        for layer in self.layers:
            h = torch.tanh(layer(h))
        return h[:, None]


def test_what_cannot_be_run_from_other_states_is_refused_in_a_sentence() -> None:
    torch.manual_seed(0)
    for model, x, reason in (
        (Stepping(Opaque()), torch.randn(1, 12, 3), "autograd's graph"),
        (Stack(), torch.randn(1, 1, H), "is a layer"),
    ):
        kept = Kept()
        subject = Subject(model=model, kind="vectors", width=x.shape[-1], loss=lambda out, _: out.square().sum(-1))
        perform(subject, Batch(x, torch.tensor([x.shape[1]])), kept, RunOptions(only=("fixed_points",)))
        assert [r for r in kept.reasons() if reason in r], kept.reasons()
        assert not [name for name in kept.names() if "fixed_points" in name]


def test_the_cost_is_bounded_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starts × inputs: 64 from the trajectory at the first input, 16 at the others, 4 where a state is wide."""
    told: list[str] = []
    torch.manual_seed(0)
    net = Net("gru").double().eval()
    subject = Subject(model=net, kind="vectors", width=3, forward=lambda model, x, lengths: model(x, lengths))
    batch = Batch(torch.randn(1, 90, 3, dtype=D), torch.tensor([90]))
    for budget, first, rest in ((fixed_points_file.BUDGET, 64, 16), (0.0, 4, 4)):
        monkeypatch.setattr(fixed_points_file, "BUDGET", budget)
        told.clear()
        perform(subject, batch, Kept(), RunOptions(only=("fixed_points",), progress=lambda *said: told.append(said[2])))
        assert (
            f"fixed points of rnn.l0, mean input: {first} of {first + 7 * rest} searches of at most 200 steps" in told
        )
    monkeypatch.setattr(fixed_points_file, "LARGEST", 3)
    kept = Kept()
    perform(subject, batch, kept, RunOptions(only=("fixed_points",)))
    assert any("4 state entries cost too much" in reason for reason in kept.reasons())
