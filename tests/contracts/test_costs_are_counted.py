"""What a run says before it computes is what it then does: work that is declared against operations that are counted.

Both at the same rates of an imagined machine: a test of counts, not of the time that this machine takes.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from counted_work import NOMINAL, CountedWork
from kept import Kept
from models import OnlyOutput
from torch import Tensor, nn

from inspector.engine.data_set import remaining, run_data_set
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import KeptTrace, RunOptions, analyse, chosen_quantities, perform
from inspector.engine.session.costs import Costs
from inspector.engine.session.rates import measured
from inspector.engine.trace.work import Work
from inspector.records import Frame, data_spec


class LstmByHand(nn.Module):
    """An LSTM as a loop."""

    def __init__(self, units: int) -> None:
        super().__init__()
        self.inner, self.fed = nn.Linear(units, 4 * units), nn.Linear(units, 4 * units)
        self.units = units

    def forward(self, x: Tensor) -> Tensor:
        h = c = x.new_zeros(len(x), self.units)
        seen = []
        for t in range(x.shape[1]):
            i, f, g, o = (self.inner(x[:, t]) + self.fed(h)).chunk(4, -1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
            seen.append(h)
        return torch.stack(seen, 1)


MODELS: dict[str, Callable[[int], nn.Module]] = {
    "lstm": lambda units: OnlyOutput(nn.LSTM(units, units, batch_first=True)),
    "gru": lambda units: OnlyOutput(nn.GRU(units, units, batch_first=True)),
    "by hand": LstmByHand,
}
SIZES = [
    *((name, steps, units) for name in MODELS for steps, units in ((64, 32), (512, 64))),
    ("lstm", 512, 256),
]


def recorded(name: str, steps: int, units: int) -> KeptTrace:
    torch.manual_seed(0)
    subject = Subject(model=MODELS[name](units).eval(), loss=lambda out, _batch: out.square().mean(-1))
    kept: list[KeptTrace] = []
    batch = Batch(torch.randn(1, steps, units), torch.tensor([steps]))
    perform(subject, batch, Kept(), RunOptions(only=("states",), also=("clipping",), keep=kept.append))
    return kept[0]


@pytest.mark.parametrize(("name", "steps", "units"), SIZES)
def test_the_default_quantities_do_what_was_estimated(name: str, steps: int, units: int) -> None:
    kept = recorded(name, steps, units)
    keys = chosen_quantities(RunOptions())
    told = Costs(NOMINAL).estimate(keys, [kept.trace])
    with CountedWork() as counted:
        analyse(kept.trace, kept.emit, keys)
    assert 0.5 <= sum(told.values()) / NOMINAL.seconds(counted.work) <= 2


@pytest.mark.parametrize(("steps", "units"), [(64, 32), (512, 64), (128, 128)])
def test_the_block_of_a_memory_that_is_factorised_at_each_step_is_estimated(steps: int, units: int) -> None:
    kept, key = recorded("by hand", steps, units), "jacobian/carousel_norm"
    told = Costs(NOMINAL).estimate([key], [kept.trace])
    with CountedWork() as counted:
        analyse(kept.trace, kept.emit, [key])
    assert 0.5 <= sum(told.values()) / NOMINAL.seconds(counted.work) <= 2


def test_jacobians_that_are_built_count_once_and_not_again() -> None:
    kept = recorded("by hand", 64, 16)
    costs, keys = Costs(NOMINAL), ["jacobian/frobenius_norm", "jacobian/spectral_radius"]
    before = costs.estimate(keys, [kept.trace])
    alone = costs.estimate(keys[1:], [kept.trace])["jacobian/spectral_radius"]
    assert before.keys() == set(keys) and alone == pytest.approx(sum(before.values()))
    analyse(kept.trace, kept.emit, keys[:1])
    after = costs.estimate(keys, [kept.trace])
    assert after == {"jacobian/spectral_radius": pytest.approx(before["jacobian/spectral_radius"])}


def test_what_two_quantities_find_together_counts_once() -> None:
    kept = recorded("lstm", 64, 16)
    together = Costs(NOMINAL).estimate(["jacobian/lag", "paths/lag"], [kept.trace])
    alone = Costs(NOMINAL).estimate(["paths/lag"], [kept.trace])
    assert together == {"jacobian/lag": pytest.approx(alone["paths/lag"])}


def test_the_rates_of_this_machine_are_positive_and_grow_with_the_matrix() -> None:
    rates = measured()
    assert min(rates.product, rates.wide, rates.number, rates.call) > 0
    for kind in rates.factors:
        assert 0 < rates.factor(kind, 8) <= rates.factor(kind, 300) < rates.factor(kind, 600)
    assert rates.seconds(Work(factors={("singular", 64): 2.0})) == pytest.approx(2 * rates.factors["singular"][64])


def test_many_sequences_are_told_what_the_rest_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock of operations, a millisecond each, instead of one of seconds."""
    done, at_note = CountedWork(), []
    monkeypatch.setattr(remaining.time, "perf_counter", lambda: done.kinds["calls"] / 1000)
    subject = Subject(model=OnlyOutput(nn.GRU(3, 4, batch_first=True)).eval(), kind="vectors", width=3)
    subject.data = list(torch.randn(8 + 256 * 8, 5, 3))
    options = RunOptions(note=lambda text: at_note.append((text, done.kinds["calls"])))
    monkeypatch.setattr(remaining, "LONG_SECONDS", 0.01)
    found: list[float] = []
    plain = remaining.Remaining.words
    monkeypatch.setattr(remaining.Remaining, "words", lambda self: (found.append(self.seconds), plain(self))[1])
    with done:
        run_data_set(subject, data_spec("subject"), Kept(), options, Frame(index=0))
    ((text, before),) = at_note
    left = (done.kinds["calls"] - before) / 1000
    assert text.startswith("The 2,056 sequences will take about ") and 0.5 <= found[-1] / left <= 2
