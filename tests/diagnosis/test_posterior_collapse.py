"""Posterior collapse, on generated captures at both sides of the limits: of one sequence and of many."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from inspector.analysis.latent.use import use_verdict
from tests.support.generated_run import Measured, judged, of_rule, severities

RULE, Z = "posterior-collapse", "model:latent/z"


def one_sequence(kl: list[float] | list[list[float]]) -> dict[str, Measured]:
    values = np.array(kl)
    dims = ("step", "unit")[-values.ndim :]
    return {
        f"{Z}/kl": Measured("latent", dims, values, {"unit": "nat", "title": "KL(z ‖ N(0, 1)) by unit"}),
        f"{Z}/sample": Measured("latent", dims, np.zeros(values.shape)),
    }


@pytest.mark.parametrize(
    ("kl", "found"),
    [
        ([0.02, 0.03], ["warning"]), ([0.06, 0.03], ["warning"]), ([0.06, 0.05], []), ([3.0, 0.0], []),
        ([[0.01, 0.02], [0.0, 0.03]], ["warning"]),
        ([[0.04, 0.02], [0.04, 0.03]], []),  # of many steps each may tell a little
        ([0.01, float("nan")], []),
    ],
)  # fmt: skip
def test_of_one_sequence_it_is_the_divergence_in_all(tmp_path: Path, kl: list[float], found: list[str]) -> None:
    assert severities(judged(tmp_path / "a.inspect", [one_sequence(kl)]), RULE) == found


def test_a_divergence_of_which_nothing_is_drawn_is_no_hidden_variable(tmp_path: Path) -> None:
    measured = one_sequence([0.0, 0.0])
    del measured[f"{Z}/sample"]
    assert severities(judged(tmp_path / "a.inspect", [measured]), RULE) == []


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ({"kl": 0.01, "loss/own": 1.0, "loss/others": 1.0}, "posterior collapse"),
        ({"kl": 3.0, "loss/own": 1.0, "loss/others": 1.0099}, "nothing is made of it"),
        ({"kl": 3.0, "loss/own": 1.0, "loss/others": 1.0101}, ""),
        ({"kl": 0.099, "loss/own": 1.0, "loss/others": 1.2}, "posterior collapse"),
        ({"kl": 0.101, "loss/own": 1.0, "loss/others": 1.2}, ""),
        ({"kl": 3.0, "loss/own": 1.0, "loss/others": 1.2}, ""),
        ({"kl": 3.0}, ""),
        ({"kl": 3.0, "mutual_information": 0.101, "loss/own": 1.0, "loss/others": 1.0099}, "z tells x, but nothing"),
        ({"kl": 3.0, "mutual_information": 0.099, "loss/own": 1.0, "loss/others": 1.0099}, "much the same whatever x"),
        ({"kl": 3.0, "mutual_information": 0.099}, "much the same whatever x"),
        ({"kl": 3.0, "mutual_information": 0.099, "loss/own": 1.0, "loss/others": 1.0101}, ""),
        ({"kl": 3.0, "mutual_information": 0.0, "most_information": 0.0}, ""),  # of one sequence nothing can be said
        ({"kl": 3.0, "mutual_information": float("nan")}, ""),
    ],
)
def test_many_sequences_decide_where_they_were_looked_at(tmp_path: Path, numbers: dict[str, float], said: str) -> None:
    measured = one_sequence([0.01, 0.01])  # of this sequence alone it would be found
    measured[f"{Z}/use/units"] = Measured(
        "latent_use", ("unit", "statistic"), np.ones((2, 2)), {"labels": {"statistic": ("KL", "variance of the mean")}}
    )
    more = {"mutual_information": 2.0, "most_information": 4.0, "active_units": 1.0, "sequences": 50.0}
    scalars = {f"{Z}/use/{name}": value for name, value in {**more, **numbers}.items()}
    found = of_rule(judged(tmp_path / "a.inspect", [measured], scalars), RULE)
    assert len(found) == bool(said)
    for one in found:
        assert one.severity == ("warning" if said == "posterior collapse" else "info")
        assert said in one.message and one.sure == "computed from 50 sequences" and one.place == "model"


@pytest.mark.parametrize(
    ("own", "even", "found"),
    [(2.1, 2.2, "info"), (2.08, 2.2, "warning"), (2.3, 2.2, "info"), (2.3, float("nan"), "warning")],
)
def test_before_anything_is_learned_it_is_information(tmp_path: Path, own: float, even: float, found: str) -> None:
    units = Measured("latent_use", ("unit", "statistic"), np.ones((2, 2)), {"labels": {"statistic": ("KL", "mean")}})
    numbers = {"kl": 0.01, "mutual_information": 0.0, "most_information": 4.0, "active_units": 0.0, "sequences": 50.0}
    scalars = {**numbers, "loss/own": own, "loss/others": own, "loss/even": even}
    told = judged(
        tmp_path / "a.inspect",
        [one_sequence([0.01, 0.01]) | {f"{Z}/use/units": units}],
        {f"{Z}/use/{name}": value for name, value in scalars.items()},
    )
    (one,) = of_rule(told, RULE)
    assert one.severity == found and ("has learned next to nothing yet" in one.message) == (found == "info")


def test_a_verdict_has_its_numbers() -> None:
    told = use_verdict(4.75, 4.8, 4.84, 5, 8, 0.3)
    assert (
        told.word == "used"
        and "5 of 8 units active" in told.sentence
        and "more sequences may show more" in told.sentence
    )
    assert use_verdict(float("nan"), 1, 2, 0, 1, 0).word == "unknown"
