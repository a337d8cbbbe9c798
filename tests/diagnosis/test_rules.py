"""Rules on captures with known numbers: what is found, what is left alone, and what a broken rule takes along (nothing)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest

from inspector.capture import Writer, open_capture
from inspector.diagnosis import RULES, Diagnosis, Run, diagnose
from inspector.records import Channel, Finding, Frame, Page, RunStart, RunStop, Scalar

COUNTS = ("-inf", "<0", "0", ">0", "+inf", "nan", "first_bad_step")


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The registry, put back afterwards."""
    RULES.load()
    for name in ("_entries", "_origins"):
        monkeypatch.setattr(RULES, name, dict(getattr(RULES, name)))
    yield


def judged(
    path: Path,
    tables: dict[str, list[int]] | None = None,
    curves: dict[str, list[float]] | None = None,
    **scalars: float,
) -> Diagnosis:
    """The findings of a capture with these tables of counts and these means by lag."""
    with Writer(path, RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0, label="now"))
        for name, counts in (tables or {}).items():
            writer.write(
                Channel(name=name, kind="health", dims=("count",), shape=(7,), dtype="int64", labels={"count": COUNTS})
            )
            writer.write(Page(name, 0, (0,), np.array(counts)))
        for name, mean in (curves or {}).items():
            table = np.stack([np.zeros(len(mean)), np.array(mean)])
            labels = {"statistic": ("error", "mean")}  # another order than the engine's
            writer.write(
                Channel(
                    name=name,
                    kind="influence",
                    dims=("statistic", "lag"),
                    shape=table.shape,
                    dtype="float64",
                    labels=labels,
                )
            )
            writer.write(Page(name, 0, (0, 0), table))
        for name, value in scalars.items():
            writer.write(Scalar(f"input:{name.replace('__', '/')}", 0, value))
        writer.write(RunStop("done"))
    with open_capture(path) as capture:
        return diagnose(capture, capture.frames)


def test_nan_is_found_with_its_first_step_and_masked_scores_are_not(tmp_path: Path) -> None:
    tables = {
        "rnn.l0:health/h": [0, 3, 0, 4, 1, 2, 5],
        "head:health/scores": [9, 1, 1, 1, 0, 0, 0],
        "rnn.l0:health/c": [0, 5, 0, 5, 0, 0, -1],
        "x:health/gate/forget": [2, 5, 0, 5, 0, 0, 3],
    }
    found = judged(tmp_path / "a.inspect", tables)
    assert [(f.place, f.severity, f.rule, f.steps, f.frame) for f in found.findings] == [
        ("rnn.l0", "error", "nonfinite", (5,), 0), ("x", "error", "nonfinite", (3,), 0),
    ]  # fmt: skip
    assert found.findings[0].message == "h: 2 NaN and 1 infinite of 10 values, first at step 5"
    assert found.asked == ("nonfinite",) and "gradient-reach" in found.silent and not found.broken


def test_gradients_of_parameters_are_found_once_and_have_no_step(tmp_path: Path) -> None:
    counts = [0, 3, 0, 4, 0, 3, -1]
    tables = {f"parameters:health/gradient{name}": counts for name in ("", "/head.weight", "/head.bias")}
    (found,) = judged(tmp_path / "a.inspect", tables).findings
    assert found.message == "gradient: 3 NaN of 10 values" and not found.steps and found.place == "parameters"


FELT = [1.0, 0.8, 0.6, 0.4, 0.2]


@pytest.mark.parametrize(
    ("gradient", "reach", "said"),
    [
        ([1.0, 1e-2, 1e-4, 1e-6, 1e-8], 1.0, "vanished: the loss still depends on inputs 4 steps back"),
        ([1.0, 20.0, 500.0, 2e4, 1e6], 4.0, "exploded: 3 steps back the gradient passes 10³"),
        ([1.0, 0.9, 0.8, 0.7, 0.6], 4.0, ""),
    ],
)  # fmt: skip
def test_a_gradient_that_does_not_reach_what_the_loss_depends_on(
    tmp_path: Path, gradient: list[float], reach: float, said: str
) -> None:
    curves = {"input:influence/loss": FELT, "input:gradient/lag": gradient}
    scalars = {"influence__reference_lag": 0.0, "influence__reach": 4.0, "gradient__reach": reach}
    found = judged(tmp_path / "a.inspect", curves=curves, **scalars)
    assert [f.message.startswith(said) and f.severity for f in found.findings] == (["warning"] if said else [])
    alone = judged(tmp_path / "b.inspect", curves={"input:influence/loss": FELT}, **scalars)
    assert not alone.findings and not alone.broken, "without a gradient nothing is said"


def test_a_rule_that_fails_is_one_line_and_takes_no_other_along(tmp_path: Path, rules: None) -> None:
    class Fails:
        title, summary, reads = "t", "s", ()
        id, trust, scope, needs, limits, reference = "XX401", "descriptive", "frame", (), (), "a test"

        def __init__(self, severity: str) -> None:
            self.severity = severity

        def findings(self, run: Run, frame: int) -> Iterable[Finding]:
            if not self.severity:
                raise RuntimeError("oh\nno")
            yield Finding(rule="x", severity=self.severity, place="", message="m")  # type: ignore[arg-type]

    RULES.register("fails")(Fails(""))
    RULES.register("strange")(Fails("terrible"))
    RULES.register("whispers")(Fails("info"))
    found = judged(tmp_path / "a.inspect", {"x:health/h": [0, 0, 0, 0, 0, 1, 2]})
    assert [finding.rule for finding in found.findings] == ["nonfinite", "whispers"], "the worst first"
    assert [line.partition(": ")[2] for line in found.broken] == [
        "RuntimeError: oh no", "ValueError: a finding of severity 'terrible'; expected info, warning, error",
    ]  # fmt: skip
