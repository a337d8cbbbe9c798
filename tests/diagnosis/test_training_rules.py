"""Rules over a training as a whole: who looks, and what is said of real trainings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import inspector
from inspector.capture import open_any, open_capture
from inspector.diagnosis import RULES, diagnose
from inspector.workspace.trainings import find_training
from tests.support.training_series import NOISE, RNG, N, falling, judged, of, ones


def test_a_healthy_training_is_left_alone_and_it_is_said_who_looked(tmp_path: Path) -> None:
    tables = {
        "parameters:gradient/norm": np.abs(1 + 0.1 * RNG.normal(size=(N, 3))),
        "parameters:gradient/non_finite": ones(0, 0, 0),
        "parameters:update/norm": ones(1e-3, 1e-3, 1e-3),
        "parameters:update/ratio": ones(1e-3, 1e-3, 0.5),
        "parameters:update/lost": ones(0.04, 0.04, 0.0),
        "parameters:adam/rms": 1 + 0.2 * RNG.normal(size=(N, 3)),
        "modules:activation/zero": ones(0.5, 0.6, 0.0),
        "modules:attention/entropy": ones(1.5, 1.0, 0.5), "modules:attention/largest_logit": ones(4.0, 2.0, 0.5),
        "training:gradient_norm": ones(1.0, 1.0),
        "training:batch_hash": RNG.permutation(N).astype(float),
        "parameters:weight/norm": ones(1.0, 2.0, 0.5), "training:padding/gradient": np.zeros(N),
        "training:padding/steps": np.full(N, 0.3), "training:carried/rows": np.ones(N),
        "training:padding/keys_shown": np.zeros(N), "training:padding/sequences_masked": np.full(N, 4.0),
        "training:gradient_kept": np.zeros(N), "modules:carried/steps": np.full((N, 1), 9.0),
        "training:carried/others": ones(0.0, 0.0, 0.0), "training:carried/within": ones(1.0, 0.5, 0.2),
        "training:carried/follows": ones(1.0, 0.4, 0.1) + 0.1 * RNG.normal(size=(N, 3)),
        "training:asked/given": np.zeros(N), "training:asked/own": ones(1.0)[:, 0] + 0.1 * NOISE,
        "training:asked/others": ones(3.0)[:, 0] + 0.1 * NOISE, "training:asked/outputs": np.ones(N),
        "training:asked/differ": np.ones(N), "training:asked/numbers": ones(0.0, 1.0, 0.0),
        "training:asked/ahead": ones(0.1, 1.0, 0.1), "training:weights/before": np.arange(float(N)),
        "training:weights/after": np.arange(float(N)) + 1, "modules:state/fresh": ones(0.0, 0.0, 0.0),
        "parameters:gradient/unused_block": ones(0.0, 0.0, 0.0), "training:asked/reads_ahead": np.zeros(N),
        "training:asked/reads_ahead_step": np.zeros(N), "training:graph/nodes": ones(50.0, 0.0, 0.0),
        "modules:activation/float16_used": ones(0.1, 0.01, 0.001), "parameters:gradient/float16_zero": ones(0.5, 0.0, 0.0),
        "parameters:gradient/float16_subnormal": ones(0.5, 0.0, 0.0), "training:asked/scores": ones(1.0, 0.0, 0.0),
        "parameters:pair/distance": ones(0.0, 0.0, 0.0),
    }  # fmt: skip
    about = {
        "training": True,
        "optimizers": [{"groups": [{"settings": {"weight_decay": 0}, "parameters": ["b.bias"]}]}],
    }
    found = judged(tmp_path / "a.inspect", falling(), tables, about=about)
    assert found.findings == ()
    training = {key for key, rule in RULES.items() if rule.scope == "training" and "series" in rule.reads}
    assert training <= set(found.asked) and not training & set(found.silent)


def test_without_series_no_rule_says_that_it_looked(tmp_path: Path) -> None:
    assert judged(tmp_path / "a.inspect").asked == ()


def test_what_is_too_short_to_be_judged_is_not_said_to_have_been(tmp_path: Path) -> None:
    tables = ("parameters:gradient/norm", "parameters:adam/rms", "parameters:update/norm")
    short = {name: ones(1, 1, 1)[:5] for name in tables}
    found = judged(tmp_path / "a.inspect", 3 + 0.01 * NOISE[:45], short)
    told = {"diverged (45 of 60 points)", "plateau (45 of 60 points)", "loss-spike (45 of 51 points)"}
    assert set(found.short) == told | {
        "no-gradient (5 of 10 points)",
        "unmoved (5 of 10 points)",
        "stale-second-moment (5 of 23 points)",
    }
    assert found.asked == ("nonfinite-training",) and not {"plateau", "no-gradient"} & set(found.silent)


RECORDED = {
    "training-vanishing": ["plateau warning", "reach-through-time warning"],
    "training-exploding": ["reach-through-time warning"],
    "training-dead-units": ["dead-activations warning", "step-size warning"],
    "training-spike": ["loss-spike info"],
    "training-healthy": [],
}


@pytest.mark.parametrize("name", RECORDED)
def test_each_recorded_training_is_named_for_what_it_has(name: str) -> None:
    """Real trainings: each illness is found, the twin that learns is left alone."""
    with open_capture(find_training(name).capture) as capture:
        found = diagnose(capture, capture.frames)
    assert sorted(f"{one.rule} {one.severity}" for one in found.findings) == RECORDED[name] and not found.broken


def test_every_run_of_a_folder_is_judged_and_named(tmp_path: Path) -> None:
    flat, rises, jumps = 3 + 0.05 * NOISE, falling(), falling()
    rises[200:] += np.linspace(0, 6, 200)
    jumps[250:300] += 2.0
    for name, loss in {"flat": flat, "flat2": flat, "rises": rises, "jumps": jumps, "well": falling()}.items():
        lines = [f"{n},{value}" for n, value in enumerate(loss)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["step,train/loss", *lines]))
    with open_any(tmp_path) as log:
        found = diagnose(log, log.frames)
    assert [one.message.split(" is ")[0] for one in of(found, "plateau")] == ["flat: the loss", "flat2: the loss"]
    assert [one.message.split(" rose ")[0] for one in of(found, "diverged")] == ["rises: the loss"]
    assert "jumps: the loss jumped" in " ".join(one.message for one in of(found, "loss-spike"))


def test_no_sample_training_is_accused_of_anything() -> None:
    """Real trainings, most of which learn; those that are ill on purpose are ill by time step, which no history shows."""
    histories = sorted((Path(inspector.__file__).parents[1] / "sample_models" / "checkpoints").glob("*/history.json"))
    assert len(histories) > 30
    for path in histories:
        with open_any(path) as log:
            found = diagnose(log, log.frames)
        assert {"diverged", "plateau", "loss-spike", "nonfinite-training"} <= set(found.asked), path.parent.name
        assert not [one for one in found.findings if one.severity != "info"], (path.parent.name, found.findings)
