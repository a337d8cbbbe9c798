"""Where a training's own numbers show why its loss stands still, the remedy follows that, and not forgetting."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inspector.diagnosis import Diagnosis
from inspector.records import Channel, Frame, Labels, Page, Refusal, Scalar
from tests.support.generated_run import Measured, of_rule, severities
from tests.support.generated_run import judged as judged_run
from tests.support.training_series import NOISE, judged, of, one, ones

FLAT = 2.08 + 0.01 * NOISE
CUT = "The model cuts the gradient of rnn before {} (detach, .data or no_grad): nothing of a later loss reaches them. More."


LONG = (1, 1e-1, 1e-2, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)


def probed(*, cuts: int | None, steps: int = 9, place: str = "rnn", products: Sequence[float] = LONG) -> list[Any]:
    """Records of one frame of a probe: products of Jacobians that vanish, and what was noted of cuts."""
    name, values = f"{place}:jacobian/lag", np.array([products])
    lag = Channel(name=name, kind="lag", dims=("statistic", "lag"), shape=values.shape, dtype="float64",
                  labels={"statistic": ("median",)})  # fmt: skip
    records: list[Any] = [Frame(index=0, label="iteration 0"), lag, Page(name, 0, (0, 0), values)]
    if cuts is not None:
        signal = f"{place}:gradient/past_cuts"
        records += [Refusal(signal, CUT.format(f"{cuts} steps"), 0), Scalar(signal, 0, cuts)]
        records += [Scalar(f"{signal}/most", 0, steps - 1)]
    return records


def said(path: Path, tables: dict[str, Any], more: Sequence[Any] = ()) -> Diagnosis:
    return judged(path / "a.inspect", FLAT, tables, names=("a.weight", "rnn", "a.bias"), more=more)


@pytest.mark.parametrize(
    ("tables", "cuts", "words"),
    [
        ({"modules:activation/zero": ones(0.1, 0.97, 0.0)}, None, ("97 % of the outputs of rnn", "leaky ReLU")),
        ({"parameters:update/ratio": ones(1e-9, 0, 0.5)}, None, ("no weight matrix by more than 1e-09", "learning rate")),
        ({}, 8, ("cuts the gradient of rnn before 8 steps (detach", "Take the detach()")),
    ],
)  # fmt: skip
def test_the_remedy_follows_the_cause(
    tmp_path: Path, tables: dict[str, Any], cuts: int | None, words: tuple[str, str]
) -> None:
    found = said(tmp_path, tables, probed(cuts=cuts))
    (reach,) = of(found, "reach-through-time")
    for told in (one(found, "plateau"), reach):
        assert words[0] in told.message and words[1] in told.remedy
        assert "forget" not in told.remedy and "orthogonal" not in told.remedy
    assert reach.severity == "info" and "log(steps)" not in reach.code


@pytest.mark.parametrize(
    ("tables", "cuts"),
    [
        ({}, None),
        ({"modules:activation/zero": ones(0.1, 0.89, 0.0)}, None),
        ({"modules:activation/zero": ones(np.nan, np.nan, np.nan)}, None),
        ({"parameters:update/ratio": ones(1e-3, 0, 0.5)}, None),
        ({}, 2),  # truncated backpropagation: some of the steps
    ],
)
def test_without_a_cause_the_state_that_forgets_is_named(
    tmp_path: Path, tables: dict[str, Any], cuts: int | None
) -> None:
    (reach,) = of(said(tmp_path, tables, probed(cuts=cuts)), "reach-through-time")
    assert reach.severity == "warning" and "forget bias" in reach.remedy


def test_behind_a_dead_layer_steps_are_tiny_and_the_layer_is_named(tmp_path: Path) -> None:
    tables = {
        "modules:activation/zero": ones(0.1, 1.0, 0.0), "parameters:update/ratio": ones(1e-7, 0, 0.5),
        "parameters:gradient/norm": ones(1e-9, 0, 1.0),
    }  # fmt: skip
    found = said(tmp_path, tables)
    assert (
        "rnn" in one(found, "plateau").remedy and "learning rate that is too small" not in one(found, "plateau").remedy
    )
    (small,) = [told for told in of(found, "step-size") if "less" in told.message]
    assert small.remedy.startswith("rnn is dead.")
    tables["modules:activation/zero"] = ones(0.1, 0.5, 0.0)
    (tmp_path / "b").mkdir()
    found = said(tmp_path / "b", tables | {"parameters:gradient/norm": ones(0, 0, 1.0)})
    assert one(found, "plateau").remedy.startswith("No gradient reaches a weight matrix")


@pytest.mark.parametrize(("lags", "severity"), [(4, "info"), (6, "info"), (7, "warning")])
def test_a_state_that_reaches_over_most_of_the_probe_is_information(tmp_path: Path, lags: int, severity: str) -> None:
    products = [1, 1e-1, 1e-2, *[1e-4] * (lags - 3)]
    (reach,) = of(said(tmp_path, {}, probed(cuts=None, products=products)), "reach-through-time")
    assert reach.severity == severity and "after 3 steps" in reach.message


def test_a_bias_that_moves_is_not_said_to_stand_still(tmp_path: Path) -> None:
    still = {"parameters:update/ratio": ones(0, 0, 0.5), "parameters:update/norm": ones(0, 0, 0.1)}
    message = one(said(tmp_path, still), "plateau").message
    assert message.endswith("; no step moves a weight matrix, only a.bias") and "0 of its size" not in message
    still["parameters:update/norm"] = still["parameters:update/ratio"] = ones(0, 0, 0)
    (tmp_path / "b").mkdir()
    assert one(said(tmp_path / "b", still), "plateau").message.endswith("; no step moves any parameter")


@pytest.mark.parametrize(("cuts", "steps", "severity"), [(8, 9, "warning"), (7, 9, "info"), (1, 2, "warning")])
def test_a_detached_state_is_named_without_influence(tmp_path: Path, cuts: int, steps: int, severity: str) -> None:
    frame = {"rnn:h": Measured("state", ("step", "unit"), np.zeros((steps, 2)))}
    noted = probed(cuts=cuts, steps=steps)[3:]
    found = judged_run(tmp_path / "a.inspect", [frame], more=noted)
    (told,) = of_rule(found, "detached-state")
    assert (told.severity, told.place, told.id) == (severity, "rnn", "IN124")
    assert told.message == CUT.partition(". ")[0].format(f"{cuts} steps") and told.evidence == ("rnn:h",)
    assert not severities(judged_run(tmp_path / "b.inspect", [frame]), "detached-state")
    unfinished = judged_run(tmp_path / "c.inspect", [frame, frame], finished=False, more=noted)
    assert severities(unfinished, "detached-state") == [severity]  # of the frame in which it was noted
    old = judged_run(tmp_path / "d.inspect", [frame], more=noted[:1])  # a capture without the counts
    assert severities(old, "detached-state") == ["info"]


def test_vanished_beyond_a_detach_names_the_detach(tmp_path: Path) -> None:
    curves = {"input:influence/loss": [1.0, 0.8, 0.8], "input:gradient/lag": [1.0, 0.0, 0.0]}
    about = {"labels": {"statistic": ("mean",)}}
    tables = {name: Measured("influence", ("statistic", "lag"), [row], about) for name, row in curves.items()}
    reaches = {"influence/reference_lag": 0.0, "influence/reach": 2.0, "gradient/reach": 0.0}
    scalars = {f"input:{name}": value for name, value in reaches.items()}
    (told,) = of_rule(judged_run(tmp_path / "a.inspect", [tables], scalars, more=probed(cuts=2)[3:]), "gradient-reach")
    assert "vanished" in told.message and "cuts the gradient of rnn" in told.message
    assert told.remedy.startswith("Take the detach()") and "forget" not in told.remedy
    (told,) = of_rule(judged_run(tmp_path / "b.inspect", [tables], scalars), "gradient-reach")
    assert "cuts" not in told.message and "Gates that stay open" in told.remedy


def test_a_part_of_a_state_that_is_detached_is_information(tmp_path: Path) -> None:
    frame = {"rnn:h": Measured("state", ("step", "unit"), np.zeros((9, 2)))}
    said = Refusal(
        "rnn:gradient/detached_parts", "The model cuts the gradient of c of rnn before each of 8 steps. More.", 0
    )
    (told,) = of_rule(judged_run(tmp_path / "a.inspect", [frame], more=[said]), "detached-state")
    assert told.severity == "info" and told.message == "The model cuts the gradient of c of rnn before each of 8 steps"
    both = judged_run(tmp_path / "b.inspect", [frame], more=[said, *probed(cuts=8)[3:]])
    assert severities(both, "detached-state") == ["warning"]  # all of it is cut: told once


@pytest.mark.parametrize(("fall", "told"), [(0.0, ["warning"]), (0.03, ["info"]), (0.08, [])])
def test_a_loss_that_falls_a_little_is_told_beside_a_gradient_that_vanishes(
    tmp_path: Path, fall: float, told: list[str]
) -> None:
    loss = 2.08 * (1 - fall * np.linspace(0, 1, len(NOISE))) + 0.001 * NOISE
    found = of(judged(tmp_path / "a.inspect", loss, {}, more=probed(cuts=None)), "reach-through-time")
    assert [one.severity for one in found] == told
    assert all((" % only" in one.message) == (fall > 0) for one in found)
    exploded = np.concatenate([[2.08], 90 + 9 * NOISE[1:]])  # another cause, and IN302 has it
    found = judged(tmp_path / "b.inspect", exploded, {}, more=probed(cuts=None))
    assert not of(found, "reach-through-time") and not of(found, "plateau") and of(found, "diverged")


RATES = Labels("optimizer setting", ("group 0: lr", "group 0: momentum"))


def settings(rates: np.ndarray[Any, Any]) -> list[Any]:
    """Records of the optimizer's settings."""
    about = Channel(
        name="training:optimizer", kind="series", dims=("iteration", "statistic"), shape=(None, None), dtype="float64",
        domains={"iteration": "iteration", "statistic": "optimizer setting"},
    )  # fmt: skip
    return [about, RATES, Page("training:optimizer", 0, (0, 0), np.stack([rates, np.full_like(rates, 0.9)], axis=1))]


@pytest.mark.parametrize(("ratio", "told"), [(2.4e-5, True), (2.6e-5, False)])
def test_steps_that_lead_nowhere_together(tmp_path: Path, ratio: float, told: bool) -> None:
    """400 steps: a hundredth of the weight is the border."""
    found = one(said(tmp_path, {"parameters:update/ratio": ones(ratio, 1e-6, 0.5)}), "plateau")
    assert ("all 400 steps together change no weight matrix by more than 0.96 %" in found.message) == told
    assert ("learning rate that is too small" in found.remedy) == told


def test_a_rate_that_falls_to_nothing_is_named_with_where(tmp_path: Path) -> None:
    ratio = ones(1e-3, 1e-3, 1e-3)
    ratio[150:] = 0.0
    tables = {"parameters:update/ratio": ratio, "parameters:gradient/norm": ones(1.0, 1.0, 1.0)}
    rates = np.where(np.arange(len(NOISE)) < 150, 3e-3, 1e-12)
    found = one(said(tmp_path, tables, settings(rates)), "plateau")
    assert "after iteration 149 no step moves a weight matrix, by when the learning rate has fallen from 0.003 to 1e-12" \
        in found.message  # fmt: skip
    assert "a schedule that falls more slowly" in found.remedy.lower()
    (tmp_path / "b").mkdir()
    found = one(said(tmp_path / "b", tables, settings(np.full(len(NOISE), 3e-3))), "plateau")
    assert found.message.endswith("after iteration 149 no step moves a weight matrix")


@pytest.mark.parametrize(("factor", "adam", "told"), [(0.002, False, True), (0.02, False, False), (0.002, True, False)])
def test_clipping_that_sets_the_step_is_named_unless_adam_divides_it_away(
    tmp_path: Path, factor: float, adam: bool, told: bool
) -> None:
    tables = {"parameters:gradient/norm": ones(1.0, 2.0, 1.0), "parameters:gradient/norm_clipped": factor * ones(1.0, 2.0, 1.0),
              "training:gradient_norm": np.tile([6**0.5, factor * 6**0.5], (len(NOISE), 1))}  # fmt: skip
    tables |= {"parameters:adam/rms": ones(1.0, 1.0, 1.0)} if adam else {}
    found = one(said(tmp_path, tables), "plateau")
    assert ("clipping scales the gradient by 0.002 in the middle" in found.message) == told
    assert ("threshold of clipping" in found.remedy) == told


@pytest.mark.parametrize(("middle", "told"), [(0.9e-4, True), (1.1e-4, False)])
def test_a_gradient_that_fades_with_depth_is_named(tmp_path: Path, middle: float, told: bool) -> None:
    names = ("a.weight", "b.weight", "c.weight", "d.weight", "e.weight")
    norms = ones(1e-9, 1e-7, middle, 0.5, 1.0)
    found = one(judged(tmp_path / "a.inspect", FLAT, {"parameters:gradient/norm": norms}, names=names), "plateau")
    assert ("most get less than 0.0001 of the norm that e.weight gets (1), a.weight 1e-09" in found.message) == told
    assert ("Skip connections" in found.remedy) == told


@pytest.mark.parametrize(
    ("gate", "share", "told"),
    [("rnn.l0 forget low", 0.95, True), ("rnn.l0 forget low", 0.85, False), ("rnn.l0 forget high", 1.0, False),
     ("rnn.l0 input low", 1.0, False), ("rnn.l0 update low", 0.95, True)],
)  # fmt: skip
def test_gates_that_keep_nothing_are_named(tmp_path: Path, gate: str, share: float, told: bool) -> None:
    about = Channel(
        name="modules:gate/saturated", kind="series", dims=("iteration", "gate"), shape=(None, None), dtype="float64",
        domains={"iteration": "iteration", "gate": "gate"},
    )  # fmt: skip
    values = np.full((len(NOISE), 1), np.nan)
    values[::4] = share  # not in each iteration
    more = [about, Labels("gate", (gate,)), Page(about.name, 0, (0, 0), values), *probed(cuts=None)]
    found = said(tmp_path, {}, more)
    plateau = one(found, "plateau")
    assert (
        f"of the gates {gate.rpartition(' ')[0]}, which keep the state, 95 % are below 0.1" in plateau.message
    ) == told
    assert ("begin open" in plateau.remedy) == told
    (reach,) = of(found, "reach-through-time")  # it is how the state forgets, and no other cause
    assert reach.severity == "warning" and "but" not in reach.message
