"""Exact rules over a training, on series with known numbers: on both sides of each border, and on what is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import inspector
from inspector.diagnosis import Settings
from inspector.records import Channel, Labels, Page
from tests.support.training_series import N, falling, judged, of, one, ones


def test_nan_with_its_first_iteration_and_parameter(tmp_path: Path) -> None:
    loss, counts = falling(), ones(0, 0, 0)
    counts[120:, 1] = 3
    counts[121:, 0] = 3
    loss[121:] = np.nan
    found = one(judged(tmp_path / "a.inspect", loss, {"parameters:gradient/non_finite": counts}), "nonfinite-training")
    assert found.iterations == (120,) and found.severity == "error" and found.place == "b.weight"
    assert found.message == (
        "the gradient of b.weight is not finite first at iteration 120; the loss in 279 of 400 points from iteration 121 on"
    )


def test_infinity_in_the_loss_alone(tmp_path: Path) -> None:
    loss = falling()
    loss[399] = np.inf
    found = one(judged(tmp_path / "a.inspect", loss), "nonfinite-training")
    assert found.message == "the loss is not finite first at iteration 399 in 1 of 400 points"


NORM, LOSS = "grad_norm is not finite first at iteration 10", "the loss in 20 of 40 points from iteration 20 on"
BOTH = "the loss is not finite first at iteration 20 in 20 of 40 points"
LOGGED = [
    (10, (11, 40), 20, f"{NORM} in 30 of 40 points; {LOSS}"),
    (10, (11, 12), 20, f"{NORM} in 2 of 40 points, and was finite again after that; {LOSS}"),
    (20, (20, 40), 20, f"{BOTH}, and so is grad_norm"),
    (30, (31, 40), 20, BOTH),
    (10, (11, 40), 40, f"{NORM} in 30 of 40 points"),
]


@pytest.mark.parametrize(("first", "others", "loss", "said"), LOGGED)
def test_what_was_not_finite_first_is_named_of_a_log(
    tmp_path: Path, first: int, others: tuple[int, int], loss: int, said: str
) -> None:
    bad = {first, *range(*others)}
    rows = [f"{n},{'nan' if n >= loss else 1.5},{'inf' if n in bad else 0.5}" for n in range(40)]
    (tmp_path / "log.csv").write_text("\n".join(["step,loss,grad_norm", *rows, ""]))
    found = inspector.diagnose(tmp_path / "log.csv")
    told = one(found, "nonfinite-training")
    assert told.message == said and told.iterations == (min(first, loss),)
    assert told.severity == ("error" if loss < 40 else "warning")


@pytest.mark.parametrize(("top", "rose"), [(260.0, True), (150.0, False)])
def test_a_loss_that_rose_before_it_broke_has_diverged(tmp_path: Path, top: float, rose: bool) -> None:
    """A hundred times the first losses (2.0 here) is the border: a logarithm of 0 breaks a loss that has not risen."""
    loss = np.full(N, 2.0)
    loss[60:100] = np.geomspace(2.0, top, 40)
    loss[100:] = np.inf
    found = one(judged(tmp_path / "a.inspect", loss), "nonfinite-training")
    assert ("before that it rose from 2 to 260" in found.message) == rose and found.iterations == (100,)
    assert found.remedy.startswith("It grew" if rose else "Open the first") and ("clip_grad" in found.code) == rose
    norms = ones(1.0, 1.0, 1.0)
    norms[99:] = np.inf
    broken = {"parameters:gradient/non_finite": (~np.isfinite(norms)).astype(float)}
    found = one(judged(tmp_path / "b.inspect", loss, broken), "nonfinite-training")
    assert ("before that it rose" in found.message) == rose and "the gradient of" in found.message


def test_of_several_runs_each_has_its_own_first(tmp_path: Path) -> None:
    for name, first, loss in (("a", 3, 9), ("b", 7, 5)):
        rows = [f"{n},{'nan' if n >= loss else 1.5},{'inf' if n >= first else 0.5}" for n in range(12)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["step,loss,grad_norm", *rows, ""]))
    found = {finding.message.partition(" in ")[0] for finding in of(inspector.diagnose(tmp_path), "nonfinite-training")}
    assert found == {
        "a: grad_norm is not finite first at iteration 3", "b: loss is not finite first at iteration 5"
    }  # fmt: skip


@pytest.mark.parametrize(("value", "words"), [(np.nan, "no gradient"), (0.0, "a gradient of exactly 0")])
def test_a_parameter_that_the_loss_does_not_reach(tmp_path: Path, value: float, words: str) -> None:
    norms = ones(1.0, value, 1.0)
    found = one(judged(tmp_path / "a.inspect", tables={"parameters:gradient/norm": norms}), "no-gradient")
    assert found.place == "b.weight" and words in found.message and "1 of 3 parameters" in found.message
    norms[7, 1] = 1e-30
    assert not of(judged(tmp_path / "b.inspect", tables={"parameters:gradient/norm": norms}), "no-gradient")
    frozen = {"frozen": ["b.weight"]}
    norms[7, 1] = value
    assert not of(
        judged(tmp_path / "c.inspect", tables={"parameters:gradient/norm": norms}, about=frozen), "no-gradient"
    )


def test_parameters_that_never_had_a_number_have_no_column(tmp_path: Path) -> None:
    found = judged(tmp_path / "a.inspect", tables={"parameters:gradient/norm": ones(1.0, 1.0)})
    assert one(found, "no-gradient").place == "b.bias"


def test_too_few_iterations_prove_nothing(tmp_path: Path) -> None:
    tables = {"parameters:gradient/norm": ones(1.0, np.nan, 1.0)[:9], "parameters:update/norm": ones(0.0, 0.0, 0.0)[:9]}
    found = judged(tmp_path / "a.inspect", falling()[:59] * 0 + 1, tables)
    assert found.findings == ()


def test_parameters_without_an_optimizer(tmp_path: Path) -> None:
    about: dict[str, Any] = {"without_optimizer": ["a.weight", "b.bias"], "frozen": ["b.bias"]}
    found = one(judged(tmp_path / "a.inspect", falling(), about=about), "not-in-optimizer")
    assert found.message == "no optimizer has a.weight, though it requires a gradient" and found.place == "a.weight"
    about["optimizers"] = []  # a loop that makes its steps by itself
    assert not of(judged(tmp_path / "b.inspect", falling(), about=about), "not-in-optimizer")


def test_parameters_that_the_model_does_not_know(tmp_path: Path) -> None:
    about = {"without_optimizer": [], "unregistered": ["layers[0].weight", "layers[1].weight"]}
    found = one(judged(tmp_path / "a.inspect", falling(), about=about), "not-in-optimizer")
    assert found.severity == "warning" and "keeps layers[0].weight, layers[1].weight in a plain list" in found.message
    assert "nn.ModuleList" in found.remedy


def test_clipping_of_a_gradient_that_exploded_is_counted(tmp_path: Path) -> None:
    """Norms whose squares are no numbers, as those of an exploding net are."""
    norms = {
        "parameters:gradient/norm": ones(1e200, 1e180, 1.0),
        "parameters:gradient/norm_clipped": ones(1.0, 0.1, 0.1),
    }
    norms["training:gradient_norm"] = np.tile([1e200, 1.0], (N, 1))
    assert "100 %" in one(judged(tmp_path / "a.inspect", falling(), norms), "clipping-always").message


def test_a_step_without_effect(tmp_path: Path) -> None:
    tables = {"parameters:gradient/norm": ones(1.0, 1.0, 0.0), "parameters:update/norm": ones(0.0, 1e-3, 0.0)}
    found = one(judged(tmp_path / "a.inspect", tables=tables), "unmoved")
    assert found.severity == "error" and found.place == "a.weight"
    tables["parameters:update/norm"][300, 0] = 1e-9
    assert not of(judged(tmp_path / "b.inspect", tables=tables), "unmoved")


def test_updates_lost_in_half_precision(tmp_path: Path) -> None:
    found = one(
        judged(tmp_path / "a.inspect", tables={"parameters:update/lost": ones(0.4, 0.97, 0.51)}), "updates-lost"
    )
    assert "2 of 3 parameters" in found.message and "b.weight 97 %" in found.message
    settings = Settings(limits={"updates-lost.share": 0.98})
    kept = {"parameters:update/lost": ones(0.4, 0.97, 0.51)}
    assert not of(judged(tmp_path / "b.inspect", tables=kept, settings=settings), "updates-lost")


def test_one_batch_again_and_again(tmp_path: Path) -> None:
    found = one(judged(tmp_path / "a.inspect", tables={"training:batch_hash": np.full(N, 5.0)}), "repeated-batch")
    assert found.severity == "warning" and "all 400" in found.message
    pairs = np.repeat(np.arange(N / 2), 2)
    found = one(judged(tmp_path / "b.inspect", tables={"training:batch_hash": pairs}), "repeated-batch")
    assert found.severity == "info" and "200 of 399" in found.message and found.iterations[0] == 1
    epochs = np.tile(np.arange(10.0), N // 10)  # no neighbours are equal, though each comes forty times
    assert not of(judged(tmp_path / "c.inspect", tables={"training:batch_hash": epochs}), "repeated-batch")


@pytest.mark.parametrize(
    ("classes", "severity"), [(["LBFGS"], "info"), (["LBFGS", "Adam"], "warning"), ([], "warning")]
)
def test_lbfgs_needs_the_same_batch(tmp_path: Path, classes: list[str], severity: str) -> None:
    about = {"optimizers": [{"class": f"torch.optim.of.{name}", "groups": []} for name in classes]}
    hashes = {"training:batch_hash": np.full(N, 5.0)}
    found = one(judged(tmp_path / "a.inspect", tables=hashes, about=about), "repeated-batch")
    assert found.severity == severity and ("LBFGS needs" in found.message) == (severity == "info")


def test_modules_in_evaluation_mode(tmp_path: Path) -> None:
    about: dict[str, Any] = {"training": True, "classes": {"a": "Linear", "b": "Dropout", "c": "BatchNorm1d"}}
    found = one(judged(tmp_path / "a.inspect", falling(), about=about), "evaluation-mode")
    assert found.severity == "info" and "2 modules" in found.message and "b, c" in found.message
    about = {"training": True, "classes": {"a": "Linear"}}
    assert not of(judged(tmp_path / "b.inspect", falling(), about=about), "evaluation-mode")
    found = one(judged(tmp_path / "c.inspect", falling(), about={"training": False}), "evaluation-mode")
    assert found.severity == "warning" and "the model was in evaluation mode" in found.message


def test_decay_on_biases_and_norms(tmp_path: Path) -> None:
    names = [
        "rnn.weight_hh_l0",
        "rnn.bias_hh_l0",
        "norm1.weight",
        "layers.0.ln.weight",
        "normal.weight",
        "embed.weight",
    ]
    about = {"optimizers": [{"groups": [{"settings": {"weight_decay": 0.1}, "parameters": names}]}]}
    found = one(judged(tmp_path / "a.inspect", falling(), about=about), "decay-on-biases")
    assert found.message.endswith("3 biases and norms: rnn.bias_hh_l0, norm1.weight, layers.0.ln.weight")
    about["optimizers"][0]["groups"][0]["settings"]["weight_decay"] = 0.0
    assert not of(judged(tmp_path / "b.inspect", falling(), about=about), "decay-on-biases")


@pytest.mark.parametrize(
    ("moving", "rate", "told"), [(True, 1e-5, ["b.weight"]), (False, 1e-5, None), (True, 0.0, None)]
)
def test_what_rounding_undoes_is_told_by_its_rule_alone(
    tmp_path: Path, moving: bool, rate: float, told: list[str] | None
) -> None:
    """a.weight is lost to rounding, b.weight stays for another reason; where all are lost, or a rate is 0, nobody knows."""
    lost = ones(1.0, np.nan, 0.3 if moving else 1.0)
    tables = {
        "parameters:gradient/norm": ones(1.0, 1.0, 1.0), "parameters:update/lost": lost,
        "parameters:update/norm": ones(0.0, 0.0, 1e-3 if moving else 0.0),
    }  # fmt: skip
    about = Channel(
        name="training:optimizer", kind="series", dims=("iteration", "statistic"), shape=(None, None), dtype="float64",
        domains={"iteration": "iteration", "statistic": "optimizer setting"},
    )  # fmt: skip
    rates = [about, Labels("optimizer setting", ("group 0: lr",)), Page(about.name, 0, (0, 0), np.full((N, 1), rate))]
    found = judged(tmp_path / "a.inspect", tables=tables, more=rates)
    assert ("a.weight" in one(found, "unmoved").message) == (told is None)
    assert "a.weight" in one(found, "updates-lost").message


def test_a_weight_beside_a_bias_with_a_gradient_has_an_input_of_0(tmp_path: Path) -> None:
    names = ("l.weight_ih_l0", "l.weight_hh_l0", "l.bias_ih_l0")
    tables = {"parameters:gradient/norm": ones(0.0, 1.0, 1.0)}
    found = one(judged(tmp_path / "a.inspect", tables=tables, names=names), "no-gradient")
    assert "what is multiplied with them is 0" in found.message and "its input" in found.remedy
    tables = {"parameters:gradient/norm": ones(0.0, 1.0, 0.0)}  # the layer itself is cut off
    found = one(judged(tmp_path / "b.inspect", tables=tables, names=names), "no-gradient")
    assert "multiplied" not in found.message and "detach" in found.remedy


def test_a_bias_beside_a_weight_with_a_gradient_cancels_in_the_loss(tmp_path: Path) -> None:
    names = ("critic.weight", "critic.bias", "rnn.bias_ih_l0")
    tables = {"parameters:gradient/norm": ones(1.0, 0.0, 1.0)}
    found = one(judged(tmp_path / "a.inspect", tables=tables, names=names), "no-gradient")
    assert found.severity == "info" and "the weight beside each of them has one" in found.message
    for silent in (
        ones(1.0, np.nan, 1.0),
        ones(1.0, 0.0, 0.0),
    ):  # none at all, and another bias whose weight is not there
        found = one(
            judged(tmp_path / f"{silent[0, 2]}.inspect", tables={"parameters:gradient/norm": silent}, names=names),
            "no-gradient",
        )
        assert found.severity == "warning"


def test_a_loss_of_0_has_no_gradient(tmp_path: Path) -> None:
    tables = {"parameters:gradient/norm": ones(0.0, 0.0, 0.0)}
    found = one(judged(tmp_path / "a.inspect", np.zeros(N), tables), "no-gradient")
    assert "the loss is 0 in all of them" in found.message and "ignored" in found.remedy
    found = one(judged(tmp_path / "b.inspect", falling(), tables), "no-gradient")
    assert "the loss is 0" not in found.message
