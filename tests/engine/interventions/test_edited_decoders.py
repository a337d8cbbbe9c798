"""Edited runs of modules that are called step by step in a loop of the user's: the recurrence is that of the unedited
run, whatever the loop computes from the state beside the module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from kept import Kept
from torch import Tensor, nn

from inspector.engine.errors import InputError
from inspector.engine.interventions.runs import perform_with_edits, plan_edits
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions
from inspector.records import Channel, Page, parse_edit

D = torch.float64
W, H, T = 3, 4, 7
OPTIONS = RunOptions(only=("states", "gates", "jacobian/lag", "jacobian/spectral_norm", "gradients"))


class Feeding(nn.Module):
    """What a step gives is a part of the next one's input."""

    def __init__(self, kind: type[nn.RNNBase], **options: Any) -> None:
        super().__init__()
        self.dec = kind(W + H, H, batch_first=True, **options)
        self.comb = nn.Linear(H, H)

    def next(self, y: Tensor) -> Tensor:
        return torch.tanh(self.comb(y))

    def forward(self, x: Tensor) -> Tensor:
        feed, out = x.new_zeros(len(x), H), []
        zero = x.new_zeros(self.dec.num_layers, len(x), H)
        state: Any = (zero, zero + 0) if isinstance(self.dec, nn.LSTM) else zero
        for t in range(x.shape[1]):
            y, state = self.dec(torch.cat([x[:, t : t + 1], feed[:, None]], -1), state)
            feed = self.next(y[:, 0])
            out.append(feed)
        return torch.stack(out, 1)


class Plain(Feeding):
    """Nothing of the state is fed back: the module is the recurrence."""

    def forward(self, x: Tensor) -> Tensor:
        state, out = None, []
        for t in range(x.shape[1]):
            y, state = self.dec(torch.cat([x[:, t : t + 1], x.new_zeros(len(x), 1, H)], -1), state)
            out.append(self.next(y[:, 0]))
        return torch.stack(out, 1)


class Prompted(Feeding):
    """The first steps are read in one call, the others are fed back."""

    def forward(self, x: Tensor) -> Tensor:
        head = torch.cat([x[:, :2], x.new_zeros(len(x), 2, H)], -1)
        y, state = self.dec(head)
        feed, out = self.next(y[:, -1]), [self.next(y[:, 0]), self.next(y[:, 1])]
        for t in range(2, x.shape[1]):
            y, state = self.dec(torch.cat([x[:, t : t + 1], feed[:, None]], -1), state)
            feed = self.next(y[:, 0])
            out.append(feed)
        return torch.stack(out, 1)


def run(model: nn.Module, *edits: str) -> Kept:
    kept = Kept()
    subject = Subject(model=model, kind="vectors", width=W, loss=lambda out, batch: out.square().sum(-1))
    batch = Batch(torch.linspace(-2, 2, T * W, dtype=D).sin().view(1, T, W), torch.tensor([T]))
    plan = plan_edits(subject, batch, [parse_edit(edit) for edit in edits], OPTIONS)
    perform_with_edits(subject, batch, kept, plan, OPTIONS)
    return kept


def places(kept: Kept) -> set[str]:
    return {name.partition(":")[0] for name in kept.names()} - {"input", "output", "parameters"}


Step = Callable[[int, Tensor], Tensor]


def step_of(model: Feeding, x: Tensor, clamp: dict[str, range]) -> Step:
    """(t, (feed, h)) → the next (feed, h) of a GRU of one layer, unit 2 of what is clamped held at 0.5."""
    w, u, v, s = (getattr(model.dec, f"{name}_l0") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))

    def held(name: str, value: Tensor, t: int) -> Tensor:
        if t not in clamp.get(name, ()):
            return value
        return torch.cat([value[:2], value.new_full((1,), 0.5), value[3:]])

    def step(t: int, state: Tensor) -> Tensor:
        feed, h = state.split(H)
        (r, z, n), (p, q, m) = (w @ torch.cat([x[t], feed]) + v).chunk(3), (u @ h + s).chunk(3)
        z = torch.sigmoid(z + q)
        h = held("state", (1 - z) * torch.tanh(n + torch.sigmoid(r + p) * m) + z * h, t)
        return torch.cat([held("feed", model.next(h), t), h])

    return step


@pytest.mark.parametrize("signal", ["state", "feed"])
def test_lags_of_an_edited_decoder_go_through_all_that_it_carries(signal: str) -> None:
    torch.manual_seed(0)
    model = Feeding(nn.GRU).double()
    kept = run(model, f"model:{signal}[2]=0.5@2:5")
    x = torch.linspace(-2, 2, T * W, dtype=D).sin().view(T, W)
    step = step_of(model, x, {signal: range(2, 5)})
    states = [torch.zeros(2 * H, dtype=D)]
    for t in range(T):
        states.append(step(t, states[-1]))
    leaves = [state.detach().requires_grad_() for state in states]
    jacobians = [torch.autograd.functional.jacobian(lambda s, t=t: step(t, s), leaves[t]) for t in range(T)]
    np.testing.assert_allclose(kept.array("model:feed", 1), torch.stack(states[1:])[:, :H].detach(), rtol=1e-9)
    np.testing.assert_allclose(kept.array("model:state", 1), torch.stack(states[1:])[:, H:].detach(), rtol=1e-9)
    norms = [float(torch.linalg.matrix_norm(one, 2)) for one in jacobians]
    np.testing.assert_allclose(kept.array("model:jacobian/spectral_norm", 1), norms, rtol=1e-6)
    lags = kept.array("model:jacobian/lag_map", 1)
    for start in range(T - 1):
        product = torch.eye(2 * H, dtype=D)
        for t in range(start + 1, T):
            product = jacobians[t] @ product
            shown = lags[start, t - start]
            np.testing.assert_allclose(shown, float(product.norm()) / (2 * H) ** 0.5, rtol=1e-6, err_msg=f"{start} {t}")


KINDS: list[tuple[type[nn.RNNBase], dict[str, Any]]] = [
    (nn.RNN, {}), (nn.GRU, {}), (nn.LSTM, {}), (nn.GRU, {"num_layers": 2}), (nn.LSTM, {"num_layers": 2}),
]  # fmt: skip


@pytest.mark.parametrize("how", [Feeding, Plain, Prompted])
@pytest.mark.parametrize(("kind", "options"), KINDS, ids=str)
def test_both_frames_have_the_same_recurrences(
    kind: type[nn.RNNBase], options: dict[str, Any], how: type[Feeding]
) -> None:
    """Every state and gate that the unedited run shows can be edited under its name, and is then what was asked for: the
    state alone, and all of them in one run, each with a value of its own."""
    torch.manual_seed(1)
    model = how(kind, **options).double()
    plain = run(model, "input[0]=0.1@0")
    names = sorted(
        channel.name
        for channel in plain.of(Channel)
        if channel.kind in ("state", "gate") and channel.dims == ("step", "unit")
    )
    assert names
    values = {name: 0.25 + n / 64 for n, name in enumerate(dict.fromkeys(names))}
    state = next(name for name in values if "/" not in name)
    for edited in ({state: 0.25}, values):
        kept = run(model, *(f"{name}[1]={value}@2:4" for name, value in edited.items()))
        assert places(kept) == places(plain) and not [r for r in kept.refusals() if r.frame]
        for name, value in edited.items():
            before, after = kept.array(name, 0), kept.array(name, 1)
            assert before.shape == after.shape and (after[2:4, 1] == value).all() and (before[2:4, 1] != value).all()
            np.testing.assert_allclose(before[:2], after[:2], rtol=1e-9)


def test_what_is_no_recurrence_of_its_own_is_no_place_of_an_edit() -> None:
    torch.manual_seed(2)
    with pytest.raises(InputError, match=r"no recurrence at 'dec\.l0' that can be edited; there are model"):
        run(Feeding(nn.GRU).double(), "dec.l0:h[2]=0@2:5")


class Short(nn.Module):
    """A second module reads two steps only, which are too few for a loop."""

    def __init__(self) -> None:
        super().__init__()
        self.dec, self.head = nn.GRU(W, H, batch_first=True), nn.GRU(W, H, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.dec(x)[0] + self.head(x[:, :2])[1][0][:, None]


def test_what_the_edited_frame_does_not_show_is_refused_there() -> None:
    torch.manual_seed(3)
    kept = run(Short().double(), "dec.l0:h[2]=0@2:5")
    assert kept.array("head.l0:h", 0).shape == (2, H)
    (refusal,) = [one for one in kept.refusals() if one.channel == "head.l0:h"]
    assert refusal.frame == 1 and "not found in the edited run" in refusal.reason


@pytest.mark.parametrize("how", [Feeding, Plain])
def test_an_edited_decoder_has_its_direct_path_memory_gate_and_timescale(
    how: type[Feeding], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The direct path of a GRU is its update gate, and 0 for a unit that is held."""
    monkeypatch.setattr(f"{__name__}.OPTIONS", RunOptions())
    torch.manual_seed(0)
    model = how(nn.GRU).double()
    place, signal = ("dec.l0", "h") if how is Plain else ("model", "state")
    kept = run(model, f"{place}:{signal}[2]=0.5@2:5")
    pages = {frame: {one.channel for one in kept.of(Page) if one.frame == frame} for frame in (0, 1)}
    wanted = {f"{place}:{name}" for name in ("path/direct_norm", "path/direct_share", "gate/memory",
                                             "gate/update/timescale")}  # fmt: skip
    assert wanted <= pages[0] & pages[1]
    x = torch.linspace(-2, 2, T * W, dtype=D).sin().view(T, W)
    w, u, v, s = (getattr(model.dec, f"{name}_l0") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    feed, h = torch.zeros(H, dtype=D), torch.zeros(H, dtype=D)
    for t in range(T):
        (r, z, n), (p, q, m) = (w @ torch.cat([x[t], feed]) + v).chunk(3), (u @ h + s).chunk(3)
        z = torch.sigmoid(z + q)
        h = (1 - z) * torch.tanh(n + torch.sigmoid(r + p) * m) + z * h
        direct = z.detach().clone()
        if t in range(2, 5):
            direct[2] = 0
            h = torch.cat([h[:2], h.new_full((1,), 0.5), h[3:]])
        feed = model.next(h) if how is Feeding else feed
        size = (2 * H if how is Feeding else H) ** 0.5
        shown = kept.array(f"{place}:path/direct_norm", 1)[t]
        np.testing.assert_allclose(shown, float(direct.norm()) / size, rtol=1e-9, err_msg=str(t))


def test_what_the_edited_frame_alone_lacks_has_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.OPTIONS", RunOptions())
    torch.manual_seed(0)
    kept = run(Feeding(nn.GRU, num_layers=2).double(), "model:state[2]=0.5@2:5")
    pages = {frame: {one.channel for one in kept.of(Page) if one.frame == frame} for frame in (0, 1)}
    missing = {name for name in pages[0] - pages[1] if name.startswith("model:")}
    refused = {one.channel: one.reason for one in kept.refusals() if one.frame == 1}
    assert "model:path/direct_norm" in missing and missing <= refused.keys()
    assert refused["model:path/direct_norm"].startswith("It is not known of the edited run")
