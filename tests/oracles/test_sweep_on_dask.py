"""A sweep on a cluster of dask's own processes gives what one gives here, bit for bit."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from sweeping import ONLY, checkpoints, content, subject, times_made, weights

import inspector
from inspector.engine.errors import CancelledError, InputError
from inspector.engine.session.sweep import cluster as clusters
from inspector.records import Frame, Load, Run, SweepFrame


@contextmanager
def cluster(distributed: Any) -> Iterator[str]:
    """The address of a scheduler with two processes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with distributed.LocalCluster(
            n_workers=2, threads_per_worker=2, processes=True, dashboard_address=None
        ) as running:
            yield running.scheduler_address


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("library", ["distributed"], indirect=True)
def test_a_cluster_gives_what_this_process_gives(tmp_path: Path, library: Any) -> None:
    folder = checkpoints(tmp_path / "run", (0, 10, 200, 3000, 40000))
    (folder / "model-10.pt").write_bytes((folder / "model-10.pt").read_bytes()[:500])
    torch.save({"model": weights(3, 98.0), "step": 300}, folder / "model-300.pt")
    named, out = subject(tmp_path), tmp_path / "s.inspect"
    with inspector.sweep(folder, named, "abca", only=ONLY) as here, cluster(library) as address:
        times_made(tmp_path)
        with inspector.sweep(folder, named, "abca", only=ONLY, scheduler=address, out=out) as there:
            assert content(here) == content(there)
            assert [frame.step for frame in there.frames] == [0, 10, 200, 300, 3000, 40000]
        assert times_made(tmp_path) == 7, "once here, and once a frame"
        checkpoints(folder, (50000,))
        with inspector.sweep(folder, named, "abca", only=ONLY, scheduler=address, out=out) as more:
            assert [frame.step for frame in more.frames][-1] == 50000
        assert times_made(tmp_path) == 2


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("library", ["distributed"], indirect=True)
def test_no_scheduler_is_told(tmp_path: Path, library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspector.engine.session.sweep.cluster.SECONDS", 1)
    folder = checkpoints(tmp_path / "run", (0,))
    with pytest.raises(InputError, match=r"There is no dask scheduler at tcp://127\.0\.0\.1:9 \("):
        inspector.sweep(folder, subject(tmp_path), "abca", only=ONLY, scheduler="tcp://127.0.0.1:9")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("library", ["distributed"], indirect=True)
def test_a_cancelled_sweep_ends_the_frames_that_are_being_computed(
    library: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two frames one is being computed and one waits for it; neither goes on."""
    began: list[int] = []
    ended: list[str] = []

    def compute(task: Any, _sink: Any, _maker: Any, cancelled: Callable[[], bool], _progress: Any) -> str:
        began.append(task.frame.index)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if cancelled():
                ended.append("cancelled")
                raise CancelledError
            time.sleep(0.01)
        ended.append("computed")
        return ""

    monkeypatch.setattr(clusters, "compute", compute)
    monkeypatch.setattr(clusters, "ASK_SECONDS", 0.05)
    with library.LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None) as running:
        frames = clusters.Cluster(running.scheduler_address)
        frames.connect()
        for n in range(2):
            frames.submit(SweepFrame(load=Load(subject="x"), run=Run(path="never"), frame=Frame(index=n)))
        until = time.monotonic() + 30
        while not began:
            assert time.monotonic() < until
            time.sleep(0.01)
        frames.close()
        with clusters._one_at_a_time:
            assert ended == ["cancelled"]
        time.sleep(0.3)
        assert len(began) == 1
