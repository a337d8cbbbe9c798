"""A family of cells in a package of its own, in one file: everything works on it with no other edit."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from every_quantity import every_quantity
from kept import Kept
from own_family import MINIMAL_GRU, STATE_SPACE, TWO_PARTS
from torch import Tensor, nn

import inspector.engine.cells
from inspector.engine.cells.family import FAMILIES, families, sequence_family, step_family
from inspector.engine.interventions.runs import perform_with_edits, plan_edits
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform
from inspector.engine.trace.trace import Recurrence, Trace
from inspector.records import parse_edit
from inspector.registry import DoubleKeyError

D = torch.float64


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """The registry as it is before anybody has asked it, so that it looks again; put back afterwards."""
    FAMILIES.load()
    for name in ("_entries", "_origins"):
        monkeypatch.setattr(FAMILIES, name, dict(getattr(FAMILIES, name)))
    monkeypatch.setattr(FAMILIES, "_loaded", False)


@pytest.fixture
def installed(registry: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module of an installed package that offers both families through its entry points."""
    package, about = tmp_path / "other_cells", tmp_path / "other_cells-1.0.dist-info"
    package.mkdir()
    about.mkdir()
    (package / "__init__.py").write_text("")
    (package / "minimal_gru.py").write_text(MINIMAL_GRU)
    (package / "state_space.py").write_text(STATE_SPACE)
    (package / "two_parts.py").write_text(TWO_PARTS)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: other-cells\nVersion: 1.0\n")
    points = "".join(f"{name} = other_cells.{name}\n" for name in ("minimal_gru", "state_space", "two_parts"))
    (about / "entry_points.txt").write_text(f"[inspector.cells]\n{points}")
    monkeypatch.syspath_prepend(str(tmp_path))
    torch.manual_seed(0)
    yield lambda name: importlib.import_module(f"other_cells.{name}")
    for name in [name for name in sys.modules if name.partition(".")[0] == "other_cells"]:
        del sys.modules[name]


class Net(nn.Module):
    """A recurrent module, or a cell in a loop, as a model has it."""

    def __init__(self, rnn: nn.Module, *, loop: bool = False, zoneout: float = 0.0) -> None:
        super().__init__()
        self.rnn, self.loop, self.zoneout = rnn, loop, zoneout

    def forward(self, x: Tensor) -> Tensor:
        if not self.loop:
            out = self.rnn(x)
            return out[0] if isinstance(out, tuple) else out  # type: ignore[no-any-return]
        h: Any = None
        rows = []
        for row in x.unbind(1):
            new = self.rnn(row, h)
            h = new if h is None or not self.zoneout else self.zoneout * h + (1 - self.zoneout) * new
            rows.append(h)
        return torch.stack(rows, 1)


def loss(output: Tensor, batch: Batch) -> Tensor:
    """Squares of the output at every real step."""
    real = torch.arange(output.shape[1]) < batch.lengths[:, None]
    return torch.where(real, output.square().sum(-1), torch.nan)


def run(model: nn.Module, x: Tensor, lengths: list[int], quantities: tuple[str, ...] = ()) -> tuple[Trace, Kept]:
    """One run of the first sequence shown, with every quantity unless some are named."""
    subject, kept = Subject(model=model, kind="vectors", width=x.shape[-1], loss=loss), Kept()
    batch = Batch(x, torch.tensor(lengths))
    return perform(subject, batch, kept, RunOptions(only=quantities or every_quantity())), kept


def stepwise(kept: Kept, place: str, signal: str, frame: int = 0) -> Tensor:
    """A channel in the order in which its steps ran."""
    values = torch.from_numpy(kept.array(f"{place}:{signal}", frame))
    return values.flip(0) if "reverse" in place else values


def jacobian(item: Recurrence, own: nn.Module, t: int) -> Tensor:
    """∂s_t/∂s_(t − 1) of the first sequence by autograd over the module's own code of one step."""

    def step(h: Tensor) -> Tensor:
        after: Tensor = own(item.x[t, :1], h[None])[0]
        return after

    found: Tensor = torch.autograd.functional.jacobian(step, item.states[t, 0])
    return found


@pytest.mark.parametrize(("layers", "directions"), [(1, 1), (2, 1), (2, 2)])
def test_whole_sequences(installed: Any, layers: int, directions: int) -> None:
    """Layers, directions, a padded batch: states, gates, Jacobians, gradients, spectra and timescales are those of the code."""
    model = Net(installed("minimal_gru").MinimalGru(3, 5, layers, directions)).double()
    x = torch.randn(3, 9, 3, dtype=D)
    trace, kept = run(model, x, [9, 6, 9])
    assert not [reason for reason in kept.reasons() if "failed" in reason or "differ" in reason]
    ends = ["", ".reverse"][:directions]
    assert [item.place for item in trace.recurrences] == [f"rnn.l{n}{end}" for n in range(layers) for end in ends]
    torch.testing.assert_close(
        torch.from_numpy(np.concatenate([kept.array(f"rnn.l{layers - 1}{end}:h") for end in ends], 1)),
        model(x)[0].detach(),
    )
    for item in trace.recurrences:
        assert item.check is not None and item.check.passed and item.check.error < 1e-13
        assert item.module == "MinimalGru"
        own = getattr(model.rnn.steps, f"l{item.place[5]}d{int('reverse' in item.place)}")
        norms = torch.linalg.matrix_norm(torch.stack([jacobian(item, own, t) for t in range(9)]), 2)
        torch.testing.assert_close(stepwise(kept, item.place, "jacobian/spectral_norm"), norms, rtol=1e-6, atol=0)
        f = torch.sigmoid(item.x[:, 0] @ own.w[:5].T + own.b[:5] + item.states[:-1, 0] @ own.u[:5].T).detach()
        torch.testing.assert_close(stepwise(kept, item.place, "gate/keep"), f)
        assert kept.channel(f"{item.place}:gate/keep").title == "keep gate f"
        assert kept.scalar(f"{item.place}:gate/keep/keeps") == 0
        for name, part in zip(("keep", "candidate"), own.u.chunk(2), strict=True):
            values = torch.from_numpy(kept.array(f"{item.place}:weight/{name}/singular_values"))
            torch.testing.assert_close(values, torch.linalg.svdvals(part.detach()))
        real = torch.arange(9)[:, None] < item.lengths
        kept_part = 1 - item.cell.gates(item.x, item.states[:-1])["gate/keep"][real]
        tau = torch.from_numpy(kept.array(f"{item.place}:gate/keep/timescale"))
        torch.testing.assert_close(tau, -1 / kept_part.log().mean(0))


def test_gradients_through_all_layers_are_autograds(installed: Any) -> None:
    model = Net(installed("minimal_gru").MinimalGru(3, 5, 2, 2)).double()
    x = torch.randn(2, 7, 3, dtype=D)
    trace, kept = run(model, x, [7, 5], ("gradients", "bptt"))
    batch = Batch(x, torch.tensor([7, 5]))
    assert not kept.reasons() and {f"{item.place}:gradient/state_norm" for item in trace.recurrences} <= kept.names()
    for item in trace.recurrences:
        assert item.delta is not None and item.arriving is not None
        own = getattr(model.rnn.steps, f"l{item.place[5]}d{int('reverse' in item.place)}")
        wanted = torch.autograd.grad(loss(model(x), batch).nansum(), own.u)[0]
        leaf = own.u.detach().clone().requires_grad_()
        after = item.cell.with_parameters({"u": leaf}).step(item.x.flatten(0, 1), item.states[:-1].flatten(0, 1))
        found = torch.autograd.grad((after * item.delta.flatten(0, 1)).sum(), leaf)[0]
        torch.testing.assert_close(found, wanted)


def test_chunks_that_hand_their_state_on_are_one_sequence(installed: Any) -> None:
    rnn = installed("minimal_gru").MinimalGru(3, 5).double()

    class Chunked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = rnn

        def forward(self, x: Tensor) -> Tensor:
            first, state = self.rnn(x[:, :4])
            return torch.cat((first, self.rnn(x[:, 4:], hx=state)[0]), 1)

    x = torch.randn(2, 9, 3, dtype=D)
    trace, kept = run(Chunked(), x, [9, 9], ("states", "gradients"))
    assert [item.place for item in trace.recurrences] == ["rnn.l0"] and trace.recurrences[0].steps == 9
    torch.testing.assert_close(torch.from_numpy(kept.array("rnn.l0:h")), rnn(x)[0][0].detach())
    assert not kept.reasons()


def test_one_step_a_call(installed: Any) -> None:
    """A cell in a user's own loop, ended sequences of a batch included, is followed as torch's cells are."""
    model = Net(installed("minimal_gru").MinimalGruCell(3, 5), loop=True).double()
    x = torch.randn(3, 8, 3, dtype=D)
    trace, kept = run(model, x, [8, 5, 8])
    (item,) = trace.recurrences
    assert item.place == "rnn" and item.module == "MinimalGruCell" and item.check is not None and item.check.passed
    assert not [reason for reason in kept.reasons() if "failed" in reason]
    torch.testing.assert_close(torch.from_numpy(kept.array("rnn:h")), model(x)[0].detach())
    assert {"rnn:gate/keep", "rnn:candidate", "rnn:jacobian/spectral_norm", "rnn:gradient/state_norm"} <= kept.names()
    torch.testing.assert_close(item.block(3, 4).jacobian()[0, 0], jacobian(item, model.rnn, 3))


def test_a_cell_that_is_a_part_of_a_larger_step_is_shown_once(installed: Any) -> None:
    """With zoneout the loop is a recurrence of its own, as with torch's cells."""
    model = Net(installed("minimal_gru").MinimalGruCell(3, 5), loop=True, zoneout=0.3).double()
    trace, _ = run(model, torch.randn(1, 8, 3, dtype=D), [8], ("states",))
    assert [item.cell.family for item in trace.recurrences] == ["handwritten"]


def test_what_the_module_did_not_compute_is_refused(installed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    module = installed("minimal_gru")
    right = module.MinimalGruStep.eager_step
    model = Net(module.MinimalGru(3, 5)).double()
    trace, kept = run(model, torch.randn(1, 6, 3, dtype=D), [6], ("states", "gates"))
    assert "rnn.l0:gate/keep" in kept.names()
    wrong = lambda self, x, *state: tuple(1.001 * part for part in right(self, x, *state))  # noqa: E731
    monkeypatch.setattr(module.MinimalGruStep, "eager_step", wrong)
    trace, kept = run(model, torch.randn(1, 6, 3, dtype=D), [6], ("states", "gates"))
    assert trace.recurrences[0].check is not None and not trace.recurrences[0].check.passed
    assert kept.names() == {"rnn.l0:h"} and any(
        "differ from what the MinimalGru" in reason for reason in kept.reasons()
    )


def edited(model: nn.Module, x: Tensor, edit: str) -> Kept:
    """Two frames, the second with the edit."""
    subject, kept = Subject(model=model, kind="vectors", width=x.shape[-1], loss=loss), Kept()
    batch = Batch(x, torch.full((len(x),), x.shape[1]))
    perform_with_edits(subject, batch, kept, plan_edits(subject, batch, [parse_edit(edit)]))
    return kept


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize(("loop", "place"), [(False, "rnn.l1.reverse"), (False, "rnn.l0"), (True, "rnn")])
def test_a_gate_is_held(installed: Any, loop: bool, place: str, batch: int) -> None:
    """Both frames have the same places and gates; a gate that is held at 0 keeps the state."""
    module = installed("minimal_gru")
    rnn = module.MinimalGruCell(3, 5) if loop else module.MinimalGru(3, 5, 2, 2)
    model = Net(rnn, loop=loop).double()
    x = torch.randn(batch, 8, 3, dtype=D)
    kept = edited(model, x, f"{place}:gate/keep=0@3")
    plain, held = stepwise(kept, place, "h", 0), stepwise(kept, place, "h", 1)
    torch.testing.assert_close(held[:3], plain[:3])
    assert bool((held[3:] == held[2]).all()) and not torch.allclose(plain[4], held[4])
    assert not stepwise(kept, place, "gate/keep", 1)[3:].any()
    kept = edited(model, x, f"{place}:h[2]=0.5@2")
    assert bool((stepwise(kept, place, "h", 1)[2:, 2] == 0.5).all())


def test_a_layer_that_gives_something_else_than_its_state(installed: Any) -> None:
    """y = C s' + D x: the states are recomputed, and the check, gradients and edits go through the read-out."""
    model = Net(installed("state_space").StateSpace(3, 6, 2)).double()
    x = torch.randn(2, 9, 3, dtype=D)
    trace, kept = run(model, x, [9, 7])
    (item,) = trace.recurrences
    assert item.check is not None and item.check.passed and not [r for r in kept.reasons() if "failed" in r]
    s = torch.zeros(6, dtype=D)
    states = torch.stack([s := model.rnn.a @ s + model.rnn.b @ row for row in x[0]]).detach()
    torch.testing.assert_close(torch.from_numpy(kept.array("rnn.l0:h")), states)
    norms = torch.from_numpy(kept.array("rnn.l0:jacobian/spectral_norm"))
    torch.testing.assert_close(norms, torch.linalg.matrix_norm(model.rnn.a.detach(), 2).expand(9), rtol=1e-6, atol=0)
    assert item.delta is not None
    batch = Batch(x, torch.tensor([9, 7]))
    wanted = torch.autograd.grad(loss(model(x), batch).nansum(), model.rnn.a)[0]
    torch.testing.assert_close(torch.einsum("tbh,tbk->hk", item.delta, item.states[:-1]), wanted)
    again = edited(model, x, "rnn.l0:h[1]=0@4")
    assert not again.array("rnn.l0:h", 1)[4:, 1].any() and again.array("rnn.l0:h", 0)[4:, 1].all()


def test_a_state_of_two_parts_of_which_one_is_given(installed: Any) -> None:
    """c is recomputed beside the h that the module gave; inside the module its own cell is no walk of its own."""
    model = Net(installed("two_parts").Memory(3, 5)).double()
    x = torch.randn(2, 9, 3, dtype=D)
    trace, kept = run(model, x, [9, 7])
    (item,) = trace.recurrences
    assert item.place == "rnn.l0" and item.check is not None and item.check.passed and item.delta is not None
    assert not [reason for reason in kept.reasons() if "failed" in reason or "differ" in reason]
    cell, state, states = model.rnn.cell, None, []
    for row in x[:1].unbind(1):
        state = cell(row, state)
        states.append(torch.cat(state, -1)[0].detach())
    found = np.concatenate([kept.array("rnn.l0:h"), kept.array("rnn.l0:c")], 1)
    torch.testing.assert_close(torch.from_numpy(found), torch.stack(states))
    f = torch.from_numpy(kept.array("rnn.l0:gate/forget"))
    torch.testing.assert_close(torch.from_numpy(kept.array("rnn.l0:jacobian/carousel_norm")), f.amax(1))
    again = edited(model, x, "rnn.l0:gate/forget=1@4")
    c = torch.from_numpy(again.array("rnn.l0:c", 1))
    assert bool((c[4:] == c[3]).all()) and not np.allclose(c[5], again.array("rnn.l0:c", 0)[5])


def test_gradients_of_parts_that_may_hold_each_other_are_not_shown(installed: Any) -> None:
    """Autograd's ∂L/∂c of a cell holds the way through h; a family that does not say so is not guessed at."""
    model = installed("two_parts").MemoryCell(3, 5).double()

    class Loop(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = model

        def forward(self, x: Tensor) -> Tensor:
            state, out = None, []
            for row in x.unbind(1):
                state = self.cell(row, state)
                out.append(state[0])
            return torch.stack(out, 1)

    trace, kept = run(Loop(), torch.randn(1, 6, 3, dtype=D), [6], ("states", "gates", "gradients"))
    (item,) = trace.recurrences
    assert item.check is not None and item.check.passed and item.delta is None
    assert any("which of them are computed from each other" in reason for reason in kept.reasons())
    assert {"cell:h", "cell:c", "cell:gate/forget"} <= kept.names()


def test_torchs_own_families_load_and_say_what_they_are() -> None:
    FAMILIES.load()
    assert not FAMILIES.broken, FAMILIES.broken
    found = dict(families())
    assert {"rnn", "gru", "lstm"} <= set(found)
    for key, family in found.items():
        assert family.summary and "\n" not in family.summary and (family.modules or family.cells), key


def test_a_file_in_the_folder_is_found(registry: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No list names the families: a file that lies in the package is enough."""
    (tmp_path / "state_space.py").write_text(STATE_SPACE)
    monkeypatch.setattr(inspector.engine.cells, "__path__", [*inspector.engine.cells.__path__, str(tmp_path)])
    importlib.invalidate_caches()
    assert "state-space" in FAMILIES
    try:
        module = sys.modules["inspector.engine.cells.state_space"]
        assert sequence_family(module.StateSpace(3, 4, 2)) is not None
    finally:
        del sys.modules["inspector.engine.cells.state_space"]


def test_the_nearest_class_counts_and_two_claims_to_one_are_an_error(installed: Any) -> None:
    module = installed("minimal_gru")

    class Own(module.MinimalGru):  # type: ignore[name-defined, misc]
        pass

    assert isinstance(sequence_family(Own(3, 4)), module.MinimalGruFamily)
    assert sequence_family(nn.Linear(2, 2)) is None and step_family(nn.LSTM(2, 2)) is None

    @FAMILIES.register("another")
    class Another(module.MinimalGruFamily):  # type: ignore[name-defined, misc]
        pass

    with pytest.raises(DoubleKeyError, match=r"MinimalGru are claimed by both .*Another and .*MinimalGruFamily"):
        sequence_family(Own(3, 4))


def test_a_family_without_dropout_is_the_same_in_training(installed: Any) -> None:
    """A stack that names no dropout has none: layers of a module in training are reproduced as in evaluation."""
    rnn = installed("minimal_gru").MinimalGru(3, 4, layers=2).double()
    x = torch.randn(2, 6, 3, dtype=D)
    traces = [run(Net(rnn).train(training), x, [6, 6], ("states",))[0] for training in (False, True)]
    for still, trained in zip(traces[0].recurrences, traces[1].recurrences, strict=True):
        assert trained.check is not None and trained.check.passed
        torch.testing.assert_close(trained.states, still.states)


def of_another_name(s: Any, input: Tensor, hx: Tensor | None = None) -> Tensor:
    """The step of the minimal gated unit as its class has it, with another first parameter."""
    h = input.new_zeros(len(input), s.u.shape[1]) if hx is None else hx
    a, c = (input @ s.w.T + s.b).chunk(2, -1)
    u_f, u_n = s.u.chunk(2)
    f = torch.sigmoid(a + h @ u_f.T)
    return (1 - f) * h + f * torch.tanh(c + (f * h) @ u_n.T)


class Backwards(Net):
    """The last step first."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.flip(1))


@pytest.mark.parametrize("name", ["self", "s"])
def test_what_a_cell_reads_is_known_whatever_its_first_parameter_is_called(
    installed: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    family = installed("minimal_gru")
    if name == "s":
        monkeypatch.setattr(family.MinimalGruCell, "forward", of_another_name)
    trace, _ = run(Backwards(family.MinimalGruCell(3, 5), loop=True).double(), torch.randn(2, 9, 3, dtype=D), [9, 9])
    (item,) = trace.recurrences
    assert item.place == "rnn" and type(item.cell).__name__ != "ReplayStep"
    assert item.domain == "iteration of rnn"
