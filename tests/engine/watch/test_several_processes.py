"""Data-parallel and sharded trainings in two processes: right norms, one collective, nobody waits for ever."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from processes import WORLD, Together
from torch import nn

import inspector
from inspector.engine.watch.processes.ranks import longest_wait
from inspector.records import FINGERPRINTS

pytestmark = pytest.mark.timeout(600)  # three tries to meet, then a case


@pytest.fixture(scope="module")
def together() -> Iterator[Together]:
    both = Together()
    yield both
    both.close()


def alone(
    folder: Path, clip: bool, name: str = "alone", prints: bool = False, other: int = -1, width: int = 7
) -> inspector.capture.Capture:  # type: ignore[name-defined]
    """The same training in one process on both halves of each batch; `other`: an iteration whose gradient is changed."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, width), nn.Tanh(), nn.Linear(width, 3), nn.Linear(3, 1))
    optimizer = torch.optim.AdamW(model.parameters(), 0.01)
    x = torch.randn(WORLD, 40, 6, 5, generator=torch.Generator().manual_seed(1))
    with inspector.watch(model, optimizer, folder / f"{name}.inspect", every=2, fingerprints=prints):
        for n in range(40):
            model(x[:, n].flatten(0, 1)).square().mean().backward()
            if clip:
                nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            if n + 1 == other:
                model[2].weight.grad[1, 3] += 0.01  # type: ignore[index]
            optimizer.step()
            optimizer.zero_grad()
    return inspector.open_capture(folder / f"{name}.inspect")


@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_norms_are_those_of_the_whole_model(together: Together, kind: str, tmp_path: Path) -> None:
    watched = together.run(kind, tmp_path)
    assert [one["bits"] for one in watched] == together.plain(kind, tmp_path)
    assert [one["error"] for one in watched] == [None, None]
    assert [one["path"] for one in watched] == [str(tmp_path / "run.inspect"), "None"]
    with inspector.open_capture(tmp_path / "run.inspect") as capture, alone(tmp_path, kind == "ddp") as whole:
        recorded = len(capture.array("training:iteration"))
        assert [one["collectives"] for one in watched] == [recorded] * WORLD
        assert capture.array("training:iteration").tolist() == whole.array("training:iteration").tolist()
        assert capture.labels("parameter") == whole.labels("parameter")
        assert np.allclose(capture.array("training:loss"), whole.array("training:loss"), rtol=1e-4)
        for name in whole.channels:
            if name.startswith("parameters:") or name == "training:gradient_norm":
                ours, theirs = capture.array(name), whole.array(name)
                assert ours.shape == theirs.shape and np.allclose(ours, theirs, rtol=2e-3, atol=1e-7), name
        assert capture.start.meta["training"]["processes"] == WORLD


@pytest.mark.parametrize("case", ["ddp time", "ddp one", "fsdp one", "ddp fails", "fsdp fails", "ddp closes"])
def test_nobody_waits_for_ever(together: Together, case: str, tmp_path: Path) -> None:
    watched = together.run(case, tmp_path)
    assert [one["bits"] for one in watched] == together.plain(case.split()[0], tmp_path)
    first, second = watched
    if "one" in case:
        assert first["collectives"] == 0 and first["error"] is None
    if "fails" in case:
        assert "division by zero" in second["error"] and "another process" in first["error"]
        assert first["stderr"].count("inspector: watching ended") == 1
    if "time" in case:
        assert first["collectives"] == second["collectives"] > 0 and first["error"] is None
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        assert capture.status == "done"


@pytest.mark.parametrize("case", ["ddp waits", "fsdp waits", "ddp waits short", "ddp waits group"])
def test_all_wait_together_and_not_longer_than_a_collective(together: Together, case: str, tmp_path: Path) -> None:
    """The first process waits, the others do at their next collective, which does not fail."""
    watched = together.run(case, tmp_path)
    assert [one["bits"] for one in watched] == together.plain(case.split()[0], tmp_path)
    assert [one["error"] for one in watched] == [None, None]
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        paused = [one for one in capture.events if one.kind == "paused"]
        assert paused[0].iteration == 7 and len(paused) == (2 if "short" in case else 1)
        assert {7, paused[-1].iteration} <= set(capture.array("training:iteration").tolist())
        assert paused[0].text == f"iteration 7; it goes on by itself after {'0 s' if case.endswith('waits') else '2 s'}"


def test_the_longest_wait_is_half_of_what_a_collective_waits() -> None:
    assert longest_wait() is None  # of one process


@pytest.mark.parametrize("case", ["fsdp prints", "fsdp prints columns"])
def test_a_sharded_training_is_compared_with_one_in_one_process(together: Together, case: str, tmp_path: Path) -> None:
    """Fingerprints of shards add up to those of the whole, by rows and by columns, some of which not all have."""
    watched = together.run(case, tmp_path)
    width = 8 if "columns" in case else 7
    assert [one["error"] for one in watched] == [None, None]
    with (
        inspector.open_capture(tmp_path / "run.inspect") as capture,
        alone(tmp_path, False, prints=True, width=width) as whole,
    ):
        for word in ("start", "gradient", "weight"):
            ours, theirs = (one.array(f"{FINGERPRINTS}/{word}") for one in (capture, whole))
            known = np.isfinite(theirs)
            assert ours.shape == theirs.shape and (np.isfinite(ours) == known).all()
            rtol = 1e-12 if word == "start" else 1e-4
            assert np.allclose(ours[known], theirs[known], rtol=rtol, atol=1e-12 if word == "start" else 1e-5)
    same = inspector.first_divergence(tmp_path / "run.inspect", tmp_path / "alone.inspect")
    assert same.trainings is not None and same.trainings.by == "fingerprints" and not same.differs
    with alone(tmp_path, False, "other", prints=True, other=20, width=width):
        pass
    found = inspector.first_divergence(tmp_path / "run.inspect", tmp_path / "other.inspect")
    assert found.trainings is not None and found.trainings.parting is not None
    parting = found.trainings.parting
    assert (parting.word, parting.iteration, parting.name) == ("gradient", 20, "2.weight")


@pytest.mark.parametrize("case", ["fsdp one prints"])
def test_parts_that_nobody_adds_up_are_no_fingerprints(together: Together, case: str, tmp_path: Path) -> None:
    first, _ = together.run(case, tmp_path)
    assert first["error"] is None
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        assert capture.extent("training:loss") and not any(one.startswith(FINGERPRINTS) for one in capture.channels)
