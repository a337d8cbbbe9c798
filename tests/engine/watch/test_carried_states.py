"""Steps over which losses are propagated back, against loops whose windows are known, and the rule on them."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import inspector
from inspector.capture import Writer, open_capture
from inspector.diagnosis import diagnose
from inspector.records import Channel, Frame, Labels, Page, RunStart, RunStop, Scalar

CARRIED, NEEDED = "modules:carried/steps", "model:trial/reach"
State = Tensor | tuple[Tensor, Tensor] | None


class Model(nn.Module):
    """A recurrent layer that is given a state."""

    def __init__(self, kind: type[nn.RNNBase], batch_first: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.rnn = kind(2, 3, batch_first=batch_first)  # type: ignore[arg-type]

    def forward(self, x: Tensor, state: State = None) -> tuple[Tensor, State]:
        return self.rnn(x, state)  # type: ignore[no-any-return]


def cut(state: State) -> State:
    return (
        tuple(one.detach() for one in state) if isinstance(state, tuple) else None if state is None else state.detach()
    )  # type: ignore[return-value]


def recorded(
    path: Path,
    kind: type[nn.RNNBase],
    lengths: list[list[int]],
    keeps: Callable[[State], State],
    *,
    batch_first: bool = True,
) -> list[float]:
    """The series of a loop: each iteration calls the model on pieces of these lengths, in one backward pass."""
    model = Model(kind, batch_first)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    state: State = None
    with inspector.watch(model, optimizer, path, every=1, cost="full"):
        for pieces in lengths:
            total = torch.zeros(())
            for steps in pieces:
                out, state = model(torch.randn((4, steps, 2) if batch_first else (steps, 4, 2)), state)
                total = total + out.square().mean()
            optimizer.zero_grad()
            total.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            state = keeps(state)
    with open_capture(path) as capture:
        if CARRIED not in capture.channels:
            return []
        return np.ma.filled(np.ma.asarray(capture.array(CARRIED), float), np.nan).ravel().tolist()


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
@pytest.mark.parametrize("batch_first", [True, False])
def test_the_steps_from_one_cut_to_the_next(tmp_path: Path, kind: type[nn.RNNBase], batch_first: bool) -> None:
    found = recorded(tmp_path / "a.inspect", kind, [[5], [5], [7], [2, 3]], cut, batch_first=batch_first)
    # the first begins afresh; two pieces of one backward pass are linked
    assert found[-3:] == [5.0, 7.0, 5.0] and all(math.isnan(one) for one in found[:-3])


def test_states_that_are_not_handed_on_or_are_zero_are_none(tmp_path: Path) -> None:
    assert recorded(tmp_path / "a.inspect", nn.GRU, [[5], [5]], lambda _: None) == []
    zeros = recorded(tmp_path / "b.inspect", nn.GRU, [[5], [5]], lambda _: torch.zeros(1, 4, 3))
    assert all(math.isnan(one) for one in zeros)


def judged(
    path: Path,
    steps: list[float],
    shares: dict[int, float],
    loss: list[float],
    sequences: float = 64.0,
    lags: int = 40,
    stop: bool = True,
) -> list[tuple[str, str]]:
    """(severity, message) of the rule: steps by iteration, the share that an input tells by lag, and the loss."""
    needed = np.zeros((3, lags))
    for lag, share in shares.items():
        needed[:, lag] = share, 0.01, 1
    with Writer(path, RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0, label="0", step=0))
        for name, values, dims in (("training:loss", np.array(loss), ("iteration",)),
                                   (CARRIED, np.array(steps)[:, None], ("iteration", "module"))):  # fmt: skip
            title = "loss" if len(dims) == 1 else "steps"
            writer.write(
                Channel(name=name, kind="series", dims=dims, shape=(None,) * len(dims), dtype="float64", title=title)
            )
            writer.write(Page(name, 0, (0,) * len(dims), values))
        labels = {"statistic": ("share", "error", "certain")}
        writer.write(
            Channel(
                name=NEEDED,
                kind="trial",
                dims=("statistic", "lag"),
                shape=(3, lags),
                dtype="float64",
                title="n",
                labels=labels,
            )
        )
        writer.write(Page(NEEDED, 0, (0, 0), needed))
        writer.write(Scalar("trial/reach/sequences", 0, sequences))
        writer.write(Labels("module", ("rnn",)))
        if stop:
            writer.write(RunStop("done"))
    with open_capture(path) as capture:
        found = diagnose(capture, capture.frames)
    assert not found.broken
    return [(one.severity, one.message) for one in found.findings if one.id == "IN208"]


STAYS, FALLS = [2.0] * 80, list(np.linspace(2, 0.1, 80))
HALVED = [2.0] * 40 + [0.99] * 40, [2.0] * 40 + [1.01] * 40


@pytest.mark.parametrize(
    ("steps", "shares", "loss", "said"),
    [
        (8, {8: 0.9}, STAYS, "warning"), (9, {8: 0.9}, STAYS, ""),  # the last step of a piece reads 8 back
        (8, {8: 0.9}, HALVED[0], "info"), (8, {8: 0.9}, HALVED[1], "warning"),
        (8, {8: 0.9}, FALLS, "info"), (8, {8: 0.9}, STAYS[:1], "warning"), (8, {8: 0.9}, [math.nan] * 80, "warning"),
        (8, {8: 0.9, 3: 0.5}, STAYS, ""), (8, {8: 0.9, 3: 0.4}, STAYS, "warning"),  # a nearer one may tell the same
        (8, {}, STAYS, ""), (8, {8: math.nan}, STAYS, ""), (math.nan, {8: 0.9}, STAYS, ""),
        (24, {3: 0.9}, FALLS, "info"), (23, {3: 0.9}, FALLS, ""), (8, {0: 0.9}, FALLS, "info"),
    ],
)  # fmt: skip
def test_the_rule(tmp_path: Path, steps: float, shares: dict[int, float], loss: list[float], said: str) -> None:
    found = judged(tmp_path / "a.inspect", [float(steps)] * len(loss), shares, loss)
    assert [one for one, _ in found] == ([said] if said else [])


def test_what_the_rule_says_and_when_it_cannot_know(tmp_path: Path) -> None:
    ((_, short),) = judged(tmp_path / "s.inspect", [4.0] * 80, {8: 0.9}, STAYS, stop=False)
    assert short.startswith("the state of rnn comes without its gradient every 4 steps: a loss reaches no further, and "
                            "the data depend on inputs 8 steps back: one tells 90 % ± 1 %")  # fmt: skip
    ((_, long),) = judged(tmp_path / "l.inspect", [32.0] * 80, {2: 0.9}, FALLS)
    assert "16 times as far as any input tells something" in long
    assert not judged(tmp_path / "f.inspect", [4.0] * 80, {8: 0.9}, STAYS, sequences=7)
    assert not judged(tmp_path / "u.inspect", [64.0] * 80, {2: 0.9}, FALLS)  # lags beyond 39 were not looked at
