"""A rule of whose evidence something is damaged has not judged, whichever page or row that was, and says why."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest
from captures import change, flip

from inspector.capture import Writer, open_capture
from inspector.cli import main
from inspector.diagnosis import RULES, Diagnosis, Run, diagnose
from inspector.records import Channel, Finding, Frame, Page, RunStart, RunStop, Scalar

COUNTS = ("-inf", "<0", "0", ">0", "+inf", "nan", "first_bad_step")
INFLUENCE, GRADIENT = "input:influence/loss", "input:gradient/lag"
HEALTHY, BAD = [0, 3, 0, 4, 0, 0, -1], [0, 3, 0, 4, 0, 2, 5]
BEFORE = {"structure", "trial"}
"""Kinds of what is tested before a training; rules of these have nothing to look at here."""
BOTH = ("gradient-reach", "nonfinite")


@pytest.fixture(autouse=True)
def rules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The registry with the rules that these captures are for, put back afterwards."""
    RULES.load()
    for name in ("_entries", "_origins"):
        kept = {key: one for key, one in getattr(RULES, name).items() if key in BOTH}
        monkeypatch.setattr(RULES, name, kept)
    yield


def written(path: Path, frames: int = 1, second: list[int] = HEALTHY) -> Path:
    """Pages in order, for each frame: counts of x and of y, mean influence and gradient by lag, a state."""
    with Writer(path, RunStart(run="r", title="t")) as writer:
        for name in ("x:health/h", "y:health/h"):
            labels = {"count": COUNTS}
            writer.write(Channel(name=name, kind="health", dims=("count",), shape=(7,), dtype="int64", labels=labels))
        for name in (INFLUENCE, GRADIENT):
            dims, labels = ("statistic", "lag"), {"statistic": ("mean",)}
            writer.write(Channel(name=name, kind="influence", dims=dims, shape=(1, 3), dtype="float64", labels=labels))
        writer.write(Channel(name="x:h", kind="state", dims=("step",), shape=(4,)))
        for frame in range(frames):
            writer.write(Frame(index=frame, label=f"moment {frame}"))
            writer.write(Page("x:health/h", frame, (0,), np.array(HEALTHY)))
            writer.write(Page("y:health/h", frame, (0,), np.array(second)))
            writer.write(Page(INFLUENCE, frame, (0, 0), np.array([[1.0, 0.8, 0.6]])))
            writer.write(Page(GRADIENT, frame, (0, 0), np.array([[1.0, 0.9, 0.8]])))
            writer.write(Page("x:h", frame, (0,), np.ones(4, np.float32)))
            for name, value in (("influence/reference_lag", 0.0), ("influence/reach", 2.0), ("gradient/reach", 2.0)):
                writer.write(Scalar(f"input:{name}", frame, value))
        writer.write(RunStop("done"))
    return path


def judged(path: Path) -> Diagnosis:
    with open_capture(path) as capture:
        return diagnose(capture, capture.frames)


def unjudged(found: Diagnosis) -> dict[str, tuple[str, ...]]:
    """What each rule about frames that could not judge lacks, by channel; the others have nothing to look at here."""
    damaged = [
        one for one in found.unjudged if RULES[one.rule].scope == "frame" and not BEFORE & {*RULES[one.rule].reads}
    ]
    return {one.rule: tuple(damage.channel for damage in one.damage) for one in damaged}


def silent(found: Diagnosis) -> set[str]:
    return {rule for rule in found.silent if RULES[rule].scope == "frame" and not BEFORE & {*RULES[rule].reads}}


def test_a_rule_of_whose_pages_one_is_damaged_has_not_judged(tmp_path: Path) -> None:
    path = written(tmp_path / "a.inspect")
    whole = judged(path)
    assert set(whole.asked) == set(BOTH) and not whole.unjudged and not whole.findings
    flip(path, 1)
    found = judged(path)
    assert found.asked == ("gradient-reach",) and not silent(found) and not found.broken
    assert unjudged(found) == {"nonfinite": ("x:health/h",)}
    assert "x:health/h" in found.unjudged[0].damage[0].sentence


@pytest.mark.parametrize(("page", "name"), [(3, INFLUENCE), (4, GRADIENT)])
def test_so_of_the_other_rule(tmp_path: Path, page: int, name: str) -> None:
    path = written(tmp_path / "a.inspect")
    flip(path, page)
    found = judged(path)
    assert found.asked == ("nonfinite",) and unjudged(found) == {"gradient-reach": (name,)}


def test_what_no_rule_reads_may_be_damaged(tmp_path: Path) -> None:
    path = written(tmp_path / "a.inspect")
    flip(path, 5)
    with open_capture(path) as capture:
        assert capture.verify()
        found = diagnose(capture, capture.frames)
    assert set(found.asked) == set(BOTH) and not found.unjudged


def test_what_is_left_is_judged_all_the_same(tmp_path: Path) -> None:
    path = written(tmp_path / "a.inspect", second=BAD)
    flip(path, 1)
    found = judged(path)
    assert [finding.place for finding in found.findings] == ["y"] and "nonfinite" in unjudged(found)


def test_damage_in_one_frame_of_two_is_enough(tmp_path: Path) -> None:
    path = written(tmp_path / "a.inspect", frames=2)
    flip(path, 6)
    (one,) = judged(path).unjudged
    assert one.rule == "nonfinite" and [(each.channel, each.frame) for each in one.damage] == [("x:health/h", 1)]


@pytest.mark.parametrize(
    ("command", "lacking"),
    [
        ("DELETE FROM channels WHERE id <= 2", BOTH),
        ("DELETE FROM pages WHERE id = 1", BOTH),
        ("UPDATE pages SET checksum = checksum + 1 WHERE id = 1", BOTH),
        ("DELETE FROM frames", BOTH),
        ("DELETE FROM notes", ("gradient-reach",)),
    ],
)
def test_rows_of_the_index_that_are_lost_count_too(tmp_path: Path, command: str, lacking: tuple[str, ...]) -> None:
    """A channel that was lost may have been anybody's; a note may have been a number that a rule reads."""
    path = written(tmp_path / "a.inspect")
    change(path, command)
    found = judged(path)
    assert set(unjudged(found)) == set(lacking) and set(found.asked) == set(BOTH) - set(lacking), found


def test_a_lost_frame_is_one_that_was_not_judged(tmp_path: Path) -> None:
    path = written(tmp_path / "a.inspect", frames=2)
    change(path, "DELETE FROM frames WHERE id = 2")
    assert set(unjudged(judged(path))) == set(BOTH)


def test_a_rule_that_fails_has_not_judged_either(tmp_path: Path) -> None:
    class Fails:
        title, summary, reads = "t", "s", ("state",)
        id, trust, scope, needs, limits, reference = "XX401", "descriptive", "frame", (), (), "a test"

        def findings(self, run: Run, frame: int) -> Iterable[Finding]:
            yield Finding(rule="fails", severity="info", place="x", message=str(run.array("x:h", frame)[0]))
            raise IndexError("cut short")

    RULES.register("fails")(Fails())
    path = written(tmp_path / "a.inspect")
    found = judged(path)
    assert set(found.asked) == set(BOTH) and len(found.broken) == 1 and not found.unjudged
    assert [finding.message for finding in found.findings] == ["1.0"], "what it found before is kept"
    flip(path, 5)
    assert unjudged(judged(path)) == {"fails": ("x:h",)}


def test_a_rule_that_read_nothing_had_nothing_to_look_at(tmp_path: Path) -> None:
    """Kinds are there and pages are not, or not all that it needs: it said nothing of this run."""
    with Writer(tmp_path / "a.inspect", RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0, label="now"))
        labels = {"statistic": ("mean",)}
        for name in (INFLUENCE, GRADIENT):
            dims = ("statistic", "lag")
            writer.write(Channel(name=name, kind="influence", dims=dims, shape=(1, 3), dtype="float64", labels=labels))
        writer.write(Page(INFLUENCE, 0, (0, 0), np.ones((1, 3))))
        labels = {"count": COUNTS}
        writer.write(
            Channel(name="x:health/h", kind="health", dims=("count",), shape=(7,), dtype="int64", labels=labels)
        )
        writer.write(RunStop("done"))
    found = judged(tmp_path / "a.inspect")
    assert not found.asked and silent(found) == set(BOTH) and not found.unjudged


def test_with_fail_on_a_rule_that_failed_is_no_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Fails:
        title, summary, reads = "t", "s", ("state",)
        id, trust, scope, needs, limits, reference = "XX401", "descriptive", "frame", (), (), "a test"

        def findings(self, run: Run, frame: int) -> Iterable[Finding]:
            found = float(run.array("x:h", frame)[0])
            yield Finding(rule="fails", severity="info", place="x", message=f"{found}", evidence=("x:h", "y:h"))
            if found > 0:
                raise IndexError("cut short")

    RULES.register("fails")(Fails())
    path = written(tmp_path / "a.inspect")

    def code(*words: str) -> int:
        monkeypatch.setattr(sys, "argv", ["inspector", "diagnose", str(path), *words])
        return main()

    assert code() == 0 and code("--fail-on", "error") == 1
    assert "IndexError: cut short" in capsys.readouterr().err
    flip(path, 5)
    assert code() == 1
    assert "  evidence: x:h (damaged), y:h\n" in capsys.readouterr().out, "a finding from damaged numbers says so"
    assert code("--damaged") == 0
