"""torch's fused modules called chunk by chunk: items and truncation of the graph as it ran, against a plain loop.

The reference is a loop over torch's own cells with a copy of the weights for every step, in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from kept import Kept, uncut
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform
from inspector.records import Log

D = torch.float64
IN, H, T, CHUNK = 3, 4, 9, 3
WEIGHTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
KINDS: dict[str, tuple[type[nn.RNNBase], Any]] = {
    "rnn": (nn.RNN, nn.RNNCell), "gru": (nn.GRU, nn.GRUCell), "lstm": (nn.LSTM, nn.LSTMCell),
}  # fmt: skip


def detach(state: Any) -> Any:
    return tuple(part.detach() for part in state) if isinstance(state, tuple) else state.detach()


def leaf(state: Any) -> Any:
    """Detached, and yet in need of a gradient: nothing flows on all the same."""
    return tuple(part.detach().requires_grad_() for part in state) if isinstance(state, tuple) else (
        state.detach().requires_grad_()
    )  # fmt: skip


def clone(state: Any) -> Any:
    """A copy that gradients flow through."""
    return tuple(part.clone() for part in state) if isinstance(state, tuple) else state.clone()


def memory(state: Any) -> Any:
    """Only c is detached."""
    return (state[0], state[1].detach())


CUTS: dict[str, tuple[Callable[[Any], Any], tuple[bool, ...]]] = {
    "detach": (detach, (True, True)), "leaf": (leaf, (True, True)), "clone": (clone, (False, False)),
    "memory": (memory, (False, True)),
}  # fmt: skip


class Chunks(nn.Module):
    def __init__(self, kind: str, cut: str, layers: int = 1) -> None:
        super().__init__()
        self.rnn, self.cut = KINDS[kind][0](IN, H, layers, batch_first=True), CUTS[cut][0]

    def forward(self, x: Tensor) -> Tensor:
        state, out = None, []
        for chunk in x.split(CHUNK, 1):
            y, state = self.rnn(chunk) if state is None else self.rnn(chunk, self.cut(state))
            out.append(y)
        return torch.cat(out, 1)


def contributions(rnn: nn.RNNBase, kind: str, cut: str, x: Tensor, layer: int) -> dict[str, Tensor]:
    """{weight: (t, k, …)}: the gradient of step t's loss for step k's own copy of one layer's weights."""
    layers = rnn.num_layers

    def copied() -> nn.Module:
        cell: nn.Module = KINDS[kind][1](*((IN, H) if len(cells) == 0 else (H, H))).double()
        for name in WEIGHTS:
            getattr(cell, name).data.copy_(getattr(rnn, f"{name}_l{len(cells)}"))
        return cell

    cells: list[list[nn.Module]] = []
    for _ in range(layers):
        cells.append([copied() for _ in range(T)])
    zero = x.new_zeros(1, H)
    states: list[Any] = [(zero, zero) if kind == "lstm" else zero for _ in range(layers)]
    found = {name: torch.zeros(T, T, *getattr(cells[layer][0], name).shape, dtype=D) for name in WEIGHTS}
    for t in range(T):
        y = x[None, t]
        for n in range(layers):
            if t and t % CHUNK == 0:
                states[n] = CUTS[cut][0](states[n])
            states[n] = cells[n][t](y, states[n])
            y = states[n][0] if kind == "lstm" else states[n]
        for name, items in found.items():
            gradients = torch.autograd.grad(
                y.square().sum(), [getattr(cell, name) for cell in cells[layer]], retain_graph=True,
                allow_unused=True, materialize_grads=True,
            )  # fmt: skip
            items[t] = torch.stack(gradients)
    return found


def run(model: nn.Module, b: int, look_at: int, *keys: str, alone: bool = False) -> tuple[Kept, Tensor]:
    torch.manual_seed(2)
    x, kept = torch.randn(b, T, IN, dtype=D), Kept()
    subject = Subject(model=model, kind="vectors", width=IN, loss=lambda out, batch: out.square().sum(-1))
    perform(subject, Batch(x, torch.tensor([T] * b), look_at=look_at), kept, RunOptions(only=keys, only_selected=alone))
    return kept, x[look_at]


CASES = [(kind, cut) for kind in KINDS for cut in CUTS if cut != "memory" or kind == "lstm"]


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize(("kind", "cut"), CASES)
def test_items_and_truncation_end_where_the_state_was_detached(kind: str, cut: str, layers: int) -> None:
    torch.manual_seed(0)
    model = Chunks(kind, cut, layers).double()
    kept, x = run(model, 2, 1, "bptt", "truncation", "gradient/lag_map")
    assert not uncut(kept)
    lag = torch.arange(T)[:, None] - torch.arange(T)
    for layer in range(layers):
        place = f"rnn.l{layer}"
        expected = contributions(model.rnn, kind, cut, x, layer)
        for own, items in expected.items():
            base = f"{place}:bptt/{own if kind == 'gru' or own.startswith('weight') else 'bias'}"
            if layer == layers - 1:  # at a lower layer the later losses arrive through the upper one
                np.testing.assert_allclose(kept.array(base), items.flatten(2).norm(dim=2), rtol=1e-9, atol=1e-13)
            assert kept.scalar(f"{base}/total_norm") == pytest.approx(float(items.sum((0, 1)).norm()), rel=1e-9)
            assert kept.scalar(f"{base}/check_error") < 1e-11
        shown = kept.array(f"{place}:gradient/lag_map")
        crossing = np.array([[k // CHUNK < t // CHUNK for k in range(T)] for t in range(T)])
        assert bool((shown[crossing] == 0).all()) == all(CUTS[cut][1][: 2 if kind == "lstm" else 1])
    own = [items for name, items in expected.items() if name != "bias_hh" or kind == "gru"]
    near, whole = (
        torch.cat([one[keep].sum(0).flatten() for one in own]) for keep in ((lag >= 0) & (lag < 2), lag >= 0)
    )
    error = float((near - whole).norm() / whole.norm())
    assert kept.array(f"{place}:truncation/all")[1, 1] == pytest.approx(error, rel=1e-7, abs=1e-12)


def test_truncation_beyond_a_chunk_changes_nothing_where_chunks_were_detached() -> None:
    torch.manual_seed(0)
    kept, _ = run(Chunks("lstm", "detach").double(), 1, 0, "truncation")
    error = kept.array("rnn.l0:truncation/all")[1]
    assert (error[: CHUNK - 1] > 0).all() and (error[CHUNK - 1 :] == 0).all()


class Steps(nn.Module):
    """torch's cell in a loop, the state detached at every third step or computed without gradient at first."""

    def __init__(self, kind: str, cut: str) -> None:
        super().__init__()
        self.rnn, self.cut = KINDS[kind][1](IN, H), cut

    def forward(self, x: Tensor) -> Tensor:
        zero = x.new_zeros(len(x), H)
        state, out = (zero, zero) if isinstance(self.rnn, nn.LSTMCell) else zero, []
        for t in range(T):
            if self.cut != "burn in" and t and t % CHUNK == 0:
                state = CUTS[self.cut][0](state)
            with torch.set_grad_enabled(self.cut != "burn in" or t >= CHUNK):
                state = self.rnn(x[:, t], state)
            out.append(state[0] if isinstance(state, tuple) else state)
        return torch.stack(out, 1)


@pytest.mark.parametrize(("kind", "cut"), CASES)
def test_a_loop_over_torchs_cells_that_detaches_has_the_items_of_the_graph_as_it_ran(kind: str, cut: str) -> None:
    torch.manual_seed(0)
    model = Steps(kind, cut).double()
    kept, x = run(model, 2, 1, "bptt")
    same = KINDS[kind][0](IN, H).double()
    for name in WEIGHTS:
        getattr(same, f"{name}_l0").data.copy_(getattr(model.rnn, name))
    assert not uncut(kept)
    for own, items in contributions(same, kind, cut, x, 0).items():
        base = f"rnn:bptt/{own if kind == 'gru' or own.startswith('weight') else 'bias'}"
        np.testing.assert_allclose(kept.array(base), items.flatten(2).norm(dim=2), rtol=1e-9, atol=1e-13)
        assert kept.scalar(f"{base}/check_error") < 1e-11


@pytest.mark.parametrize("kind", KINDS)
def test_states_without_a_gradient_have_none_and_not_0(kind: str) -> None:
    torch.manual_seed(0)
    kept, _ = run(Steps(kind, "burn in").double(), 2, 1, "gradients", "bptt", "health")
    assert not uncut(kept)
    assert kept.array("rnn:health/gradient/state")[5] == 0, "not counted as NaN"
    assert any("need no gradient" in log.text for log in kept.of(Log))
    shown = kept.array("rnn:gradient/state_norm")
    assert np.isnan(shown[:CHUNK]).all() and (shown[CHUNK:] > 0).all()
    assert kept.scalar("rnn:bptt/weight_hh/check_error") < 1e-11
    assert (kept.array("rnn:bptt/weight_hh")[:, :CHUNK] == 0).all()


class Twice(nn.Module):
    """One module reads two sequences: its gradient is the sum over both."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(IN, H, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.rnn(x)[0] * self.rnn(x.flip(1) * 2)[0]


def test_a_module_that_is_called_for_two_sequences_has_items_of_each_and_their_sum_is_checked() -> None:
    torch.manual_seed(0)
    kept, _ = run(Twice().double(), 2, 0, "bptt")
    assert not kept.reasons()
    for place in ("rnn.l0", "rnn#2.l0"):
        assert kept.scalar(f"{place}:bptt/weight_hh/check_error") < 1e-12


class Doubled(nn.Module):
    """The loss reads the recurrent weight once more, beside the recurrence."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(IN, H, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.rnn(x)[0] @ self.rnn.weight_hh_l0[:H]


@pytest.mark.parametrize("frozen", [False, True])
def test_a_weight_that_cannot_be_confirmed_is_refused_alone(frozen: bool) -> None:
    torch.manual_seed(0)
    model = Twice().double() if frozen else Doubled().double()
    model.rnn.weight_hh_l0.requires_grad_(not frozen)
    kept, _ = run(model, 1, 0, "bptt")
    place, reason = "rnn.l0", kept.reasons()[0]
    assert f"{place}:bptt/weight_ih" in kept.names() and f"{place}:bptt/weight_hh" not in kept.names()
    assert ("is frozen" if frozen else "of the gradient of rnn.weight_hh_l0") in reason
    assert reason.startswith("The items of rnn.l0 weight_hh are not shown: ")


def test_of_one_recorded_sequence_of_a_batch_the_reason_is_that_the_others_are_missing() -> None:
    torch.manual_seed(0)
    kept, _ = run(Twice().double(), 2, 0, "bptt", alone=True)
    assert kept.reasons() and all(
        reason.endswith("only the selected sequence was recorded, and the model's gradient is that of all 2 sequences.")
        for reason in kept.reasons()
    )
