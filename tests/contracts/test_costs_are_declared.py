"""Every quantity says what it costs before it is computed: it declares its work, or is a few passes over the recording."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from counted_work import NOMINAL
from kept import Kept
from models import OnlyOutput
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import KeptTrace, RunOptions, analyse, perform
from inspector.engine.registries import QUANTITIES
from inspector.engine.session.catalogue import described
from inspector.engine.session.costs import Costs
from inspector.engine.trace.trace import Trace
from inspector.engine.trace.work import CHEAP_ORDER, run_size

STEPS, WIDTH, PASSES = 96, 24, 4
OF_DECLARED = ("latent/hidden_markov", "latent/kalman")
"""Of modules that say what they are; what these cost is tested in engine/latent/test_declared.py."""
MODELS: dict[str, Callable[[], nn.Module]] = {
    "lstm": lambda: OnlyOutput(nn.LSTM(WIDTH, WIDTH, batch_first=True)),
    "gru": lambda: OnlyOutput(nn.GRU(WIDTH, WIDTH, 2, batch_first=True)),
    "attention": lambda: nn.TransformerEncoderLayer(WIDTH, 2, 2 * WIDTH, 0.0, batch_first=True),
}


def recorded(name: str, steps: int = STEPS) -> KeptTrace:
    torch.manual_seed(0)
    subject = Subject(model=MODELS[name]().eval(), loss=lambda out, _batch: out.square().sum(-1))
    kept: list[KeptTrace] = []
    batch = Batch(torch.randn(1, steps, WIDTH), torch.tensor([steps]))
    perform(subject, batch, Kept(), RunOptions(only=("states",), also=("clipping",), keep=kept.append))
    return kept[0]


def multiplications(function: Callable[[], object]) -> int:
    counter = FlopCounterMode(display=False)
    with counter:
        function()
    return int(counter.get_total_flops())


def test_every_quantity_declares_its_work_or_is_cheap() -> None:
    for key, entry in QUANTITIES.items():
        assert entry.cheap != (entry.work is not None), f"{key}: give `work`, or an order below {CHEAP_ORDER}"
        assert described(key, entry).cheap == entry.cheap
    cheap = {key for key, entry in QUANTITIES.items() if entry.cheap}
    assert {"input", "states", "gates", "gradients", "output/loss", "output/probabilities"} <= cheap


@pytest.mark.parametrize("name", MODELS)
def test_what_is_cheap_takes_a_few_passes(name: str) -> None:
    kept = recorded(name)
    numbers = sum(value.numel() for value in kept.trace.subject.model.parameters())
    once = 2 * 3 * numbers * STEPS  # a product and a sum for each parameter; the backward pass takes two such passes
    for key in (key for key, entry in QUANTITIES.items() if entry.cheap):
        taken = multiplications(lambda key=key: analyse(kept.trace, kept.emit, [key]))  # type: ignore[misc]
        assert taken <= PASSES * once, f"{key} takes {taken / once:.1f} × forward and backward"


def test_declared_work_is_positive_and_grows_with_the_run() -> None:
    short, long = recorded("lstm", 24).trace, recorded("lstm", 96).trace
    for key, entry in QUANTITIES.items():
        if entry.work is not None:
            less, more = (NOMINAL.seconds(entry.work(run_size(trace))) for trace in (short, long))
            if key in OF_DECLARED:
                assert less == more == 0, f"{key}: an LSTM has no module of which this is computed"
            else:
                assert 0 < less <= more, key


def test_an_estimate_is_corrected_by_what_was_seen() -> None:
    short, long = recorded("lstm", 24).trace, recorded("lstm", 96).trace
    costs = Costs(NOMINAL)

    def counted(key: str, trace: Trace) -> float:
        return NOMINAL.seconds(QUANTITIES[key].work(run_size(trace)))  # type: ignore[misc]

    assert costs.estimate(["jacobian/lag"], [short])["jacobian/lag"] == pytest.approx(counted("jacobian/lag", short))
    costs.learn({"jacobian/lag": 2.0}, [short])
    grown = counted("jacobian/lag", long) / counted("jacobian/lag", short)
    told = costs.estimate(["jacobian/lag", "states"], [long])
    assert told == {"jacobian/lag": pytest.approx(2.0 * grown)}, "what is cheap has no estimate"
    other = costs.estimate(["lyapunov"], [short])["lyapunov"]
    expected = counted("lyapunov", short) / counted("jacobian/lag", short) * 2.0
    assert other == pytest.approx(expected), "of another quantity by the speed of those that were computed"
    assert sum(costs.estimate(["lyapunov"], list[Trace]()).values()) == 0
