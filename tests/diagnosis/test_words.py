"""What is said of a diagnosis as a whole: "nothing" only where no rule has still to judge."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from inspector.diagnosis import RULES, Diagnosis
from inspector.diagnosis.words import by_reason, in_a_sentence, in_frames, not_looked, told_once
from inspector.records import Channel, Finding, Place, RunStart, RunStop, Scalar

NOTHING = Diagnosis(findings=(), asked=("nonfinite",), silent=(), broken=())


@dataclass
class View:
    """What `not_looked` reads of a capture."""

    stop: RunStop | None = field(default_factory=lambda: RunStop("done"))
    status: str = "done"
    channels: dict[str, Channel] = field(default_factory=dict)
    scalars: list[Scalar] = field(default_factory=list)
    start: RunStart = field(default_factory=lambda: RunStart(run="r", title="t", places=(Place(name="", module="M"),)))


def finding(severity: Any, place: str = "rnn", frame: int = -1, number: str = "IN402") -> Finding:
    return Finding(rule="r", id=number, severity=severity, place=place, message=f"{severity} {frame}", frame=frame)


def test_one_finding_that_repeats_over_frames_is_told_once_as_the_worst_of_them() -> None:
    found = told_once(
        [finding("info", frame=0), finding("warning", frame=1), finding("warning", frame=2), finding("error", "head")]
    )
    assert [(one.finding.place, one.finding.severity, one.frames) for one in found] == [
        ("head", "error", ()),
        ("rnn", "warning", (0, 1, 2)),
    ]
    assert found[1].finding.message == "warning 2"
    labels = {0: "iteration 0", 1: "iteration 5", 2: "", 3: "iteration 9"}
    assert [in_frames(one, labels) for one in found] == ["", "3 of 4 frames, iteration 0 to frame 2"]
    assert in_frames(found[1], {0: "the only one"}) == ""


def test_several_findings_in_one_frame_stay_several_and_keep_their_names() -> None:
    """Two runs of a folder of logs that do not fall, and two kinds of missing gradients, are of one rule and place."""
    found = told_once([finding("info", frame=frame) for frame in (0, 0, 1, 2, 2)])
    assert [(one.name, one.frames) for one in found] == [("IN402@rnn", (0, 1, 2)), ("IN402@rnn#2", (0, 2))]
    runs = told_once([finding("warning", ""), finding("warning", "")])
    assert [one.name for one in runs] == ["IN402@", "IN402@#2"]


def test_nothing_is_not_said_while_a_rule_has_still_to_judge() -> None:
    everything = set(RULES)
    silent = Diagnosis(findings=(), asked=("nonfinite",), silent=tuple(everything - {"nonfinite"}), broken=())
    left = View(stop=RunStop("done", left=("influence",)))
    waiting = not_looked(silent, left, everything)
    assert {one.needs for one in waiting if one.pending} == {("influence",)}
    assert "Nothing" not in in_a_sentence(silent, waiting) and "not evaluated yet" in in_a_sentence(silent, waiting)
    asked_for = not_looked(silent, View(), everything, coming={"trial/one_batch"})  # more, of a run that has ended
    assert {one.key for one in asked_for if one.pending} == {"one-batch"}
    assert "Nothing" not in in_a_sentence(silent, asked_for) and "1 rule not evaluated" in in_a_sentence(
        silent, asked_for
    )
    running = not_looked(silent, View(stop=None, status="running"), everything)
    assert all(one.pending for one in running) and "Nothing" not in in_a_sentence(silent, running)
    later = not_looked(silent, View(), everything, again=True)
    assert all(one.pending for one in later) and "Nothing" not in in_a_sentence(silent, later)
    unasked = not_looked(NOTHING, View(), {"nonfinite"})
    assert {one.key for one in unasked} == everything - {"nonfinite"} and all(one.pending for one in unasked)
    assert "Nothing" not in in_a_sentence(NOTHING, unasked)


def test_with_nothing_wrong_it_says_what_looked_and_why_the_others_did_not() -> None:
    everything = set(RULES)
    silent = Diagnosis(
        findings=(), asked=("nonfinite",), silent=tuple(everything - {"nonfinite", "loss-spike"}), broken=(),
        short=("loss-spike (3 of 51 points)",),
    )  # fmt: skip
    lacking = not_looked(silent, View(), everything)
    assert in_a_sentence(silent, lacking) == (
        f"Nothing found by the rules that looked: 1 rule looked, {len(everything) - 1} could not"
    )
    reasons = dict(by_reason(lacking))
    assert reasons["too few points: 3 of 51 points"] == ["Spikes of the loss"]
    assert "no training was recorded" in reasons and "Reads the future (structure/causal)" in reasons["not computed"]
    made = View(scalars=[Scalar("run:seconds/structure/causal", 0, 0.1)])  # it was, and the model has no such thing
    reasons = dict(by_reason(not_looked(silent, made, everything)))
    assert "Reads the future" in reasons["the model has nothing of the kind, or it was not recorded"]
    log = View(start=RunStart(run="r", title="t", meta={"log": {}}), channels={"log:loss": Channel(name="log:loss", kind="series", dims=("iteration",), shape=(None,))})  # fmt: skip
    assert "a log has no states, gradients or weights" in dict(by_reason(not_looked(silent, log, everything)))


def test_counts_are_in_words_and_muted_findings_are_counted() -> None:
    said = Diagnosis(
        findings=(finding("error"), finding("warning", "a"), finding("warning", "b"), finding("info", "c")),
        asked=("nonfinite",), silent=(), broken=(), muted=(finding("info", "d"),),
    )  # fmt: skip
    assert in_a_sentence(said, []) == (
        "1 error, 2 warnings, 1 for information; 1 rule looked; 1 finding muted by the project"
    )
    assert in_a_sentence(Diagnosis((), (), (), ()), []) == "No rule had anything to look at"
