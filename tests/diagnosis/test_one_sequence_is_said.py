"""Rules that judge statistics of a run say of how many sequences these are; of one, that it is one alone."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

import inspector
from inspector.capture import open_capture
from inspector.diagnosis import RULES, diagnose
from inspector.diagnosis.units import of_how_many
from inspector.records import Channel
from tests.support.generated_run import Measured, judged, of_rule

RECORDED = Path(__file__).parents[2] / "sample_models" / "illnesses" / "recorded"
ILL = sorted(path.parent.parent.name for path in RECORDED.glob("*/ill/run.inspect"))
JUDGE = sorted(
    key for key, rule in RULES.items() if rule.scope == "frame" and rule.trust in ("statistical", "descriptive")
)
SAID = re.compile(r"one alone|saw only one|\d+ sequences")


def test_every_such_rule_says_it_of_the_recorded_trainings() -> None:
    said: dict[str, list[str]] = {}
    for name in ILL:
        with open_capture(RECORDED / name / "ill" / "run.inspect") as capture:
            for one in diagnose(capture, capture.frames).findings:
                if one.rule in JUDGE:
                    said.setdefault(one.rule, []).append(one.sure)
    assert sorted(said) == JUDGE
    assert [key for key, texts in said.items() if not all(SAID.search(text) for text in texts)] == []


class Stack(nn.Module):
    """Four tanh recurrences whose input weights are so small that no gradient comes down, or an LSTM that forgets."""

    def __init__(self, kind: type[nn.RNNBase], layers: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.rnn = kind(2, 6, num_layers=layers, batch_first=True)  # type: ignore[arg-type]
        with torch.no_grad():
            for name, weight in self.rnn.named_parameters():
                weight *= 0.01 if name.startswith("weight") else 0.0

    def forward(self, x: Tensor) -> Tensor:
        states: Tensor = self.rnn(x)[0]
        return states


@pytest.mark.parametrize(
    ("count", "ends"), [(1, "50 steps of one sequence; this run saw only one"), (3, "150 steps of 3 sequences")]
)
@pytest.mark.parametrize(("kind", "layers", "rule"), [(nn.RNN, 4, "depth-gradient"), (nn.LSTM, 1, "short-memory")])
def test_of_how_many_sequences_a_run_is(
    tmp_path: Path, kind: type[nn.RNNBase], layers: int, rule: str, count: int, ends: str
) -> None:
    x = torch.randn(count, 50, 2, generator=torch.Generator().manual_seed(1))
    only = ["gates", "timescale", "depth", "gradients"]
    subject = SimpleNamespace(model=Stack(kind, layers), loss=lambda y, batch: y[..., 0].square())
    inspector.run(subject, x, out=tmp_path / "a.inspect", only=only).close()
    with open_capture(tmp_path / "a.inspect") as capture:
        (found,) = (one for one in diagnose(capture, capture.frames).findings if one.rule == rule)
    assert found.sure.endswith(ends), found.sure


def test_a_stack_of_layers_that_is_one_recurrence_says_one_alone(tmp_path: Path) -> None:
    norms = Measured("gradient", ("step",), [1e-6, 1e-3, 1.0], {"domains": {"step": "layer"}})
    (found,) = of_rule(judged(tmp_path / "a.inspect", [{"layers:gradient/state_norm": norms}]), "depth-gradient")
    assert found.sure == "exact for the sequence that is shown, one alone"


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("exact; from 1 sequence, 1 step", "1 step of one sequence; this run saw only one"),
        ("exact; from 1,200 sequences, 36,000 steps", "36,000 steps of 1,200 sequences"),
        ("exact", "the steps of this run; of how many sequences they are was not recorded"),
    ],
)
def test_what_a_channel_says_of_it(method: str, said: str) -> None:
    channel = Channel(name="a:h/units", kind="unit", dims=("unit",), shape=(1,), dtype="float64", method=method)
    assert of_how_many(channel) == said
