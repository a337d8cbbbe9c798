"""Every sample model with a recurrence or layers written by hand, as trained, against its own cell and autograd.

States, step Jacobians, gates and gradients are compared in float64 with what the sample's own cell gives one step at a
time, with the equations of the gates written out beside it, and with the graph from one step's state to the loss.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pytest
import torch
from kept import Kept
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject, adopt
from inspector.engine.pipeline import RunOptions, perform
from inspector.engine.recurrent.traced.cells.replayed import ReplayRecurrence
from inspector.engine.session.in_process import make_batch
from inspector.records import Refusal
from sample_models import cells, deep
from sample_models.base import checkpoints, load
from sample_models.readers import TokenTransducer
from sample_models.train import cards

D = torch.float64
ROWS = ("S1", "S7", "S8", "S9", "S10")
TEXTS = ["Alice was beginning to get very tired of", "So she was considering"]


def by_hand() -> list[str]:
    """Names of the samples of these rows that use none of torch's recurrent modules."""
    found = []
    for name, stem in cards().items():
        module = importlib.import_module(f"sample_models.{stem}")
        if module.SAMPLE["row"] not in ROWS:
            continue
        if not any(isinstance(part, nn.RNNBase) for part in module.build().model.modules()):
            found.append(name)
    return found


SAMPLES = by_hand()


def sigma(a: Tensor) -> Tensor:
    return 1 / (1 + torch.exp(-a))


def affine(layer: nn.Linear, *parts: Tensor) -> Tensor:
    return torch.cat(parts, -1) @ layer.weight.T + layer.bias


def gates_beside(cell: nn.Module, x: Tensor | None, h: Tensor) -> dict[str, Tensor]:
    """The gates as their equations stand in the literature: x (i,), h (h,) → {signal: (n,)}."""
    if isinstance(cell, deep.PlainLayer):
        gates = {"candidate": torch.tanh(affine(cell.linear, h))} if type(cell) is not deep.PlainLayer else {}
        if isinstance(cell, deep.HardSkipLayer):
            soft = sigma(affine(cell.carry, h))
            return gates | {"gate/soft": soft, "gate/carry": (soft > 0.5).to(soft.dtype)}
        return gates | ({"gate/carry": sigma(affine(cell.carry, h))} if isinstance(cell, deep.DynamicSkipLayer) else {})
    assert x is not None
    layers: Mapping[str, nn.Linear] = {n: m for n, m in cell.named_children() if isinstance(m, nn.Linear)}
    if isinstance(cell, cells.TextbookGruCell):
        r, z = sigma(affine(cell.reset, x, h)), sigma(affine(cell.update, x, h))
        return {"gate/r": r, "gate/z": z, "candidate": torch.tanh(affine(cell.candidate, x, r * h))}
    if isinstance(cell, (cells.ElmanCell, cells.SkipThroughTime)):
        return {}
    suffix = "_gate" if isinstance(cell, cells.MixCell) else ""
    found = {f"gate/{n}{suffix}": sigma(affine(m, x, h)) for n, m in layers.items() if n != "candidate"}
    return {**found, "candidate": torch.tanh(affine(layers["candidate"], x, h))}


@dataclass
class Beside:
    """A sample beside its capture: `steps` are the functions from one state of one sample, (s,), to the next."""

    subject: Subject
    batch: Batch
    found: ReplayRecurrence
    cell: Callable[[int], nn.Module]
    inputs: Tensor | None
    state: Tensor

    def step(self, t: int, state: Tensor) -> Tensor:
        """The sample's own cell, one step, (s,) → (s,)."""
        cell = self.cell(t)
        if self.inputs is None:
            return cell(state)
        x = self.inputs[t][None]
        if isinstance(cell, cells.MixCell):
            h, c = state.chunk(2)
            return torch.cat(cell(x, (h[None], c[None])), -1)[0]
        return cell(x, state[None])[0]

    def as_function(self, t: int, state: Tensor) -> Tensor:
        """The same as a function of its values: a hard gate is constant, whatever slope it has in a backward pass."""
        cell = self.cell(t)
        if not isinstance(cell, deep.HardSkipLayer):
            return self.step(t, state)
        carry = (sigma(affine(cell.carry, state)) > 0.5).to(state.dtype)
        return (1 - carry) * torch.tanh(affine(cell.linear, state)) + carry * state

    def loss_from(self, t: int, state: Tensor) -> Tensor:
        """The sample's loss as a function of its whole state after step t, earlier states as they were: Σ of steps."""
        steps, n = self.found.steps, self.batch.look_at
        states = [*self.found.states[1 : t + 1, n], state]
        for later in range(t + 1, steps):
            states.append(self.step(later, states[-1]))
        model = self.subject.model
        if self.inputs is None:
            output = model.head(states[-1])[None, None]
            return self.subject.loss(output, self.batch).nansum()
        hidden = torch.stack([one[: model.rnn.hidden_size] for one in states])
        recurrent, model.rnn = model.rnn, Given(hidden, n, self.batch.inputs.shape[0])
        try:
            return self.subject.loss(self.subject.run(self.batch), self.batch)[n].nansum()
        finally:
            model.rnn = recurrent


class Given(nn.Module):
    """In the place of a recurrence: says what is given for one sample of the batch, 0 for the others."""

    def __init__(self, hidden: Tensor, n: int, batch: int) -> None:
        super().__init__()
        self.rows = [hidden if k == n else torch.zeros_like(hidden) for k in range(batch)]

    def forward(self, x: Tensor) -> tuple[Tensor, None]:
        return torch.stack(self.rows), None


def beside(name: str) -> Beside:
    stem = cards()[name]
    sample = importlib.import_module(f"sample_models.{stem}").build()
    load(sample.model, checkpoints(stem)[-1])
    sample.model.double().eval()
    subject = adopt(sample)
    tokens = isinstance(sample.model, TokenTransducer)
    batch = make_batch(subject, TEXTS if tokens else None, 0, 1 if tokens else 0)
    if batch.inputs.is_floating_point():
        batch.inputs = batch.inputs.double()
    kept = Kept()
    trace = perform(subject, batch, kept, RunOptions(only=("states",)))
    refused = [record.channel.rpartition(":")[2] for record in kept.records if isinstance(record, Refusal)]
    assert refused == (["gradient/detached_parts"] if name == "deep-hard" else []), "its gate learns by another's slope"
    (found,) = trace.recurrences
    assert isinstance(found, ReplayRecurrence) and found.check is not None and found.check.passed
    with torch.no_grad():
        if isinstance(sample.model, deep.DeepNet):
            first = torch.tanh(sample.model.read_in(batch.inputs))[0, 0]
            return Beside(subject, batch, found, lambda t: sample.model.layers[t], None, first)
        x = sample.model.embedding(batch.inputs) if tokens else batch.inputs
    zero = torch.zeros(found.cell.state_size, dtype=D)
    return Beside(subject, batch, found, lambda t: sample.model.rnn.cell, x[batch.look_at], zero)


@pytest.fixture(scope="module", params=SAMPLES)
def sample(request: pytest.FixtureRequest) -> Beside:
    return beside(request.param)


def looked_at(item: Beside) -> list[int]:
    steps = item.found.length(item.batch.look_at)
    return sorted({0, 1, steps // 2, steps - 2, steps - 1})


def test_the_shelf_has_the_samples_that_the_rows_ask_for() -> None:
    assert {"elman-relu", "elman-hardtanh", "skip-elman", "gru-textbook", "highway-rnn", "simplified-gate"} < set(
        SAMPLES
    )
    assert {"deep-plain", "deep-skip", "deep-dynamic", "deep-hard", "deep-highway"} < set(SAMPLES)
    assert {"ladder-mix", "ladder-two-gates", "ladder-lstm"} < set(SAMPLES)


def test_states_are_those_of_the_samples_own_cell(sample: Beside) -> None:
    n = sample.batch.look_at
    state = sample.state
    torch.testing.assert_close(sample.found.states[0, n], state, rtol=1e-12, atol=1e-13)
    with torch.no_grad():
        for t in range(sample.found.steps):
            state = sample.step(t, state)
            torch.testing.assert_close(sample.found.states[t + 1, n], state, rtol=1e-10, atol=1e-12)
    assert sample.found.steps > 10


def test_step_jacobians_are_those_of_the_samples_own_cell(sample: Beside) -> None:
    n = sample.batch.look_at
    found = sample.found.block(0, sample.found.steps).jacobian()[:, n]
    for t in looked_at(sample):
        exact = torch.autograd.functional.jacobian(
            lambda state, t=t: sample.as_function(t, state), sample.found.states[t, n].clone()
        )
        torch.testing.assert_close(found[t], exact, rtol=1e-10, atol=1e-12)
        assert float(exact.abs().max()) > 0


def test_gates_are_those_of_the_cells_equations(sample: Beside) -> None:
    n = sample.batch.look_at
    found = sample.found.block(0, sample.found.steps).gates
    for t in range(sample.found.steps):
        cell = sample.cell(t)
        h = sample.found.states[t, n]
        h = h[: cell.hidden_size] if isinstance(cell, cells.MixCell) else h
        with torch.no_grad():
            expected = gates_beside(cell, None if sample.inputs is None else sample.inputs[t], h)
        assert set(found) == set(expected)
        for signal, value in expected.items():
            torch.testing.assert_close(found[signal][t, n], value, rtol=1e-10, atol=1e-12)


def test_gradients_are_autograds_with_the_other_parts_of_the_state_held(sample: Beside) -> None:
    """∂L/∂s_t of the whole state, all its parts leaves: ∂L/∂c_t is then with h_t held fixed (trap 11)."""
    n = sample.batch.look_at
    assert sample.found.delta is not None
    for t in looked_at(sample):
        state = sample.found.states[t + 1, n].clone().requires_grad_()
        expected = torch.autograd.grad(sample.loss_from(t, state), state, materialize_grads=True)[0]
        torch.testing.assert_close(sample.found.delta[t, n], expected, rtol=1e-8, atol=1e-13)
    assert float(sample.found.delta[0, n].abs().max()) > 0
