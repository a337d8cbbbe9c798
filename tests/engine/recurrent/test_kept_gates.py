"""Gates of nn.LSTM that the kernel kept are those of the equations, and are taken only where they prove to be these."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import inspector
from inspector.engine.cells import kept_gates as kept
from inspector.engine.cells.lstm import LstmStep
from inspector.engine.model.subject import Subject


class Net(nn.Module):
    """An LSTM with a head; `between` is called on its input."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.rnn = nn.LSTM(3, 5, batch_first=True, **options)
        self.before = nn.LSTM(3, 3, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.rnn(self.before(x)[0])[0]  # type: ignore[no-any-return]


def squares(out: Tensor, _batch: object) -> Tensor:
    return out.square().sum(-1)


def by_hand(x: np.ndarray, weights: list[Tensor]) -> dict[str, np.ndarray]:
    """One layer in float64, step by step."""
    w_ih, w_hh, b_ih, b_hh = (one.detach().double() for one in weights)
    h = c = torch.zeros(w_hh.shape[1], dtype=torch.float64)
    found: dict[str, list[Tensor]] = {
        name: [] for name in ("gate/input", "gate/forget", "candidate", "gate/output", "h", "c")
    }
    for row in torch.tensor(x.copy(), dtype=torch.float64):
        i, f, g, o = (w_ih @ row + b_ih + w_hh @ h + b_hh).chunk(4)
        i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
        c = f * c + i * g
        h = o * c.tanh()
        for name, value in zip(found, (i, f, g, o, h, c), strict=True):
            found[name].append(value)
    return {name: torch.stack(values).numpy() for name, values in found.items()}


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Steps of which the gates were computed by a product."""
    steps: list[int] = []
    own = LstmStep.inside

    def inside(self: LstmStep, x: Tensor, h: Tensor) -> tuple[Tensor, ...]:
        steps.append(len(x))
        return own(self, x, h)

    monkeypatch.setattr(LstmStep, "inside", inside)
    yield steps


X = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)


@pytest.mark.parametrize("options", [{}, {"num_layers": 2}, {"bidirectional": True, "num_layers": 2}], ids=str)
def test_gates_of_every_layer_and_direction(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    model = Net(**options)
    with (
        counted(monkeypatch) as steps,
        inspector.run(
            Subject(model=model, kind="vectors", width=3, loss=squares), X, only=["states", "gates"]
        ) as capture,
    ):
        assert steps and max(steps) <= 16, "only some steps are compared"
        x = np.asarray(capture.array("before.l0:h"))
        ends = [f"l{n}" for n in range(model.rnn.num_layers)]
        for end in ends:
            made = []
            for back in ("", "_reverse") if model.rnn.bidirectional else ("",):
                weights = [
                    getattr(model.rnn, f"{kind}_{end}{back}")
                    for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
                ]
                expected = by_hand(x[::-1] if back else x, weights)
                place = f"rnn.{end}{back.replace('_', '.')}"
                for name, values in expected.items():
                    values = values[::-1] if back else values
                    assert np.asarray(capture.array(f"{place}:{name}")) == pytest.approx(values, abs=3e-6), (
                        place,
                        name,
                    )
                made.append(expected["h"][::-1] if back else expected["h"])
            x = np.concatenate(made, 1)


Wrong = Callable[[Tensor], Tensor]


@pytest.mark.parametrize("wrong", [
    lambda gates: gates.roll(1, 0), lambda gates: gates.flip(-1), lambda gates: gates * 1.001,
    lambda gates: torch.cat([gates[:7], gates[7:8] + 0.01, gates[8:]]),  # one step that is not among those compared
], ids=["a step late", "in another order", "a little off", "wrong at one step"])  # fmt: skip
def test_what_is_not_the_gates_is_not_taken(wrong: Wrong, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    model = Net()
    subject = Subject(model=model, kind="vectors", width=3, loss=squares)
    own = kept.KeptGates.gates
    monkeypatch.setattr(kept.KeptGates, "gates", lambda self: wrong(own(self)))
    with counted(monkeypatch) as steps, inspector.run(subject, X, only=["states", "gates"]) as capture:
        assert len(X) in steps
        expected = by_hand(np.asarray(capture.array("before.l0:h")), list(model.rnn.parameters()))
        for name, values in expected.items():
            assert np.asarray(capture.array(f"rnn.l0:{name}")) == pytest.approx(values, abs=3e-6)


class Checkpointed(Net):
    """Whose steps are computed again in the backward pass."""

    def forward(self, x: Tensor) -> Tensor:
        return checkpoint(lambda given: self.rnn(given)[0], x, use_reentrant=False)  # type: ignore[no-any-return]


@pytest.mark.parametrize(("model", "change"), [
    (Checkpointed(), lambda model: model), (Net(), lambda model: model.double()),     (Net(), lambda model: model.requires_grad_(False)),
])  # fmt: skip
def test_where_nothing_is_kept_gates_are_computed(model: Net, change: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = change(model)
    calls = []
    if isinstance(model, Checkpointed):
        model.rnn.register_forward_hook(lambda *_: calls.append(1))
    subject = Subject(model=model, kind="vectors", width=3, loss=squares)
    with counted(monkeypatch) as steps, inspector.run(subject, X, only=["states", "gates"]) as capture:
        assert len(X) in steps
        assert "rnn.l0:gate/forget" in capture.channels
    assert len(calls) <= 2, "the forward pass, and once more in the backward pass"
