"""Trials of cures that are taken out of a capture again: nothing reads them, all else stays, and they can be made anew."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from commands import call

from inspector.analysis.cures import tried
from inspector.capture import CaptureError, Writer, open_capture
from inspector.capture.added import add_trials, forget_trials, tried_in
from inspector.records import Channel, Frame, Page, RunStart, RunStop

NAME = "model:trial/cure/{}"


def run(path: Path, *keys: str, seeds: int = 3, better: float = 1.0) -> Path:
    """A run with trials of these cures, whose loss is lower by `better`, and one other channel."""
    with Writer(path, RunStart(run=path.name, title="t")) as writer:
        writer.write(Frame(index=0, label="0"))
        writer.write(Channel(name="a:state", kind="state", dims=("step",), shape=(4,), dtype="float64"))
        writer.write(Page("a:state", 0, (0,), np.arange(4.0)))
        for key in keys:
            after = np.stack([np.full(seeds, 3.0) + 0.01 * np.arange(seeds), np.full(seeds, 3.0 - better)])
            whole = np.repeat(after[..., None], 5, axis=2)
            for name, dims, values in (
                (NAME.format(key), ("version", "seed", "iteration"), whole),
                (f"{NAME.format(key)}/after", ("version", "seed"), after),
            ):
                writer.write(Channel(name=name, kind="cure", dims=dims, shape=values.shape, dtype="float64", unit="nat",
                                     title=f"{key}: loss", labels={"version": ("as it is", "cured")}))  # fmt: skip
                writer.write(Page(name, 0, (0,) * values.ndim, values))
        writer.write(RunStop("done"))
    return path


def said(path: Path) -> list[tuple[str, str]]:
    with open_capture(path) as capture:
        return [(one.cure, one.outcome) for one in tried(capture)]


def test_one_of_two_trials_goes_and_the_rest_stays(tmp_path: Path) -> None:
    path = run(tmp_path / "a.inspect", "clip", "warm")
    assert said(path) == [("clip", "helped"), ("warm", "helped")]
    with open_capture(path) as capture:
        assert forget_trials(capture, ["clip"]) == ["clip"]
    assert said(path) == [("warm", "helped")]
    with open_capture(path) as capture:
        assert list(tried_in(capture)) == ["warm"] and not capture.damage
        assert np.isnan(np.ma.filled(capture.array(NAME.format("clip")), np.nan)).all()
        np.testing.assert_array_equal(capture.array("a:state"), np.arange(4.0))
        with pytest.raises(CaptureError, match="no trial of 'clip'; there are warm"):
            forget_trials(capture, ["clip"])


def test_a_trial_that_was_forgotten_can_be_made_anew(tmp_path: Path) -> None:
    path = run(tmp_path / "a.inspect", "clip", seeds=5)
    with open_capture(path) as capture:
        forget_trials(capture)
    assert said(path) == []
    with open_capture(path) as capture, open_capture(run(tmp_path / "b.inspect", "clip", better=-1.0)) as again:
        add_trials(capture, again)
    assert said(path) == [("clip", "did harm")]
    with open_capture(path) as capture:
        (one,) = tried(capture)
        assert one.seeds == 3 and one.difference == pytest.approx(-0.99)


def test_the_command_forgets_and_says_what_cannot_be(tmp_path: Path) -> None:
    run(tmp_path / "a.inspect", "clip", "warm")
    assert call("try", "a.inspect", "--forget", "--cure", "warm", cwd=tmp_path).stdout.endswith("warm forgotten.\n")
    assert said(tmp_path / "a.inspect") == [("clip", "helped")]
    assert "clip forgotten" in call("try", "a.inspect", "--forget", cwd=tmp_path).stdout
    assert "has no trials; nothing has changed" in call("try", "a.inspect", "--forget", cwd=tmp_path).stdout
    assert (
        "has no trial of 'clip'"
        in call("try", "a.inspect", "--forget", "--cure", "clip", cwd=tmp_path, expect=2).stderr
    )
    assert "is none" in call("try", "char-lstm", "--forget", cwd=tmp_path, expect=2).stderr
