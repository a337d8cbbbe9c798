"""What the command line says of a run before it ends: estimates, refusals that are known, and a line now and then."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from commands import call
from kept import Kept
from models import OnlyOutput
from torch import nn, randn, tensor

from inspector.cli.progress import Told
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import KeptTrace, RunOptions, perform
from inspector.engine.quantities.gradient import bptt as items
from inspector.engine.registries import QUANTITIES
from inspector.engine.session.costs import Costs, announcement, refused
from inspector.engine.trace.trace import Trace
from inspector.records import Progress


def recorded(units: int = 6, steps: int = 12) -> Trace:
    subject = Subject(
        model=OnlyOutput(nn.LSTM(3, units, batch_first=True)).eval(), loss=lambda out, _batch: out.square().sum(-1)
    )
    kept: list[KeptTrace] = []
    batch = Batch(randn(1, steps, 3), tensor([steps]))
    perform(subject, batch, Kept(), RunOptions(only=("states",), keep=kept.append))
    return kept[0].trace


def test_where_the_output_is_no_terminal_a_line_comes_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    with Told(every=0.01) as told:
        told.tell(Progress(done=1.0, total=4.0, text="norms of the products of Jacobians by lag"))
        told.tell(Progress(done=2.0, total=2.0, text="done"))  # of the part that is written first
        threading.Event().wait(0.2)
    lines = capsys.readouterr().err.splitlines()
    assert lines and all("s: norms of the products of Jacobians by lag, 25 % of this run" in line for line in lines)


def test_a_line_of_its_own_is_not_cut_to_the_width_of_a_bar(capsys: pytest.CaptureFixture[str]) -> None:
    text = "the tokens, vectors and other inputs of the model (1 of 45), then states, gates and what comes of them"
    with Told(every=0.01) as told:
        told.tell(Progress(done=1.0, total=4.0, text=text))
        threading.Event().wait(0.2)
    assert f"s: {text}, 25 % of this run" in capsys.readouterr().err


def test_before_anything_is_told_it_says_what_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    """`inspector export` of a capture said that a model is opened."""
    for given, said in (({}, "the model is opened"), ({"first": "the capture is opened"}, "the capture is opened")):
        with Told(every=0.01, **given):
            threading.Event().wait(0.2)
        assert f"s: {said}\n" in capsys.readouterr().err


def test_a_short_run_says_nothing_before_its_end(tmp_path: Path) -> None:
    told = call("run", "adding-elman", "--only", "states", "--out", "a.inspect", cwd=tmp_path).stderr.splitlines()
    assert len(told) == 2 and "will take" not in told[0] and told[1].startswith("a.inspect: ")


def test_what_takes_long_is_told_with_its_parts() -> None:
    assert announcement({"a": 0.5, "b": 2.0}, {}) == []
    (said,) = announcement({"lyapunov": 30.0, "jacobian/lag": 200.0, "states": 0.5}, {})
    assert said == "The quantities of this run will take about 4 min: jacobian/lag 3 min, lyapunov 30 s."


def test_a_map_that_can_only_be_refused_is_told_first_and_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = recorded(steps=12)
    keys = ["bptt", "truncation", "gradient/state_derivatives"]
    assert refused(keys, [trace]) == {} and Costs().estimate(keys, [trace]).keys() == set(keys)
    monkeypatch.setattr(items, "LONGEST", 11)
    (reason,) = refused(keys, [trace]).values()
    assert reason.startswith("The map of 12 × 12 steps is too large (limit 11)")
    assert Costs().estimate(keys, [trace]).keys() == {"truncation", "gradient/state_derivatives"}
    assert announcement({}, {"bptt": reason}) == [f"bptt will not be computed: {reason}"]


LIMITS = (
    ("bptt", "gradient.bptt.LONGEST", 5), ("truncation", "gradient.truncation.SWEEP_SECONDS", -1.0),
    ("gradient/lag_map", "gradient.gradient_map.too_long", lambda *_: True),
    ("influence", "gradient.influence.MOST_STEPS", 5), ("fixed_points", "dynamics.fixed_points.LARGEST", 5),
    ("weight/spectrum", "dynamics.weight_spectra.LARGEST", 5), ("lyapunov", "dynamics.lyapunov.MOST_COST", 1),
    ("jacobian/lag", "..analyses.lag_budgets.LARGEST", 5),
    ("jacobian/eigenvalues", "jacobian.jacobian_eigenvalues.LARGEST", 5),
    ("jacobian/spectral_radius", "jacobian.jacobian_radius.LARGEST", 5),
)  # fmt: skip


@pytest.mark.parametrize(("key", "name", "value"), LIMITS, ids=[key for key, *_ in LIMITS])
def test_each_limit_is_known_before_and_gives_the_refusal_of_the_run(
    key: str, name: str, value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"inspector.engine.quantities.{name}".replace("quantities...", ""), value)
    trace, kept = recorded(), Kept()
    reason = QUANTITIES[key].limit(trace)
    subject = trace.subject
    assert reason and key not in Costs().estimate([key], [trace])
    perform(subject, trace.batch, kept, RunOptions(only=(key,)))
    assert set(kept.reasons()) == {reason}


def test_the_run_says_at_once_what_it_will_not_compute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(items, "LONGEST", 5)
    told = call("run", "adding-elman", "--only", "states,bptt", "--out", "a.inspect", cwd=tmp_path).stderr
    assert told.startswith("bptt will not be computed: The map of ")
