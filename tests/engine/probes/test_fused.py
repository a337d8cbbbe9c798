"""Fused modules laid open: every configuration against torch's own results and gradients."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import pytest
import torch
from kept import Kept
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

import inspector
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.probes.cells import Cells
from inspector.engine.probes.fused_rnn import FusedRnn
from inspector.engine.recurrent.fused import gradients as fused_gradients
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Recurrence, Trace
from inspector.records import Channel, Page

D = torch.float64


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
    wanted = [request.edge for request in trace.gradient_requests]
    named = dict(model.named_parameters())
    gradients = torch.autograd.grad(value, [*wanted, *named.values()], allow_unused=True)
    trace.hand_out_gradients()
    probe.detach()
    probe.finish(trace, emit)
    trace.after_the_states()
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


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_gradients_are_checked_piece_by_piece(monkeypatch: pytest.MonkeyPatch, kind: Any) -> None:
    """The pieces together give the input gradient of the whole, wherever they are cut, and a wrong one is noticed."""
    torch.manual_seed(12)
    model = kind(3, 4, 2, bidirectional=True, **({"proj_size": 2} if kind is nn.LSTM else {})).double()
    x = torch.randn(9, 2, 3, dtype=D)
    lengths = torch.tensor([9, 9])

    def differences() -> list[float]:
        found: list[float] = []
        whole = fused_gradients._one_segment

        def one(*given: Any, **named: Any) -> Any:
            result = whole(*given, **named)
            found.append(result[2][0])
            return result

        with monkeypatch.context() as patch:
            patch.setattr(fused_gradients, "_one_segment", one)
            trace, kept, _ = watch(model, lambda: model(x), lengths, loss)
        refused = [reason for reason in kept.reasons() if "differ from autograd's" in reason]
        assert bool(refused) == all(item.delta is None for item in trace.recurrences)
        return found

    for piece in (1, 2, 4, 8, 9, 100):
        monkeypatch.setattr(fused_gradients, "PIECE", piece)
        assert len(differences()) == 4 and max(differences()) < 1e-13
    monkeypatch.setattr(fused_gradients, "PIECE", 4)
    right = fused_gradients.sweep

    def scaled(*given: Any, **named: Any) -> Any:
        return tuple(1.001 * value for value in right(*given, **named))

    monkeypatch.setattr(fused_gradients, "sweep", scaled)
    assert max(differences()) > 1e-4

    def astray(*given: Any, **named: Any) -> Any:
        delta, to_input, first = right(*given, **named)
        delta[4] += 1e-3  # what flows from the second piece to the first
        return delta, to_input, first

    monkeypatch.setattr(fused_gradients, "sweep", astray)
    assert max(differences()) > 1e-5


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


@pytest.mark.parametrize("packed", [False, True])
def test_dropout_between_layers_is_drawn_again(packed: bool) -> None:
    """What training-mode dropout multiplied with is reproduced: states of every layer and weight gradients are exact."""
    torch.manual_seed(7)
    model = nn.LSTM(3, 8, 3, dropout=0.4).double().train()
    lengths = torch.tensor([5, 9] if packed else [9, 9])
    x = torch.randn(9, 2, 3, dtype=D)
    given = pack_padded_sequence(x, lengths, enforce_sorted=False) if packed else x
    state = torch.get_rng_state()
    plain = model(given)
    torch.set_rng_state(state)
    seen: list[Any] = []

    def call() -> Any:
        seen.append(model(given))
        return seen[-1]

    trace, kept, gradients = watch(model, call, lengths, loss)
    assert torch.equal(loss(plain), loss(seen[0])), "watching does not change what dropout draws"
    assert len(trace.recurrences) == 3 and not kept.refusals()
    for item in trace.recurrences:
        assert item.check is not None and item.check.passed and item.check.error < 1e-13
        suffix = item.place.partition(".")[2]
        torch.testing.assert_close(weight_gradient(item), gradients[f"weight_ih_{suffix}"], rtol=1e-9, atol=1e-12)


def test_dropout_whose_draws_are_unknown_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = nn.LSTM(3, 4, 2, dropout=0.5)
    x = torch.randn(5, 2, 3)
    monkeypatch.setattr("inspector.engine.probes.fused_rnn._Recorder.before", lambda *_: None)
    trace, kept, _ = watch(model.train(), lambda: model(x), torch.tensor([5, 5]), loss)
    assert len(trace.recurrences) == 1 and "Dropout" in kept.refusals()[0].reason
    trace, kept, _ = watch(model.eval(), lambda: model(x), torch.tensor([5, 5]), loss)
    assert len(trace.recurrences) == 2 and not kept.refusals()


def captured(model: nn.Module, call: Any) -> tuple[Trace, Kept]:
    """One sequence of five steps through `call` under the probe, without a loss."""
    trace = Trace(Subject(model=model), Batch(torch.zeros(1, 5, 1), torch.tensor([5])))
    kept = Kept()
    probe = FusedRnn()
    probe.attach(model, trace, Emitter(kept))
    call()
    probe.detach()
    probe.finish(trace, Emitter(kept))
    trace.after_the_states()
    return trace, kept


def test_weights_written_to_after_the_call_are_refused() -> None:
    model = nn.GRU(3, 4)

    def call() -> None:
        model(torch.randn(5, 1, 3))
        with torch.no_grad():
            model.weight_hh_l0.add_(0.5)

    trace, kept = captured(model, call)
    assert not trace.recurrences and "in place" in kept.refusals()[0].reason


def test_wrong_recomputations_are_refused() -> None:
    """Weights changed behind torch's back no longer reproduce the output: nothing derived from them is shown."""
    from inspector.engine.registries import QUANTITIES

    model = nn.GRU(3, 4)

    def call() -> None:
        model(torch.randn(5, 1, 3))
        model.weight_hh_l0.data.numpy()[:] += 0.5

    trace, kept = captured(model, call)
    assert not trace.recurrences[0].check.passed
    for key in ("states", "gates", "jacobian/spectral_norm"):
        QUANTITIES[key].run(trace, Emitter(kept))
    names = {record.name for record in kept.records if isinstance(record, Channel)}
    assert names == {"gru.l0:h"}
    assert any("differ from what the GRU produced" in refusal.reason for refusal in kept.refusals())


def test_outputs_overwritten_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small calls are copied, so what was there is shown; large ones are kept by reference and refused."""
    model = nn.RNN(3, 4)
    x = torch.randn(5, 1, 3)

    def call() -> None:
        with torch.no_grad():
            model(x)[0].mul_(0)

    trace, kept = captured(model, call)
    torch.testing.assert_close(trace.recurrences[0].states[1:], model(x)[0].detach())
    assert not kept.refusals()
    monkeypatch.setattr("inspector.engine.recurrent.fused.calls.OWN_BYTES", 0)
    trace, kept = captured(model, call)
    assert not trace.recurrences and "in place" in kept.refusals()[0].reason


def test_a_copy_of_a_watched_model_records_nothing() -> None:
    model = nn.Sequential(nn.GRU(3, 4))
    trace = Trace(Subject(model=model), Batch(torch.zeros(1, 5, 1), torch.tensor([5])))
    probe = FusedRnn()
    probe.attach(model, trace, Emitter(Kept()))
    twin = copy.deepcopy(model)
    twin(torch.randn(5, 1, 3))
    assert not probe._recorder.chains
    model(torch.randn(5, 1, 3))
    assert len(probe._recorder.chains) == 1
    probe.detach()
    assert not model[0]._forward_hooks


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
@pytest.mark.parametrize("detach", [False, True])
def test_calls_that_hand_their_state_on_are_one_walk(kind: Any, detach: bool) -> None:
    """Chunk by chunk, the states are those of one call; gradients too, unless the state is detached between."""
    torch.manual_seed(5)
    model = kind(3, 4, 2).double()
    x = torch.randn(9, 2, 3, dtype=D)

    def cut(state: Any) -> Any:
        if not detach:
            return state
        return tuple(s.detach() for s in state) if isinstance(state, tuple) else state.detach()

    def chunks() -> Any:
        first, state = model(x[:4])
        second, state = model(x[4:5], cut(state))
        third, state = model(x[5:], cut(state))
        return torch.cat((first, second, third)), state

    trace, kept, gradients = watch(model, chunks, torch.tensor([9, 9]), loss)
    whole, _, _ = watch(model, lambda: model(x), torch.tensor([9, 9]), loss)
    assert [item.place.partition(".")[2] for item in trace.recurrences] == ["l0", "l1"] and not kept.refusals()
    for item, other in zip(trace.recurrences, whole.recurrences, strict=True):
        torch.testing.assert_close(item.states, other.states)
        suffix = item.place.partition(".")[2]
        torch.testing.assert_close(weight_gradient(item), gradients[f"weight_ih_{suffix}"], rtol=1e-9, atol=1e-12)
        if not detach:
            torch.testing.assert_close(item.delta, other.delta)
            torch.testing.assert_close(item.arriving, other.arriving)
        else:
            assert not torch.allclose(item.delta[0], other.delta[0])


def test_autocast_is_checked_at_its_own_precision() -> None:
    model = nn.LSTM(3, 4, 2)

    def call() -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return model(torch.randn(6, 2, 3))

    trace, kept, _ = watch(model, call, torch.tensor([6, 6]), loss)
    assert all(item.check.passed for item in trace.recurrences) and not kept.refusals()


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


def test_a_cell_whose_state_is_set_back_at_every_step_is_told_and_not_shown() -> None:
    class Forgetful(Loop):
        def forward(self, x: Tensor) -> Tensor:
            return torch.stack([self.cell(row, torch.zeros(1, 4)) for row in x])

    loop = Forgetful(nn.GRUCell(3, 4))
    x = torch.randn(30, 1, 3)
    trace, kept, _ = watch(loop, lambda: (loop(x), ()), torch.tensor([30]), loss, Cells())
    assert not trace.recurrences
    (reason,) = kept.reasons()
    assert reason.startswith("cell is given a new state at every call")


def test_gradients_that_do_not_agree_are_not_said_to_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that is made of them gives the one reason: that they differ from autograd's."""
    right = fused_gradients.sweep
    monkeypatch.setattr(
        fused_gradients, "sweep", lambda *given, **named: tuple(1.001 * value for value in right(*given, **named))
    )
    torch.manual_seed(0)
    subject = Subject(
        model=nn.GRU(3, 4, batch_first=True), kind="vectors", loss=lambda y, _batch: y[0].square().sum(-1)
    )
    with inspector.run(subject, torch.randn(9, 3), only=["gradients", "gradient/lag_map", "bptt"]) as capture:
        reasons = {one.channel: one.reason for one in capture.refusals if one.channel.startswith("gru.l0:")}
    reasons = reasons or {one.channel: one.reason for one in capture.refusals}
    assert {name.partition(":")[2] for name in reasons} >= {"gradient/state_norm", "gradient/lag_map", "bptt"}
    assert all("differ from autograd's" in reason for reason in reasons.values()), reasons
