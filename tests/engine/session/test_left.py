"""What a run leaves to be computed when it is looked at: named in the capture, the same numbers, its cost told before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from asked_later import SPEC, Asked, held

from inspector.capture import Capture, open_capture
from inspector.engine.registries import QUANTITIES
from inspector.engine.session import later
from inspector.engine.session import service as module
from inspector.records import SECONDS, Analyse, Edit, Finished, Run, RunStop, decode, encode

DEFAULT = [key for key, entry in QUANTITIES.items() if entry.default]
EDITS = (Edit(place="rnn.l0", signal="gate/forget", unit=1, value=0.0, start=3, stop=6),)


def run(asked: Asked, name: str, now: tuple[str, ...] | None, **more: Any) -> tuple[Path, Finished]:
    """A run with the default quantities, of which only `now` are computed in it."""
    path = asked.folder / f"{name}.inspect"
    asked.service.serve(Run(path=str(path), input=SPEC, now=now, seed=4, **more))
    answer = asked.said[-1]
    assert isinstance(answer, Finished), answer
    return path, answer


def ask(asked: Asked, path: Path, *keys: str) -> Finished:
    asked.service.serve(Analyse(path=str(path), quantities=keys))
    answer = asked.said[-1]
    assert isinstance(answer, Finished), answer
    return answer


def stop_of(path: Path) -> RunStop:
    with open_capture(path) as capture:
        assert capture.stop is not None and not capture.damage
        return capture.stop


def scalars(capture: Capture) -> set[tuple[str, int, str]]:
    return {(s.name, s.frame, repr(s.value)) for s in capture.scalars if "seconds" not in s.name}


@pytest.mark.parametrize("kind", ["fused", "loop", "attention"])
def test_what_is_left_is_named_and_gives_the_same_numbers_later(tmp_path: Path, kind: str) -> None:
    asked = Asked(tmp_path, kind)
    whole, _ = run(asked, "whole", None)
    path, answer = run(asked, "later", ("states", "input"))
    assert set(answer.stop.left) == set(DEFAULT) - {"states", "input"} and stop_of(path).left == answer.stop.left
    assert stop_of(whole).left == ()
    before = asked.calls
    for number, key in enumerate(answer.stop.left):
        assert ask(asked, path, key).stop.left == answer.stop.left[number + 1 :] == stop_of(path).left
    assert asked.calls == before, "the model does not run again"
    with open_capture(whole) as first, open_capture(path) as second:
        assert held(first) == held(second) and len(held(first)) > 10
        assert scalars(first) == scalars(second)
        assert {(r.channel, r.reason) for r in first.refusals} == {(r.channel, r.reason) for r in second.refusals}


def test_both_frames_of_an_edited_run_are_left_together(tmp_path: Path) -> None:
    asked = Asked(tmp_path, "fused")
    path, answer = run(asked, "a", ("states",), only=("states", "gates", "jacobian/lag"), edits=EDITS)
    assert answer.stop.left == ("gates", "jacobian/lag")
    assert ask(asked, path, "gates").stop.left == ("jacobian/lag",)
    with open_capture(path) as capture:
        assert not np.array_equal(capture.array("rnn.l0:gate/forget", 0), capture.array("rnn.l0:gate/forget", 1))


def test_a_run_that_is_too_large_to_be_stored_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(tmp_path, "fused")
    monkeypatch.setattr(later, "MOST_BYTES", 1000)
    path, answer = run(asked, "a", ("states",))
    assert answer.stop.left == () == stop_of(path).left
    with open_capture(path) as capture:
        assert "rnn.l0:jacobian/lag" in capture.channels
        assert any("too large to be stored" in log.text for log in capture.logs)


def test_of_two_frames_the_one_with_room_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(tmp_path, "fused")
    asked.service.serve(Run(path=str(tmp_path / "size.inspect"), input=SPEC, now=(), only=("gates",), seed=4))
    size = sum(asked.service._kept._judged.values())
    monkeypatch.setattr(later, "MOST_BYTES", size + size // 8)
    path, answer = run(asked, "a", ("states",), only=("states", "gates"), edits=EDITS)
    with open_capture(path) as capture:
        assert capture.revision("rnn.l0:gate/forget", 1) and "gates" in answer.stop.left
    assert ask(asked, path, "gates").stop.left == ()
    with open_capture(path) as capture:
        assert capture.revision("rnn.l0:gate/forget", 0)
    refused = asked.ask(path, "jacobian/lag")
    assert refused.kind == "needs run" and "too large" in refused.message


def test_a_run_that_was_cancelled_names_what_it_did_not_compute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked(tmp_path, "fused")
    gates = QUANTITIES["gates"]

    def stopped(trace: Any, emit: Any) -> None:
        gates.run(trace, emit)
        asked.service.cancel()
        emit.check()

    monkeypatch.setitem(QUANTITIES._entries, "gates", module.replace(gates, run=stopped))
    asked.service.received()
    path, answer = run(asked, "a", None, only=("states", "gates", "jacobian/lag"))
    assert answer.stop.status == "cancelled" and stop_of(path).left == ("gates", "jacobian/lag")


def test_seconds_are_told_after_and_before(tmp_path: Path) -> None:
    asked = Asked(tmp_path, "fused")
    path, answer = run(asked, "a", ("states", "jacobian/lag"))
    with open_capture(path) as capture:
        told = {s.name: s.value for s in capture.scalars if s.name.startswith(SECONDS)}
    assert set(told) == {f"{SECONDS}states", f"{SECONDS}jacobian/lag"} and min(told.values()) > 0
    declared = {key for key, entry in QUANTITIES.items() if entry.work is not None} - {"jacobian/lag"}
    declared -= {"latent/hidden_markov", "latent/kalman"}  # of modules that an LSTM has none of
    assert set(answer.costs) == declared - {"gradient/vectors"} | ({"gradient/vectors"} & set(answer.costs))
    assert min(answer.costs.values()) > 0
    assert ask(asked, path, "jacobian/spectral_norm").costs.keys() == answer.costs.keys() - {"jacobian/spectral_norm"}


def test_an_older_record_of_the_end_leaves_nothing() -> None:
    old = encode(RunStop("done", "", 1.0)).replace(b', "left": []', b"")
    assert b"left" not in old and decode(old) == RunStop("done", "", 1.0)
    assert decode(encode(RunStop("done", left=("a", "b@1:2")))).left == ("a", "b@1:2")
