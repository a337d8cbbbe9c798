"""Questions about a run that has ended: answered from its trace, with the numbers that the run itself would have
given, and where that cannot be, with one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from asked_later import KINDS, SPEC, Asked, held

from inspector.capture import Writer, open_capture
from inspector.engine.errors import InputError
from inspector.engine.registries import QUANTITIES
from inspector.engine.session import later
from inspector.engine.session import service as module
from inspector.records import Edit, Failure, Finished, Run, RunStop


@pytest.mark.parametrize("kind", KINDS)
def test_asked_later_is_bit_identical_to_asked_at_once(tmp_path: Path, kind: str) -> None:
    asked = Asked(tmp_path, kind)
    # what is tested before a training calls the model again and again, and has tests of its own
    everything = tuple(key for key in QUANTITIES if not key.startswith(("structure/", "trial/")))
    whole = asked.run("whole", *everything)
    path = asked.run("later", "states", "clipping")
    before = asked.calls
    again = {  # which run the model again, whenever they are asked
        "influence", "depth/parameters", "operations", "attention/against_gradient", "attention/cost",
        "attention/direct_logit", "attention/gradient", "attention/value_zeroing", "residual", "residual/gradient",
        "residual/lens", "residual/sensitivity", "attention/head_types", "attention/relevance", "attention/rollout",
        "attention/weighted_norm", "positions",
    }  # fmt: skip
    with open_capture(path) as live:
        few = set(live.channels)
        answer = asked.ask(path, *(key for key in everything if key not in again))
        assert isinstance(answer, Finished) and answer.stop.status == "done", answer
        assert asked.calls == before
        assert live.changed() and live.refresh() > frozenset()
        assert set(live.channels) > few, "an open capture does not see what was added"
    assert asked.ask(path, *again).stop.status == "done"
    with open_capture(whole) as first, open_capture(path) as second:
        expected, found = held(first), held(second)
        assert expected.keys() == found.keys() and len(expected) > 15
        assert [key for key in expected if expected[key] != found[key] and "seconds" not in key[0]] == []
        assert {c.name: c for c in first.channels.values()} == {c.name: c for c in second.channels.values()}
        scalars = [{(s.name, repr(s.value)) for s in one.scalars if "seconds" not in s.name} for one in (first, second)]
        assert scalars[0] == scalars[1]
        assert {(r.channel, r.reason) for r in first.refusals} == {(r.channel, r.reason) for r in second.refusals}
        assert second.status == "done" and not second.damage and len(second.frames) == 1


def test_both_frames_of_an_edited_run_are_answered(tmp_path: Path) -> None:
    asked = Asked(tmp_path, "fused")
    edits = (Edit(place="rnn.l0", signal="gate/forget", unit=1, value=0.0, start=3, stop=6),)
    whole = asked.run("whole", "states", "gates", "jacobian/lag", "influence", edits=edits)
    path = asked.run("later", "states", edits=edits)
    assert isinstance(asked.ask(path, "gates", "jacobian/lag", "influence"), Finished)
    with open_capture(whole) as first, open_capture(path) as second:
        assert held(first) == held(second) and len(first.frames) == 2
        assert not np.array_equal(second.array("rnn.l0:gate/forget", 0), second.array("rnn.l0:gate/forget", 1))


def test_what_was_computed_is_not_computed_twice(tmp_path: Path) -> None:
    asked = Asked(tmp_path, "fused")
    path = asked.run("a", "states")
    asked.ask(path, "states", "gates")
    with open_capture(path) as capture:
        pages = held(capture)
    assert asked.ask(path, "gates").stop.message == "gates: computed in this run already."
    with open_capture(path) as capture:
        assert held(capture) == pages and not capture.damage


def needs_run(answer: Any) -> str:
    assert isinstance(answer, Failure) and answer.kind == "needs run", answer
    return answer.message


def test_why_a_new_run_is_needed_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(tmp_path, "fused")
    path = asked.run("a", "states")
    said = needs_run(asked.ask(path, "clipping", "gates"))
    assert said == (
        "clipping needs the gradients of all parameters, which a run stores only if it is requested from the start."
    )
    assert isinstance(asked.ask(path, "gates", "gradient/vectors@0:2"), Finished)
    said = needs_run(asked.ask(path, "gradient/vectors@0:3"))
    assert said.startswith("gradient/vectors@0:3 was computed in this run with other options")
    another = tmp_path / "another.inspect"
    assert (
        needs_run(asked.ask(another, "jacobian/lag"))
        == "The run that is stored in memory is that of a.inspect, so jacobian/lag needs a new run."
    )
    unknown = asked.ask(path, "nonsense")
    assert isinstance(unknown, Failure) and unknown.kind == "input" and "no quantity 'nonsense'" in unknown.message
    asked.open("loop")
    assert (
        needs_run(asked.ask(path, "jacobian/lag"))
        == "No run of this model is stored in memory, so jacobian/lag needs a new run."
    )
    monkeypatch.setattr(later, "MOST_BYTES", 1000)
    path = asked.run("b", "states")
    assert "too large to be stored in memory" in needs_run(asked.ask(path, "jacobian/lag", "gates"))
    assert needs_run(asked.ask(path, "jacobian/lag", "gates")).endswith("so jacobian/lag, gates need a new run.")


def test_options_of_a_quantity_count_and_one_capture_holds_it_once(tmp_path: Path) -> None:
    asked = Asked(tmp_path, "fused")
    whole = asked.run("whole", "states", "gradient/vectors@2:5")
    path = asked.run("later", "states")
    assert isinstance(asked.ask(path, "gradient/vectors@2:5"), Finished)
    with open_capture(whole) as first, open_capture(path) as second:
        assert held(first) == held(second) and len(held(first)) > 6
    assert "already" in asked.ask(path, "gradient/vectors@2:5").stop.message
    said = "gradient/vectors@5:7 was computed in this run with other options, and one capture holds it once."
    assert needs_run(asked.ask(path, "gradient/vectors@5:7")) == said
    wrong = asked.ask(path, "gradient/vectors@5:2")
    assert isinstance(wrong, Failure) and wrong.kind == "input"


def test_a_question_that_is_cancelled_leaves_the_run_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(tmp_path, "fused")
    path = asked.run("a", "states")
    gates = QUANTITIES["gates"]

    def stopped(trace: Any, emit: Any) -> None:
        gates.run(trace, emit)
        asked.service.cancel()

    monkeypatch.setitem(QUANTITIES._entries, "gates", module.replace(gates, run=stopped))
    asked.service.received()
    answer = asked.ask(path, "gates", "jacobian/lag")
    assert isinstance(answer, Finished) and answer.stop.status == "cancelled"
    with open_capture(path) as capture:
        assert capture.status == "done" and "rnn.l0:gate/forget" in capture.channels and not capture.damage
        assert "rnn.l0:jacobian/lag" not in capture.channels


def test_what_a_cancel_cut_short_is_computed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(tmp_path, "fused")
    whole = asked.run("whole", "states", "gates", "jacobian/lag")
    path = asked.run("a", "states")
    gates = QUANTITIES["gates"]

    def stopped(trace: Any, emit: Any) -> None:
        gates.run(trace, emit)
        emit.refuse("rnn.l0:nothing", "It is said once.")
        asked.service.cancel()
        emit.check()

    monkeypatch.setitem(QUANTITIES._entries, "gates", module.replace(gates, run=stopped))
    asked.service.received()
    for _ in range(2):
        assert asked.ask(path, "jacobian/lag", "gates").stop.status == "cancelled"
        asked.service.received()
    monkeypatch.setitem(QUANTITIES._entries, "gates", gates)
    answer = asked.ask(path, "jacobian/lag", "gates")
    assert isinstance(answer, Finished) and answer.stop.status == "done", "what was cut short is computed again"
    with open_capture(whole) as first, open_capture(path) as second:
        assert held(first) == held(second) and not second.damage
        assert [refusal.channel for refusal in second.refusals].count("rnn.l0:nothing") == 1


def test_a_run_that_was_replaced_on_disk_is_not_added_to(tmp_path: Path) -> None:
    asked = Asked(tmp_path, "fused")
    path = asked.run("a", "states")
    with open_capture(path) as capture:
        start = capture.start
    with Writer(path, module.replace(start, run="another"), overwrite=True) as writer:
        writer.write(RunStop("done"))
    answer = asked.ask(path, "gates")
    assert isinstance(answer, Failure) and "holds the capture of another run by now" in answer.message
    with open_capture(path) as capture:
        assert capture.start.run == "another" and not capture.channels


def test_another_run_lets_go_of_the_one_before_it_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(tmp_path, "fused")
    asked.run("a", "states")
    assert asked.service._kept.frames
    kept: list[int] = []

    def refused(*_: object) -> None:
        kept.append(len(asked.service._kept.frames))
        raise InputError("No such input.")

    monkeypatch.setattr(module, "batch_of_spec", refused)
    asked.service.serve(Run(path=str(tmp_path / "b.inspect"), input=SPEC))
    assert kept == [0]


def test_tensors_are_counted_once_however_often_they_are_reached() -> None:
    import torch
    from torch import nn

    one = torch.zeros(1000)
    assert later.tensor_bytes([one, {"a": one[10:20]}, (one, nn.Linear(50, 50))]) == 4000
