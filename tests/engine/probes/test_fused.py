"""Fused modules laid open: every configuration against torch's own results and gradients."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from inspector.engine.emitter import Emitter
from inspector.engine.probes.cells import Cells
from inspector.engine.probes.fused_rnn import FusedRnn
from inspector.engine.subject import Batch, Subject
from inspector.engine.trace import Recurrence, Trace
from inspector.records import Channel, Page, Refusal

D = torch.float64


class Kept:
    def __init__(self) -> None:
        self.records: list[Any] = []

    def write(self, record: Any) -> None:
        self.records.append(record)

    def refusals(self) -> list[Refusal]:
        return [record for record in self.records if isinstance(record, Refusal)]


def watch(
    model: nn.Module, call: Any, lengths: Tensor, loss: Any, probe: Any = None
) -> tuple[Trace, Kept, dict[str, Tensor]]:
    """Run `call()` under a probe with one backward pass; the trace, what was written, and the weight gradients."""
    trace = Trace(Subject(model=model), Batch(torch.zeros(len(lengths), int(lengths.max()), 1), lengths))
    kept = Kept()
    emit = Emitter(kept)
    probe = probe if probe is not None else FusedRnn()
    probe.attach(model, trace, emit)
    value = loss(call())
    wanted = [tensor for tensor, _ in trace.wants_gradient]
    named = dict(model.named_parameters())
    gradients = torch.autograd.grad(value, [*wanted, *named.values()], allow_unused=True)
    for (_, take), gradient in zip(trace.wants_gradient, gradients, strict=False):
        take(gradient)
    probe.detach()
    probe.finish(trace, emit)
    return trace, kept, dict(zip(named, gradients[len(wanted) :], strict=True))


def weight_gradient(recurrence: Recurrence) -> Tensor:
    """dL/dW_ih rebuilt from the total gradients δ_t, by autograd over single steps with the states held fixed."""
    cell: Any = copy.copy(recurrence.cell)
    cell.w_ih = cell.w_ih.clone().requires_grad_()
    after = cell.step(recurrence.x.flatten(0, 1), recurrence.states[:-1].flatten(0, 1))
    assert recurrence.delta is not None
    gradient: Tensor = torch.autograd.grad((after * recurrence.delta.flatten(0, 1)).sum(), cell.w_ih)[0]
    return gradient


def loss(out: Any) -> Tensor:
    output, final = out
    data = output.data if hasattr(output, "batch_sizes") else output
    finals = final if isinstance(final, tuple) else (final,)
    total: Tensor = data.double().square().sum() + sum(0.3 * part.double().sum() for part in finals)
    return total


CONFIGURATIONS = list(itertools.product([nn.RNN, nn.GRU, nn.LSTM], [1, 2], [False, True], [False, True], [False, True]))


@pytest.mark.parametrize(("kind", "layers", "both", "batch_first", "packed"), CONFIGURATIONS)
def test_states_gates_and_gradients(kind: Any, layers: int, both: bool, batch_first: bool, packed: bool) -> None:
    torch.manual_seed(0)
    model = kind(3, 4, layers, bidirectional=both, batch_first=batch_first).double()
    lengths = torch.tensor([4, 6] if packed else [6, 6])
    x = torch.randn((2, 6, 3) if batch_first else (6, 2, 3), dtype=D)
    given = pack_padded_sequence(x, lengths, batch_first=batch_first, enforce_sorted=False) if packed else x
    trace, kept, gradients = watch(model, lambda: model(given), lengths, loss)
    assert not kept.refusals() and len(trace.recurrences) == layers * (1 + both)
    for item in trace.recurrences:
        assert item.check is not None and item.check.passed and item.check.error < 1e-13
        suffix = item.place.partition(".")[2].replace(".", "_")
        torch.testing.assert_close(weight_gradient(item), gradients[f"weight_ih_{suffix}"], rtol=1e-9, atol=1e-12)
    assert trace.recurrences[0].place == f"{kind.__name__.lower()}.l0"


OPTIONS: list[dict[str, Any]] = [
    {"bias": False}, {"num_layers": 3}, {"dropout": 0.0, "num_layers": 2}, {"proj_size": 2}, {"proj_size": 2, "bidirectional": True, "num_layers": 2},
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:LSTM with projections")
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_lstm_options_and_dtypes(options: dict[str, Any], dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    model = nn.LSTM(3, 4, **options).to(dtype)
    x = torch.randn(7, 2, 3).to(dtype)
    trace, kept, _ = watch(model, lambda: model(x), torch.tensor([7, 7]), loss)
    assert not kept.refusals()
    for item in trace.recurrences:
        assert item.check is not None and item.check.passed, item.check
        assert item.delta is not None


def test_relu_unbatched_and_given_initial_states() -> None:
    torch.manual_seed(2)
    relu = nn.RNN(3, 4, nonlinearity="relu").double()
    trace, _, gradients = watch(relu, lambda: relu(torch.randn(5, 3, dtype=D)), torch.tensor([5]), loss)
    torch.testing.assert_close(weight_gradient(trace.recurrences[0]), gradients["weight_ih_l0"])
    lstm = nn.LSTM(3, 4, 2).double()
    first = (torch.randn(2, 3, 4, dtype=D), torch.randn(2, 3, 4, dtype=D))
    trace, _, gradients = watch(lstm, lambda: lstm(torch.randn(5, 3, 3, dtype=D), first), torch.full((3,), 5), loss)
    assert all(item.check.passed for item in trace.recurrences)
    torch.testing.assert_close(trace.recurrences[1].states[0], torch.cat((first[0][1], first[1][1]), -1))
    torch.testing.assert_close(weight_gradient(trace.recurrences[0]), gradients["weight_ih_l0"])


def test_a_module_called_twice_and_parametrised_weights() -> None:
    torch.manual_seed(3)
    model = nn.GRU(3, 3).double()
    nn.utils.parametrizations.orthogonal(model, "weight_hh_l0")
    x = torch.randn(5, 2, 3, dtype=D)
    trace, kept, _ = watch(model, lambda: model(model(x)[0]), torch.tensor([5, 5]), loss)
    assert [item.place for item in trace.recurrences] == ["gru.l0", "gru#2.l0"] and not kept.refusals()
    assert all(item.check.passed for item in trace.recurrences)


def test_dropout_between_layers_is_refused_in_training_only() -> None:
    model = nn.LSTM(3, 4, 2, dropout=0.5)
    x = torch.randn(5, 2, 3)
    trace, kept, _ = watch(model.train(), lambda: model(x), torch.tensor([5, 5]), loss)
    assert len(trace.recurrences) == 1 and "Dropout" in kept.refusals()[0].reason
    trace, kept, _ = watch(model.eval(), lambda: model(x), torch.tensor([5, 5]), loss)
    assert len(trace.recurrences) == 2 and not kept.refusals()


def test_wrong_recomputations_are_refused() -> None:
    """Weights changed after the call no longer reproduce the output: nothing derived from them is shown."""
    from inspector.engine.shelves import QUANTITIES

    model = nn.GRU(3, 4)
    x = torch.randn(5, 1, 3)

    def call() -> Any:
        out = model(x)
        with torch.no_grad():
            model.weight_hh_l0.add_(0.5)
        return out

    trace = Trace(Subject(model=model), Batch(torch.zeros(1, 5, 1), torch.tensor([5])))
    kept = Kept()
    probe = FusedRnn()
    probe.attach(model, trace, Emitter(kept))
    call()
    probe.detach()
    probe.finish(trace, Emitter(kept))
    assert not trace.recurrences[0].check.passed
    for key in ("states", "gates", "jacobian/spectral_norm"):
        QUANTITIES[key].run(trace, Emitter(kept))
    names = {record.name for record in kept.records if isinstance(record, Channel)}
    assert names == {"gru.l0:h"}
    assert any("differ from what the GRU produced" in refusal.reason for refusal in kept.refusals())


def test_outputs_overwritten_in_place_are_refused() -> None:
    model = nn.RNN(3, 4)
    x = torch.randn(5, 1, 3)
    trace = Trace(Subject(model=model), Batch(torch.zeros(1, 5, 1), torch.tensor([5])))
    kept = Kept()
    probe = FusedRnn()
    probe.attach(model, trace, Emitter(kept))
    with torch.no_grad():
        model(x)[0].mul_(0)
    probe.detach()
    probe.finish(trace, Emitter(kept))
    assert not trace.recurrences and "in place" in kept.refusals()[0].reason


def test_a_copy_of_a_watched_model_records_nothing() -> None:
    model = nn.Sequential(nn.GRU(3, 4))
    trace = Trace(Subject(model=model), Batch(torch.zeros(1, 5, 1), torch.tensor([5])))
    probe = FusedRnn()
    probe.attach(model, trace, Emitter(Kept()))
    twin = copy.deepcopy(model)
    twin(torch.randn(5, 1, 3))
    assert not probe._recorder.seen
    model(torch.randn(5, 1, 3))
    assert len(probe._recorder.seen) == 1
    probe.detach()
    assert not model[0]._forward_hooks


class Loop(nn.Module):
    """A user's own loop over a cell."""

    def __init__(self, cell: nn.Module) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, x: Tensor) -> Tensor:
        state: Any = None
        outputs = []
        for row in x:
            state = self.cell(row, state)
            outputs.append(state[0] if isinstance(state, tuple) else state)
        return torch.stack(outputs)


@pytest.mark.parametrize(("cell", "fused"), [(nn.RNNCell, nn.RNN), (nn.GRUCell, nn.GRU), (nn.LSTMCell, nn.LSTM)])
def test_a_loop_over_cells_equals_the_fused_module(cell: Any, fused: Any) -> None:
    torch.manual_seed(4)
    loop, whole = Loop(cell(3, 4)).double(), fused(3, 4).double()
    for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        getattr(whole, f"{name}_l0").data.copy_(getattr(loop.cell, name).data)
    x = torch.randn(70, 2, 3, dtype=D)
    lengths = torch.tensor([70, 70])
    ours, kept, _ = watch(loop, lambda: (loop(x), ()), lengths, loss, Cells())
    theirs, _, _ = watch(whole, lambda: (whole(x)[0], ()), lengths, loss)
    (a,), (b,) = ours.recurrences, theirs.recurrences
    torch.testing.assert_close(a.states, b.states)
    torch.testing.assert_close(a.delta, b.delta)
    assert a.check.passed and a.place == "cell"
    pages = [record for record in kept.records if isinstance(record, Page) and record.channel == "cell:h"]
    assert len(pages) >= 3, "pages are written while the loop runs"
    torch.testing.assert_close(torch.cat([torch.from_numpy(page.array.copy()) for page in pages]), b.states[1:, 0, :4])


def test_several_walks_of_one_cell_are_told_apart() -> None:
    loop = Loop(nn.GRUCell(3, 4))
    x = torch.randn(6, 1, 3)
    trace, _, _ = watch(loop, lambda: (loop(x) + loop(x), ()), torch.tensor([6]), loss, Cells())
    assert [item.place for item in trace.recurrences] == ["cell", "cell#2"]
