"""Rules of depth, of contracting weights and of answers that can be read, at both sides of their limits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.generated_run import Measured, judged, of_rule, severities

NAN = float("nan")


@pytest.mark.parametrize(
    ("lowest", "top", "found"),
    [
        (0.9e-3, 1.0, ["info"]),  # a small part, and no tiny gradient
        (0.9e-4, 0.1, ["warning"]),
        (0.99e-4, 0.2, ["warning"]),
        (1.01e-4, 0.2, ["info"]),  # as small a part, of a gradient that is no longer tiny
        (1.1e-4, 0.1, []),
        (0.0, 0.1, ["warning"]),
        (0.0, 0.0, []),
        (1.1e3, 1.0, ["info"]),
        (0.9e3, 1.0, []),
        (NAN, 1.0, []),
        (np.inf, 1.0, []),
    ],
)
def test_gradients_through_depth(tmp_path: Path, lowest: float, top: float, found: list[str]) -> None:
    labels = {"statistic": ("p10", "mean"), "layer": ("rnn.l0", "rnn.l1", "rnn.l2")}
    stack = Measured("depth", ("statistic", "layer"), [[9.0] * 3, [lowest, top, top]], {"labels": labels})
    said = judged(tmp_path / "a.inspect", [{"layers:gradient/depth": stack}])
    assert severities(said, "depth-gradient") == found


@pytest.mark.parametrize(("domain", "found"), [("layer", ["warning"]), ("step", [])])
def test_a_plain_stack_is_judged_and_a_loop_of_that_name_is_not(tmp_path: Path, domain: str, found: list[str]) -> None:
    norms = Measured("gradient", ("step",), [1e-6, 1e-3, 1.0], {"domains": {"step": domain}})
    said = judged(tmp_path / "a.inspect", [{"layers:gradient/state_norm": norms}])
    assert severities(said, "depth-gradient") == found
    unfinished = Measured("gradient", ("step",), [1e-6, 1e-3, 1.0], {"domains": {"step": domain}}, rows=2)
    assert not judged(tmp_path / "b.inspect", [{"layers:gradient/state_norm": unfinished}], finished=False).findings


@pytest.mark.parametrize(
    ("losses", "unit", "found"),
    [
        ([1.6, 1.2, 0.81], "nat", ["warning"]),
        ([1.6, 1.2, 0.79], "nat", []),
        ([0.11, 0.1], "nat", ["warning"]),
        ([0.1, 0.1], "nat", []),  # a trained model, which knows the batch
        ([0.145, 0.1], "bit", ["warning"]),
        ([0.144, 0.1], "bit", []),
        ([0.1, 0.1], "", ["warning"]),  # a squared error: no number says that it is small
        ([NAN, 0.1], "nat", ["warning"]),
    ],
)
def test_one_batch_that_is_not_learned(tmp_path: Path, losses: list[float], unit: str, found: list[str]) -> None:
    table = Measured("trial", ("iteration",), losses, {"unit": unit} if unit else {})
    assert severities(judged(tmp_path / "a.inspect", [{"model:trial/one_batch": table}]), "one-batch") == found


@pytest.mark.parametrize(
    ("kinds", "gradient", "found"),
    [
        (("attention",), [1.0, 0.0, 0.0], ["info"]),  # weights that have chosen: no product over steps is small
        (("attention", "state"), [1.0, 0.0, 0.0], ["warning"]),
        ((), [1.0, 0.0, 0.0], ["warning"]),
        (("attention",), [1.0, 10.0, 1e4], ["warning"]),
        (("attention",), [1.0, 1.0, 1.0], []),
    ],
)
def test_a_gradient_that_vanishes_in_attention_is_information(
    tmp_path: Path, kinds: tuple[str, ...], gradient: list[float], found: list[str]
) -> None:
    tables = {f"m:{kind}": Measured(kind, ("step", "unit"), np.zeros((3, 2))) for kind in kinds}
    curves = {"input:influence/loss": [1.0, 0.8, 0.8], "input:gradient/lag": gradient}
    tables |= {
        name: Measured("influence", ("statistic", "lag"), [values], {"labels": {"statistic": ("mean",)}})
        for name, values in curves.items()
    }
    reaches = {"influence/reference_lag": 0.0, "influence/reach": 2.0, "gradient/reach": 2.0 if gradient[2] else 0.0}
    said = judged(tmp_path / "a.inspect", [tables], {f"input:{name}": value for name, value in reaches.items()})
    told = of_rule(said, "gradient-reach")
    assert [one.severity for one in told] == found
    assert all(("have saturated" in one.remedy) == (one.severity == "info") for one in told)


@pytest.mark.parametrize(
    ("bound", "reach", "found"),
    [
        (0.5, 11.0, ["warning"]),  # 0.5¹⁰ < 10⁻³
        (0.5, 10.0, []),
        (0.5011, 11.0, ["warning"]),  # 0.5012¹⁰ = 10⁻³
        (0.5013, 11.0, []),
        (0.5, None, ["info"]),
        (0.5, NAN, ["info"]),
        (1.0, 50.0, []),
        (0.0, 2.0, ["warning"]),
        (NAN, 50.0, []),
    ],
)
def test_a_recurrent_weight_that_loses_the_gradient(
    tmp_path: Path, bound: float, reach: float | None, found: list[str]
) -> None:
    spectrum = Measured("spectrum", ("rank",), [bound, bound / 2])
    scalars = {"rnn.l0:weight/hidden/bound": bound}
    if reach is not None:
        scalars["input:influence/reach"] = reach
    said = judged(tmp_path / "a.inspect", [{"rnn.l0:weight/hidden/singular_values": spectrum}], scalars)
    assert severities(said, "contracting-weight") == found
    assert all(one.place == "rnn.l0" for one in of_rule(said, "contracting-weight"))


@pytest.mark.parametrize(
    ("steps", "past", "found"),
    [
        (11, (0.5, 1.4, 1.4), ["info"]),  # the net has learned nothing of the past, and 0.5¹⁰ < 10⁻³
        (10, (0.5, 1.4, 1.4), []),  # no step lies so far back
        (11, (0.01, 0.7, 1.4), []),  # it has learned from shorter lags
        (11, (0.5, 1.0, 1.4), []),  # too few losses to tell
        (10, None, []),
        (11, None, ["info"]),
    ],
)
def test_a_recurrent_weight_of_a_net_that_learned_nothing_of_the_past(
    tmp_path: Path, steps: int, past: tuple[float, float, float] | None, found: list[str]
) -> None:
    tables = {
        "rnn.l0:weight/hidden/singular_values": Measured("spectrum", ("rank",), [0.5, 0.25]),
        "rnn.l0:h": Measured("state", ("step", "unit"), np.zeros((steps, 2))),
    }
    scalars = {"rnn.l0:weight/hidden/bound": 0.5}
    if past is not None:
        names = ("past_p", "loss_with_past", "loss_without_past")
        scalars |= {f"input:influence/{name}": value for name, value in zip(names, past, strict=True)}
        scalars |= {"input:influence/reach": 4.0}
    said = of_rule(judged(tmp_path / "a.inspect", [tables], scalars), "contracting-weight")
    assert [one.severity for one in said] == found
    assert all(("not learned" in one.message) == (past is not None) for one in said)


@pytest.mark.parametrize(
    ("surprise", "later", "next_token", "found"),
    [
        (0.09, 0.5, 1.0, ["error"]),
        (0.11, 0.5, 1.0, []),
        (0.09, 0.0, 1.0, []),  # known by heart
        (0.09, 0.5, 0.0, []),  # a model that reads both directions, and predicts something else
        (NAN, 0.5, 1.0, []),
    ],
)
def test_a_loss_near_zero_whose_answer_can_be_read(
    tmp_path: Path, surprise: float, later: float, next_token: float, found: list[str]
) -> None:
    moved = np.eye(6)
    moved[4, 1] = later  # the input of step 4 moves the output of step 1
    surprises = np.full(6, surprise)
    surprises[0] = NAN
    channels = {
        "model:structure/causal": Measured("structure", ("source", "step"), moved),
        "output:surprise": Measured("output", ("step",), surprises, {"unit": "nat"}),
    }
    scalars = {"structure/causal/rounding": 1e-6, "structure/causal/next_token": next_token}
    said = of_rule(judged(tmp_path / "a.inspect", [channels], scalars), "answer-seen")
    assert [one.severity for one in said] == found
    assert all(one.steps == (1, 4) and one.message.startswith("the mean surprise is 0.09 nats") for one in said)


@pytest.mark.parametrize(
    ("large", "found"),
    [
        ([4e-7, 1.3e-5, 3.3e-4, NAN], []),  # rounding of a convolution by Fourier transforms, as it was measured
        ([0.0, 1e-5, 0.011, 0.8], ["warning"]),
        ([0.0, 0.0, 0.0019, NAN], []),
    ],
)
def test_rounding_at_large_weights_is_no_mask_that_is_beaten(
    tmp_path: Path, large: list[float], found: list[str]
) -> None:
    labels = {"value": tuple(f"factor {factor}" for factor in (1, 8, 64, 512))}
    channels = {
        "model:structure/causal": Measured("structure", ("source", "step"), np.eye(6)),
        "model:structure/causal/large": Measured("structure", ("value",), large, {"labels": labels}),
    }
    said = judged(tmp_path / "a.inspect", [channels], {"structure/causal/rounding": 4e-6})
    assert severities(said, "finite-mask") == found
    assert all("weights 64 times" in one.message for one in of_rule(said, "finite-mask"))
