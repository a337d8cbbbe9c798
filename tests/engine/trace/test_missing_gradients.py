"""A gradient that a model cuts, or has nowhere, is not a zero: it is left out and the reason is in the capture."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from listed import Listed
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, adopt
from inspector.engine.pipeline import RunOptions, perform

STEPS, UNITS = 9, 4
Before = Callable[[Tensor, int], Tensor]


class Cut(nn.Module):
    """A tanh loop, or a cell; `before` is what is done to the state before each step."""

    def __init__(self, before: Before, *, cell: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.before = before
        self.x, self.h, self.cell = nn.Linear(3, UNITS), nn.Linear(UNITS, UNITS), nn.GRUCell(3, UNITS)
        self.out, self.is_cell = nn.Linear(UNITS, 1), cell

    def step(self, x: Tensor, h: Tensor) -> Tensor:
        found: Tensor = self.cell(x, h) if self.is_cell else torch.tanh(self.x(x) + self.h(h))
        return found

    def states(self, x: Tensor) -> list[Tensor]:
        h, found = x.new_zeros(len(x), UNITS), []
        for t in range(x.shape[1]):
            h = self.step(x[:, t], self.before(h, t))
            found.append(h)
        return found

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.out(torch.stack(self.states(x), 1))[..., 0]
        return scores


def at_six(h: Tensor, t: int) -> Tensor:
    return h.detach() if t == 6 else h


def data_at_six(h: Tensor, t: int) -> Tensor:
    return h.data if t == 6 else h


def in_place_at_six(h: Tensor, t: int) -> Tensor:
    return h.clone().detach_() if t == 6 else h


def every_third(h: Tensor, t: int) -> Tensor:
    return h.detach() if t % 3 == 0 else h


def always(h: Tensor, _t: int) -> Tensor:
    return h.detach()


def computed_without_at_six(h: Tensor, t: int) -> Tensor:
    with torch.set_grad_enabled(t != 6):
        return 1.0 * h


def never(h: Tensor, _t: int) -> Tensor:
    return h


def partly(h: Tensor, _t: int) -> Tensor:
    return 0.5 * h + 0.5 * h.detach()


def last(scores: Tensor, _batch: Batch) -> Tensor:
    """Only the last step carries a loss."""
    return torch.cat([torch.full_like(scores[:, :-1], torch.nan), scores[:, -1:]], 1)


def run(model: nn.Module, also: tuple[str, ...] = ("bptt", "truncation")) -> Listed:
    torch.manual_seed(1)
    sink = Listed()
    subject = SimpleNamespace(model=model, loss=last, kind="vectors", width=3)
    perform(adopt(subject), Batch(torch.randn(1, STEPS, 3), torch.tensor([STEPS])), sink, RunOptions(also=also))
    return sink


CUTS = [
    (at_six, (6,)), (data_at_six, (6,)), (in_place_at_six, (6,)), (every_third, (3, 6)), (always, range(1, STEPS))
]  # fmt: skip


@pytest.mark.parametrize("outside", [False, True])
def test_what_is_computed_without_gradients_in_the_middle_of_a_step_cuts_it(outside: bool) -> None:
    """Also where the run begins without them, as a probe of a training does inside the optimizer's step."""
    with torch.set_grad_enabled(not outside):
        sink = run(Cut(computed_without_at_six, cell=False))
    assert "before step 6" in sink.refusals()["model:gradient/past_cuts"]
    lags = sink.array("model:gradient/lag_map")
    assert lags[STEPS - 1, 6] > 0 and not np.nan_to_num(lags[STEPS - 1, :6]).any()


class HalfCut(nn.Module):
    """An LSTM cell, of whose state one part is detached after each step."""

    def __init__(self, part: str) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.cell, self.out, self.part = nn.LSTMCell(3, UNITS), nn.Linear(UNITS, 1), part

    def forward(self, x: Tensor) -> Tensor:
        state, found = None, []
        for t in range(x.shape[1]):
            h, c = self.cell(x[:, t], state)
            found.append(h)
            state = (h.detach(), c) if self.part == "h" else (h, c.detach())
        scores: Tensor = self.out(torch.stack(found, 1))[..., 0]
        return scores


@pytest.mark.parametrize("part", ["h", "c"])
def test_a_part_of_the_state_that_is_detached_is_told(part: str) -> None:
    sink = run(HalfCut(part))
    said = sink.refusals()["cell:gradient/detached_parts"]
    assert said.startswith(f"The model cuts the gradient of {part} of cell before each of 8 steps from 1 to 8")
    assert "cell:gradient/past_cuts" not in sink.refusals()


@pytest.mark.parametrize("cell", [False, True])
@pytest.mark.parametrize(("before", "cuts"), CUTS)
def test_a_gradient_that_is_cut_is_shown_as_cut(before: Before, cuts: tuple[int, ...], cell: bool) -> None:
    model = Cut(before, cell=cell)
    sink = run(model)
    place = "cell" if cell else "model"
    torch.manual_seed(1)
    states = model.states(torch.randn(1, STEPS, 3))
    truth = torch.autograd.grad(model.out(states[-1]).sum(), states, allow_unused=True)
    expected = [np.nan if one is None else float(one.norm()) for one in truth]
    np.testing.assert_allclose(sink.array(f"{place}:gradient/state_norm"), expected, rtol=1e-5)
    assert expected[: max(cuts)] == pytest.approx([np.nan] * max(cuts), nan_ok=True)
    reason = sink.refusals()[f"{place}:gradient/past_cuts"]
    assert "cuts the gradient" in reason and all(str(cut) in reason for cut in (min(cuts), max(cuts)))
    for signal in ("bptt", "truncation", "gradient/lag_map"):
        shown = any(name.startswith(f"{place}:{signal}") for name in sink.names())
        assert shown or f"{place}:{signal}" in sink.refusals()


class CutAfter(nn.Module):
    """An LSTM or a tanh loop whose state is detached after every third step, as chunks of a longer sequence are."""

    def __init__(self, *, lstm: bool, clone: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.all, self.out, self.lstm, self.clone = nn.Linear(3 + UNITS, 4 * UNITS), nn.Linear(UNITS, 1), lstm, clone
        self.x, self.h = nn.Linear(3, UNITS), nn.Linear(UNITS, UNITS)

    def states(self, x: Tensor) -> list[Tensor]:
        h, c, found = x.new_zeros(len(x), UNITS), x.new_zeros(len(x), UNITS), []
        for t in range(x.shape[1]):
            if self.lstm:
                i, f, g, o = self.all(torch.cat([x[:, t], h], -1)).chunk(4, -1)
                c = f.sigmoid() * c + i.sigmoid() * g.tanh()
                h = o.sigmoid() * c.tanh()
            else:
                h = torch.tanh(self.x(x[:, t]) + self.h(h))
            found.append(h)
            if t % 3 == 2:
                h, c = (h.detach().clone(), c.detach().clone()) if self.clone else (h.detach(), c.detach())
        return found

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.out(torch.stack(self.states(x), 1))[..., 0]
        return scores**2


@pytest.mark.parametrize("clone", [False, True])
@pytest.mark.parametrize("lstm", [False, True])
def test_a_state_that_is_detached_after_its_step_has_the_gradient_from_before(lstm: bool, clone: bool) -> None:
    model = CutAfter(lstm=lstm, clone=clone)
    x, sink = torch.randn(1, STEPS, 3), Listed()
    subject = SimpleNamespace(model=model, loss=lambda scores, _: scores, kind="vectors", width=3)
    perform(adopt(subject), Batch(x, torch.tensor([STEPS])), sink, RunOptions(only=("gradients",)))
    states = model.states(x)
    loss = sum((model.out(h)[..., 0] ** 2).sum() for h in states)
    truth = torch.autograd.grad(torch.as_tensor(loss), states)
    np.testing.assert_allclose(sink.array("model:gradient/state_norm"), [float(g.norm()) for g in truth], rtol=1e-4)
    assert "before steps 3 and 6" in sink.refusals()["model:gradient/past_cuts"]


@pytest.mark.parametrize("cell", [False, True])
@pytest.mark.parametrize("before", [never, partly])
def test_a_gradient_that_flows_is_not_said_to_be_cut(before: Before, cell: bool) -> None:
    sink = run(Cut(before, cell=cell))
    assert not any("past_cuts" in name for name in sink.refusals())


def hidden(model: Cut) -> nn.Module:
    model.requires_grad_(False)
    model.out.requires_grad_(True)
    return model


class WithoutGradients(Cut):
    def states(self, x: Tensor) -> list[Tensor]:
        with torch.no_grad():
            return super().states(x)


class Fused(nn.Module):
    """A fused module under no_grad, a layer over it that is trained."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.out = nn.GRU(3, UNITS, batch_first=True), nn.Linear(UNITS, 1)

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            h = self.rnn(x)[0]
        scores: Tensor = self.out(h)[..., 0]
        return scores


@pytest.mark.parametrize(
    ("model", "place", "reason"),
    [
        (hidden(Cut(never, cell=False)), "model", "need none (requires_grad=False)"),
        (hidden(Cut(never, cell=True)), "cell", "All weights of cell are frozen"),
        (WithoutGradients(never, cell=False), "model", "torch.no_grad"),
        (WithoutGradients(never, cell=True), "cell", "torch.no_grad"),
        (Fused(), "rnn.l0", "torch.no_grad"),
        (Cut(never, cell=False).requires_grad_(False), "model", "The loss needs no gradient"),
    ],
)
def test_a_part_without_a_gradient_says_why(model: nn.Module, place: str, reason: str) -> None:
    sink = run(model)
    assert f"{place}:h" in sink.names() and f"{place}:gradient/state_norm" not in sink.names()
    for signal in ("gradient/state_norm", "bptt", "truncation", "gradient/lag_map"):
        assert reason in sink.refusals()[f"{place}:{signal}"]


def test_without_a_loss_nothing_is_missing() -> None:
    sink = Listed()
    perform(adopt(Cut(at_six, cell=False)), Batch(torch.randn(1, STEPS, 3), torch.tensor([STEPS])), sink)
    assert not any("gradient" in name for name in sink.refusals())


@pytest.mark.parametrize("clone", [False, True])
@pytest.mark.parametrize("lstm", [False, True])
def test_a_state_that_is_detached_after_its_step_has_the_items_of_the_graph(lstm: bool, clone: bool) -> None:
    """Reference: autograd with a copy of the weight for every step."""
    model = CutAfter(lstm=lstm, clone=clone).double()
    x, sink = torch.randn(1, STEPS, 3, dtype=torch.float64), Listed()
    subject = SimpleNamespace(model=model, loss=lambda scores, _: scores, kind="vectors", width=3)
    perform(adopt(subject), Batch(x, torch.tensor([STEPS])), sink, RunOptions(only=("bptt", "gradient/lag_map")))
    layer, name = (model.all, "all") if lstm else (model.h, "h")
    original, copies = layer.weight, [layer.weight.detach().clone().requires_grad_() for _ in range(STEPS)]
    used = iter(copies)

    def own(_layer: nn.Module, given: tuple[Tensor, ...]) -> Tensor:
        return nn.functional.linear(given[0], next(used), layer.bias)

    layer.register_forward_hook(lambda one, given, _out: own(one, given))
    losses = (model.out(torch.stack(model.states(x), 1))[..., 0] ** 2)[0]
    items = torch.zeros(STEPS, STEPS, dtype=torch.float64)
    for t, loss in enumerate(losses):
        found = torch.autograd.grad(loss, copies, retain_graph=True, allow_unused=True, materialize_grads=True)
        items[t] = torch.stack([one.norm() for one in found])
    assert layer.weight is original and items[-1, 5] == 0 < items[-1, 6]
    np.testing.assert_allclose(sink.array(f"model:bptt/{name}.weight"), items, rtol=1e-9, atol=1e-13)
    assert (sink.array("model:gradient/lag_map")[6:, :6] == 0).all()
