"""Edits of one layer of torch's modules: the edited frame against the model written out as a plain loop with the edit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from kept import Kept, uncut
from torch import Tensor, nn

from inspector.engine.interventions.runs import perform_with_edits, plan_edits
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions
from inspector.records import Edit

D = torch.float64
N, T = 4, 7
sigma, tanh = torch.sigmoid, torch.tanh


class Whole(nn.Module):
    def __init__(self, kind: type[nn.RNNBase], width: int, **options: Any) -> None:
        super().__init__()
        self.rnn = kind(width, N, **options)

    def time_first(self, x: Tensor) -> Tensor:
        return x if self.rnn.batch_first else x.transpose(0, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.time_first(self.rnn(self.time_first(x))[0])


class Chunks(Whole):
    """Three steps a call, the state passed on."""

    size = 3

    def pass_on(self, state: Any) -> Any:
        return state

    def forward(self, x: Tensor) -> Tensor:
        state, out = None, []
        for chunk in x.split(self.size, 1):
            y, state = self.rnn(self.time_first(chunk), state)
            state = self.pass_on(state)
            out.append(self.time_first(y))
        return torch.cat(out, 1)


class Detached(Chunks):
    def pass_on(self, state: Any) -> Any:
        return tuple(part.detach() for part in state) if isinstance(state, tuple) else state.detach()


class Stepwise(Chunks):
    size = 1


def layer(rnn: nn.RNNBase, number: int, back: bool, x: Tensor, edit: Edit) -> Tensor:
    """h of one layer in one direction, (t, b, h) in the order of the sequence, clamped as the edit says."""
    end = f"_l{number}" + ("_reverse" if back else "")
    w, u, v, s = (getattr(rnn, name + end) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    project = getattr(rnn, f"weight_hr{end}", None) if rnn.proj_size else None
    h, c, out = x.new_zeros(x.shape[1], u.shape[1]), x.new_zeros(x.shape[1], N), []
    place = f"rnn.l{number}" + (".reverse" if back else "")

    def held(signal: str, value: Tensor, t: int) -> Tensor:
        inside = edit.start <= t and (edit.stop is None or t < edit.stop)
        if edit.place != place or edit.signal != signal or not inside:
            return value
        value = value.clone()
        value[..., edit.unit] = edit.value
        return value

    for t, x_t in enumerate(x.flip(0) if back else x):
        a, b = x_t @ w.T + v, h @ u.T + s
        if isinstance(rnn, nn.LSTM):
            i, f, g, o = (a + b).chunk(4, -1)
            forget = held("gate/forget", sigma(f), t)
            c = held("c", forget * c + sigma(i) * tanh(g), t)
            h = sigma(o) * tanh(c)
            h = h if project is None else h @ project.T
        elif isinstance(rnn, nn.GRU):
            (r, z, n), (p, q, m) = a.chunk(3, -1), b.chunk(3, -1)
            z = held("gate/update", sigma(z + q), t)
            h = (1 - z) * tanh(n + sigma(r + p) * m) + z * h
        else:
            h = tanh(a + b)
        h = held("h", h, t)
        out.append(h)
    every = torch.stack(out)
    return every.flip(0) if back else every


def reference(rnn: nn.RNNBase, x: Tensor, edit: Edit) -> tuple[Tensor, dict[str, Tensor]]:
    """(output (b, t, ·), {place: h (b, t, ·)})."""
    x, states = x.transpose(0, 1), {}
    for number in range(rnn.num_layers):
        sides = [layer(rnn, number, back, x, edit) for back in ((False, True) if rnn.bidirectional else (False,))]
        for side, end in zip(sides, ("", ".reverse"), strict=False):
            states[f"rnn.l{number}{end}"] = side.transpose(0, 1)
        x = torch.cat(sides, -1)
    return x.transpose(0, 1), states


def edits_of(kind: type[nn.RNNBase], place: str) -> list[Edit]:
    own = {nn.LSTM: [("gate/forget", 0.9, 1, None), ("c", -0.4, 3, 5)], nn.GRU: [("gate/update", 0.1, 2, None)]}
    found = [("h", 0.7, 2, 4), *own.get(kind, [])]
    return [Edit(place=place, signal=s, unit=1, value=v, start=a, stop=z) for s, v, a, z in found]


def check(model: Whole, x: Tensor, edit: Edit, look_at: int = 0) -> None:
    subject = Subject(model=model, kind="vectors", width=x.shape[2], loss=lambda out, batch: out.square().sum(-1))
    batch, kept = Batch(x, torch.tensor([T] * len(x)), look_at=look_at), Kept()
    options = RunOptions(only=("states",))
    trace = perform_with_edits(subject, batch, kept, plan_edits(subject, batch, [edit], options), options)
    expected, states = reference(model.rnn, x, edit)
    assert not uncut(kept) and float((expected - model(x)).detach().abs().max()) > 1e-4, "the edit changes something"
    torch.testing.assert_close(trace.output, expected, rtol=1e-9, atol=1e-12, check_dtype=False)
    for place, value in states.items():
        np.testing.assert_allclose(kept.array(f"{place}:h", 1), value[look_at].detach(), rtol=1e-9, atol=1e-12)


OPTIONS: list[tuple[type[nn.RNNBase], int, dict[str, Any]]] = [
    (nn.LSTM, N, {"num_layers": 2}), (nn.LSTM, N, {"num_layers": 3}), (nn.LSTM, 3, {"num_layers": 2}),
    (nn.LSTM, N, {"num_layers": 2, "batch_first": True}), (nn.LSTM, 2, {"num_layers": 2, "proj_size": 2}),
    (nn.GRU, N, {"num_layers": 2}), (nn.RNN, N, {"num_layers": 2}), (nn.RNN, N, {"num_layers": 4}),
]  # fmt: skip
BOTH: list[tuple[type[nn.RNNBase], int, dict[str, Any]]] = [
    (nn.LSTM, N, {"num_layers": 2, "bidirectional": True}), (nn.GRU, 2 * N, {"num_layers": 3, "bidirectional": True}),
]  # fmt: skip


def in_turn(kind: type[nn.RNNBase], places: list[str], first: int) -> Iterator[Edit]:
    """Every edit of every place for the first module; for the others one a place, so that each kind of edit
    comes to each layer."""
    for n, place in enumerate(places):
        edits = edits_of(kind, place)
        yield from edits if first == 0 else [edits[(first + n) % len(edits)]]


IDS = {"ids": lambda value: getattr(value, "__name__", None)}


@pytest.mark.parametrize(("kind", "width", "options"), OPTIONS + BOTH, **IDS)
def test_the_edited_frame_is_the_model_run_with_the_edit(
    kind: type[nn.RNNBase], width: int, options: dict[str, Any]
) -> None:
    torch.manual_seed(0)
    model = Whole(kind, width, **options).double().eval()
    x = torch.randn(2, T, width, dtype=D)
    ends = ("", ".reverse") if options.get("bidirectional") else ("",)
    places = [f"rnn.l{n}{end}" for n in range(options["num_layers"]) for end in ends]
    for edit in in_turn(kind, places, (OPTIONS + BOTH).index((kind, width, options))):
        check(model, x, edit, look_at=1)


HOW = [Chunks, Detached, Stepwise]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(("kind", "width", "options"), OPTIONS[:1] + OPTIONS[3:6], **IDS)
def test_a_module_that_is_called_in_chunks_is_edited_at_any_step(
    how: type[Chunks], kind: type[nn.RNNBase], width: int, options: dict[str, Any]
) -> None:
    torch.manual_seed(0)
    model = how(kind, width, **options).double().eval()
    x = torch.randn(1, T, width, dtype=D)
    places = [f"rnn.l{n}" for n in range(options["num_layers"])]
    for edit in in_turn(kind, places, OPTIONS.index((kind, width, options)) + HOW.index(how)):
        check(model, x, edit)


def test_the_dynamics_of_an_edited_frame_do_not_depend_on_chunks() -> None:
    edit, found = Edit(place="rnn.l0", signal="h", unit=1, value=0.7, start=2, stop=4), []
    for how in (Whole, Chunks, Detached):
        torch.manual_seed(0)
        model = how(nn.LSTM, N, num_layers=2).double().eval()
        subject = Subject(model=model, kind="vectors", width=N, loss=lambda out, batch: out.square().sum(-1))
        batch, kept = Batch(torch.randn(1, T, N, dtype=D), torch.tensor([T])), Kept()
        options = RunOptions(only=("jacobian/spectral_norm", "bptt"))
        perform_with_edits(subject, batch, kept, plan_edits(subject, batch, [edit], options), options)
        assert not [one for one in kept.refusals() if "jacobian" in one.channel]
        found.append([kept.array(f"rnn.l{n}:jacobian/spectral_norm", 1) for n in range(2)])
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=1e-9)
