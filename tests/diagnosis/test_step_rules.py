"""Rules that read steps, clipping, outputs of modules and products of Jacobians: on both sides of each border."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from inspector.capture import Writer, open_capture
from inspector.diagnosis import diagnose
from inspector.records import Channel, Frame, Page, RunStart, RunStop
from tests.support.training_series import NOISE, N, falling, judged, of, one, ones, series


def test_clipping_that_is_always_on(tmp_path: Path) -> None:
    norms = ones(4.0, 1.0)
    found = one(judged(tmp_path / "a.inspect", tables={"training:gradient_norm": norms}), "clipping-always")
    assert "100 % of 400" in found.message and "by 0.25" in found.message
    norms[: N // 5] = 0.5
    assert not of(judged(tmp_path / "b.inspect", tables={"training:gradient_norm": norms}), "clipping-always")


def test_a_gradient_that_no_optimizer_gets_is_not_taken_for_clipped(tmp_path: Path) -> None:
    """The third parameter is in no optimizer, so that its gradient grows and is in the norm before clipping alone."""
    before, after = ones(3.0, 4.0, 100.0), ones(3.0, 4.0, np.nan)
    tables = {
        "training:gradient_norm": ones(np.sqrt(25 + 1e4), 5.0),
        "parameters:gradient/norm": before,
        "parameters:gradient/norm_clipped": after,
    }
    assert not of(judged(tmp_path / "a.inspect", tables=tables), "clipping-always")
    tables["parameters:gradient/norm_clipped"] = ones(0.3, 0.4, np.nan)
    assert "by 0.1 in the middle" in one(judged(tmp_path / "b.inspect", tables=tables), "clipping-always").message
    tables["parameters:gradient/norm_clipped"] = ones(np.nan, np.nan, np.nan)
    assert not of(judged(tmp_path / "c.inspect", tables=tables), "clipping-always")


def test_outputs_that_are_zero(tmp_path: Path) -> None:
    zero = ones(0.5, 0.95, 0.2)
    found = one(judged(tmp_path / "a.inspect", tables={"modules:activation/zero": zero}), "dead-activations")
    assert found.place == "b.weight" and "95 %" in found.message
    zero[-15:, 1] = 0.5  # they came back
    assert not of(judged(tmp_path / "b.inspect", tables={"modules:activation/zero": zero}), "dead-activations")


def test_steps_too_small_or_too_large(tmp_path: Path) -> None:
    found = of(judged(tmp_path / "a.inspect", tables={"parameters:update/ratio": ones(1e-7, 0.3, 0.5)}), "step-size")
    assert [(f.place, f.severity) for f in found] == [("a.weight", "info"), ("b.weight", "info")]
    assert "less than 1e-05" in found[0].message and "more than 0.1" in found[1].message


@pytest.mark.parametrize(("left", "places"), [(0.03, ["a.weight", "b.weight"]), (0.015, ["b.weight"])])
def test_small_steps_at_a_loss_next_to_zero_are_the_end_of_learning(
    tmp_path: Path, left: float, places: list[str]
) -> None:
    loss = np.concatenate([np.full(N // 4, 2.0), np.full(N - N // 4, 2.0 * left)]) * (1 + 0.001 * NOISE)
    tables = {"parameters:update/ratio": ones(1e-7, 0.3, 0.5)}
    assert [f.place for f in of(judged(tmp_path / "a.inspect", loss, tables=tables), "step-size")] == places


@pytest.mark.parametrize(
    ("products", "loss", "clipped", "said"),
    [
        (
            [1, 1e-1, 1e-2, *[1e-4] * 4],
            "flat",
            False,
            "warning: the loss does not fall, and of a change of the state 0.0001",
        ),
        ([1, 1e-1, 1e-2, 1e-4], "falls", False, ""),
        ([1, 0.9, 0.8, 0.7], "flat", False, ""),
        (
            [1, 10, 100, 2000],
            "falls",
            False,
            "warning: a change of the state is 2e+03 times as large after 3 steps, and no",
        ),
        (
            [1, 10, 100, 2000],
            "falls",
            True,
            "info: a change of the state is 2e+03 times as large after 3 steps; the grad",
        ),
        ([1, 10, 100, 500], "flat", False, ""),
        ([1, np.nan, np.nan, np.nan], "flat", False, ""),
        ([1, 10, 100, 2000], "flat", None, ""),
        ([1, 10, 100, 2000], "falls", None, ""),  # whether it is clipped is not known
    ],
)
def test_reach_through_time(tmp_path: Path, products: list[float], loss: str, clipped: bool | None, said: str) -> None:
    norms = ones(1.0, 0.5 if clipped else 1.0)
    with Writer(tmp_path / "a.inspect", RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0, label="iteration 0"))
        writer.write(series("training:loss", ("iteration",), "loss"))
        writer.write(Page("training:loss", 0, (0,), falling() if loss == "falls" else 2.08 + 0.01 * NOISE))
        if clipped is not None:
            writer.write(series("training:gradient_norm", ("iteration", "statistic"), "gradient norm"))
            writer.write(Page("training:gradient_norm", 0, (0, 0), norms))
        name, statistics = "rnn.l0:jacobian/lag", ("p10", "median")
        writer.write(
            Channel(
                name=name, kind="lag", dims=("statistic", "lag"), shape=(2, len(products)), dtype="float64",
                labels={"statistic": statistics},
            )
        )  # fmt: skip
        writer.write(Page(name, 0, (0, 0), np.array([[0.0] * len(products), products])))
        writer.write(RunStop("done"))
    with open_capture(tmp_path / "a.inspect") as capture:
        found = of(diagnose(capture, capture.frames), "reach-through-time")
    assert [f"{one.severity}: {one.message}".startswith(said) and one.place for one in found] == (
        ["rnn.l0"] if said else []
    )


def test_first_steps_that_replace_the_weights(tmp_path: Path) -> None:
    """A rate that is far too large: later the weights are large, and steps are small beside them."""
    names = ("a.weight", "b.weight", "c.weight", "c.bias")
    ratio = ones(1e-3, 1e-3, 1e-3, 1e-3)
    ratio[0] = (0.93, 0.3, 0.95, 1.0)
    tables = {"parameters:update/ratio": ratio}
    found = one(judged(tmp_path / "a.inspect", tables=tables, names=names), "step-size")
    assert found.severity == "warning" and found.iterations == (0,)
    assert "2 of 3 changed by more than 0.5 of their norm after it" in found.message and "a.weight" in found.message
    ratio[0] = (0.93, 0.3, 0.02, 1.0)  # one output layer and its bias that began at 0
    assert not of(judged(tmp_path / "b.inspect", tables=tables, names=names), "step-size")
