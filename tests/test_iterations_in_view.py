"""What a finding's iterations make of a view: the figure, the numbers of the command line, and what is shown whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from inspector.capture import Writer, open_capture
from inspector.cli.evidence import Evidence
from inspector.records import Channel, Finding, Page, RunStart, RunStop

LOSS = "training:loss"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A loss of 500 iterations, every third of which was recorded."""
    made = tmp_path_factory.mktemp("t") / "t.inspect"
    with Writer(made, RunStart(run="r", title="t")) as writer:
        for name, kind, values in (
            (LOSS, "series", np.ones(500)),
            ("training:iteration", "coordinate", np.arange(500.0) * 3),
        ):
            writer.write(Channel(name=name, kind=kind, dims=("iteration",), shape=(None,), dtype="float64", title=name))
            writer.write(Page(name, 0, (0,), values))
        writer.write(RunStop("done"))
    return made


@pytest.mark.parametrize(
    ("rule", "iterations", "seen"),
    [("loss-spike", (900,), [840, 961]), ("loss-spike", (900, 30), None), ("loss-spike", (3,), [0, 64]),
     ("loss-spike", (), None), ("loss-spike", (9000,), None), ("diverged", (900,), None), ("of-mine", (900,), [840, 961])],
    ids=["around one", "most of it", "at the beginning", "none", "not recorded", "a trend", "another rule"],
)  # fmt: skip
def test_iterations_around_those_of_a_finding_are_in_view(
    path: Path, rule: str, iterations: tuple[int, ...], seen: list[int] | None
) -> None:
    finding = Finding(rule=rule, severity="info", place="", message="m", evidence=(LOSS,), iterations=iterations)
    with open_capture(path) as capture:
        (view,) = Evidence(capture, "t.inspect", None).as_data(finding)["views"]
    assert view["iterations"] == seen
    word = "" if seen is None else f"--iterations {seen[0]}:{seen[1]}"
    assert (word in view["open"] and word in view["draw"]) if word else "--iterations" not in view["open"]
